/* Calls of tools: begun, stepped, cancelled, and delivered when the answer has left. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/defs.h"
#include "mcp/server.h"

#define TOOLS_TTL_MS      3600000
#define PROGRESS_FIRST_MS 1000
#define PROGRESS_EVERY_MS 5000

enum call_state {
    CALL_RUNS,
    CALL_CANCELLED, /* nothing is sent any more; it is stepped until nothing is left of its tree */
    CALL_HELD,      /* its answer waits for the others of its batch */
    CALL_SENT       /* its answer waits in the queue */
};

struct call {
    struct call *next;
    enum call_state state;
    nacre_call *call;
    json_t *id;
    json_t *token; /* of progress, or NULL */
    bool modern;
    bool logs;           /* it wants to hear of the ends of shells */
    struct batch *batch; /* until it has left, or the call was cancelled */
    size_t slot;
    bool shared; /* its answer left with those of its batch, and cannot be taken back alone */
    int64_t began_ns;
    int64_t step_ns;     /* when to step it */
    int64_t progress_ns; /* when to tell of progress */
    char *message;       /* of the last progress */
    uint64_t ticket;     /* of the answer */
};

/* -- One call --------------------------------------------------------------------------------- */

static void call_free(struct call *c)
{
    if (!c)
        return;
    nacre_call_free(c->call);
    json_decref(c->id);
    json_decref(c->token);
    free(c->message);
    free(c);
}

static bool is_stepped(const struct call *c)
{
    return c->state == CALL_RUNS || c->state == CALL_CANCELLED;
}

static struct request request_of(struct server *s, const struct call *c)
{
    return (struct request){
        .server = s, .id = c->id, .modern = c->modern, .batch = c->batch, .slot = c->slot};
}

/* A legacy answer is the tool's own text; a modern one has more in it. False if something else was
 * answered. */
static bool send_result(struct server *s, struct call *c)
{
    struct buf line cleanup_buf;
    const char *result = nacre_call_result(c->call);
    struct request q = request_of(s, c);
    buf_init(&line, RPC_MESSAGE_MAX);
    c->state = c->batch ? CALL_HELD : CALL_SENT;
    c->ticket = s->writer.next;
    if (c->modern)
        mcp_reply(&q, json_loads(result, JSON_ALLOW_NUL, NULL));
    else if (rpc_begin_result(&line, c->id) == 0 && buf_str(&line, result) == 0 &&
             buf_str(&line, "}") == 0)
        return mcp_answer(&q, &line) == 0;
    else
        mcp_fail(&q, RPC_INTERNAL, "out of memory");
    return c->modern;
}

/* Whether the call is over, and nothing of it is needed any more. */
static bool is_delivered(struct server *s, struct call *c)
{
    if (c->state != CALL_SENT || s->writer.error < 0 || !rpc_writer_has_left(&s->writer, c->ticket))
        return false;
    nacre_call_delivered(c->call);
    mcp_events_delivered(s);
    return true;
}

/* Goes on; true when the call is to be freed. */
static bool step(struct server *s, struct call *c)
{
    nacre_error err = NACRE_ERROR_INIT;
    struct request q = request_of(s, c);
    int r = nacre_call_step(c->call, &err);
    if (r == 0) {
        c->step_ns = clock_deadline(nacre_call_timeout(c->call));
        return false;
    }
    if (c->state == CALL_CANCELLED)
        return true;
    if (r < 0) {
        mcp_fail(&q, RPC_INTERNAL, "%s", err.msg);
        return true;
    }
    return !send_result(s, c) || is_delivered(s, c);
}

static void tell_progress(struct server *s, struct call *c)
{
    double elapsed = (double)(clock_mono_ns() - c->began_ns) / (double)NS_PER_S;
    const char *news = nacre_call_progress(c->call);
    char *copy = news ? strdup(news) : NULL;
    if (copy) {
        free(c->message);
        c->message = copy;
    }
    c->progress_ns = clock_deadline(PROGRESS_EVERY_MS);
    mcp_notify(s, "notifications/progress",
               json_pack("{s:O, s:f, s:s*}", "progressToken", c->token, "progress", elapsed,
                         "message", c->message));
}

/* -- All of them ------------------------------------------------------------------------------ */

static struct call *find(const struct server *s, const json_t *id)
{
    for (struct call *c = s->calls; c; c = c->next)
        if (json_equal(c->id, id))
            return c;
    return NULL;
}

bool mcp_call_exists(const struct server *s, const json_t *id)
{
    return find(s, id) != NULL;
}

/* Takes a call off the list, and frees it. */
static void remove_call(struct call **at)
{
    struct call *c = *at;
    *at = c->next;
    call_free(c);
}

/* Steps the call there, and returns the place of the next one. */
static struct call **step_at(struct server *s, struct call **at)
{
    if (!step(s, *at))
        return &(*at)->next;
    remove_call(at);
    return at;
}

void mcp_cancel_call(struct server *s, const json_t *id)
{
    struct call **at = &s->calls;
    while (*at && !json_equal((*at)->id, id))
        at = &(*at)->next;
    struct call *c = *at;
    if (!c)
        return;
    nacre_call_cancel(c->call);
    if (!is_stepped(c)) {
        if (c->state == CALL_SENT && !c->shared)
            rpc_writer_drop(&s->writer, c->ticket);
        remove_call(at);
        return;
    }
    c->state = CALL_CANCELLED;
    c->batch = NULL;
    step_at(s, at);
}

void mcp_calls_leave_batch(struct server *s, const struct batch *b, uint64_t ticket)
{
    for (struct call *c = s->calls; c; c = c->next)
        if (c->batch == b && c->state == CALL_HELD) {
            c->state = CALL_SENT;
            c->ticket = ticket;
            c->batch = NULL;
            c->shared = true;
        }
}

