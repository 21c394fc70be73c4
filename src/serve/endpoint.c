/*
 * MCP over HTTP. Which member a request is for, and whether what HTTP says of it is what it says
 * itself: intermediaries go by the fields, so in the modern era they must not differ from the body.
 */
#include <stdio.h>
#include <string.h>

#include "base/ascii.h"
#include "base/base64.h"
#include "base/clock.h"
#include "base/number.h"
#include "serve/house.h"

#define BAD_HEADER   (-32020)
#define NO_SESSION   (-32000)
#define FIELD_MAX    1024
#define SESSION_NAME "Mcp-Session-Id"

/* A request under way here. */
struct asking {
    struct guest *guest;
    const struct http_request *http;
    const char *name; /* of the URL */
    json_t *value;
    struct rpc_message message; /* of a value that is one */
    struct rpc_fault fault;
    bool sound;  /* it is one */
    bool modern; /* it says so */
};

/* -- Answers without a member ----------------------------------------------------------------- */

static void refuse_message(struct asking *a, int status, int code, const char *text)
{
    static const char fields[] = "Content-Type: application/json\r\n";
    struct buf line cleanup_buf = BUF_UP_TO(RPC_MESSAGE_MAX);
    int r = rpc_append_error(&line, a->sound ? a->message.id : NULL, code, text, NULL);
    http_answer(&a->guest->http, r == 0 ? status : 500, fields, r == 0 ? line.data : NULL,
                r == 0 ? line.len : 0);
}

/* -- What HTTP says of the message ------------------------------------------------------------ */

/* The text of a field, as it is or =?base64?...?=; false if it is no text. */
static bool read_field(struct stretch value, char *ret, size_t room)
{
    static const char begin[] = "=?base64?", end[] = "?=";
    size_t lead = sizeof begin - 1, tail = sizeof end - 1;
    if (value.size >= room)
        return false;
    bool coded = value.size >= lead + tail && ascii_is_same(value.at, begin, lead) &&
                 memcmp(value.at + value.size - tail, end, tail) == 0;
    ssize_t n = (ssize_t)value.size;
    if (coded)
        n = base64_decode(value.at + lead, value.size - lead - tail, ret, room - 1);
    else
        memcpy(ret, value.at, value.size);
    if (n < 0 || memchr(ret, '\0', (size_t)n))
        return false;
    ret[n] = '\0';
    return true;
}

static bool field_is(const struct asking *a, const char *name, const char *wanted)
{
    char text[FIELD_MAX];
    struct stretch value = http_request_field(a->http, name);
    return value.at && wanted && read_field(value, text, sizeof text) && strcmp(text, wanted) == 0;
}

/* What Mcp-Name has to say, or NULL if this method has no name. */
static const char *name_of(const struct rpc_message *m, bool *ret_named)
{
    static const struct {
        const char *method, *key;
    } named[] = {{"tools/call", "name"}, {"prompts/get", "name"}, {"resources/read", "uri"}};
    *ret_named = false;
    for (size_t i = 0; i < ARRAY_SIZE(named); i++)
        if (strcmp(m->method, named[i].method) == 0) {
            *ret_named = true;
            return rpc_text(json_object_get(m->params, named[i].key));
        }
    return NULL;
}

/* NULL, or which of them is wrong. */
static const char *check_modern_fields(const struct asking *a)
{
    bool named;
    const struct rpc_message *m = &a->message;
    const json_t *meta = json_object_get(m->params, "_meta");
    const char *version = rpc_text(json_object_get(meta, MCP_META "protocolVersion"));
    const char *name = name_of(m, &named);
    if (m->kind == RPC_REQUEST && !field_is(a, "MCP-Protocol-Version", version))
        return "Header mismatch: MCP-Protocol-Version must be there and be that of _meta";
    if (!field_is(a, "Mcp-Method", m->method))
        return "Header mismatch: Mcp-Method must be there and be the method";
    if (named && name && !field_is(a, "Mcp-Name", name))
        return "Header mismatch: Mcp-Name must be there and be what is named in params";
    return NULL;
}

/* Versions that a field may say besides the modern one. */
static bool is_legacy_version(struct stretch version)
{
    static const char *const known[] = {"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"};
    for (size_t i = 0; i < ARRAY_SIZE(known); i++)
        if (is_spelled(version, known[i]))
            return true;
    return false;
}

/* -- Taking it up ----------------------------------------------------------------------------- */

static struct stretch wanted_cwd(const struct asking *a)
{
    return http_request_parameter(a->http, "cwd");
}

