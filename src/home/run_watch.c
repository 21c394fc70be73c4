#include "home/run_watch.h"
#include "home/denials.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#include "backend/op.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "home/door.h"
#include "home/keeper_line.h"
#include "home/mirror.h"
#include "home/overdue.h"
#include "home/report.h"
#include "home/sweep.h"
#include "run/log.h"
#include "sys/fd.h"
#include "sys/sock.h"

#define SLICE_MS  1000 /* a keeper that was stopped is found out this soon */
#define LOOK_MS   2
#define FAR_MS    20 /* of what another process writes, without a keeper */
#define ASK_MAX   20
#define SEEN_STEP ((uint64_t)32 * 1024)
#define CHECK_NS  (INT64_C(900) * NS_PER_MS) /* between two looks after a keeper */

struct nacre_watch {
    nacre_home *home;
    nacre_id id;
    enum {
        WATCH_KEEPER, /* fd is a connection to its keeper */
        WATCH_STATE,  /* there is none: fd is a timer, and the state is looked at */
        WATCH_MIRROR, /* this process writes it: fd is a timer, and what is new is taken in */
    } source;
    int fd;
    int stable_fd;   /* an epoll of fd, for whoever wants a descriptor that stays the same */
    int64_t checked; /* when its keeper was last looked after */
    struct overdue overdue;
    struct sweeping sweeping;
    struct door door;
    struct mirror_watcher watcher;
    struct run run;
    struct logr reader;
    bool reading;
    struct run_state state;
    bool known;
    bool told; /* by its keeper */
    uint64_t cursor;
    bool quiet; /* nobody wants its output */
    bool told_exit;
    bool told_settled;
    struct spec spec; /* head NULL = not loaded */
    uint64_t said;    /* of a paced run: what the keeper knows we have read */
    int asked;        /* for files that cannot be read, so many times in a row */
    bool waits;       /* something was said to the keeper, which has not answered yet */
    int answer;       /* an errno: what it last answered */
};

static void watch_close_run(nacre_watch *w)
{
    if (w->reading)
        logr_done(&w->reader);
    w->reading = false;
    run_close(&w->run);
}

static int watch_open_run(nacre_watch *w, nacre_error *err)
{
    return w->run.dir >= 0 ? 0 : home_open_run(w->home, &w->id, &w->run, err);
}

/* -- Descriptors ------------------------------------------------------------------------------ */

static void arm_timer(const nacre_watch *w, int64_t at_ns)
{
    fd_arm_timer(w->fd, at_ns);
}

static void disarm(const nacre_watch *w)
{
    uint64_t times;
    ssize_t n UNUSED = read(w->fd, &times, sizeof times);
}

static void poll_fd_too(const nacre_watch *w)
{
    struct epoll_event event = {.events = EPOLLIN};
    if (w->stable_fd >= 0)
        epoll_ctl(w->stable_fd, EPOLL_CTL_ADD, w->fd, &event);
}