bool mcp_calls_want_log(const struct server *s)
{
    for (const struct call *c = s->calls; c; c = c->next)
        if (c->logs && c->state == CALL_RUNS)
            return true;
    return false;
}

static size_t count_stepped(const struct server *s)
{
    size_t count = 0;
    for (const struct call *c = s->calls; c; c = c->next)
        count += is_stepped(c);
    return count;
}

size_t mcp_calls_poll(const struct server *s, struct pollfd *fds)
{
    size_t count = 0;
    for (const struct call *c = s->calls; c; c = c->next)
        if (is_stepped(c))
            fds[count++] = (struct pollfd){.fd = nacre_call_fd(c->call), .events = POLLIN};
    return count;
}

int64_t mcp_calls_deadline(const struct server *s)
{
    int64_t deadline = INT64_MAX;
    for (const struct call *c = s->calls; c; c = c->next)
        if (is_stepped(c))
            deadline = MIN(deadline, MIN(c->step_ns, c->progress_ns));
    return deadline;
}

void mcp_calls_step(struct server *s, const struct pollfd *fds, size_t count)
{
    struct call **at = &s->calls;
    int64_t now = clock_mono_ns();
    for (size_t i = 0; *at && !s->ended;) {
        struct call *c = *at;
        bool stepped = is_stepped(c);
        bool ready = stepped && i < count && fds[i].revents != 0;
        i += stepped;
        if (c->state == CALL_RUNS && c->progress_ns <= now)
            tell_progress(s, c);
        if (stepped && (ready || c->step_ns <= now) && !mcp_is_paused(s))
            at = step_at(s, at);
        else if (is_delivered(s, c))
            remove_call(at);
        else
            at = &c->next;
    }
}

void mcp_calls_end(struct server *s)
{
    while (s->calls)
        remove_call(&s->calls);
}

/* -- Methods ---------------------------------------------------------------------------------- */

void mcp_list_tools(const struct request *q)
{
    cleanup_free char *text = NULL;
    nacre_error err = NACRE_ERROR_INIT;
    const char *cursor = mcp_param(q, "cursor");
    if (cursor && *cursor)
        mcp_fail_params(q, "there is no page with this cursor");
    else if (nacre_tools_json(q->server->session, &text, &err) < 0)
        mcp_fail(q, RPC_INTERNAL, "%s", err.msg);
    else
        mcp_reply_cacheable(q, json_pack("{s:o}", "tools", json_loads(text, 0, NULL)), TOOLS_TTL_MS,
                            true);
}

/* The token of progress: absent is fine, anything but a string or an integer is not. */
static bool find_token(const struct request *q, json_t **ret_token)
{
    *ret_token = json_object_get(json_object_get(q->params, "_meta"), "progressToken");
    return !*ret_token || json_is_string(*ret_token) || json_is_integer(*ret_token);
}

static int begin(const struct request *q, const char *tool, const json_t *arguments, bool progress,
                 nacre_call **ret_call, nacre_error *err)
{
    struct buf text cleanup_buf;
    nacre_call_options options = NACRE_CALL_OPTIONS_INIT;
    options.progress = progress;
    buf_init(&text, RPC_MESSAGE_MAX);
    if (arguments && rpc_append_json(&text, arguments) < 0)
        return NACRE_ENOMEM;
    return nacre_call_begin(q->server->session, tool, text.data, text.len, &options, ret_call, err);
}

static void refuse_call(const struct request *q)
{
    mcp_reply(q, json_pack("{s:[{s:s, s:s}], s:b}", "content", "type", "text", "text",
                           "too many calls are under way; wait for some of them to be answered",
                           "isError", 1));
}

static void add_call(const struct request *q, nacre_call *call, json_t *token)
{
    struct server *s = q->server;
    struct call *c = calloc(1, sizeof *c);
    if (!c) {
        nacre_call_free(call);
        mcp_fail(q, RPC_INTERNAL, "out of memory");
        return;
    }
    *c = (struct call){.call = call,
                       .modern = q->modern,
                       .logs = q->logs,
                       .batch = q->batch,
                       .slot = q->slot,
                       .began_ns = clock_mono_ns()};
    c->id = json_deep_copy(q->id);
    c->token = json_incref(token);
    c->progress_ns = token ? clock_deadline(PROGRESS_FIRST_MS) : INT64_MAX;
    struct call **at = &s->calls;
    while (*at)
        at = &(*at)->next;
    *at = c;
    step_at(s, at);
}

void mcp_call_tool(const struct request *q)
{
    const char *tool = mcp_param(q, "name");
    const json_t *arguments = json_object_get(q->params, "arguments");
    nacre_error err = NACRE_ERROR_INIT;
    nacre_call *call = NULL;
    json_t *token;
    if (!tool) {
        mcp_fail_params(q, "name must be a string");
        return;
    }
    if (json_is_null(arguments))
        arguments = NULL;
    if (arguments && !json_is_object(arguments)) {
        mcp_fail_params(q, "arguments must be an object");
        return;
    }
    if (!find_token(q, &token)) {
        mcp_fail_params(q, "progressToken must be a string or an integer");
        return;
    }
    if (count_stepped(q->server) >= MCP_CALLS_MAX) {
        refuse_call(q);
        return;
    }
    int r = begin(q, tool, arguments, token != NULL, &call, &err);
    if (r == 0)
        add_call(q, call, token);
    else if (r == NACRE_ENOTFOUND)
        mcp_fail_params(q, "Unknown tool: %.100s", tool);
    else
        mcp_fail(q, RPC_INTERNAL, "%s", r == NACRE_ENOMEM ? "out of memory" : err.msg);
}
