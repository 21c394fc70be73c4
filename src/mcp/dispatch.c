/* From a line to the method that answers it, and the shape of every answer. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/defs.h"
#include "mcp/server.h"
#include "text/brief.h"

#define LOGGED_MAX 2000 /* bytes of a message that the log shows */

enum { LEGACY = 1, MODERN = 2, BOTH = LEGACY | MODERN };

static const struct method {
    const char *name;
    int eras;
    void (*answer)(const struct mcp_request *q);
} methods[] = {
    {"tools/call", BOTH, mcp_call_tool},
    {"tools/list", BOTH, mcp_list_tools},
    {"initialize", LEGACY, mcp_initialize},
    {"server/discover", MODERN, mcp_discover},
    {"ping", LEGACY, mcp_ping},
    {"logging/setLevel", LEGACY, mcp_set_level},
    {"resources/list", BOTH, mcp_list_resources},
    {"resources/templates/list", BOTH, mcp_list_templates},
    {"resources/read", BOTH, mcp_read_resource},
    {"resources/subscribe", LEGACY, mcp_subscribe},
    {"resources/unsubscribe", LEGACY, mcp_unsubscribe},
    {"subscriptions/listen", MODERN, mcp_listen},
    {"completion/complete", BOTH, mcp_complete},
};

/* -- Answers ---------------------------------------------------------------------------------- */

static void log_line(const struct mcp_server *s, char direction, const char *line, size_t size)
{
    struct buf text cleanup_buf = BUF_UP_TO(4 * (size_t)LOGGED_MAX);
    if (s->log && brief_inline(&text, line, MIN(size, (size_t)LOGGED_MAX)) == 0)
        fprintf(stderr, "nacre mcp: %c %s%s\n", direction, text.data ? text.data : "",
                size > LOGGED_MAX ? "..." : "");
}

void mcp_send(struct mcp_server *s, struct buf *line)
{
    log_line(s, '>', line->data, line->len);
    if (rpc_writer_send(&s->writer, line, NULL) < 0)
        s->ended = true;
}

static int compose_error(const struct mcp_request *q, struct buf *line, int code, const char *text,
                         const json_t *data)
{
    *line = BUF_UP_TO(RPC_MESSAGE_MAX);
    return !q->id && q->server->omits_ids ? rpc_append_error_without_id(line, code, text)
                                          : rpc_append_error(line, q->id, code, text, data);
}

int mcp_answer(const struct mcp_request *q, struct buf *line)
{
    struct mcp_server *s = q->server;
    int r = 0;
    if (!q->batch) {
        mcp_send(s, line);
        return 0;
    }
    if (!mcp_batch_has_room(s, line->len)) {
        buf_done(line);
        r = compose_error(q, line, RPC_INTERNAL,
                          "the answers of the batch are too large together; ask one by one", NULL);
        s->ended = s->ended || r < 0;
        r = -E2BIG;
    }
    mcp_batch_answer(s, q->batch, q->slot, line);
    return r;
}

json_t *mcp_server_info(void)
{
    return json_pack("{s:s, s:s, s:s}", "name", "nacre", "title", "nacre shells", "version",
                     nacre_version());
}

static void answer_with_error(const struct mcp_request *q, int code, const char *text,
                              const json_t *data)
{
    struct buf line cleanup_buf;
    if (compose_error(q, &line, code, text, data) == 0)
        mcp_answer(q, &line);
}

void mcp_fail(const struct mcp_request *q, int code, const char *fmt, ...)
{
    char text[300];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    answer_with_error(q, code, text, NULL);
}

/* Every modern result says that it is one, and whose. */
static void dress_modern(json_t *value)
{
    json_object_set_new(value, "resultType", json_string("complete"));
    if (!json_object_get(value, "_meta"))
        json_object_set_new(value, "_meta", json_object());
    json_object_set_new(json_object_get(value, "_meta"), MCP_META "serverInfo", mcp_server_info());
}

int mcp_reply_or(const struct mcp_request *q, json_t *value, const char *otherwise)
{
    struct buf line cleanup_buf = BUF_UP_TO(RPC_MESSAGE_MAX);
    int r = -ENOMEM;
    if (q->modern && value)
        dress_modern(value);
    if (value && rpc_begin_result(&line, q->id) == 0 && rpc_append_json(&line, value) == 0 &&
        buf_str(&line, "}") == 0)
        r = mcp_answer(q, &line);
    else
        mcp_fail(q, RPC_INTERNAL, "%s", otherwise);
    json_decref(value);
    return r;
}

int mcp_reply(const struct mcp_request *q, json_t *value)
{
    return mcp_reply_or(q, value, "out of memory");
}

void mcp_reply_cacheable(const struct mcp_request *q, json_t *value, int ttl_ms, bool is_public)
{
    if (q->modern && value) {
        json_object_set_new(value, "ttlMs", json_integer(ttl_ms));
        json_object_set_new(value, "cacheScope", json_string(is_public ? "public" : "private"));
    }
    mcp_reply(q, value);
}

void mcp_notify(struct mcp_server *s, const char *method, json_t *params)
{
    struct buf line cleanup_buf = BUF_UP_TO(RPC_MESSAGE_MAX);
    if (params && rpc_append_notification(&line, method, params) == 0)
        mcp_send(s, &line);
    json_decref(params);
}

const char *mcp_param(const struct mcp_request *q, const char *name)
{
    return rpc_text(json_object_get(q->params, name));
}