/* From here on fd is a timer, which is due at once. */
static int use_timer(nacre_watch *w)
{
    if (w->fd >= 0 && w->stable_fd >= 0)
        epoll_ctl(w->stable_fd, EPOLL_CTL_DEL, w->fd, NULL);
    close_fd(&w->fd);
    w->fd = fd_lift_consume(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
    if (w->fd < 0)
        return -errno;
    poll_fd_too(w);
    arm_timer(w, 1);
    return 0;
}

int run_watch_fd(const nacre_watch *w)
{
    return w->fd;
}

int nacre_watch_fd(const nacre_watch *watch)
{
    nacre_watch *w = (nacre_watch *)watch;
    if (w->stable_fd < 0) {
        w->stable_fd = fd_lift_consume(epoll_create1(EPOLL_CLOEXEC));
        poll_fd_too(w);
    }
    return w->stable_fd < 0 ? w->fd : w->stable_fd;
}

/* -- Opening ---------------------------------------------------------------------------------- */

static nacre_watch *new_watch(nacre_home *h, const nacre_id *id, uint64_t offset)
{
    nacre_watch *w = calloc(1, sizeof *w);
    if (w)
        *w = (nacre_watch){.home = h,
                           .id = *id,
                           .fd = -EBADF,
                           .stable_fd = -EBADF,
                           .sweeping = SWEEPING_NONE,
                           .run = RUN_NONE,
                           .door = DOOR_OF(h, &w->run, &w->sweeping, &w->state),
                           .cursor = offset,
                           .checked = clock_mono_ns()};
    if (w)
        w->run.id = *id;
    return w;
}

nacre_watch *run_watch_of_start(nacre_home *h, const nacre_id *id, int sock, struct buf *spec)
{
    nacre_watch *w = new_watch(h, id, 0);
    if (!w) {
        close_fd(&sock);
        return NULL;
    }
    w->fd = sock;
    w->door.began = true;
    w->spec = (struct spec){.head = (const void *)spec->data, .size = spec->len};
    *spec = (struct buf){0};
    return w;
}

/* Connects and asks to be told what happens. */
static int watch_keeper(const nacre_id *id, int dir)
{
    cleanup_close int sock = keeper_line_open(id, dir);
    if (sock < 0)
        return sock;
    struct wire_head watch = keeper_line_head(WIRE_WATCH);
    int r = keeper_line_send(sock, &watch, sizeof watch);
    return r < 0 ? r : TAKE_FD(sock);
}

/* What its keeper says is enough; it puts the files back. */
static bool watch_without_files(nacre_watch *w)
{
    w->fd = watch_keeper(&w->id, w->run.dir);
    run_close(&w->run);
    return w->fd >= 0;
}

static int begin_watch(nacre_watch *w, nacre_error *err)
{
    int r = watch_open_run(w, err);
    if (r == 0)
        r = run_read_state(&w->run, &w->state, err);
    if (door_is_lost(r) && watch_without_files(w))
        return 0;
    if (r < 0)
        return r;
    w->known = true;
    int e = -ECONNREFUSED;
    bool mirrored = mirror_find(w->home, &w->id);
    if (!mirrored && !state_is_final(&w->state))
        e = w->fd = watch_keeper(&w->id, w->run.dir);
    if (w->fd < 0 && e != -EMFILE && e != -ENFILE) {
        w->source = mirrored ? WATCH_MIRROR : WATCH_STATE;
        e = use_timer(w);
    }
    if (mirrored && e == 0)
        mirror_watch(w->home, &w->id, w->fd, &w->watcher);
    if (w->fd < 0)
        return err_sys(err, NACRE_ELIMIT, -e, "watch", "no descriptor left for a watch");
    /* One descriptor is enough until there is something to read. */
    if (w->source == WATCH_KEEPER)
        run_close(&w->run);
    if (w->cursor == UINT64_MAX)
        w->cursor = w->state.log.end;
    return 0;
}

int home_watch(nacre_home *h, const nacre_id *id, uint64_t offset, nacre_watch **ret_watch,
               nacre_error *err)
{
    nacre_watch *w = new_watch(h, id, offset);
    int r = w ? begin_watch(w, err) : err_set(err, NACRE_ENOMEM, "out of memory");
    if (r < 0)
        nacre_watch_close(w);
    else
        *ret_watch = w;
    return r;
}

void nacre_watch_close(nacre_watch *w)
{
    if (!w)
        return;
    if (w->source == WATCH_MIRROR)
        mirror_unwatch(w->home, &w->watcher);
    watch_close_run(w);
    sweep_end(&w->sweeping);
    door_close(&w->door);
    close_fd(&w->stable_fd);
    close_fd(&w->fd);
    free((void *)w->spec.head);
    free(w);
}

/* -- Listening -------------------------------------------------------------------------------- */

/* Without a directory there is nothing to be recorded in, and nothing to be swept. */
static void end_unrecorded(const struct run_state *state)
{
    struct proc_ref keeper = {.pid = state->keeper_pid, .start = state->keeper_start};
    bool empty = overdue_end_tree(state, NULL, 0) == 0;
    proc_kill(&keeper, empty ? SIGKILL : SIGCONT);
}

/*
 * The keeper may have been stopped, traced or starved by the command it keeps. It is woken; and
 * what it owes and does not do is done from here: 1 = that has begun.
 */
static int check_on_keeper(nacre_watch *w)
{
    cleanup_run struct run run = RUN_NONE;
    struct run_state state = w->state;
    bool force;
    int64_t now = clock_mono_ns();
    if (now - w->checked < CHECK_NS)
        return 0;
    w->checked = now;
    if (!w->known && w->source == WATCH_KEEPER)
        door_wake(w->fd);
    if (w->spec.head)
        overdue_learn(&w->overdue, w->spec.head);
    if ((!w->known || !w->overdue.known) && home_open_run(w->home, &w->id, &run, NULL) == 0)
        overdue_read(&w->overdue, &run);
    if (!w->known && (run.dir < 0 || run_read_state(&run, &state, NULL) < 0))
        return 0;
    nacre_reason owed = overdue_look(&w->overdue, &state, &force);
    bool open = force && watch_open_run(w, NULL) == 0;
    if (force && !open)
        end_unrecorded(&state);
    return open && sweep_by_force(&w->run, &w->sweeping, owed, &state, NULL) == 0;
}

/*
 * Without a keeper to listen to, the state has the last word; if nobody has finished it, it is
 * swept. Somebody else may be sweeping just now, or a keeper that lives had no room for another
 * listener.
 */
static int look_at_state(nacre_watch *w, nacre_error *err)
{
    disarm(w);
    if (w->sweeping.fd < 0 && check_on_keeper(w) == 0)
        /* Who sees it end when its time was over knows that much. */
        w->sweeping.why = w->overdue.timed_out ? NACRE_REASON_DEADLINE : NACRE_REASON_NONE;
    int r = door_look(&w->door, err);
    if (r != 0)
        sweep_end(&w->sweeping);
    w->known = r > 0 || (w->known && r == 0);
    bool far = w->known && w->state.tier == NACRE_TIER_CLIENT;
    arm_timer(w, state_is_final(&w->state) ? 1 : clock_deadline(far ? FAR_MS : LOOK_MS));
    return MIN(r, 0);
}

static int leave_keeper(nacre_watch *w, nacre_error *err)
{
    w->source = WATCH_STATE;
    int e = use_timer(w);
    if (e < 0)
        return err_sys(err, NACRE_ELIMIT, -e, "watch", "no descriptor left for a watch");
    return w->known && state_is_final(&w->state) ? 0 : look_at_state(w, err);
}

/* Takes in all that the keeper has said; only the newest state matters. */
static int listen_to_keeper(nacre_watch *w, nacre_error *err)
{
    for (;;) {
        struct wire_event event;
        ssize_t n = sock_recv(w->fd, &event, sizeof event, NULL, 0, MSG_DONTWAIT);
        if (n == -EAGAIN && check_on_keeper(w) == 0)
            return 0;
        if (n <= 0)
            return leave_keeper(w, err);
        if (n == sizeof event && event.head.type == WIRE_EVENT) {
            w->state = event.state;
            /* Of one that had no files: from now on. */
            if (!w->known && !w->quiet && w->cursor == UINT64_MAX)
                w->cursor = w->state.log.end;
            w->known = w->told = true;
            if (w->state.waited_ms == STATE_WAITS)
                home_hear_questions(w->home);
        } else if (n == sizeof(struct wire_input_done) && event.head.type == WIRE_INPUT_DONE) {
            const struct wire_input_done *done = (const void *)&event;
            w->waits = false;
            w->answer = done->error;
        }
        if (w->known && state_is_final(&w->state))
            return 0;
    }
}

/* Whatever rings after the look, or during it, has the next one follow at once. */
static int look_at_mirror(nacre_watch *w, nacre_error *err)
{
    disarm(w);
    uint64_t rings = mirror_rings(w->home, &w->watcher);
    int64_t next = home_pump(w->home, &w->id, w->quiet);
    int r = watch_open_run(w, err);
    if (r == 0)
        r = run_read_state(&w->run, &w->state, err);
    arm_timer(w, next == INT64_MAX ? 0 : next);
    if (mirror_rings(w->home, &w->watcher) != rings || state_is_final(&w->state))
        arm_timer(w, 1);
    return r;
}

static int hear_news(nacre_watch *w, nacre_error *err)
{
    if (w->known && state_is_final(&w->state))
        return 0;
    switch (w->source) {
    case WATCH_KEEPER:
        return listen_to_keeper(w, err);
    case WATCH_STATE:
        return look_at_state(w, err);
    case WATCH_MIRROR:
        return look_at_mirror(w, err);
    }
    return 0;
}

void run_watch_seek(nacre_watch *w, uint64_t offset)
{
    w->cursor = offset;
}

bool run_watch_is_over(nacre_watch *w)
{
    struct wire_event event;
    if (!w->known || !state_is_final(&w->state))
        return false;
    ssize_t n = 1;
    while (w->source == WATCH_KEEPER && n > 0)
        n = sock_recv(w->fd, &event, sizeof event, NULL, 0, MSG_DONTWAIT);
    return n != -EAGAIN;
}

bool run_watch_is_kept(const nacre_watch *w)
{
    return w->known && w->state.kept && (w->told || w->source != WATCH_KEEPER);
}

/* -- Saying something ------------------------------------------------------------------------- */

/* Whether there is somebody to talk to. */
static bool has_keeper(nacre_watch *w)
{
    nacre_error error;
    return hear_news(w, &error) >= 0 && w->source == WATCH_KEEPER &&
           !(w->known && state_is_final(&w->state));
}

int run_watch_say(nacre_watch *w, const void *message, size_t size)
{
    if (!has_keeper(w))
        return -ECONNREFUSED;
    if (w->waits)
        return 0;
    if (w->answer != 0)
        return -w->answer;
    int r = sock_send(w->fd, message, size, NULL, 0, MSG_DONTWAIT);
    w->waits = r >= 0;
    return r == -EAGAIN ? 0 : r < 0 ? -ECONNREFUSED : 1;
}

int run_watch_ask(nacre_watch *w, const void *message, size_t size, int64_t timeout_ms)
{
    int64_t deadline = clock_deadline(timeout_ms);
    int r = run_watch_say(w, message, size);
    while (r >= 0 && clock_left_ms(deadline) > 0) {
        struct pollfd poller = {.fd = w->fd, .events = POLLIN};
        if (!has_keeper(w))
            return -ECONNREFUSED;
        if (r == 1 && !w->waits)
            return -w->answer;
        if (r == 0)
            r = run_watch_say(w, message, size);
        RETRY(poll(&poller, 1, MIN(clock_left_ms(deadline), SLICE_MS)));
    }
    return r < 0 ? r : -ETIMEDOUT;
}

nacre_id run_watch_id(const nacre_watch *w)
{
    return w->id;
}

/* -- Events ----------------------------------------------------------------------------------- */

static int begin_reading_log(nacre_watch *w, nacre_error *err)
{
    int r = watch_open_run(w, err);
    if (r < 0 || w->reading)
        return r;
    int e = logr_init(&w->reader, w->run.dir, w->run.state_fd);
    w->reading = e >= 0;
    return e < 0 ? run_damaged(&w->id, w->reader.part, e, err) : 0;
}

static int read_piece(nacre_watch *w, void *buf, size_t size, nacre_event *ret_event,
                      nacre_error *err)
{
    struct log_piece piece = {0};
    uint64_t at = w->cursor;
    ssize_t n = 0;
    for (int tries = 0; tries < 2; tries++) {
        int r = begin_reading_log(w, err);
        if (r < 0)
            return r;
        w->cursor = at;
        n = logr_read(&w->reader, w->run.dir, &w->cursor, NACRE_BOTH, buf, size, &piece);
        bool fine = n > 0 && piece.gap == 0;
        if (fine || !(run_is_gone(&w->run) || logr_is_gone(&w->reader)))
            break;
        /* Its keeper has put other files in the place of those. */
        watch_close_run(w);
    }
    if (n < 0)
        return run_damaged(&w->id, w->reader.part, (int)n, err);
    if (n == 0 && piece.gap == 0)
        return 0;
    ret_event->kind = NACRE_EVENT_OUTPUT;
    ret_event->piece = report_piece(&w->state, &piece);
    return 0;
}

/* A paced command waits for this. */
static void say_seen(nacre_watch *w, bool caught_up)
{
    bool paced = w->spec.head && w->spec.head->paced && w->source == WATCH_KEEPER;
    if (!paced || w->cursor == w->said || (!caught_up && w->cursor - w->said < SEEN_STEP))
        return;
    struct wire_seen seen = {.head = keeper_line_head(WIRE_SEEN), .offset = w->cursor};
    if (sock_send(w->fd, &seen, sizeof seen, NULL, 0, MSG_DONTWAIT) == 0)
        w->said = w->cursor;
}

/*
 * Output that is there and cannot be read: its keeper puts the files back, and says so. If they do
 * not come, what was not read is missing.
 */
static int miss_output(nacre_watch *w, nacre_event *ret_event)
{
    struct wire_head watch = keeper_line_head(WIRE_WATCH);
    bool asked = w->source == WATCH_KEEPER && w->asked++ < ASK_MAX &&
                 keeper_line_send(w->fd, &watch, sizeof watch) == 0;
    if (asked)
        return 0;
    *ret_event = (nacre_event){.kind = NACRE_EVENT_OUTPUT};
    ret_event->piece.offset = w->state.log.end;
    ret_event->piece.gap_bytes = w->state.log.end - w->cursor;
    w->cursor = w->state.log.end;
    return 0;
}

int nacre_watch_next(nacre_watch *w, void *buf, size_t size, nacre_event *ret_event,
                     nacre_error *reterr)
{
    *ret_event = (nacre_event){.kind = NACRE_EVENT_NONE};
    int r = hear_news(w, reterr);
    if (r < 0 || !w->known)
        return r;
    if (w->cursor < w->state.log.end) {
        r = read_piece(w, buf, size, ret_event, reterr);
        w->asked = r < 0 ? w->asked : 0;
        if (door_is_lost(r) && w->source != WATCH_MIRROR)
            r = miss_output(w, ret_event);
        if (r == 0 && w->asked > 0)
            return 0;
        say_seen(w, w->cursor >= w->state.log.end);
        if (r < 0 || ret_event->kind != NACRE_EVENT_NONE)
            return r;
    }
    if (w->state.outcome != NACRE_RUNNING && !w->told_exit) {
        w->told_exit = true;
        ret_event->kind = NACRE_EVENT_EXIT;
    } else if (w->state.settled && !w->told_settled) {
        w->told_settled = true;
        ret_event->kind = NACRE_EVENT_SETTLED;
    } else if (state_is_final(&w->state)) {
        ret_event->kind = NACRE_EVENT_END;
    }
    return 0;
}

void nacre_watch_skip_output(nacre_watch *w)
{
    w->quiet = true;
    w->cursor = UINT64_MAX;
    say_seen(w, true);
}

int nacre_watch_record(nacre_watch *w, nacre_record *ret_record, nacre_error *reterr)
{
    if (!w->known)
        return err_set(reterr, NACRE_EBUSY, "shell %s has not been heard of yet",
                       nacre_id_short(&w->id).s);
    if (!w->spec.head && watch_open_run(w, NULL) == 0)
        run_load_spec(&w->run, &w->spec, NULL);
    int r = report_fill(&w->state, w->spec.head ? &w->spec : NULL, ret_record, reterr);
    if (r == 0 && denials_are_kept(w->spec.head ? &w->spec : NULL) &&
        watch_open_run(w, NULL) == 0 && denials_read(w->run.dir, &w->spec, ret_record) < 0)
        r = err_set(reterr, NACRE_ENOMEM, "out of memory");
    return r;
}

/* -- Waiting ---------------------------------------------------------------------------------- */

/* The next event of a watch, as an operation that lives on the stack of whoever waits for it. */
struct next_op {
    nacre_op op;
    nacre_watch *watch;
    void *buf;
    size_t size;
    nacre_event *event;
};

static int step_next(nacre_op *op, nacre_error *err)
{
    struct next_op *n = (struct next_op *)op;
    int r = nacre_watch_next(n->watch, n->buf, n->size, n->event, err);
    op->fd = n->watch->fd;
    op->wake_ns = clock_deadline(SLICE_MS);
    return r < 0 ? r : n->event->kind != NACRE_EVENT_NONE;
}

int nacre_watch_wait(nacre_watch *watch, int64_t timeout_ms, void *buf, size_t size,
                     nacre_event *ret_event, nacre_error *reterr)
{
    struct next_op next = {.op = OP_INIT(step_next, NULL),
                           .watch = watch,
                           .buf = buf,
                           .size = size,
                           .event = ret_event};
    return MIN(op_wait(&next.op, timeout_ms, reterr), 0);
}