static void take_request(struct asking *a, struct member *m, bool opens)
{
    struct guest *g = a->guest;
    m->asked_ns = clock_mono_ns();
    m->deserted_ns = 0;
    if (g->house->reply_count >= REPLIES_MAX) {
        http_refuse(&g->http, 503, "Retry-After: 1\r\n", "there are too many requests under way");
        return;
    }
    struct reply *t = reply_new(m, g, a->modern);
    if (!t) {
        http_refuse(&g->http, 500, NULL, "out of memory");
        return;
    }
    t->opens = opens;
    mcp_take_value(&m->peer, &t->stream, a->value, g->http.body.len);
    guest_touch(g);
}

/* Nothing is answered to what asks nothing. */
static void take_note(struct asking *a, struct member *m)
{
    m->asked_ns = clock_mono_ns();
    m->deserted_ns = 0;
    mcp_take_value(&m->peer, &m->main.stream, a->value, a->guest->http.body.len);
    http_answer(&a->guest->http, 202, NULL, NULL, 0);
}

static bool is_note(json_t *value)
{
    struct rpc_message m;
    struct rpc_fault fault;
    return rpc_read(value, &m, &fault) == 0 && m.kind != RPC_REQUEST;
}

/* Whether anything in it is to be answered. */
static bool wants_answer(json_t *value)
{
    size_t i;
    json_t *item;
    if (!json_is_array(value))
        return !is_note(value);
    json_array_foreach(value, i, item) if (!is_note(item)) return true;
    return json_array_size(value) == 0;
}

/* A field can only differ from what the message says. */
static bool says_version(const struct asking *a)
{
    const json_t *meta = json_object_get(a->message.params, "_meta");
    return a->message.kind != RPC_REQUEST ||
           rpc_text(json_object_get(meta, MCP_META "protocolVersion"));
}

static void take_modern(struct asking *a)
{
    nacre_error err = NACRE_ERROR_INIT;
    const char *fault = check_modern_fields(a);
    if (!says_version(a)) {
        refuse_message(a, 400, RPC_INVALID_PARAMS,
                       "_meta must have the string " MCP_META "protocolVersion");
        return;
    }
    if (fault) {
        refuse_message(a, 400, BAD_HEADER, fault);
        return;
    }
    if (a->message.kind != RPC_REQUEST) {
        http_answer(&a->guest->http, 202, NULL, NULL, 0);
        return;
    }
    struct member *m = member_named(a->guest->house, a->name, wanted_cwd(a), &err);
    if (m)
        take_request(a, m, false);
    else
        refuse_message(a, err.code == NACRE_EINVAL ? 400 : 503, RPC_INTERNAL, err.msg);
}

static void open_member(struct asking *a)
{
    nacre_error err = NACRE_ERROR_INIT;
    struct member *m = member_new(a->guest->house, a->name, wanted_cwd(a), false, &err);
    if (!m) {
        refuse_message(a, err.code == NACRE_EINVAL ? 400 : 503, RPC_INTERNAL, err.msg);
        return;
    }
    take_request(a, m, true);
    if (!m->peer.initialized)
        member_leave(m);
}

/* The member of this session; NULL was answered. */
static struct member *find_member(struct asking *a)
{
    struct member *m = NULL;
    if (http_request_count(a->http, SESSION_NAME) != 1)
        refuse_message(a, 400, NO_SESSION,
                       "Bad Request: " SESSION_NAME " is missing; initialize gives one");
    else if (!(m = member_find(a->guest->house, http_request_field(a->http, SESSION_NAME))))
        refuse_message(a, 404, NO_SESSION, "Session not found: initialize again");
    return m;
}

static void take_legacy(struct asking *a)
{
    bool opens =
        a->sound && a->message.kind == RPC_REQUEST && strcmp(a->message.method, "initialize") == 0;
    struct stretch version = http_request_field(a->http, "MCP-Protocol-Version");
    if (!opens && version.at && !is_legacy_version(version)) {
        refuse_message(a, 400, NO_SESSION,
                       "Bad Request: unsupported protocol version in MCP-Protocol-Version");
        return;
    }
    if (opens && http_request_count(a->http, SESSION_NAME) == 0) {
        open_member(a);
        return;
    }
    struct member *m = find_member(a);
    if (m && wants_answer(a->value))
        take_request(a, m, false);
    else if (m)
        take_note(a, m);
}

/* A request is of the modern era if it, or the field beside it, says so. */
static bool is_modern(const struct asking *a)
{
    const json_t *meta = a->sound ? json_object_get(a->message.params, "_meta") : NULL;
    return json_object_get(meta, MCP_META "protocolVersion") ||
           is_spelled(http_request_field(a->http, "MCP-Protocol-Version"), MCP_MODERN);
}

/* -- Methods of HTTP -------------------------------------------------------------------------- */

static bool accepts(const struct asking *a, const char *type, const char *family)
{
    struct stretch accept = http_request_field(a->http, "Accept");
    return http_list_has(accept, type) || http_list_has(accept, family) ||
           http_list_has(accept, "*/*");
}

