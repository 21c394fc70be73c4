/*
 * The host of terminals: one table of methods, a list of terminals, and an epoll over what they
 * wait for. Requests that cannot be answered at once wait with their terminal.
 */
#include "acp/client.h"

#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "acp/client_exit.h"
#include "acp/client_terminal.h"
#include "backend/op.h"
#include "base/clock.h"
#include "base/err.h"
#include "rpc/message.h"
#include "session/session.h"
#include "sys/fd.h"

#define OUTPUT_DEFAULT ((size_t)1 << 20)
#define OUTPUT_MAX     ((size_t)16 << 20)
#define TERMINALS_MAX  64
#define EVENTS_MAX     16
#define TICK_MS        1000

struct nacre_acp_host {
    nacre_session *session;
    nacre_acp_host_options options;
    int epoll_fd;
    int timer_fd;
    int64_t armed_ns; /* what the timer is set to; INT64_MAX = nothing */
    int64_t tick_ns;  /* while a terminal is watched, each second: a watch wants that */
    struct acp_terminal *terminals;
};

/* -- Answers ---------------------------------------------------------------------------------- */

/* Sends what was written, if that went well. */
static int send_answer(nacre_acp_host *h, const struct buf *answer, int written, nacre_error *err)
{
    if (written < 0)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    h->options.send(answer->data, answer->len, h->options.userdata);
    return 1;
}

static int answer_error(nacre_acp_host *h, const json_t *id, int code, const char *text,
                        const json_t *data, nacre_error *err)
{
    struct buf answer cleanup_buf = BUF_UP_TO(RPC_MESSAGE_MAX);
    return send_answer(h, &answer, rpc_append_error(&answer, id, code, text, data), err);
}

static int answer_fault(nacre_acp_host *h, const json_t *id, const struct rpc_fault *fault,
                        nacre_error *err)
{
    return answer_error(h, id, fault->code, fault->text, NULL, err);
}

/* An error of the library's, with what it says besides its sentence. */
static int answer_failure(nacre_acp_host *h, const json_t *id, const nacre_error *why,
                          nacre_error *err)
{
    json_auto_t *data = json_pack("{s:s, s:s, s:i}", "code", nacre_code_name(why->code), "stage",
                                  why->stage, "errno", why->sys_errno);
    return answer_error(h, id, RPC_INTERNAL, why->msg, data, err);
}

static int answer_unknown(nacre_acp_host *h, const json_t *id, const char *terminal,
                          nacre_error *err)
{
    json_auto_t *data = json_pack("{s:s}", "terminalId", terminal);
    return answer_error(h, id, ACP_NOT_FOUND,
                        "Resource not found: this session has no terminal with that id, or it was "
                        "released",
                        data, err);
}

static int answer_with(nacre_acp_host *h, const json_t *id, const char *result, nacre_error *err)
{
    struct buf answer cleanup_buf = BUF_UP_TO(RPC_MESSAGE_MAX);
    int r = rpc_begin_result(&answer, id);
    if (r == 0)
        r = buf_printf(&answer, "%s}", result);
    return send_answer(h, &answer, r, err);
}

static int answer_exit(nacre_acp_host *h, const struct acp_terminal *t, const json_t *id,
                       nacre_error *err)
{
    struct buf answer cleanup_buf = BUF_UP_TO(RPC_MESSAGE_MAX);
    nacre_record record cleanup_record = NACRE_RECORD_INIT;
    nacre_error why = NACRE_ERROR_INIT;
    if (session_record(h->session, &t->id, HOME_LIGHT, &record, NULL, &why) < 0)
        return answer_failure(h, id, &why, err);
    int r = rpc_begin_result(&answer, id);
    if (r == 0)
        r = acp_append_exit_status(&answer, &record);
    if (r == 0)
        r = buf_str(&answer, "}");
    return send_answer(h, &answer, r, err);
}

/* -- Terminals -------------------------------------------------------------------------------- */

static struct acp_terminal *find_terminal(nacre_acp_host *h, const struct acp_target *target)
{
    nacre_id id;
    if (nacre_id_parse(target->terminal, &id) < 0)
        return NULL;
    struct acp_terminal *t = h->terminals;
    while (t && (t->starting || t->released || !nacre_id_equal(&t->id, &id) ||
                 strcmp(t->owner, target->session) != 0))
        t = t->next;
    return t;
}

