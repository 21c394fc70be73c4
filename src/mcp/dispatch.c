/* From a line to the method that answers it, and the shape of every answer. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/defs.h"
#include "mcp/peer.h"
#include "text/brief.h"

#define LOGGED_MAX 2000 /* bytes of a message that the log shows */

/* Those that every server has; a table may bring more. */
static const struct mcp_method methods[] = {
    {"tools/call", MCP_BOTH_ERAS, mcp_call_tool},
    {"tools/list", MCP_BOTH_ERAS, mcp_list_tools},
    {"initialize", MCP_LEGACY_ONLY, mcp_initialize},
    {"server/discover", MCP_MODERN_ONLY, mcp_discover},
    {"ping", MCP_LEGACY_ONLY, mcp_ping},
    {"logging/setLevel", MCP_LEGACY_ONLY, mcp_set_level},
    {0},
};

/* -- Answers ---------------------------------------------------------------------------------- */

static void log_line(const struct mcp_peer *p, char direction, const char *line, size_t size)
{
    struct buf text cleanup_buf = BUF_UP_TO(4 * (size_t)LOGGED_MAX);
    if (p->log && brief_inline(&text, line, MIN(size, (size_t)LOGGED_MAX)) == 0)
        fprintf(stderr, "nacre mcp: %c %s%s\n", direction, text.data ? text.data : "",
                size > LOGGED_MAX ? "..." : "");
}

void mcp_send(struct mcp_peer *p, struct mcp_stream *stream, struct buf *line, enum mcp_sort sort,
              uint64_t *ret_ticket)
{
    log_line(p, '>', line->data, line->len);
    if (stream)
        stream->ops->send(stream, line, sort, ret_ticket);
}

static int compose_error(const struct mcp_request *q, struct buf *line, int code, const char *text,
                         const json_t *data)
{
    *line = BUF_UP_TO(RPC_MESSAGE_MAX);
    return !q->id && q->peer->omits_ids ? rpc_append_error_without_id(line, code, text)
                                        : rpc_append_error(line, q->id, code, text, data);
}

int mcp_answer(const struct mcp_request *q, struct buf *line, enum mcp_sort sort,
               uint64_t *ret_ticket)
{
    struct mcp_peer *p = q->peer;
    int r = 0;
    if (!q->batch) {
        mcp_send(p, q->stream, line, sort, ret_ticket);
        return 0;
    }
    if (!mcp_batch_has_room(p, line->len)) {
        buf_done(line);
        r = compose_error(q, line, RPC_INTERNAL,
                          "the answers of the batch are too large together; ask one by one", NULL);
        p->ended = p->ended || r < 0;
        r = -E2BIG;
    }
    mcp_batch_answer(p, q->batch, q->slot, line);
    return r;
}

json_t *mcp_server_info(const struct mcp_peer *p)
{
    return json_pack("{s:s, s:s, s:o}", "name", p->table->name, "title", p->table->title, "version",
                     p->table->version());
}

static void answer_with_error(const struct mcp_request *q, enum mcp_sort sort, int code,
                              const char *text, const json_t *data)
{
    struct buf line cleanup_buf;
    if (compose_error(q, &line, code, text, data) == 0)
        mcp_answer(q, &line, sort, NULL);
}

void mcp_refuse(const struct mcp_request *q, int code, const char *text, const json_t *data)
{
    answer_with_error(q, MCP_REFUSED, code, text, data);
}

void mcp_fail(const struct mcp_request *q, int code, const char *fmt, ...)
{
    char text[300];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    answer_with_error(q, code == RPC_NO_METHOD ? MCP_UNKNOWN : MCP_RESULT, code, text, NULL);
}

void mcp_no_resource(const struct mcp_request *q, const char *uri, const char *text)
{
    json_auto_t *data = json_pack("{s:s}", "uri", uri);
    answer_with_error(q, MCP_RESULT, q->modern ? RPC_INVALID_PARAMS : MCP_NOT_FOUND, text, data);
}

