/*
 * The host of terminals: one table of methods, a list of terminals, and an epoll over what they
 * wait for. Requests that cannot be answered at once wait with their terminal.
 */
#include "acp/host.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include "acp/exit_status.h"
#include "acp/terminal.h"
#include "base/defs.h"
#include "base/err.h"
#include "rpc/message.h"
#include "shell/session.h"
#include "sys/fd.h"

#define OUTPUT_DEFAULT ((size_t)1 << 20)
#define OUTPUT_MAX     ((size_t)16 << 20)
#define TERMINALS_MAX  64
#define EVENTS_MAX     16

struct nacre_acp_host {
    nacre_session *session;
    nacre_acp_host_options options;
    int epoll_fd;
    int timer_fd; /* ticks each second while a terminal is watched: a watch wants that */
    bool ticking;
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
    struct buf answer cleanup_buf;
    buf_init(&answer, RPC_MESSAGE_MAX);
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
    json_t *data = json_pack("{s:s, s:s, s:i}", "code", nacre_code_name(why->code), "stage",
                             why->stage, "errno", why->sys_errno);
    int r = answer_error(h, id, RPC_INTERNAL, why->msg, data, err);
    json_decref(data);
    return r;
}

static int answer_unknown(nacre_acp_host *h, const json_t *id, const char *terminal,
                          nacre_error *err)
{
    json_t *data = json_pack("{s:s}", "terminalId", terminal);
    int r = answer_error(h, id, ACP_NOT_FOUND,
                         "Resource not found: this session has no terminal with that id, or it was "
                         "released",
                         data, err);
    json_decref(data);
    return r;
}

static int answer_text(nacre_acp_host *h, const json_t *id, const char *result, nacre_error *err)
{
    struct buf answer cleanup_buf;
    buf_init(&answer, RPC_MESSAGE_MAX);
    int r = rpc_begin_result(&answer, id);
    if (r == 0)
        r = buf_printf(&answer, "%s}", result);
    return send_answer(h, &answer, r, err);
}

static int answer_exit(nacre_acp_host *h, const struct acp_terminal *t, const json_t *id,
                       nacre_error *err)
{
    struct buf answer cleanup_buf;
    nacre_record record = NACRE_RECORD_INIT;
    nacre_error why = NACRE_ERROR_INIT;
    buf_init(&answer, RPC_MESSAGE_MAX);
    if (ends_peek(h->session, &t->id, &record, &why) < 0)
        return answer_failure(h, id, &why, err);
    int r = rpc_begin_result(&answer, id);
    if (r == 0)
        r = acp_append_exit_status(&answer, &record);
    if (r == 0)
        r = buf_str(&answer, "}");
    nacre_record_done(&record);
    return send_answer(h, &answer, r, err);
}

/* -- Terminals -------------------------------------------------------------------------------- */

static struct acp_terminal *find(nacre_acp_host *h, const struct acp_target *target)
{
    nacre_id id;
    if (nacre_id_parse(target->terminal, &id) < 0)
        return NULL;
    struct acp_terminal *t = h->terminals;
    while (t &&
           (t->released || !nacre_id_equal(&t->id, &id) || strcmp(t->owner, target->session) != 0))
        t = t->next;
    return t;
}