static void ask_post(struct asking *a)
{
    struct guest *g = a->guest;
    struct stretch type = http_request_field(a->http, "Content-Type");
    if (!http_list_has(type, "application/json")) {
        http_refuse(&g->http, 415, NULL, "a message is application/json");
        return;
    }
    if (!accepts(a, "application/json", "application/*") ||
        !accepts(a, "text/event-stream", "text/*")) {
        http_refuse(&g->http, 406, NULL,
                    "an answer may be application/json or text/event-stream; accept both");
        return;
    }
    json_auto_t *value =
        rpc_decode(g->http.body.data ? g->http.body.data : "", g->http.body.len, &a->fault);
    a->value = value;
    if (!value) {
        refuse_message(a, 400, a->fault.code, a->fault.text);
        return;
    }
    a->sound = json_is_object(value) && rpc_read(value, &a->message, &a->fault) == 0;
    if (!a->sound && !json_is_array(value)) {
        refuse_message(a, 400, a->fault.code, a->fault.text);
        return;
    }
    a->modern = is_modern(a);
    if (a->modern && a->sound && a->message.kind != RPC_RESPONSE)
        take_modern(a);
    else if (a->modern)
        refuse_message(a, 400, RPC_INVALID_REQUEST,
                       "Invalid Request: one request or notification at a time");
    else
        take_legacy(a);
}

/* NUMBER-EVENT. */
static bool read_place_in(struct stretch text, uint64_t *ret_reply, uint64_t *ret_event)
{
    char number[48], *dash;
    snprintf(number, sizeof number, "%.*s", (int)MIN(text.size, sizeof number - 1), text.at);
    dash = strchr(number, '-');
    if (!dash)
        return false;
    *dash = '\0';
    return number_parse(number, ret_reply) && number_parse(dash + 1, ret_event);
}

static struct reply *find_reply(struct member *m, uint64_t number)
{
    if (number == 0)
        return &m->main;
    for (struct reply *t = m->replies; t; t = t->next)
        if (t->number == number)
            return t;
    return NULL;
}

/* Goes on behind the event that the client had last. */
static void resume(struct asking *a, struct member *m, struct stretch last)
{
    uint64_t number, event;
    struct reply *t = NULL;
    if (read_place_in(last, &number, &event))
        t = find_reply(m, number);
    if (!t || event > t->last || (!t->keeps && number > 0))
        http_refuse(&a->guest->http, 400, NULL,
                    "Last-Event-ID names nothing that can be sent once more");
    else {
        if (t->guest)
            http_hang_up(&t->guest->http);
        reply_attach(t, a->guest, event);
    }
}

static void ask_get(struct asking *a)
{
    struct guest *g = a->guest;
    bool modern = is_spelled(http_request_field(a->http, "MCP-Protocol-Version"), MCP_MODERN);
    if (modern || http_request_count(a->http, SESSION_NAME) == 0) {
        http_answer(&g->http, 405, "Allow: POST\r\n", NULL, 0);
        return;
    }
    if (!accepts(a, "text/event-stream", "text/*")) {
        http_refuse(&g->http, 406, NULL, "the answer is text/event-stream; accept it");
        return;
    }
    struct member *m = find_member(a);
    if (!m)
        return;
    m->asked_ns = clock_mono_ns();
    m->deserted_ns = 0;
    if (http_request_count(a->http, "Last-Event-ID"))
        resume(a, m, http_request_field(a->http, "Last-Event-ID"));
    else if (m->main.guest)
        http_answer(&g->http, 409, NULL, NULL, 0);
    else
        reply_attach(&m->main, g, m->main.left);
    guest_touch(g);
}

static void ask_delete(struct asking *a)
{
    struct guest *g = a->guest;
    if (http_request_count(a->http, SESSION_NAME) == 0) {
        http_answer(&g->http, 405, "Allow: POST\r\n", NULL, 0);
        return;
    }
    struct member *m = find_member(a);
    if (!m)
        return;
    member_leave(m);
    http_answer(&g->http, 204, NULL, NULL, 0);
}

static bool is_session_name(const char *name)
{
    size_t size = strlen(name);
    for (size_t i = 0; i < size; i++)
        if (!ascii_is_alnum(name[i]) && !strchr("._-", name[i]))
            return false;
    return size <= NAME_MAX_SIZE;
}

void endpoint_ask(struct guest *g, const char *name)
{
    struct asking a = {.guest = g, .http = &g->http.request, .name = name};
    if (!is_session_name(name)) {
        http_answer(&g->http, 404, NULL, NULL, 0);
        return;
    }
    switch (g->http.request.method) {
    case HTTP_POST:
        ask_post(&a);
        return;
    case HTTP_GET:
        ask_get(&a);
        return;
    case HTTP_DELETE:
        ask_delete(&a);
        return;
    default:
        http_answer(&g->http, 405, "Allow: GET, POST, DELETE\r\n", NULL, 0);
    }
}