const char *mcp_require(const struct mcp_request *q, const char *name)
{
    const char *text = mcp_param(q, name);
    const char *start = json_string_value(json_object_get(q->params, name));
    if (!text && start)
        mcp_fail_params(q, "%s contains a NUL byte at offset %zu", name, strlen(start));
    else if (!text)
        mcp_fail_params(q, "%s must be a string", name);
    return text;
}

/* -- Eras ------------------------------------------------------------------------------------- */

static void refuse_version(const struct mcp_request *q, const char *requested)
{
    json_auto_t *data = json_pack("{s:[s], s:s}", "supported", MCP_MODERN, "requested", requested);
    answer_with_error(q, MCP_BAD_VERSION, "Unsupported protocol version", data);
}

/* What a modern request says of itself. A client that speaks so knows errors without an id. */
static bool read_modern(struct mcp_request *q, const json_t *meta)
{
    const char *version = rpc_text(json_object_get(meta, MCP_META "protocolVersion"));
    const json_t *level = json_object_get(meta, MCP_META "logLevel");
    mcp_note_client(q, json_object_get(meta, MCP_META "clientInfo"));
    if (!version)
        mcp_fail_params(q, "_meta must have the string " MCP_META "protocolVersion");
    else if (strcmp(version, MCP_MODERN) != 0)
        refuse_version(q, version);
    else if (!json_is_object(json_object_get(meta, MCP_META "clientCapabilities")))
        mcp_fail_params(q, "_meta must have the object " MCP_META "clientCapabilities");
    else if (level && mcp_level_find(rpc_text(level)) == LOG_LEVELS)
        mcp_fail_params(q, MCP_META "logLevel must be one of " MCP_LEVELS);
    else {
        q->logs = level && mcp_level_find(rpc_text(level)) <= LOG_INFO;
        q->server->omits_ids = true;
        return true;
    }
    return false;
}

/* Which era a request is of, and whether what it says about that is whole. */
static bool find_era(struct mcp_request *q)
{
    const json_t *meta = json_object_get(q->params, "_meta");
    if (meta && !json_is_object(meta)) {
        mcp_fail_params(q, "_meta must be an object");
        return false;
    }
    q->modern = json_object_get(meta, MCP_META "protocolVersion") ||
                json_object_get(meta, MCP_META "clientCapabilities");
    if (q->modern && q->batch) {
        mcp_fail(q, RPC_INVALID_REQUEST,
                 "Invalid Request: batches are not part of this protocol version");
        return false;
    }
    return !q->modern || read_modern(q, meta);
}

/* -- Messages --------------------------------------------------------------------------------- */

static const struct method *find_method(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(methods); i++)
        if (strcmp(methods[i].name, name) == 0)
            return &methods[i];
    return NULL;
}

static bool is_under_way(const struct mcp_server *s, const json_t *id)
{
    return mcp_call_exists(s, id) || mcp_listen_exists(s, id) ||
           (s->batches && mcp_batch_has(s, id));
}

static void answer_request(struct mcp_request *q, const json_t *params)
{
    const struct method *method = find_method(q->method);
    if (json_is_array(params))
        mcp_fail_params(q, "params must be an object");
    else if (!find_era(q))
        return;
    else if (!method || (q->modern && !(method->eras & MODERN)))
        mcp_fail(q, RPC_NO_METHOD, "Method not found: %.100s", q->method);
    else if (!q->modern && !(method->eras & LEGACY))
        mcp_fail_params(q, "_meta must have the string " MCP_META "protocolVersion");
    else if (q->batch && method->answer == mcp_initialize)
        mcp_fail(q, RPC_INVALID_REQUEST, "Invalid Request: initialize cannot be in a batch");
    else {
        mcp_events_tell(q);
        method->answer(q);
    }
}

/* Notifications have no answer, whatever they say. */
static void hear_notification(struct mcp_server *s, const struct rpc_message *m)
{
    const json_t *id = json_object_get(m->params, "requestId");
    if (strcmp(m->method, "notifications/cancelled") != 0 || !id)
        return;
    mcp_batch_cancel(s, id);
    mcp_cancel_call(s, id);
    mcp_cancel_listen(s, id);
}

void mcp_take_message(struct mcp_server *s, json_t *value, struct mcp_batch *b, size_t index)
{
    struct rpc_message m;
    struct rpc_fault fault;
    bool sound = rpc_read(value, &m, &fault) == 0;
    struct mcp_request q = {
        .server = s, .method = m.method, .id = m.id, .params = m.params, .batch = b, .slot = index};
    if (sound && m.kind == RPC_NOTIFICATION)
        hear_notification(s, &m);
    if (sound && m.kind != RPC_REQUEST)
        return;
    bool twice = sound && is_under_way(s, m.id);
    if (b)
        mcp_batch_open(b, index, twice ? NULL : m.id);
    if (!sound)
        mcp_fail(&q, fault.code, "%s", fault.text);
    else if (twice)
        mcp_fail(&q, RPC_INVALID_REQUEST, "Invalid Request: a request of this id is under way");
    else
        answer_request(&q, m.params);
}

void mcp_take_line(struct mcp_server *s, const char *line, size_t size)
{
    struct rpc_fault fault;
    log_line(s, '<', line, size);
    s->line_size = size;
    struct mcp_request q = {.server = s};
    json_auto_t *value = rpc_decode(line, size, &fault);
    if (!value)
        mcp_fail(&q, fault.code, "%s", fault.text);
    else if (json_is_array(value))
        mcp_take_batch(s, value);
    else
        mcp_take_message(s, value, NULL, 0);
}