static int add_to_epoll(nacre_acp_host *h, int fd, void *what)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = what};
    return epoll_ctl(h->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

/* A child that shares our memory may still hold a descriptor that we close: it has to leave the
 * epoll before. */
static void unwatch(nacre_acp_host *h, struct acp_terminal *t)
{
    if (t->watch)
        epoll_ctl(h->epoll_fd, EPOLL_CTL_DEL, nacre_watch_fd(t->watch), NULL);
    nacre_watch_close(t->watch);
    t->watch = NULL;
}

static void set_ticking(nacre_acp_host *h)
{
    bool wanted = false;
    for (const struct acp_terminal *t = h->terminals; t && !wanted; t = t->next)
        wanted = t->watch != NULL;
    if (wanted == h->ticking)
        return;
    struct itimerspec tick = {.it_value.tv_sec = wanted, .it_interval.tv_sec = wanted};
    timerfd_settime(h->timer_fd, 0, &tick, NULL);
    h->ticking = wanted;
}

static void forget(nacre_acp_host *h, struct acp_terminal *terminal)
{
    struct acp_terminal **at = &h->terminals;
    while (*at != terminal)
        at = &(*at)->next;
    *at = terminal->next;
    acp_terminal_free(terminal);
}

static int tell_exit(nacre_acp_host *h, struct acp_terminal *t, nacre_error *err)
{
    struct acp_wait *wait;
    int r = 0;
    while (r >= 0 && (wait = acp_terminal_take_wait(t, true))) {
        r = answer_exit(h, t, wait->id, err);
        acp_wait_free(wait);
    }
    return MIN(r, 0);
}

/* The kills are over; survivors > 0: in vain. */
static int tell_end(nacre_acp_host *h, struct acp_terminal *t, int survivors, nacre_error *err)
{
    struct acp_wait *wait;
    nacre_error why = NACRE_ERROR_INIT;
    err_set(&why, NACRE_EBACKEND, "%d processes of the terminal survived SIGKILL", survivors);
    int r = 0;
    while (r >= 0 && (wait = acp_terminal_take_wait(t, false))) {
        r = survivors > 0 ? answer_failure(h, wait->id, &why, err)
                          : answer_text(h, wait->id, "{}", err);
        acp_wait_free(wait);
    }
    return MIN(r, 0);
}

static int count_survivors(nacre_acp_host *h, const struct acp_terminal *t)
{
    nacre_record record = NACRE_RECORD_INIT;
    int survivors = 0;
    if (t->killed && t->waits && ends_peek(h->session, &t->id, &record, NULL) == 0)
        survivors = record.tree == NACRE_TREE_ALIVE ? record.survivors : 0;
    nacre_record_done(&record);
    return survivors;
}

/* Looks at one terminal, and answers who waited for what is seen. It may be gone afterwards. */
static int look(nacre_acp_host *h, struct acp_terminal *t, bool tick, nacre_error *err)
{
    if (t->watch && acp_terminal_listen(t))
        unwatch(h, t);
    int r = t->settled ? tell_exit(h, t, err) : 0;
    int survivors = tick && t->watch ? count_survivors(h, t) : 0;
    if (r == 0 && (!t->watch || survivors > 0))
        r = tell_end(h, t, survivors, err);
    if (r == 0 && t->released && (!t->watch || survivors > 0)) {
        unwatch(h, t);
        forget(h, t);
    }
    return r;
}

/* -- Methods ---------------------------------------------------------------------------------- */

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
    r = acp_terminal_new(h->session, &create, (size_t)MIN(limit, h->options.output_max), &t, &why);
    if (r < 0)
        return answer_failure(h, m->id, &why, err);
    t->next = h->terminals;
    h->terminals = t;
    r = add_to_epoll(h, nacre_watch_fd(t->watch), t);
    if (r < 0)
        return err_sys(err, NACRE_ELIMIT, -r, "epoll", "cannot watch a terminal");
    set_ticking(h);
    char result[64];
    snprintf(result, sizeof result, "{\"terminalId\":\"%s\"}", nacre_id_format(&t->id).s);
    return answer_text(h, m->id, result, err);
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
    struct buf head cleanup_buf, end cleanup_buf;
    buf_init(&head, RPC_MESSAGE_MAX);
    buf_init(&end, RPC_MESSAGE_MAX);
    int r = frame_output(id, t, record, &head, &end);
    if (r == 0)
        r = acp_tail_send(&t->tail, &head, &end, h->options.send, h->options.userdata);
    return r < 0 ? err_set(err, NACRE_ENOMEM, "out of memory") : 1;
}

static int do_output(nacre_acp_host *h, const struct rpc_message *m, struct acp_terminal *t,
                     nacre_error *err)
{
    nacre_record record = NACRE_RECORD_INIT;
    nacre_error why = NACRE_ERROR_INIT;
    int r = acp_terminal_catch_up(t, &record, &why);
    r = r < 0 ? answer_failure(h, m->id, &why, err) : answer_output(h, m->id, t, &record, err);
    nacre_record_done(&record);
    return r;
}

/* The request waits with the terminal, which may have the answer already. */
static int wait_with(nacre_acp_host *h, const struct rpc_message *m, struct acp_terminal *t,
                     bool for_exit, nacre_error *err)
{
    if (acp_terminal_add_wait(t, m->id, for_exit) < 0)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    int r = look(h, t, false, err);
    return r < 0 ? r : 1;
}

static int do_wait_for_exit(nacre_acp_host *h, const struct rpc_message *m, struct acp_terminal *t,
                            nacre_error *err)
{
    return wait_with(h, m, t, true, err);
}

static int do_kill(nacre_acp_host *h, const struct rpc_message *m, struct acp_terminal *t,
                   nacre_error *err)
{
    nacre_error why = NACRE_ERROR_INIT;
    if (acp_terminal_kill(t, &why) < 0)
        return answer_failure(h, m->id, &why, err);
    return wait_with(h, m, t, false, err);
}

static int do_release(nacre_acp_host *h, const struct rpc_message *m, struct acp_terminal *t,
                      nacre_error *err)
{
    int r = do_kill(h, m, t, err);
    /* The terminal is still there: it was not released when it was looked at. */
    t->released = true;
    return r < 0 || t->watch ? r : (forget(h, t), r);
}