static int add_to_epoll(nacre_acp_host *h, int fd, int events, void *what, nacre_error *err)
{
    struct epoll_event event = {.events = (uint32_t)events, .data.ptr = what};
    return epoll_ctl(h->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0
               ? err_sys(err, NACRE_ELIMIT, errno, "epoll", "no descriptor left to wait for")
               : 0;
}

/* A child that shares our memory, and a keeper that was just made, may still hold a descriptor that
 * is closed here: it has to leave the epoll before, and so before each step of an operation. */
static void unpoll(nacre_acp_host *h, struct acp_terminal *t)
{
    if (t->polled_fd >= 0)
        epoll_ctl(h->epoll_fd, EPOLL_CTL_DEL, t->polled_fd, NULL);
    t->polled_fd = -1;
}

static void unwatch(nacre_acp_host *h, struct acp_terminal *t)
{
    if (t->watch)
        epoll_ctl(h->epoll_fd, EPOLL_CTL_DEL, nacre_watch_fd(t->watch), NULL);
    nacre_watch_close(t->watch);
    t->watch = NULL;
}

/* As a step: what cannot be polled has failed too. */
static int step_op(nacre_acp_host *h, struct acp_terminal *t, nacre_error *why)
{
    unpoll(h, t);
    int r = t->op->step(t->op, why);
    t->polled_fd = r == 0 ? t->op->fd : -1;
    return r == 0 && t->polled_fd >= 0 ? add_to_epoll(h, t->polled_fd, t->op->events, t, why) : r;
}

/* To the next thing that is due without a descriptor. */
static void set_timer(nacre_acp_host *h)
{
    int64_t next = INT64_MAX;
    bool watching = false;
    for (const struct acp_terminal *t = h->terminals; t; t = t->next) {
        watching = watching || t->watch;
        next = t->op ? MIN(next, t->op->wake_ns) : next;
    }
    if (!watching)
        h->tick_ns = INT64_MAX;
    else if (h->tick_ns == INT64_MAX)
        h->tick_ns = clock_deadline(TICK_MS);
    next = MIN(next, h->tick_ns);
    if (next != h->armed_ns)
        fd_arm_timer(h->timer_fd, next == INT64_MAX ? 0 : MAX(next, 1));
    h->armed_ns = next;
}

static void forget_terminal(nacre_acp_host *h, struct acp_terminal *terminal)
{
    UNLINK(h->terminals, terminal);
    unpoll(h, terminal);
    unwatch(h, terminal);
    acp_terminal_free(terminal);
}

static int tell_exit(nacre_acp_host *h, struct acp_terminal *t, nacre_error *err)
{
    struct acp_wait *wait;
    int r = 0;
    while (r >= 0 && (wait = acp_terminal_take_wait(t, ACP_FOR_EXIT))) {
        r = answer_exit(h, t, wait->id, err);
        acp_wait_free(wait);
    }
    return MIN(r, 0);
}

/* With a result, or if there is a reason with that. wait is consumed. */
static int answer_wait(nacre_acp_host *h, struct acp_wait *wait, const char *result,
                       const nacre_error *why, nacre_error *err)
{
    int r = why ? answer_failure(h, wait->id, why, err) : answer_with(h, wait->id, result, err);
    acp_wait_free(wait);
    return MIN(r, 0);
}

/* The kills are over, or have failed for a reason. */
static int tell_end(nacre_acp_host *h, struct acp_terminal *t, const nacre_error *why,
                    nacre_error *err)
{
    struct acp_wait *wait;
    int r = 0;
    while (r == 0 && (wait = acp_terminal_take_wait(t, ACP_FOR_END)))
        r = answer_wait(h, wait, "{}", why, err);
    return r;
}

static int tell_start(nacre_acp_host *h, struct acp_terminal *t, const nacre_error *why,
                      nacre_error *err)
{
    char result[64];
    snprintf(result, sizeof result, "{\"terminalId\":\"%s\"}", nacre_id_format(&t->id).s);
    return answer_wait(h, acp_terminal_take_wait(t, ACP_FOR_START), result, why, err);
}

/* The next two: 0, or 1 if the terminal is gone. */
static int go_on_starting(nacre_acp_host *h, struct acp_terminal *t, nacre_error *err)
{
    nacre_error why = NACRE_ERROR_INIT;
    int r = step_op(h, t, &why);
    if (r == 0)
        return 0;
    if (r < 0) {
        r = tell_start(h, t, &why, err);
        forget_terminal(h, t);
        return r < 0 ? r : 1;
    }
    acp_terminal_begin(t);
    r = add_to_epoll(h, nacre_watch_fd(t->watch), EPOLLIN, t, err);
    return r < 0 ? r : tell_start(h, t, NULL, err);
}

static int go_on_killing(nacre_acp_host *h, struct acp_terminal *t, nacre_error *err)
{
    nacre_error why = NACRE_ERROR_INIT;
    int r = step_op(h, t, &why);
    if (r == 0)
        return 0;
    int survivors = r > 0 ? ((const nacre_kill_result *)t->op->result)->survivors : 0;
    if (survivors > 0)
        r = err_set(&why, NACRE_EBACKEND, "%d processes of the terminal survived SIGKILL",
                    survivors);
    op_end(&t->op);
    return r < 0 ? tell_end(h, t, &why, err) : 0;
}

/* Goes on with what is done to a terminal, looks at it, and answers who waited for what is seen. It
 * may be gone afterwards. */
static int look_at_terminal(nacre_acp_host *h, struct acp_terminal *t, nacre_error *err)
{
    int r = t->starting ? go_on_starting(h, t, err) : t->op ? go_on_killing(h, t, err) : 0;
    if (r != 0)
        return MIN(r, 0);
    if (t->watch && acp_terminal_listen(t))
        unwatch(h, t);
    r = t->settled ? tell_exit(h, t, err) : 0;
    if (r < 0 || t->watch || t->op)
        return r;
    r = tell_end(h, t, NULL, err);
    if (t->released)
        forget_terminal(h, t);
    return r;
}

/* -- Methods ---------------------------------------------------------------------------------- */

/* The request waits with the terminal, which may have the answer already. */
static int wait_with(nacre_acp_host *h, const struct rpc_message *m, struct acp_terminal *t,
                     enum acp_wait_for what, nacre_error *err)
{
    if (acp_terminal_add_wait(t, m->id, what) < 0)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    int r = look_at_terminal(h, t, err);
    return r < 0 ? r : 1;
}

static int do_create(nacre_acp_host *h, const struct rpc_message *m, nacre_error *err)
{
    __attribute__((cleanup(acp_create_done))) struct acp_create create;
    struct rpc_fault fault;
    nacre_error why = NACRE_ERROR_INIT;
    struct acp_terminal *t;
    int r = acp_create_read(m->params, &create, &fault);
    if (r == -ENOMEM)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    if (r < 0)
        return answer_fault(h, m->id, &fault, err);
    if (nacre_acp_host_count(h) >= h->options.terminals_max) {
        err_set(&why, NACRE_ELIMIT, "%zu terminals are open, which is the limit; release one",
                h->options.terminals_max);
        return answer_failure(h, m->id, &why, err);
    }
    uint64_t limit = create.has_limit ? create.limit : h->options.output_default;
    r = acp_terminal_new(h->session, &create, m->params, (size_t)MIN(limit, h->options.output_max),
                         &t, &why);
    if (r < 0)
        return answer_failure(h, m->id, &why, err);
    if (acp_terminal_add_wait(t, m->id, ACP_FOR_START) < 0) {
        acp_terminal_free(t);
        return err_set(err, NACRE_ENOMEM, "out of memory");
    }
    t->next = h->terminals;
    h->terminals = t;
    r = look_at_terminal(h, t, err);
    return r < 0 ? r : 1;
}

/* What stands before the text of an output, and what behind it. */
static int frame_output(const json_t *id, const struct acp_terminal *t, const nacre_record *record,
                        struct buf *head, struct buf *end)
{
    int r = rpc_begin_result(head, id);
    if (r == 0)
        r = buf_str(head, "{\"output\":\"");
    if (r == 0)
        r = buf_printf(end, "\",\"truncated\":%s", t->tail.cut ? "true" : "false");
    if (r == 0 && record->outcome != NACRE_RUNNING) {
        r = buf_str(end, ",\"exitStatus\":");
        if (r == 0)
            r = acp_append_exit_status(end, record);
    }
    return r < 0 ? r : buf_str(end, "}}");
}

static int answer_output(nacre_acp_host *h, const json_t *id, struct acp_terminal *t,
                         const nacre_record *record, nacre_error *err)
{
    struct buf head cleanup_buf = BUF_UP_TO(RPC_MESSAGE_MAX);
    struct buf end cleanup_buf = BUF_UP_TO(RPC_MESSAGE_MAX);
    int r = frame_output(id, t, record, &head, &end);
    if (r == 0)
        r = acp_tail_send(&t->tail, &head, &end, h->options.send, h->options.userdata);
    return r < 0 ? err_set(err, NACRE_ENOMEM, "out of memory") : 1;
}

static int do_output(nacre_acp_host *h, const struct rpc_message *m, struct acp_terminal *t,
                     nacre_error *err)
{
    nacre_record record cleanup_record = NACRE_RECORD_INIT;
    nacre_error why = NACRE_ERROR_INIT;
    int r = acp_terminal_catch_up(t, &record, &why);
    return r < 0 ? answer_failure(h, m->id, &why, err) : answer_output(h, m->id, t, &record, err);
}

static int do_wait_for_exit(nacre_acp_host *h, const struct rpc_message *m, struct acp_terminal *t,
                            nacre_error *err)
{
    return wait_with(h, m, t, ACP_FOR_EXIT, err);
}

static int do_kill(nacre_acp_host *h, const struct rpc_message *m, struct acp_terminal *t,
                   nacre_error *err)
{
    nacre_error why = NACRE_ERROR_INIT;
    if (t->op || session_kill(h->session, &t->id, NULL, &t->op, &why) == 0)
        return wait_with(h, m, t, ACP_FOR_END, err);
    if (t->released && !t->watch)
        forget_terminal(h, t);
    return answer_failure(h, m->id, &why, err);
}

static int do_release(nacre_acp_host *h, const struct rpc_message *m, struct acp_terminal *t,
                      nacre_error *err)
{
    t->released = true;
    return do_kill(h, m, t, err);
}

typedef int target_fn(nacre_acp_host *h, const struct rpc_message *m, struct acp_terminal *t,
                      nacre_error *err);

static const struct {
    const char *name;
    target_fn *run; /* NULL: it makes a terminal */
} terminal_methods[] = {
    {"terminal/create", NULL},
    {"terminal/output", do_output},
    {"terminal/wait_for_exit", do_wait_for_exit},
    {"terminal/kill", do_kill},
    {"terminal/release", do_release},
};

static int do_with_target(nacre_acp_host *h, const struct rpc_message *m, target_fn *run,
                          nacre_error *err)
{
    struct acp_target target;
    struct rpc_fault fault;
    if (acp_target_read(m->params, &target, &fault) < 0)
        return answer_fault(h, m->id, &fault, err);
    struct acp_terminal *t = find_terminal(h, &target);
    return t ? run(h, m, t, err) : answer_unknown(h, m->id, target.terminal, err);
}

/* A kill that was asked for is not taken back; a start leaves nothing. */
static int do_cancel(nacre_acp_host *h, const struct rpc_message *m, nacre_error *err)
{
    const json_t *id = json_object_get(m->params, "requestId");
    struct acp_terminal *t = id ? h->terminals : NULL;
    struct acp_wait *wait = NULL;
    while (t && !(wait = acp_terminal_take_wait_of(t, id)))
        t = t->next;
    if (!wait)
        return 0;
    if (wait->what == ACP_FOR_START)
        forget_terminal(h, t);
    int r = answer_error(h, wait->id, ACP_CANCELLED, "Request cancelled", NULL, err);
    acp_wait_free(wait);
    return r;
}

static int do_request(nacre_acp_host *h, const struct rpc_message *m, nacre_error *err)
{
    for (size_t i = 0; i < ARRAY_SIZE(terminal_methods); i++) {
        if (strcmp(m->method, terminal_methods[i].name) != 0)
            continue;
        return terminal_methods[i].run ? do_with_target(h, m, terminal_methods[i].run, err)
                                       : do_create(h, m, err);
    }
    return answer_error(h, m->id, RPC_NO_METHOD, "Method not found", NULL, err);
}

int acp_host_take(nacre_acp_host *host, const struct rpc_message *m, nacre_error *reterr)
{
    bool cancels = m->kind == RPC_NOTIFICATION && strcmp(m->method, "$/cancel_request") == 0;
    if (!cancels &&
        (m->kind != RPC_REQUEST || strncmp(m->method, "terminal/", strlen("terminal/")) != 0))
        return 0;
    int r = cancels ? do_cancel(host, m, reterr) : do_request(host, m, reterr);
    set_timer(host);
    return r;
}

int nacre_acp_host_feed(nacre_acp_host *host, const char *message, size_t size, nacre_error *reterr)
{
    struct rpc_fault fault;
    struct rpc_message m = {0};
    json_auto_t *value = rpc_decode(message, size, &fault);
    return value && rpc_read(value, &m, &fault) == 0 ? acp_host_take(host, &m, reterr)
                                                     : answer_fault(host, m.id, &fault, reterr);
}

bool acp_host_is_starting(const nacre_acp_host *host)
{
    const struct acp_terminal *t = host->terminals;
    while (t && !t->starting)
        t = t->next;
    return t != NULL;
}

/* -- Life ------------------------------------------------------------------------------------- */

int nacre_acp_host_fd(const nacre_acp_host *host)
{
    return host->epoll_fd;
}

size_t nacre_acp_host_count(const nacre_acp_host *host)
{
    size_t count = 0;
    for (const struct acp_terminal *t = host->terminals; t; t = t->next)
        count += !t->released;
    return count;
}

/* Those whose time has come; with a tick, all that are watched. */
static int look_at_due(nacre_acp_host *h, nacre_error *err)
{
    int64_t now = clock_mono_ns();
    bool tick = h->tick_ns <= now;
    int r = 0;
    if (tick)
        h->tick_ns = clock_deadline(TICK_MS);
    for (struct acp_terminal *t = h->terminals, *next; r == 0 && t; t = next) {
        next = t->next;
        if ((tick && t->watch) || (t->op && t->op->wake_ns <= now))
            r = look_at_terminal(h, t, err);
    }
    return r;
}

/* Of two events of one terminal the first may be its end. */
static bool is_terminal(const nacre_acp_host *h, const void *what)
{
    const struct acp_terminal *t = h->terminals;
    while (t && t != what)
        t = t->next;
    return t != NULL;
}

int nacre_acp_host_dispatch(nacre_acp_host *host, nacre_error *reterr)
{
    struct epoll_event events[EVENTS_MAX];
    uint64_t times;
    int count = RETRY(epoll_wait(host->epoll_fd, events, EVENTS_MAX, 0));
    bool due = false;
    int r = 0;
    for (int i = 0; r == 0 && i < count; i++) {
        if (events[i].data.ptr == host)
            due = RETRY(read(host->timer_fd, &times, sizeof times)) > 0;
        else if (is_terminal(host, events[i].data.ptr))
            r = look_at_terminal(host, events[i].data.ptr, reterr);
    }
    if (r == 0 && due) {
        host->armed_ns = INT64_MAX;
        r = look_at_due(host, reterr);
    }
    set_timer(host);
    return r;
}

int nacre_acp_host_open(nacre_session *session, const nacre_acp_host_options *options,
                        nacre_acp_host **ret_host, nacre_error *reterr)
{
    if (!session || !options || options->size != sizeof *options || !options->send)
        return err_set(reterr, NACRE_EINVAL,
                       "the options must start from NACRE_ACP_HOST_OPTIONS_INIT, with send set");
    nacre_acp_host *h = calloc(1, sizeof *h);
    if (!h)
        return err_set(reterr, NACRE_ENOMEM, "out of memory");
    *h = (nacre_acp_host){
        .session = session, .options = *options, .armed_ns = INT64_MAX, .tick_ns = INT64_MAX};
    if (!h->options.output_max)
        h->options.output_max = OUTPUT_MAX;
    if (!h->options.output_default)
        h->options.output_default = OUTPUT_DEFAULT;
    if (!h->options.terminals_max)
        h->options.terminals_max = TERMINALS_MAX;
    h->epoll_fd = fd_lift_consume(epoll_create1(EPOLL_CLOEXEC));
    h->timer_fd = fd_lift_consume(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
    int r = add_to_epoll(h, h->timer_fd, EPOLLIN, h, reterr);
    if (r < 0)
        nacre_acp_host_close(h);
    else
        *ret_host = h;
    return r;
}

void nacre_acp_host_close(nacre_acp_host *host)
{
    if (!host)
        return;
    while (host->terminals) {
        struct acp_terminal *t = host->terminals;
        if (t->watch && !t->op && session_kill(host->session, &t->id, NULL, &t->op, NULL) == 0)
            t->op->step(t->op, NULL);
        forget_terminal(host, t);
    }
    close_fd(&host->timer_fd);
    close_fd(&host->epoll_fd);
    free(host);
}
