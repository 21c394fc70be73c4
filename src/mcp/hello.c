/* Who we are and what we can do, in both eras. */
#include <string.h>

#include "base/defs.h"
#include "mcp/server.h"

#define DISCOVER_TTL_MS 3600000
#define CLIENT_NAME_MAX 64

/* Newest first: it is offered to who asks for one that is not known. */
static const char *const legacy_versions[] = {
    "2025-11-25",
    "2025-06-18",
    "2025-03-26",
    "2024-11-05",
};

static const char batch_version[] = "2025-03-26";
static const char idless_version[] = "2025-11-25"; /* errors may be without an id from then on */

static const char *const levels[LOG_LEVELS] = {"debug", "info",     "notice", "warning",
                                               "error", "critical", "alert",  "emergency"};

enum log_level mcp_level_find(const char *name)
{
    int i = 0;
    while (i < LOG_LEVELS && (!name || strcmp(levels[i], name) != 0))
        i++;
    return (enum log_level)i;
}

/* Who works here, for people who list sessions. In the modern era each request may say it. */
void mcp_note_client(const struct mcp_request *q, const json_t *info)
{
    struct mcp_server *s = q->server;
    const char *name = json_string_value(json_object_get(info, "name"));
    if (s->knows_client || !name || !*name || strlen(name) > CLIENT_NAME_MAX)
        return;
    s->knows_client = nacre_session_set_client(s->session, name, NULL) >= 0;
}

static json_t *make_capabilities(void)
{
    return json_pack("{s:{}, s:{s:b}, s:{}, s:{}}", "tools", "resources", "subscribe", 1,
                     "completions", "logging");
}

static json_t *make_instructions(const struct mcp_request *q)
{
    cleanup_free char *text = NULL;
    return nacre_instructions(q->server->session, &text, NULL) < 0 ? NULL : json_string(text);
}

static const char *negotiate(const char *wanted)
{
    for (size_t i = 0; i < ARRAY_SIZE(legacy_versions); i++)
        if (strcmp(legacy_versions[i], wanted) == 0)
            return legacy_versions[i];
    return legacy_versions[0];
}

void mcp_initialize(const struct mcp_request *q)
{
    struct mcp_server *s = q->server;
    const char *wanted = mcp_require(q, "protocolVersion");
    if (!wanted)
        return;
    const char *version = negotiate(wanted);
    s->initialized = true;
    mcp_note_client(q, json_object_get(q->params, "clientInfo"));
    s->takes_batches = strcmp(version, batch_version) == 0;
    s->omits_ids = strcmp(version, idless_version) == 0;
    mcp_reply(q, json_pack("{s:s, s:o, s:o, s:o*}", "protocolVersion", version, "capabilities",
                           make_capabilities(), "serverInfo", mcp_server_info(), "instructions",
                           make_instructions(q)));
}

void mcp_discover(const struct mcp_request *q)
{
    mcp_reply_cacheable(q,
                        json_pack("{s:[s], s:o, s:o*}", "supportedVersions", MCP_MODERN,
                                  "capabilities", make_capabilities(), "instructions",
                                  make_instructions(q)),
                        DISCOVER_TTL_MS, true);
}

void mcp_ping(const struct mcp_request *q)
{
    mcp_reply(q, json_object());
}

void mcp_set_level(const struct mcp_request *q)
{
    enum log_level level = mcp_level_find(mcp_param(q, "level"));
    if (level == LOG_LEVELS) {
        mcp_fail_params(q, "level must be one of " MCP_LEVELS);
        return;
    }
    q->server->level = level;
    mcp_reply(q, json_object());
}