typedef int target_fn(nacre_acp_host *h, const struct rpc_message *m, struct acp_terminal *t,
                      nacre_error *err);

static const struct {
    const char *name;
    target_fn *run; /* NULL: it makes a terminal */
} methods[] = {
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
    struct acp_terminal *t = find(h, &target);
    return t ? run(h, m, t, err) : answer_unknown(h, m->id, target.terminal, err);
}

/* A kill that was asked for is not taken back. */
static int do_cancel(nacre_acp_host *h, const struct rpc_message *m, nacre_error *err)
{
    const json_t *id = json_object_get(m->params, "requestId");
    struct acp_wait *wait = NULL;
    for (struct acp_terminal *t = h->terminals; id && t && !wait; t = t->next)
        wait = acp_terminal_take_wait_of(t, id);
    if (!wait)
        return 0;
    int r = answer_error(h, wait->id, ACP_CANCELLED, "Request cancelled", NULL, err);
    acp_wait_free(wait);
    return r;
}

int acp_host_take(nacre_acp_host *host, const struct rpc_message *m, nacre_error *reterr)
{
    if (m->kind == RPC_NOTIFICATION && strcmp(m->method, "$/cancel_request") == 0)
        return do_cancel(host, m, reterr);
    if (m->kind != RPC_REQUEST || strncmp(m->method, "terminal/", strlen("terminal/")) != 0)
        return 0;
    for (size_t i = 0; i < ARRAY_SIZE(methods); i++) {
        if (strcmp(m->method, methods[i].name) != 0)
            continue;
        return methods[i].run ? do_with_target(host, m, methods[i].run, reterr)
                              : do_create(host, m, reterr);
    }
    return answer_error(host, m->id, RPC_NO_METHOD, "Method not found", NULL, reterr);
}

int nacre_acp_host_feed(nacre_acp_host *host, const char *message, size_t size, nacre_error *reterr)
{
    struct rpc_fault fault;
    struct rpc_message m = {0};
    json_t *value = rpc_decode(message, size, &fault);
    int r = value && rpc_read(value, &m, &fault) == 0 ? acp_host_take(host, &m, reterr)
                                                      : answer_fault(host, m.id, &fault, reterr);
    json_decref(value);
    return r;
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

static int look_at_all(nacre_acp_host *h, nacre_error *err)
{
    int r = 0;
    for (struct acp_terminal *t = h->terminals, *next; r == 0 && t; t = next) {
        next = t->next;
        if (t->watch)
            r = look(h, t, true, err);
    }
    return r;
}

int nacre_acp_host_dispatch(nacre_acp_host *host, nacre_error *reterr)
{
    struct epoll_event events[EVENTS_MAX];
    uint64_t ticks;
    int count = RETRY(epoll_wait(host->epoll_fd, events, EVENTS_MAX, 0));
    bool tick = false;
    int r = 0;
    for (int i = 0; r == 0 && i < count; i++) {
        if (events[i].data.ptr == host)
            tick = RETRY(read(host->timer_fd, &ticks, sizeof ticks)) > 0;
        else
            r = look(host, events[i].data.ptr, false, reterr);
    }
    if (r == 0 && tick)
        r = look_at_all(host, reterr);
    set_ticking(host);
    return r;
}

static int prepare(nacre_acp_host *h)
{
    h->epoll_fd = fd_lift_consume(epoll_create1(EPOLL_CLOEXEC));
    h->timer_fd = fd_lift_consume(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
    if (h->epoll_fd < 0 || h->timer_fd < 0)
        return -EMFILE;
    return add_to_epoll(h, h->timer_fd, h);
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
        .session = session, .options = *options, .epoll_fd = -EBADF, .timer_fd = -EBADF};
    if (!h->options.output_max)
        h->options.output_max = OUTPUT_MAX;
    if (!h->options.output_default)
        h->options.output_default = OUTPUT_DEFAULT;
    if (!h->options.terminals_max)
        h->options.terminals_max = TERMINALS_MAX;
    int r = prepare(h);
    if (r < 0) {
        nacre_acp_host_close(h);
        return err_sys(reterr, NACRE_ELIMIT, -r, "epoll", "no descriptor left for a host");
    }
    *ret_host = h;
    return 0;
}

void nacre_acp_host_close(nacre_acp_host *host)
{
    if (!host)
        return;
    while (host->terminals) {
        struct acp_terminal *t = host->terminals;
        if (t->watch && !t->killed)
            acp_terminal_kill(t, NULL);
        unwatch(host, t);
        forget(host, t);
    }
    close_fd(&host->timer_fd);
    close_fd(&host->epoll_fd);
    free(host);
}