/* Every modern result says that it is one, and whose. */
static void dress_modern(const struct mcp_peer *p, json_t *value)
{
    if (!json_object_get(value, "resultType"))
        json_object_set_new(value, "resultType", json_string("complete"));
    if (!json_object_get(value, "_meta"))
        json_object_set_new(value, "_meta", json_object());
    json_object_set_new(json_object_get(value, "_meta"), MCP_META "serverInfo", mcp_server_info(p));
}

int mcp_reply_or(const struct mcp_request *q, json_t *value, const char *otherwise,
                 uint64_t *ret_ticket)
{
    struct buf line cleanup_buf = BUF_UP_TO(RPC_MESSAGE_MAX);
    int r = -ENOMEM;
    if (q->modern && value)
        dress_modern(q->peer, value);
    if (value && rpc_begin_result(&line, q->id) == 0 && rpc_append_json(&line, value) == 0 &&
        buf_str(&line, "}") == 0)
        r = mcp_answer(q, &line, MCP_RESULT, ret_ticket);
    else
        mcp_fail(q, RPC_INTERNAL, "%s", otherwise);
    json_decref(value);
    return r;
}

int mcp_reply(const struct mcp_request *q, json_t *value)
{
    return mcp_reply_or(q, value, "out of memory", NULL);
}

void mcp_reply_cacheable(const struct mcp_request *q, json_t *value, int ttl_ms, bool is_public)
{
    if (q->modern && value) {
        json_object_set_new(value, "ttlMs", json_integer(ttl_ms));
        json_object_set_new(value, "cacheScope", json_string(is_public ? "public" : "private"));
    }
    mcp_reply(q, value);
}

void mcp_notify(struct mcp_peer *p, struct mcp_stream *stream, const char *method, json_t *params)
{
    struct buf line cleanup_buf = BUF_UP_TO(RPC_MESSAGE_MAX);
    if (params && rpc_append_notification(&line, method, params) == 0)
        mcp_send(p, stream, &line, MCP_NOTE, NULL);
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
    mcp_refuse(q, MCP_BAD_VERSION, "Unsupported protocol version", data);
}

static void refuse_meta(const struct mcp_request *q, const char *text)
{
    mcp_refuse(q, RPC_INVALID_PARAMS, text, NULL);
}

/* What a modern request says of itself. A client that speaks so knows errors without an id. */
static bool read_modern(struct mcp_request *q, const json_t *meta)
{
    const char *version = rpc_text(json_object_get(meta, MCP_META "protocolVersion"));
    const json_t *level = json_object_get(meta, MCP_META "logLevel");
    mcp_note_client(q, json_object_get(meta, MCP_META "clientInfo"));
    if (!version)
        refuse_meta(q, "_meta must have the string " MCP_META "protocolVersion");
    else if (strcmp(version, MCP_MODERN) != 0)
        refuse_version(q, version);
    else if (!json_is_object(json_object_get(meta, MCP_META "clientCapabilities")))
        refuse_meta(q, "_meta must have the object " MCP_META "clientCapabilities");
    else if (level && mcp_level_find(rpc_text(level)) == LOG_LEVELS)
        refuse_meta(q, MCP_META "logLevel must be one of " MCP_LEVELS);
    else {
        q->logs = level && mcp_level_find(rpc_text(level)) <= LOG_INFO;
        q->peer->omits_ids = true;
        return true;
    }
    return false;
}

