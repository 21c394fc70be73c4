/* Calls of tools: begun in the order they came, stepped, cancelled, and delivered when the answer
 * has left. */
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/defs.h"
#include "mcp/peer.h"
#include "view/record_words.h"

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
    json_t *params; /* of the request, until it has begun */
    size_t size;    /* of the line it came in, while it is queued */
    void *call;     /* from then on */
    struct mcp_stream *stream;
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

static void call_free(const struct mcp_peer *p, struct mcp_call *c)
{
    if (c->call)
        p->table->tools->free(c->call);
    json_decref(c->params);
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

static struct mcp_request request_of(struct mcp_peer *p, const struct mcp_call *c)
{
    return (struct mcp_request){.peer = p,
                                .stream = c->stream,
                                .id = c->id,
                                .params = c->params,
                                .modern = c->modern,
                                .logs = c->logs,
                                .batch = c->batch,
                                .slot = c->slot};
}

/* False if something else was answered. */
static bool send_result(struct mcp_peer *p, struct mcp_call *c)
{
    struct mcp_request q = request_of(p, c);
    nacre_error otherwise;
    const struct mcp_tools *tools = p->table->tools;
    tools->no_memory(c->call, &otherwise);
    c->state = c->batch ? CALL_HELD : CALL_SENT;
    return mcp_reply_or(&q, tools->take_result(c->call), otherwise.msg, &c->ticket) == 0;
}

/* Whether the call is over, and nothing of it is needed any more: its answer has left, or never
 * will. */
static bool is_delivered(struct mcp_peer *p, struct mcp_call *c)
{
    int left = c->state == CALL_SENT ? stream_has_left(c->stream, c->ticket) : 0;
    if (left > 0) {
        p->table->tools->delivered(c->call);
        mcp_events_delivered(p);
    }
    return left != 0;
}

/* Goes on; true when the call is to be freed. */
static bool step_call(struct mcp_peer *p, struct mcp_call *c)
{
    nacre_error err = NACRE_ERROR_INIT;
    struct mcp_request q = request_of(p, c);
    int r = p->table->tools->step(c->call, &err);
    if (r == 0) {
        c->step_ns = clock_deadline(p->table->tools->timeout(c->call));
        return false;
    }
    if (c->state == CALL_CANCELLED)
        return true;
    if (r < 0) {
        mcp_fail(&q, RPC_INTERNAL, "%s", err.msg);
        return true;
    }
    return !send_result(p, c) || is_delivered(p, c);
}

static void tell_progress(struct mcp_peer *p, struct mcp_call *c)
{
    double elapsed = (double)(clock_mono_ns() - c->began_ns) / (double)NS_PER_S;
    const char *news = c->call ? p->table->tools->progress(c->call) : "waiting for its turn";
    char *copy = news ? strdup(news) : NULL;
    if (copy) {
        free(c->message);
        c->message = copy;
    }
    c->progress_ns = clock_deadline(PROGRESS_EVERY_MS);
    mcp_notify(p, c->stream, "notifications/progress",
               json_pack("{s:O, s:f, s:s*}", "progressToken", c->token, "progress", elapsed,
                         "message", c->message));
}

/* -- All of them ------------------------------------------------------------------------------ */

bool mcp_call_exists(const struct mcp_peer *p, const struct mcp_stream *stream, const json_t *id)
{
    for (const struct mcp_call *c = p->calls; c; c = c->next)
        if (mcp_is_same(c->stream, c->id, stream, id))
            return true;
    return false;
}

static void leave_queue(struct mcp_peer *p, struct mcp_call *c)
{
    if (c->state != CALL_QUEUED)
        return;
    p->waiting--;
    p->waiting_size -= c->size;
    c->state = CALL_RUNS;
}

/* Takes a call off the list, and frees it. */
static void remove_call(struct mcp_peer *p, struct mcp_call **at)
{
    struct mcp_call *c = *at;
    leave_queue(p, c);
    *at = c->next;
    call_free(p, c);
}

/* Steps the call there, and returns the place of the next one. */
static struct mcp_call **step_at(struct mcp_peer *p, struct mcp_call **at)
{
    if (!step_call(p, *at))
        return &(*at)->next;
    remove_call(p, at);
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
static struct mcp_call **begin_at(struct mcp_peer *p, struct mcp_call **at)
{
    struct mcp_call *c = *at;
    struct mcp_request q = request_of(p, c);
    nacre_error err = NACRE_ERROR_INIT;
    const char *tool = mcp_param(&q, "name");
    leave_queue(p, c);
    p->beginning = &q;
    int r = p->table->tools->begin(&q, tool, mcp_arguments(&q), c->token != NULL, &c->call, &err);
    p->beginning = NULL;
    if (r == 0) {
        json_decref(c->params);
        c->params = NULL;
        return step_at(p, at);
    }
    if (r < 0)
        refuse_call(&q, tool, r, &err);
    remove_call(p, at);
    return at;
}

static size_t count_stepped(const struct mcp_peer *p)
{
    size_t count = 0;
    for (const struct mcp_call *c = p->calls; c; c = c->next)
        count += is_stepped(c);
    return count;
}

static bool may_begin(const struct mcp_peer *p)
{
    return p->waiting > 0 && !p->ended && !p->paused && count_stepped(p) < MCP_CALLS_MAX;
}

/* Begins those whose turn it is. They are on the list in the order they came. */
static void begin_queued(struct mcp_peer *p)
{
    struct mcp_call **at = &p->calls;
    while (may_begin(p)) {
        while ((*at)->state != CALL_QUEUED)
            at = &(*at)->next;
        at = begin_at(p, at);
    }
}

/* Cancels the call there, and returns the place of the next one. */
static struct mcp_call **cancel_at(struct mcp_peer *p, struct mcp_call **at)
{
    struct mcp_call *c = *at;
    if (c->call)
        p->table->tools->cancel(c->call);
    if (is_stepped(c)) {
        c->state = CALL_CANCELLED;
        c->batch = NULL;
        return step_at(p, at);
    }
    if (c->state == CALL_SENT && c->stream && !c->shared)
        c->stream->ops->drop(c->stream, c->ticket);
    remove_call(p, at);
    return at;
}

void mcp_cancel_call(struct mcp_peer *p, const struct mcp_stream *stream, const json_t *id)
{
    struct mcp_call **at = &p->calls;
    while (*at && !mcp_is_same((*at)->stream, (*at)->id, stream, id))
        at = &(*at)->next;
    if (!*at)
        return;
    struct mcp_stream *of = (*at)->batch || (*at)->shared ? NULL : (*at)->stream;
    cancel_at(p, at);
    if (of)
        of->ops->cancel(of);
    begin_queued(p);
}

void mcp_calls_forget(struct mcp_peer *p, const struct mcp_stream *stream)
{
    for (struct mcp_call **at = &p->calls; *at;)
        if ((*at)->stream == stream && (*at)->state != CALL_CANCELLED) {
            (*at)->stream = NULL;
            at = cancel_at(p, at);
        } else {
            if ((*at)->stream == stream)
                (*at)->stream = NULL;
            at = &(*at)->next;
        }
    begin_queued(p);
}

void mcp_calls_leave_batch(struct mcp_peer *p, const struct mcp_batch *b, uint64_t ticket)
{
    for (struct mcp_call *c = p->calls; c; c = c->next)
        if (c->batch == b && c->state == CALL_HELD) {
            c->state = CALL_SENT;
            c->ticket = ticket;
            c->batch = NULL;
            c->shared = true;
        }
}

bool mcp_calls_want_log(const struct mcp_peer *p)
{
    for (const struct mcp_call *c = p->calls; c; c = c->next)
        if (c->logs && awaits_answer(c))
            return true;
    return false;
}

void mcp_calls_each_log(struct mcp_peer *p, void (*fn)(struct mcp_stream *, void *), void *userdata)
{
    for (const struct mcp_call *c = p->calls; c; c = c->next)
        if (c->logs && awaits_answer(c))
            fn(c->stream, userdata);
}

bool mcp_calls_are_full(const struct mcp_peer *p)
{
    return p->waiting >= MCP_WAITING_MAX || p->waiting_size >= MCP_WAITING_SIZE;
}

size_t mcp_calls_poll(const struct mcp_peer *p, struct pollfd *fds)
{
    size_t count = 0;
    for (const struct mcp_call *c = p->calls; c; c = c->next)
        if (is_stepped(c))
            fds[count++] = (struct pollfd){.fd = p->table->tools->fd(c->call), .events = POLLIN};
    return count;
}

int64_t mcp_calls_deadline(const struct mcp_peer *p)
{
    int64_t deadline = may_begin(p) ? 0 : INT64_MAX;
    for (const struct mcp_call *c = p->calls; c; c = c->next) {
        if (is_stepped(c))
            deadline = MIN(deadline, c->step_ns);
        if (awaits_answer(c))
            deadline = MIN(deadline, c->progress_ns);
    }
    return deadline;
}

void mcp_calls_step(struct mcp_peer *p, const struct pollfd *fds, size_t count)
{
    struct mcp_call **at = &p->calls;
    int64_t now = clock_mono_ns();
    for (size_t i = 0; *at && !p->ended;) {
        struct mcp_call *c = *at;
        bool stepped = is_stepped(c);
        bool ready = stepped && i < count && fds[i].revents != 0;
        i += stepped;
        if (awaits_answer(c) && c->progress_ns <= now)
            tell_progress(p, c);
        if (stepped && (ready || c->step_ns <= now) && !p->paused)
            at = step_at(p, at);
        else if (is_delivered(p, c))
            remove_call(p, at);
        else
            at = &c->next;
    }
    begin_queued(p);
}

void mcp_calls_end(struct mcp_peer *p)
{
    while (p->calls)
        remove_call(p, &p->calls);
}

/* -- Methods ---------------------------------------------------------------------------------- */

void mcp_list_tools(const struct mcp_request *q)
{
    const char *cursor = mcp_param(q, "cursor");
    if (cursor && *cursor)
        mcp_fail_params(q, "there is no page with this cursor");
    else
        mcp_reply_cacheable(q, json_pack("{s:o}", "tools", q->peer->table->tools->list(q->peer)),
                            TOOLS_TTL_MS, true);
}

static struct mcp_call *make_call(const struct mcp_request *q, json_t *token)
{
    struct mcp_call *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    *c = (struct mcp_call){.state = CALL_QUEUED,
                           .params = json_incref(q->params),
                           .size = q->peer->line_size,
                           .stream = q->stream,
                           .id = json_deep_copy(q->id),
                           .token = json_incref(token),
                           .modern = q->modern,
                           .logs = q->logs,
                           .batch = q->batch,
                           .slot = q->slot,
                           .began_ns = clock_mono_ns(),
                           .progress_ns = token ? clock_deadline(PROGRESS_FIRST_MS) : INT64_MAX};
    if (c->id)
        return c;
    call_free(q->peer, c);
    return NULL;
}

static void queue_call(struct mcp_peer *p, struct mcp_call *c)
{
    struct mcp_call **at = &p->calls;
    while (*at)
        at = &(*at)->next;
    *at = c;
    p->waiting++;
    p->waiting_size += c->size;
    begin_queued(p);
}

/* What it would do might be what the configuration forbids. */
static void say_fault(const struct mcp_request *q)
{
    char text[600];
    snprintf(text, sizeof text,
             "nothing was done: nacre's configuration is damaged: %s. The user has to correct it "
             "(\"nacre config\" checks it) and to restart this server.",
             q->peer->fault);
    mcp_reply(q, json_pack("{s:[{s:s, s:o}], s:b}", "content", "type", "text", "text",
                           json_text(text, strlen(text)), "isError", 1));
}

json_t *mcp_arguments(const struct mcp_request *q)
{
    json_t *arguments = json_object_get(q->params, "arguments");
    return json_is_null(arguments) ? NULL : arguments;
}

json_t *mcp_progress_token(const struct mcp_request *q)
{
    return json_object_get(json_object_get(q->params, "_meta"), "progressToken");
}

void mcp_call_tool(const struct mcp_request *q)
{
    const json_t *arguments = mcp_arguments(q);
    json_t *token = mcp_progress_token(q);
    if (!mcp_require(q, "name"))
        return;
    if (q->peer->fault) {
        say_fault(q);
        return;
    }
    if (arguments && !json_is_object(arguments))
        mcp_fail_params(q, "arguments must be an object");
    else if (token && !json_is_string(token) && !json_is_integer(token))
        mcp_fail_params(q, "progressToken must be a string or an integer");
    else {
        struct mcp_call *c = make_call(q, token);
        if (c)
            queue_call(q->peer, c);
        else
            mcp_fail(q, RPC_INTERNAL, "out of memory");
    }
}
