/* Requests to an ACP client, and what becomes of its answers. */
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "backend/acp.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "rpc/message.h"

#define ID_PREFIX "nacre-" /* so that our ids are nobody else's */
#define SLICE_MS  100
#define SETTLE_MS 1000 /* for a release to be answered after an exit */
#define NOT_FOUND (-32002)

static const char *const methods[] = {
    [ACP_CREATE] = "terminal/create",      [ACP_KILL] = "terminal/kill",
    [ACP_WAIT] = "terminal/wait_for_exit", [ACP_OUTPUT] = "terminal/output",
    [ACP_RELEASE] = "terminal/release",
};

json_t *acp_target(const nacre_acp_agent *a, const struct acp_shell *shell)
{
    return json_pack("{s:s, s:s}", "sessionId", a->session_id, "terminalId", shell->terminal);
}

/* -- Waiting ---------------------------------------------------------------------------------- */

static struct timespec moment(int64_t ns)
{
    return (struct timespec){.tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S};
}

bool acp_pause(nacre_acp_agent *a, int64_t deadline_ns)
{
    int left = clock_left_ms(deadline_ns);
    if (left == 0)
        return false;
    pthread_mutex_unlock(&a->lock);
    bool changed = acp_lose_patience(a);
    pthread_mutex_lock(&a->lock);
    if (changed)
        return true;
    if (a->options.receive) {
        pthread_mutex_unlock(&a->lock);
        int r = a->options.receive(left < 0 ? SLICE_MS : MIN(left, SLICE_MS), a->options.userdata);
        if (r < 0)
            nacre_acp_agent_gone(a);
        pthread_mutex_lock(&a->lock);
        return true;
    }
    int64_t slice = clock_deadline(SLICE_MS);
    struct timespec until = moment(MIN(deadline_ns, slice));
    pthread_cond_timedwait(&a->changed, &a->lock, &until);
    return true;
}

bool acp_is_late(struct acp_shell *shell)
{
    if (shell->exited || shell->reason != NACRE_REASON_NONE ||
        clock_left_ms(shell->deadline_ns) != 0)
        return false;
    shell->reason = NACRE_REASON_DEADLINE;
    shell->patience_ns = clock_deadline(ACP_END_MS);
    return true;
}

/* -- Sending ---------------------------------------------------------------------------------- */

static void unlink_call(nacre_acp_agent *a, const struct acp_call *call)
{
    struct acp_call **at = &a->calls;
    while (*at && *at != call)
        at = &(*at)->next;
    if (*at)
        *at = call->next;
}

static void free_call(struct acp_call *call)
{
    json_decref(call->answer);
    free(call);
}

/* Puts a call into the list and returns its number; 0 if out of memory or the client has gone. With
 * ret_awaited it is the caller's to free; without, it may be gone at any moment. */
static uint64_t add_call(nacre_acp_agent *a, enum acp_request kind, struct acp_shell *shell,
                         struct acp_call **ret_awaited)
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
                                  .awaited = ret_awaited != NULL};
        if (ret_awaited)
            *ret_awaited = call;
        a->calls = TAKE_PTR(call);
    }
    pthread_mutex_unlock(&a->lock);
    free(call);
    return number;
}

