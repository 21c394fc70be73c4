/* Requests to an ACP client, what becomes of its answers, and what is due without them. */
#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "acp/agent.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/hold.h"
#include "rpc/message.h"

#define ID_PREFIX "nacre-" /* so that our ids are nobody else's */
#define SETTLE_MS 1000     /* for a release to be answered after an exit */
#define PUMP_MS   10       /* between looks at a connection that nobody else reads */
#define NOT_FOUND (-32002)

static const char *const methods[] = {
    [ACP_CREATE] = "terminal/create",      [ACP_KILL] = "terminal/kill",
    [ACP_WAIT] = "terminal/wait_for_exit", [ACP_OUTPUT] = "terminal/output",
    [ACP_RELEASE] = "terminal/release",
};

json_t *acp_target_of(const nacre_acp_agent *a, const char *terminal)
{
    return json_pack("{s:s, s:s}", "sessionId", a->session_id, "terminalId", terminal);
}

/* -- Sending ---------------------------------------------------------------------------------- */

static void free_call(struct acp_call *call)
{
    json_decref(call->answer);
    free(call);
}

/* Puts a call into the list and returns its number; 0 if out of memory or the client has gone. With
 * awaiting it is the operation's to drop; without, it may be gone at any moment. */
static uint64_t add_call(nacre_acp_agent *a, enum acp_request kind, struct acp_shell *shell,
                         struct acp_op *awaiting)
{
    uint64_t number = 0;
    struct acp_call *call = calloc(1, sizeof *call);
    pthread_mutex_lock(&a->lock);
    if (call && !a->gone) {
        number = ++a->next_number;
        *call = (struct acp_call){.next = a->calls,
                                  .number = number,
                                  .kind = kind,
                                  .shell = shell,
                                  .awaited = awaiting != NULL};
        if (awaiting)
            awaiting->call = call;
        a->calls = TAKE_PTR(call);
    }
    pthread_mutex_unlock(&a->lock);
    free(call);
    return number;
}

static void send_request(nacre_acp_agent *a, uint64_t number, enum acp_request kind,
                         const json_t *params)
{
    struct buf message cleanup_buf = BUF_UP_TO(RPC_MESSAGE_MAX);
    int r = buf_printf(&message,
                       "{\"jsonrpc\":\"2.0\",\"id\":\"" ID_PREFIX "%" PRIu64
                       "\",\"method\":\"%s\",\"params\":",
                       number, methods[kind]);
    if (r == 0)
        r = rpc_append_json(&message, params);
    if (r == 0)
        r = buf_str(&message, "}");
    if (r == 0)
        r = a->options.send(message.data, message.len, a->options.userdata);
    if (r < 0)
        nacre_acp_agent_gone(a);
}

/* The client's error as ours, with its message. */
static int take_error(const json_t *error, enum acp_request kind, nacre_error *err)
{
    json_int_t code = json_integer_value(json_object_get(error, "code"));
    const char *text = json_string_value(json_object_get(error, "message"));
    const char *details =
        json_string_value(json_object_get(json_object_get(error, "data"), "details"));
    int ours = code == NOT_FOUND       ? NACRE_ENOTFOUND
               : code == RPC_NO_METHOD ? NACRE_EUNSUPPORTED
               : kind == ACP_CREATE    ? NACRE_ESTART
                                       : NACRE_EBACKEND;
    return err_set(err, ours, "the client refuses %s: %.100s%s%.80s", methods[kind],
                   text ? text : "without a message", details ? ": " : "", details ? details : "");
}

int acp_take_answer(struct acp_call *call, bool done, json_t **ret_result, nacre_error *err)
{
    const json_t *error = done ? json_object_get(call->answer, "error") : NULL;
    if (!done)
        return err_set(err, NACRE_EBACKEND, "the client does not answer %s", methods[call->kind]);
    if (!call->answer)
        return err_set(err, NACRE_EBACKEND, "the connection to the client has ended");
    if (error)
        return take_error(error, call->kind, err);
    *ret_result = json_incref(json_object_get(call->answer, "result"));
    json_decref(TAKE_PTR(call->answer));
    return 1;
}

/* Whether it was sent. params is consumed; for awaiting see add_call(). */
static bool request(nacre_acp_agent *a, enum acp_request kind, struct acp_shell *shell,
                    struct acp_op *awaiting, json_t *params)
{
    uint64_t number = params ? add_call(a, kind, shell, awaiting) : 0;
    if (number)
        send_request(a, number, kind, params);
    json_decref(params);
    return number != 0;
}

int acp_ask(struct acp_op *o, enum acp_request kind, json_t *params, nacre_error *err)
{
    return request(o->agent, kind, NULL, o, params)
               ? 0
               : err_set(err, NACRE_EBACKEND, "the connection to the client has ended");
}

void acp_post(nacre_acp_agent *a, enum acp_request kind, struct acp_shell *shell)
{
    request(a, kind, shell, NULL, acp_target_of(a, shell->terminal));
}

