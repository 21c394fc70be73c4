/* Running in the foreground, and waiting for several shells at once. */
#include <sys/epoll.h>

#include "backend/op.h"
#include "base/clock.h"
#include "base/err.h"
#include "home/run_watch.h"
#include "session/session.h"
#include "sys/fd.h"

#define SLICE_MS 1000

/* An answer is due at SETTLED; the output stays in the log for whoever reads it. */
static int await_settled(nacre_watch *watch, int64_t wait_ms, nacre_error *err)
{
    int64_t deadline = clock_deadline(wait_ms);
    nacre_event event;
    nacre_watch_skip_output(watch);
    do {
        int r = nacre_watch_wait(watch, clock_left_ms(deadline), NULL, 0, &event, err);
        if (r < 0)
            return r;
        if (event.kind == NACRE_EVENT_NONE)
            return err_set(err, NACRE_ETIMEOUT, "the command goes on in the background");
    } while (event.kind != NACRE_EVENT_SETTLED && event.kind != NACRE_EVENT_END);
    return 0;
}

int nacre_run(nacre_session *session, const nacre_command *command, int64_t wait_ms,
              nacre_record *ret_record, nacre_error *reterr)
{
    nacre_id id;
    nacre_watch *watch = NULL;
    int r = nacre_start(session, command, &id, &watch, reterr);
    if (r < 0)
        return r;
    int waited = await_settled(watch, wait_ms, reterr);
    if (waited == 0 || waited == NACRE_ETIMEOUT) {
        /* Right after a start nothing may have been heard yet. */
        r = nacre_watch_record(watch, ret_record, waited == 0 ? reterr : NULL);
        if (r == NACRE_EBUSY)
            r = session_record(session, &id, HOME_FULL, ret_record, NULL, reterr);
    }
    nacre_watch_close(watch);
    if (r == 0)
        ends_note(session, ret_record);
    return r < 0 ? r : waited;
}

/* -- Several at once -------------------------------------------------------------------------- */

/* Outcomes of several shells. Each has a watch while it is waited for: of all together one after
 * the other, of any of them all at once, in an epoll. */
struct wait_op {
    nacre_op op;
    nacre_session *session;
    const nacre_id *ids;
    size_t count;
    nacre_watch **watches;
    int epoll;
    size_t index; /* of one that has an outcome; of all: of the one that is waited for */
};

static void wait_done(struct wait_op *w)
{
    for (size_t i = 0; w->watches && i < w->count; i++)
        nacre_watch_close(w->watches[i]);
    free(w->watches);
    close_fd(&w->epoll);
}

static int open_watch(struct wait_op *w, size_t i, nacre_error *err)
{
    int r = session_watch(w->session, &w->ids[i], UINT64_MAX, &w->watches[i], err);
    if (r == 0)
        nacre_watch_skip_output(w->watches[i]);
    return r;
}

/* 1 = it has an outcome. */
static int has_outcome(struct wait_op *w, size_t i, nacre_error *err)
{
    nacre_event event;
    int r = nacre_watch_next(w->watches[i], NULL, 0, &event, err);
    return r < 0 ? r : event.kind != NACRE_EVENT_NONE;
}

static int step_any(nacre_op *op, nacre_error *err)
{
    struct wait_op *w = (struct wait_op *)op;
    op->wake_ns = clock_deadline(SLICE_MS);
    for (size_t i = 0; i < w->count; i++) {
        int r = has_outcome(w, i, err);
        w->index = i;
        if (r != 0)
            return r;
    }
    return 0;
}

static int step_all(nacre_op *op, nacre_error *err)
{
    struct wait_op *w = (struct wait_op *)op;
    for (;; w->index++) {
        nacre_watch **watch = &w->watches[w->index];
        int r = *watch ? 0 : open_watch(w, w->index, err);
        if (r == 0)
            r = has_outcome(w, w->index, err);
        if (r < 0)
            return r;
        op->fd = run_watch_fd(*watch);
        op->wake_ns = clock_deadline(SLICE_MS);
        if (r == 0 || w->index + 1 == w->count)
            return r;
        nacre_watch_close(TAKE_PTR(*watch));
    }
}

/* What is wrong with any of them is said before waiting for the others. */
static int check_all(struct wait_op *w, nacre_error *err)
{
    nacre_record record = NACRE_RECORD_INIT;
    int r = 0;
    for (size_t i = 0; r == 0 && i < w->count; i++)
        r = session_record(w->session, &w->ids[i], HOME_LIGHT, &record, NULL, err);
    return r;
}

static int open_all(struct wait_op *w, nacre_error *err)
{
    w->epoll = fd_lift_consume(epoll_create1(EPOLL_CLOEXEC));
    for (size_t i = 0; w->epoll >= 0 && i < w->count; i++) {
        struct epoll_event event = {.events = EPOLLIN};
        int r = open_watch(w, i, err);
        if (r < 0)
            return r;
        if (epoll_ctl(w->epoll, EPOLL_CTL_ADD, nacre_watch_fd(w->watches[i]), &event) < 0)
            close_fd(&w->epoll);
    }
    w->op.fd = w->epoll;
    return w->epoll < 0 ? err_sys(err, NACRE_ELIMIT, errno, "wait", "no descriptor left to wait")
                        : 0;
}

int nacre_wait(nacre_session *session, const nacre_id *ids, size_t count, nacre_wait_mode mode,
               int64_t timeout_ms, size_t *ret_index, nacre_error *reterr)
{
    int r = session_check(session, reterr);
    if (r < 0)
        return r;
    if (!ids || count == 0)
        return err_set(reterr, NACRE_EINVAL, "no shell to wait for");
    for (size_t i = 0; i < count; i++) {
        r = scope_check(session, &ids[i], false, reterr);
        if (r < 0)
            return r;
    }
    bool all = mode == NACRE_WAIT_ALL || count == 1;
    __attribute__((cleanup(wait_done))) struct wait_op w = {
        .op = OP_INIT(all ? step_all : step_any, NULL),
        .session = session,
        .ids = ids,
        .count = count,
        .watches = calloc(count, sizeof *w.watches),
        .epoll = -EBADF,
    };
    r = !w.watches ? err_set(reterr, NACRE_ENOMEM, "out of memory")
        : all      ? check_all(&w, reterr)
                   : open_all(&w, reterr);
    if (r == 0)
        r = op_wait(&w.op, timeout_ms, reterr);
    if (r > 0 && ret_index)
        *ret_index = w.index;
    if (r != 0)
        return MIN(r, 0);
    return all ? err_set(reterr, NACRE_ETIMEOUT, "shell %s goes on",
                         nacre_id_short(&ids[w.index]).s)
               : err_set(reterr, NACRE_ETIMEOUT, "none of the shells has ended yet");
}