static void send_request(nacre_acp_agent *a, uint64_t number, enum acp_request kind, json_t *params)
{
    struct buf message cleanup_buf;
    buf_init(&message, RPC_MESSAGE_MAX);
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
    json_decref(params);
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

static int take_answer(const struct acp_call *call, json_t **ret_result, nacre_error *err)
{
    const json_t *error = json_object_get(call->answer, "error");
    if (!call->done)
        return err_set(err, NACRE_EBACKEND, "the client does not answer %s", methods[call->kind]);
    if (!call->answer)
        return err_set(err, NACRE_EBACKEND, "the connection to the client has ended");
    if (error)
        return take_error(error, call->kind, err);
    *ret_result = json_incref(json_object_get(call->answer, "result"));
    return 0;
}

int acp_call(nacre_acp_agent *a, enum acp_request kind, json_t *params, json_t **ret_result,
             nacre_error *err)
{
    int64_t deadline = clock_deadline(a->options.answer_ms);
    struct acp_call *call;
    uint64_t number = params ? add_call(a, kind, NULL, &call) : 0;
    if (!number) {
        json_decref(params);
        return err_set(err, NACRE_EBACKEND, "the connection to the client has ended");
    }
    send_request(a, number, kind, params);
    pthread_mutex_lock(&a->lock);
    while (!call->done && acp_pause(a, deadline))
        continue;
    unlink_call(a, call);
    pthread_mutex_unlock(&a->lock);
    int r = take_answer(call, ret_result, err);
    free_call(call);
    return r;
}

void acp_post(nacre_acp_agent *a, enum acp_request kind, struct acp_shell *shell)
{
    uint64_t number = add_call(a, kind, shell, NULL);
    if (number)
        send_request(a, number, kind, acp_target(a, shell));
}

/* -- Answers that nobody waits for ------------------------------------------------------------ */

static void note_exit(const nacre_acp_agent *a, struct acp_shell *shell, const json_t *status)
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

/* Nothing more will be heard of it. */
static void note_end(const nacre_acp_agent *a, struct acp_shell *shell)
{
    note_exit(a, shell, NULL);
    shell->fetching = false;
    shell->final = shell->releasing = shell->settled = shell->over = true;
    shell->patience_ns = INT64_MAX;
}

static void note_output(const nacre_acp_agent *a, struct acp_shell *shell, const json_t *result)
{
    const json_t *text = json_object_get(result, "output");
    if (json_is_string(text) && shell->run) {
        const char *bytes = json_string_value(text);
        size_t size = json_string_length(text);
        bool truncated = json_is_true(json_object_get(result, "truncated")), gap;
        size_t from = acp_text_take(&shell->text, bytes, size, truncated, &gap);
        acp_run_add(shell->run, bytes + from, size - from, gap);
    }
    shell->fetching = false;
    shell->fetches++;
    if (shell->last && !shell->final)
        note_final(a, shell);
}

/* Writes down what a shell has become, and tells whoever waits for it. With the lock. */
static void tell(nacre_acp_agent *a, struct acp_shell *shell)
{
    static const uint64_t one = 1;
    acp_run_note(shell);
    acp_watch_ring(a, shell);
    if (!shell->background || !shell->final)
        return;
    shell->rings = true;
    ssize_t rung UNUSED = write(a->bell_fd, &one, sizeof one);
}

/* Takes an answer in. With the lock. An error tells nothing, but that there is no more to come. */
static void take_in(nacre_acp_agent *a, const struct acp_call *call)
{
    struct acp_shell *shell = call->shell;
    const json_t *result = json_object_get(call->answer, "result");
    if (call->kind == ACP_WAIT)
        note_exit(a, shell, result);
    else if (call->kind == ACP_OUTPUT)
        note_output(a, shell, result);
    else if (call->kind == ACP_RELEASE)
        note_end(a, shell);
    if (call->kind != ACP_KILL)
        tell(a, shell);
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

/* The next step of a shell, without the answer that would bring it. With the lock. */
static void go_without(const nacre_acp_agent *a, struct acp_shell *shell)
{
    shell->patience_ns = INT64_MAX;
    if (!shell->exited) {
        note_exit(a, shell, NULL);
    } else if (!shell->final) {
        note_final(a, shell);
    } else {
        shell->settled = true;
    }
}

bool acp_lose_patience(nacre_acp_agent *a)
{
    struct acp_shell *shell;
    bool any = false;
    do {
        pthread_mutex_lock(&a->lock);
        shell = a->shells;
        while (shell && clock_left_ms(shell->patience_ns) != 0)
            shell = shell->next;
        if (shell) {
            go_without(a, shell);
            tell(a, shell);
        }
        pthread_mutex_unlock(&a->lock);
        if (shell)
            go_on(a, shell);
        any = any || shell;
    } while (shell);
    return any;
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
    struct acp_shell *shell = NULL;
    pthread_mutex_lock(&a->lock);
    struct acp_call *call = find_call(a, number);
    if (call) {
        call->answer = TAKE_PTR(answer);
        call->done = true;
        shell = call->shell;
    }
    if (call && !call->awaited) {
        take_in(a, call);
        unlink_call(a, call);
        free_call(call);
    }
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->lock);
    json_decref(answer);
    if (shell)
        go_on(a, shell);
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
    pthread_mutex_lock(&agent->lock);
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
        if (shell->over)
            continue;
        note_end(agent, shell);
        tell(agent, shell);
    }
    pthread_cond_broadcast(&agent->changed);
    pthread_mutex_unlock(&agent->lock);
}
