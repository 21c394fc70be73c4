/* Calls of tools: begun in the order they came, stepped, cancelled, and delivered when the answer
 * has left. */
#include <poll.h>
#include <string.h>

#include "base/clock.h"
#include "base/defs.h"
#include "mcp/server.h"
#include "tool/call.h"

#define TOOLS_TTL_MS      3600000
#define PROGRESS_FIRST_MS 1000
#define PROGRESS_EVERY_MS 5000

enum call_state {
    CALL_QUEUED, /* as many as may be are under way; it has not begun */
    CALL_RUNS,
    CALL_CANCELLED, /* nothing is sent any more; it is stepped until nothing is left of its tree */
    CALL_HELD,      /* its answer waits for the others of its batch */
    CALL_SENT       /* its answer waits in the queue */
};

struct mcp_call {
    struct mcp_call *next;
    enum call_state state;
    char *tool; /* until it has begun, with its arguments */
    json_t *arguments;
    size_t size;      /* of the line it came in, while it is queued */
    nacre_call *call; /* from then on */
    json_t *id;
    json_t *token; /* of progress, or NULL */
    bool modern;
    bool logs;               /* it wants to hear of the ends of shells */
    struct mcp_batch *batch; /* until it has left, or the call was cancelled */
    size_t slot;
    bool shared; /* its answer left with those of its batch, and cannot be taken back alone */
    int64_t began_ns;
    int64_t step_ns;     /* when to step it */
    int64_t progress_ns; /* when to tell of progress */
    char *message;       /* of the last progress */
    uint64_t ticket;     /* of the answer */
};

/* -- One call --------------------------------------------------------------------------------- */

static void call_free(struct mcp_call *c)
{
    if (!c)
        return;
    nacre_call_free(c->call);
    free(c->tool);
    json_decref(c->arguments);
    json_decref(c->id);
    json_decref(c->token);
    free(c->message);
    free(c);
}

static bool is_stepped(const struct mcp_call *c)
{
    return c->state == CALL_RUNS || c->state == CALL_CANCELLED;
}

/* Whether an answer is still to be made. */
static bool awaits_answer(const struct mcp_call *c)
{
    return c->state == CALL_QUEUED || c->state == CALL_RUNS;
}

static struct mcp_request request_of(struct mcp_server *s, const struct mcp_call *c)
{
    return (struct mcp_request){
        .server = s, .id = c->id, .modern = c->modern, .batch = c->batch, .slot = c->slot};
}

/* False if something else was answered. */
static bool send_result(struct mcp_server *s, struct mcp_call *c)
{
    struct mcp_request q = request_of(s, c);
    nacre_error otherwise;
    call_no_memory(c->call, &otherwise);
    c->state = c->batch ? CALL_HELD : CALL_SENT;
    c->ticket = s->writer.next;
    return mcp_reply_or(&q, call_take_result(c->call), otherwise.msg) == 0;
}

/* Whether the call is over, and nothing of it is needed any more. */
static bool is_delivered(struct mcp_server *s, struct mcp_call *c)
{
    if (c->state != CALL_SENT || s->writer.error < 0 || !rpc_writer_has_left(&s->writer, c->ticket))
        return false;
    nacre_call_delivered(c->call);
    mcp_events_delivered(s);
    return true;
}

