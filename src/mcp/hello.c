/* Who we are and what we can do, in both eras. */
#include <string.h>

#include "base/defs.h"
#include "mcp/peer.h"

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
    struct mcp_peer *p = q->peer;
    const char *name = json_string_value(json_object_get(info, "name"));
    if (p->knows_client || !name || !*name || strlen(name) > CLIENT_NAME_MAX)
        return;
    p->knows_client = nacre_session_set_client(p->session, name, NULL) >= 0;
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
    struct mcp_peer *p = q->peer;
    const char *wanted = mcp_require(q, "protocolVersion");
    if (!wanted)
        return;
    const char *version = negotiate(wanted);
    p->initialized = true;
    mcp_note_client(q, json_object_get(q->params, "clientInfo"));
    p->version = version;
    mcp_note_elicitation(p, json_object_get(q->params, "capabilities"), version);
    p->takes_batches = strcmp(version, batch_version) == 0;
    p->omits_ids = strcmp(version, idless_version) == 0;
    mcp_reply(q, json_pack("{s:s, s:o, s:o, s:o*}", "protocolVersion", version, "capabilities",
                           p->table->capabilities(), "serverInfo", mcp_server_info(p),
                           "instructions", p->table->instructions(p)));
}

void mcp_discover(const struct mcp_request *q)
{
    const struct mcp_peer *p = q->peer;
    mcp_reply_cacheable(q,
                        json_pack("{s:[s], s:o, s:o*}", "supportedVersions", MCP_MODERN,
                                  "capabilities", p->table->capabilities(), "instructions",
                                  p->table->instructions(p)),
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
    q->peer->level = level;
    mcp_reply(q, json_object());
}