/* Which era a request is of, and whether what it says about that is whole. */
static bool find_era(struct mcp_request *q)
{
    const json_t *meta = json_object_get(q->params, "_meta");
    if (meta && !json_is_object(meta)) {
        refuse_meta(q, "_meta must be an object");
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

static const struct mcp_method *find_among(const struct mcp_method *m, const char *name)
{
    while (m->name && strcmp(m->name, name) != 0)
        m++;
    return m->name ? m : NULL;
}

static const struct mcp_method *find_method(const struct mcp_peer *p, const char *name)
{
    const struct mcp_method *method = find_among(methods, name);
    return method ? method : find_among(p->table->methods, name);
}

bool mcp_is_same(const struct mcp_stream *a, const json_t *id_a, const struct mcp_stream *b,
                 const json_t *id_b)
{
    bool apart = a != b && (!a || !b || a->own_ids || b->own_ids);
    return !apart && json_equal(id_a, id_b);
}

static bool is_under_way(const struct mcp_request *q)
{
    return mcp_call_exists(q->peer, q->stream, q->id) ||
           mcp_listen_exists(q->peer, q->stream, q->id) ||
           (q->peer->batches && mcp_batch_has(q->peer, q->id));
}

static void answer_request(struct mcp_request *q, const json_t *params)
{
    const struct mcp_method *method = find_method(q->peer, q->method);
    if (json_is_array(params))
        mcp_fail_params(q, "params must be an object");
    else if (!find_era(q))
        return;
    else if (!method || (q->modern && !(method->eras & MCP_MODERN_ONLY)))
        mcp_fail(q, RPC_NO_METHOD, "Method not found: %.100s", q->method);
    else if (!q->modern && !(method->eras & MCP_LEGACY_ONLY))
        mcp_fail_params(q, "_meta must have the string " MCP_META "protocolVersion");
    else if (q->batch && method->answer == mcp_initialize)
        mcp_fail(q, RPC_INVALID_REQUEST, "Invalid Request: initialize cannot be in a batch");
    else {
        mcp_events_tell(q);
        method->answer(q);
    }
}

/* Notifications have no answer, whatever they say. */
static void hear_notification(struct mcp_peer *p, const struct mcp_stream *stream,
                              const struct rpc_message *m)
{
    const json_t *id = json_object_get(m->params, "requestId");
    if (strcmp(m->method, "notifications/cancelled") != 0 || !id)
        return;
    mcp_batch_cancel(p, id);
    mcp_cancel_call(p, stream, id);
    mcp_cancel_listen(p, stream, id);
}

void mcp_take_message(struct mcp_peer *p, struct mcp_stream *stream, json_t *value,
                      struct mcp_batch *b, size_t index)
{
    struct rpc_message m;
    struct rpc_fault fault;
    bool sound = rpc_read(value, &m, &fault) == 0;
    struct mcp_request q = {.peer = p,
                            .stream = stream,
                            .method = m.method,
                            .id = m.id,
                            .params = m.params,
                            .batch = b,
                            .slot = index};
    if (sound && m.kind == RPC_NOTIFICATION)
        hear_notification(p, stream, &m);
    if (sound && m.kind == RPC_RESPONSE)
        p->table->hear(p, &m);
    if (sound && m.kind != RPC_REQUEST)
        return;
    bool twice = sound && is_under_way(&q);
    if (b)
        mcp_batch_open(b, index, twice ? NULL : m.id);
    if (!sound)
        mcp_refuse(&q, fault.code, fault.text, NULL);
    else if (twice)
        mcp_refuse(&q, RPC_INVALID_REQUEST, "Invalid Request: a request of this id is under way",
                   NULL);
    else
        answer_request(&q, m.params);
}

void mcp_take_value(struct mcp_peer *p, struct mcp_stream *stream, json_t *value, size_t size)
{
    p->line_size = size;
    if (json_is_array(value))
        mcp_take_batch(p, stream, value);
    else
        mcp_take_message(p, stream, value, NULL, 0);
}

void mcp_take_line(struct mcp_peer *p, struct mcp_stream *stream, const char *line, size_t size)
{
    struct rpc_fault fault;
    struct mcp_request q = {.peer = p, .stream = stream};
    log_line(p, '<', line, size);
    json_auto_t *value = rpc_decode(line, size, &fault);
    if (value)
        mcp_take_value(p, stream, value, size);
    else
        mcp_refuse(&q, fault.code, fault.text, NULL);
}