/* Goes on; true when the call is to be freed. */
static bool step_call(struct mcp_server *s, struct mcp_call *c)
{
    nacre_error err = NACRE_ERROR_INIT;
    struct mcp_request q = request_of(s, c);
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

static void tell_progress(struct mcp_server *s, struct mcp_call *c)
{
    double elapsed = (double)(clock_mono_ns() - c->began_ns) / (double)NS_PER_S;
    const char *news = c->call ? nacre_call_progress(c->call) : "waiting for its turn";
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

bool mcp_call_exists(const struct mcp_server *s, const json_t *id)
{
    for (const struct mcp_call *c = s->calls; c; c = c->next)
        if (json_equal(c->id, id))
            return true;
    return false;
}

static void leave_queue(struct mcp_server *s, struct mcp_call *c)
{
    if (c->state != CALL_QUEUED)
        return;
    s->waiting--;
    s->waiting_size -= c->size;
    c->state = CALL_RUNS;
}

/* Takes a call off the list, and frees it. */
static void remove_call(struct mcp_server *s, struct mcp_call **at)
{
    struct mcp_call *c = *at;
    leave_queue(s, c);
    *at = c->next;
    call_free(c);
}

/* Steps the call there, and returns the place of the next one. */
static struct mcp_call **step_at(struct mcp_server *s, struct mcp_call **at)
{
    if (!step_call(s, *at))
        return &(*at)->next;
    remove_call(s, at);
    return at;
}

/* What a call that could not begin is answered. */
static void refuse_call(const struct mcp_request *q, const char *tool, int code,
                        const nacre_error *why)
{
    if (code == NACRE_ENOTFOUND)
        mcp_fail_params(q, "Unknown tool: %.100s", tool);
    else
        mcp_fail(q, RPC_INTERNAL, "%s", why->msg);
}

/* Begins the call there, steps it, and returns the place of the next one. */
static struct mcp_call **begin_at(struct mcp_server *s, struct mcp_call **at)
{
    struct mcp_call *c = *at;
    struct mcp_request q = request_of(s, c);
    nacre_call_options options = NACRE_CALL_OPTIONS_INIT;
    nacre_error err = NACRE_ERROR_INIT;
    leave_queue(s, c);
    options.progress = c->token != NULL;
    int r = call_begin_object(s->session, c->tool, c->arguments, &options, &c->call, &err);
    if (r == 0) {
        json_decref(c->arguments);
        c->arguments = NULL;
        return step_at(s, at);
    }
    refuse_call(&q, c->tool, r, &err);
    remove_call(s, at);
    return at;
}

static size_t count_stepped(const struct mcp_server *s)
{
    size_t count = 0;
    for (const struct mcp_call *c = s->calls; c; c = c->next)
        count += is_stepped(c);
    return count;
}

static bool may_begin(const struct mcp_server *s)
{
    return s->waiting > 0 && !s->ended && !mcp_is_paused(s) && count_stepped(s) < MCP_CALLS_MAX;
}

/* Begins those whose turn it is. They are on the list in the order they came. */
static void begin_queued(struct mcp_server *s)
{
    struct mcp_call **at = &s->calls;
    while (may_begin(s)) {
        while ((*at)->state != CALL_QUEUED)
            at = &(*at)->next;
        at = begin_at(s, at);
    }
}

void mcp_cancel_call(struct mcp_server *s, const json_t *id)
{
    struct mcp_call **at = &s->calls;
    while (*at && !json_equal((*at)->id, id))
        at = &(*at)->next;
    struct mcp_call *c = *at;
    if (!c)
        return;
    if (c->call)
        nacre_call_cancel(c->call);
    if (is_stepped(c)) {
        c->state = CALL_CANCELLED;
        c->batch = NULL;
        step_at(s, at);
        begin_queued(s);
        return;
    }
    if (c->state == CALL_SENT && !c->shared)
        rpc_writer_drop(&s->writer, c->ticket);
    remove_call(s, at);
}

void mcp_calls_leave_batch(struct mcp_server *s, const struct mcp_batch *b, uint64_t ticket)
{
    for (struct mcp_call *c = s->calls; c; c = c->next)
        if (c->batch == b && c->state == CALL_HELD) {
            c->state = CALL_SENT;
            c->ticket = ticket;
            c->batch = NULL;
            c->shared = true;
        }
}

bool mcp_calls_want_log(const struct mcp_server *s)
{
    for (const struct mcp_call *c = s->calls; c; c = c->next)
        if (c->logs && awaits_answer(c))
            return true;
    return false;
}

bool mcp_calls_are_full(const struct mcp_server *s)
{
    return s->waiting >= MCP_WAITING_MAX || s->waiting_size >= MCP_WAITING_SIZE;
}

size_t mcp_calls_poll(const struct mcp_server *s, struct pollfd *fds)
{
    size_t count = 0;
    for (const struct mcp_call *c = s->calls; c; c = c->next)
        if (is_stepped(c))
            fds[count++] = (struct pollfd){.fd = nacre_call_fd(c->call), .events = POLLIN};
    return count;
}

int64_t mcp_calls_deadline(const struct mcp_server *s)
{
    int64_t deadline = may_begin(s) ? 0 : INT64_MAX;
    for (const struct mcp_call *c = s->calls; c; c = c->next) {
        if (is_stepped(c))
            deadline = MIN(deadline, c->step_ns);
        if (awaits_answer(c))
            deadline = MIN(deadline, c->progress_ns);
    }
    return deadline;
}

void mcp_calls_step(struct mcp_server *s, const struct pollfd *fds, size_t count)
{
    struct mcp_call **at = &s->calls;
    int64_t now = clock_mono_ns();
    for (size_t i = 0; *at && !s->ended;) {
        struct mcp_call *c = *at;
        bool stepped = is_stepped(c);
        bool ready = stepped && i < count && fds[i].revents != 0;
        i += stepped;
        if (awaits_answer(c) && c->progress_ns <= now)
            tell_progress(s, c);
        if (stepped && (ready || c->step_ns <= now) && !mcp_is_paused(s))
            at = step_at(s, at);
        else if (is_delivered(s, c))
            remove_call(s, at);
        else
            at = &c->next;
    }
    begin_queued(s);
}

void mcp_calls_end(struct mcp_server *s)
{
    while (s->calls)
        remove_call(s, &s->calls);
}

/* -- Methods ---------------------------------------------------------------------------------- */

void mcp_list_tools(const struct mcp_request *q)
{
    const char *cursor = mcp_param(q, "cursor");
    if (cursor && *cursor)
        mcp_fail_params(q, "there is no page with this cursor");
    else
        mcp_reply_cacheable(q, json_pack("{s:o}", "tools", tool_list(q->server->session)),
                            TOOLS_TTL_MS, true);
}

static struct mcp_call *make_call(const struct mcp_request *q, const char *tool, json_t *arguments,
                                  json_t *token)
{
    struct mcp_call *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    *c = (struct mcp_call){.state = CALL_QUEUED,
                           .tool = strdup(tool),
                           .arguments = json_incref(arguments),
                           .size = q->server->line_size,
                           .id = json_deep_copy(q->id),
                           .token = json_incref(token),
                           .modern = q->modern,
                           .logs = q->logs,
                           .batch = q->batch,
                           .slot = q->slot,
                           .began_ns = clock_mono_ns(),
                           .progress_ns = token ? clock_deadline(PROGRESS_FIRST_MS) : INT64_MAX};
    if (c->tool && c->id)
        return c;
    call_free(c);
    return NULL;
}

static void queue_call(struct mcp_server *s, struct mcp_call *c)
{
    struct mcp_call **at = &s->calls;
    while (*at)
        at = &(*at)->next;
    *at = c;
    s->waiting++;
    s->waiting_size += c->size;
    begin_queued(s);
}

void mcp_call_tool(const struct mcp_request *q)
{
    const char *tool = mcp_require(q, "name");
    json_t *arguments = json_object_get(q->params, "arguments");
    json_t *token = json_object_get(json_object_get(q->params, "_meta"), "progressToken");
    if (!tool)
        return;
    if (json_is_null(arguments))
        arguments = NULL;
    if (arguments && !json_is_object(arguments))
        mcp_fail_params(q, "arguments must be an object");
    else if (token && !json_is_string(token) && !json_is_integer(token))
        mcp_fail_params(q, "progressToken must be a string or an integer");
    else {
        struct mcp_call *c = make_call(q, tool, arguments, token);
        if (c)
            queue_call(q->server, c);
        else
            mcp_fail(q, RPC_INTERNAL, "out of memory");
    }
}