/* The answer to a create that nobody awaits any more: what it has made is released. */
static void release_unwanted(nacre_acp_agent *a, const json_t *answer)
{
    const json_t *result = json_object_get(answer, "result");
    const char *terminal = json_string_value(json_object_get(result, "terminalId"));
    if (terminal)
        request(a, ACP_RELEASE, NULL, NULL, acp_target_of(a, terminal));
}

void acp_drop_call(nacre_acp_agent *a, struct acp_call *call)
{
    pthread_mutex_lock(&a->lock);
    bool done = call->done;
    call->awaited = false;
    if (done)
        UNLINK(a->calls, call);
    pthread_mutex_unlock(&a->lock);
    if (!done)
        return;
    if (call->kind == ACP_CREATE)
        release_unwanted(a, call->answer);
    free_call(call);
}

/* -- Answers that nobody waits for ------------------------------------------------------------ */

static void take_exit(const nacre_acp_agent *a, struct acp_shell *shell, const json_t *status)
{
    const json_t *code = json_object_get(status, "exitCode");
    const char *signal = json_string_value(json_object_get(status, "signal"));
    if (shell->exited)
        return;
    json_int_t value = json_is_integer(code) ? json_integer_value(code) : -1;
    shell->exited = true;
    shell->patience_ns = clock_deadline(a->options.answer_ms);
    shell->exit_code = value >= 0 ? (int)MIN(value, (json_int_t)INT_MAX) : -1;
    shell->signal = signal ? MAX(nacre_signal_number(signal), 0) : 0;
}

static void note_final(const nacre_acp_agent *a, struct acp_shell *shell)
{
    shell->final = true;
    shell->patience_ns = clock_deadline(MIN(a->options.answer_ms, (int64_t)SETTLE_MS));
}

static void note_output(const nacre_acp_agent *a, struct acp_shell *shell, const json_t *result)
{
    const json_t *text = json_object_get(result, "output");
    if (json_is_string(text) && shell->mirror) {
        const char *bytes = json_string_value(text);
        size_t size = json_string_length(text);
        bool truncated = json_is_true(json_object_get(result, "truncated")), gap;
        size_t from = acp_text_take(&shell->text, bytes, size, truncated, &gap);
        nacre_mirror_write(shell->mirror, NACRE_STDOUT, bytes + from, size - from, gap);
    }
    shell->fetching = false;
    shell->fetches++;
    if (shell->last && !shell->final)
        note_final(a, shell);
}

void acp_note(struct acp_shell *shell)
{
    nacre_mirror_news news = NACRE_MIRROR_NEWS_INIT;
    if (!shell->mirror)
        return;
    news.background = shell->background;
    news.reason = shell->reason;
    news.exit_code = shell->exit_code;
    news.signal = shell->signal;
    news.exited = shell->exited;
    news.final = shell->final;
    news.settled = shell->settled;
    news.over = shell->over;
    nacre_mirror_note(shell->mirror, &news);
    if (shell->over)
        nacre_mirror_free(TAKE_PTR(shell->mirror));
}

static void ring_ops(nacre_acp_agent *a)
{
    static const uint64_t one = 1;
    for (const struct acp_op *o = a->options.receive ? NULL : a->ops; o; o = o->next) {
        ssize_t rung UNUSED = write(o->op.fd, &one, sizeof one);
    }
}

/* Writes down what a shell has become, and tells whoever waits for it. With the lock. */
static void tell_of(nacre_acp_agent *a, struct acp_shell *shell)
{
    static const uint64_t one = 1;
    bool bell = shell->mirror && shell->background && shell->final;
    acp_note(shell);
    ring_ops(a);
    if (!bell)
        return;
    shell->rings = true;
    ssize_t rung UNUSED = write(a->bell_fd, &one, sizeof one);
}

void acp_note_end(nacre_acp_agent *a, struct acp_shell *shell)
{
    take_exit(a, shell, NULL);
    shell->fetching = false;
    shell->final = shell->releasing = shell->settled = shell->over = true;
    shell->patience_ns = INT64_MAX;
    tell_of(a, shell);
}

/* Takes an answer in. With the lock. An error tells nothing, but that there is no more to come. */
static void take_in(nacre_acp_agent *a, const struct acp_call *call)
{
    struct acp_shell *shell = call->shell;
    const json_t *result = json_object_get(call->answer, "result");
    if (!shell || call->kind == ACP_KILL)
        return;
    if (call->kind == ACP_RELEASE) {
        acp_note_end(a, shell);
        return;
    }
    if (call->kind == ACP_WAIT)
        take_exit(a, shell, result);
    else
        note_output(a, shell, result);
    tell_of(a, shell);
}

