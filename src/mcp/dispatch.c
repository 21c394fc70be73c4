/* From a line to the method that answers it, and the shape of every answer. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/defs.h"
#include "mcp/server.h"

enum { LEGACY = 1, MODERN = 2, BOTH = LEGACY | MODERN };

static const struct method {
    const char *name;
    int eras;
    void (*answer)(const struct request *q);
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

void mcp_send(struct server *s, struct buf *line, uint64_t *ret_ticket)
{
    if (s->log)
        fprintf(stderr, "nacre mcp: > %.*s%s\n", (int)MIN(line->len, 2000), line->data,
                line->len > 2000 ? "..." : "");
    if (rpc_writer_send(&s->writer, line, ret_ticket) < 0)
        s->ended = true;
}

json_t *mcp_server_info(void)
{
    return json_pack("{s:s, s:s, s:s}", "name", "nacre", "title", "nacre shells", "version",
                     nacre_version());
}

static void send_error(struct server *s, const json_t *id, int code, const char *text,
                       const json_t *data)
{
    struct buf line cleanup_buf;
    buf_init(&line, RPC_MESSAGE_MAX);
    if (rpc_append_error(&line, id, code, text, data) == 0)
        mcp_send(s, &line, NULL);
}

PRINTF(3, 0)
static void fail_with(const struct request *q, int code, const char *fmt, va_list ap)
{
    char text[300];
    vsnprintf(text, sizeof text, fmt, ap);
    send_error(q->server, q->id, code, text, NULL);
}

void mcp_fail(const struct request *q, int code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fail_with(q, code, fmt, ap);
    va_end(ap);
}

void mcp_fail_params(const struct request *q, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fail_with(q, RPC_INVALID_PARAMS, fmt, ap);
    va_end(ap);
}

/* Every modern result says that it is one, and whose. */
static void dress(json_t *value)
{
    json_object_set_new(value, "resultType", json_string("complete"));
    json_t *meta = json_object_get(value, "_meta");
    if (!meta)
        json_object_set_new(value, "_meta", json_object());
    meta = json_object_get(value, "_meta");
    json_object_set_new(meta, MCP_META "serverInfo", mcp_server_info());
}

void mcp_reply(const struct request *q, json_t *value)
{
    struct buf line cleanup_buf;
    buf_init(&line, RPC_MESSAGE_MAX);
    if (q->modern && value)
        dress(value);
    if (value && rpc_begin_result(&line, q->id) == 0 && rpc_append_json(&line, value) == 0 &&
        buf_str(&line, "}") == 0)
        mcp_send(q->server, &line, NULL);
    else
        mcp_fail(q, RPC_INTERNAL, "out of memory");
    json_decref(value);
}

void mcp_reply_cacheable(const struct request *q, json_t *value, int ttl_ms, bool is_public)
{
    if (q->modern && value) {
        json_object_set_new(value, "ttlMs", json_integer(ttl_ms));
        json_object_set_new(value, "cacheScope", json_string(is_public ? "public" : "private"));
    }
    mcp_reply(q, value);
}

void mcp_notify(struct server *s, const char *method, json_t *params)
{
    struct buf line cleanup_buf;
    buf_init(&line, RPC_MESSAGE_MAX);
    if (params && rpc_append_notification(&line, method, params) == 0)
        mcp_send(s, &line, NULL);
    json_decref(params);
}

const char *mcp_param(const struct request *q, const char *name)
{
    return rpc_text(json_object_get(q->params, name));
}

/* -- Eras ------------------------------------------------------------------------------------- */

static void refuse_version(const struct request *q, const char *requested)
{
    json_t *data = json_pack("{s:[s], s:s}", "supported", MCP_MODERN, "requested", requested);
    send_error(q->server, q->id, MCP_BAD_VERSION, "Unsupported protocol version", data);
    json_decref(data);
}

/* Which era a request is of, and whether what it says about that is whole. */
static bool find_era(struct request *q)
{
    const json_t *meta = json_object_get(q->params, "_meta");
    if (meta && !json_is_object(meta)) {
        mcp_fail_params(q, "_meta must be an object");
        return false;
    }
    const json_t *version = json_object_get(meta, MCP_META "protocolVersion");
    const json_t *capabilities = json_object_get(meta, MCP_META "clientCapabilities");
    q->modern = version || capabilities;
    if (!q->modern)
        return true;
    const char *text = rpc_text(version);
    if (!text)
        mcp_fail_params(q, "_meta must have the string " MCP_META "protocolVersion");
    else if (strcmp(text, MCP_MODERN) != 0)
        refuse_version(q, text);
    else if (!json_is_object(capabilities))
        mcp_fail_params(q, "_meta must have the object " MCP_META "clientCapabilities");
    else
        return true;
    return false;
}

/* -- Messages --------------------------------------------------------------------------------- */

static const struct method *find_method(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(methods); i++)
        if (strcmp(methods[i].name, name) == 0)
            return &methods[i];
    return NULL;
}

static void answer(struct server *s, const struct rpc_message *m)
{
    struct request q = {.server = s, .method = m->method, .id = m->id, .params = m->params};
    const struct method *method = find_method(m->method);
    if (mcp_call_exists(s, m->id) || mcp_listen_exists(s, m->id))
        mcp_fail(&q, RPC_INVALID_REQUEST, "Invalid Request: a request of this id is under way");
    else if (json_is_array(m->params))
        mcp_fail_params(&q, "params must be an object");
    else if (!find_era(&q))
        return;
    else if (!method || (q.modern && !(method->eras & MODERN)))
        mcp_fail(&q, RPC_NO_METHOD, "Method not found: %.100s", m->method);
    else if (!q.modern && !(method->eras & LEGACY))
        mcp_fail_params(&q, "_meta must have the string " MCP_META "protocolVersion");
    else
        method->answer(&q);
}

/* Notifications have no answer, whatever they say. */
static void hear(struct server *s, const struct rpc_message *m)
{
    const json_t *id = json_object_get(m->params, "requestId");
    if (strcmp(m->method, "notifications/cancelled") != 0 || !id)
        return;
    mcp_cancel_call(s, id);
    mcp_cancel_listen(s, id);
}

static void take_message(struct server *s, json_t *value)
{
    struct rpc_message m;
    struct rpc_fault fault;
    if (rpc_read(value, &m, &fault) < 0)
        send_error(s, m.id, fault.code, fault.text, NULL);
    else if (m.kind == RPC_REQUEST)
        answer(s, &m);
    else if (m.kind == RPC_NOTIFICATION)
        hear(s, &m);
}

/* Only 2025-03-26 has batches. Its requests are answered one by one, as each is done. */
static void take_batch(struct server *s, const json_t *batch)
{
    size_t i;
    json_t *value;
    if (!s->takes_batches || json_array_size(batch) == 0)
        send_error(s, NULL, RPC_INVALID_REQUEST,
                   "Invalid Request: batches are not part of this protocol version", NULL);
    else
        json_array_foreach(batch, i, value) take_message(s, value);
}

void mcp_take_line(struct server *s, const char *line, size_t size)
{
    struct rpc_fault fault;
    if (s->log)
        fprintf(stderr, "nacre mcp: < %.*s%s\n", (int)MIN(size, 2000), line,
                size > 2000 ? "..." : "");
    json_t *value = rpc_decode(line, size, &fault);
    if (!value)
        send_error(s, NULL, fault.code, fault.text, NULL);
    else if (json_is_array(value))
        take_batch(s, value);
    else
        take_message(s, value);
    json_decref(value);
}