/* What the state of a shell asks for: after the exit its last output, after that the release. */
static void go_on(nacre_acp_agent *a, struct acp_shell *shell)
{
    pthread_mutex_lock(&a->lock);
    bool fetch = shell->exited && !shell->final && !shell->fetching;
    bool release = shell->final && !shell->releasing;
    if (fetch)
        shell->fetching = shell->last = true;
    if (release)
        shell->releasing = true;
    pthread_mutex_unlock(&a->lock);
    if (fetch)
        acp_post(a, ACP_OUTPUT, shell);
    if (release)
        acp_post(a, ACP_RELEASE, shell);
}

static struct acp_call *find_call(nacre_acp_agent *a, uint64_t number)
{
    struct acp_call *call = a->calls;
    while (call && (call->number != number || call->done))
        call = call->next;
    return call;
}

/* The answer belongs to whoever waits for it from here on: two threads never share one. */
static void deliver_consume(nacre_acp_agent *a, uint64_t number, json_t *answer)
{
    pthread_mutex_lock(&a->lock);
    struct acp_call *call = find_call(a, number);
    bool awaited = call && call->awaited;
    if (call) {
        call->answer = TAKE_PTR(answer);
        call->done = true;
    }
    if (awaited) {
        ring_ops(a);
    } else if (call) {
        take_in(a, call);
        UNLINK(a->calls, call);
    }
    pthread_mutex_unlock(&a->lock);
    json_decref(answer);
    if (!call || awaited)
        return;
    if (call->shell)
        go_on(a, call->shell);
    else if (call->kind == ACP_CREATE)
        release_unwanted(a, call->answer);
    free_call(call);
}

int nacre_acp_agent_feed(nacre_acp_agent *agent, const char *message, size_t size,
                         nacre_error *reterr UNUSED)
{
    struct rpc_fault fault;
    struct rpc_message m;
    json_t *value = rpc_decode(message, size, &fault);
    const char *id =
        value && rpc_read(value, &m, &fault) == 0 && m.kind == RPC_RESPONSE ? rpc_text(m.id) : NULL;
    bool ours = id && strncmp(id, ID_PREFIX, strlen(ID_PREFIX)) == 0;
    if (ours)
        deliver_consume(agent, strtoull(id + strlen(ID_PREFIX), NULL, 10), value);
    else
        json_decref(value);
    return ours;
}

void nacre_acp_agent_gone(nacre_acp_agent *agent)
{
    HOLD(&agent->lock);
    agent->gone = true;
    for (struct acp_call **at = &agent->calls; *at;) {
        struct acp_call *call = *at;
        call->done = true;
        if (call->awaited) {
            at = &call->next;
            continue;
        }
        *at = call->next;
        free_call(call);
    }
    for (struct acp_shell *shell = agent->shells; shell; shell = shell->next) {
        if (!shell->over)
            acp_note_end(agent, shell);
    }
    ring_ops(agent);
}

/* -- What is due ------------------------------------------------------------------------------ */

bool acp_condemn(nacre_acp_agent *a, struct acp_shell *shell, nacre_reason reason)
{
    HOLD(&a->lock);
    bool alive = shell->mirror && !shell->exited;
    if (alive && shell->reason == NACRE_REASON_NONE)
        shell->reason = reason;
    return alive;
}

/* One whose time is over; else NULL, and when the next one's is. With the lock. */
static struct acp_shell *find_due_shell(const nacre_acp_agent *a, int64_t *ret_next)
{
    int64_t now = clock_mono_ns();
    *ret_next = INT64_MAX;
    for (struct acp_shell *shell = a->shells; shell; shell = shell->next) {
        bool ends = shell->exited || shell->reason != NACRE_REASON_NONE;
        int64_t due = ends ? shell->patience_ns : MIN(shell->patience_ns, shell->deadline_ns);
        if (due <= now)
            return shell;
        *ret_next = MIN(*ret_next, due);
    }
    return NULL;
}

/* The next step of a shell, without the answer that would bring it. Whether it has to be killed.
 * With the lock. */
static bool go_without(nacre_acp_agent *a, struct acp_shell *shell)
{
    bool late = shell->patience_ns == INT64_MAX;
    shell->patience_ns = INT64_MAX;
    if (late) {
        shell->reason = NACRE_REASON_DEADLINE;
        shell->patience_ns = clock_deadline(ACP_END_MS);
        return true;
    }
    if (!shell->exited)
        take_exit(a, shell, NULL);
    else if (!shell->final)
        note_final(a, shell);
    else
        shell->settled = true;
    tell_of(a, shell);
    return false;
}

int64_t acp_tend(nacre_acp_agent *a)
{
    const nacre_acp_agent_options *options = &a->options;
    struct acp_shell *shell;
    int64_t next;
    if (options->receive && options->receive(0, options->userdata) < 0)
        nacre_acp_agent_gone(a);
    do {
        pthread_mutex_lock(&a->lock);
        shell = find_due_shell(a, &next);
        bool late = shell && go_without(a, shell);
        pthread_mutex_unlock(&a->lock);
        if (late)
            acp_post(a, ACP_KILL, shell);
        else if (shell)
            go_on(a, shell);
    } while (shell);
    return options->receive ? MIN(next, clock_deadline(PUMP_MS)) : next;
}
