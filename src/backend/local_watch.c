#include "backend/local_watch.h"

#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <nacre/backend.h>

#include "backend/client.h"
#include "backend/report.h"
#include "backend/sweep.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "run/log.h"
#include "sys/fd.h"
#include "sys/sock.h"

#define SLICE_MS   1000
#define LOOK_MS    2
#define FAR_MS     20 /* of what another process writes, without a keeper */
#define SEEN_STEP  ((uint64_t)32 * 1024)
#define SILENCE_NS (INT64_C(900) * NS_PER_MS)

struct local_watch {
    nacre_id id;
    int runs_fd;
    int sock; /* to the keeper; once it is gone, a descriptor that is always readable */
    bool gone;
    bool own;      /* this process writes the run: there is nobody to listen to */
    int64_t heard; /* when the keeper last said something, or was looked at */
    struct run run;
    struct logr reader;
    bool reading;
    struct run_state state;
    bool known;
    uint64_t cursor;
    bool told_exit;
    bool told_settled;
    struct spec spec; /* head NULL = not loaded */
    uint64_t said;    /* of a paced run: what the keeper knows we have read */
};

static int open_run(struct local_watch *w, nacre_error *err)
{
    return w->run.dir >= 0 ? 0 : run_open(w->runs_fd, &w->id, &w->run, err);
}

/* The keeper is not there any more: the state file has the last word. */
static int take_last_word(struct local_watch *w, nacre_error *err)
{
    int r = open_run(w, err);
    if (r == 0)
        r = sweep_state(&w->run, &w->state, err);
    w->known = r == 0;
    return r;
}

static int always_readable(struct local_watch *w)
{
    if (w->sock >= 0)
        return 0;
    w->sock = fd_lift_consume(eventfd(1, EFD_CLOEXEC));
    return w->sock < 0 ? -errno : 0;
}

static int connect_to_keeper(struct local_watch *w, nacre_error *err)
{
    int r = open_run(w, err);
    if (r == 0)
        r = sweep_state(&w->run, &w->state, err);
    if (r < 0)
        return r;
    w->known = true;
    if (!state_is_final(&w->state))
        w->sock = client_watch(&w->run);
    if (w->sock == -EMFILE || w->sock == -ENFILE)
        return err_sys(err, NACRE_ELIMIT, -w->sock, "watch", "no descriptor left for a watch");
    /* One descriptor is enough until there is something to read. */
    run_close(&w->run);
    if (w->sock >= 0)
        return 0;
    w->gone = true;
    r = always_readable(w);
    if (r < 0)
        return err_sys(err, NACRE_ELIMIT, -r, "watch", "no descriptor left for a watch");
    return take_last_word(w, err);
}

static struct local_watch *new_watch(int runs_fd, const nacre_id *id, int sock, uint64_t offset)
{
    struct local_watch *w = calloc(1, sizeof *w);
    if (w)
        *w = (struct local_watch){.id = *id,
                                  .runs_fd = runs_fd,
                                  .sock = sock,
                                  .run = RUN_NONE,
                                  .cursor = offset,
                                  .heard = clock_mono_ns()};
    return w;
}

int local_watch_new(int runs_fd, const nacre_id *id, int sock, uint64_t offset,
                    struct local_watch **ret_watch, nacre_error *err)
{
    struct local_watch *w = new_watch(runs_fd, id, sock, offset);
    if (!w) {
        close_fd(&sock);
        return err_set(err, NACRE_ENOMEM, "out of memory");
    }
    int r = sock >= 0 ? 0 : connect_to_keeper(w, err);
    if (r < 0) {
        local_watch_free(w);
        return r;
    }
    if (offset == UINT64_MAX)
        w->cursor = w->known ? w->state.log.end : 0;
    *ret_watch = w;
    return 0;
}

void local_watch_free(struct local_watch *w)
{
    if (!w)
        return;
    if (w->reading)
        logr_done(&w->reader);
    run_close(&w->run);
    close_fd(&w->sock);
    free((void *)w->spec.head);
    free(w);
}

void local_watch_give_spec(struct local_watch *w, struct buf *spec)
{
    w->spec = (struct spec){.head = (const void *)spec->data, .size = spec->len};
    *spec = (struct buf){0};
}

/* A keeper that has been silent may have been stopped by the command it keeps. */
static void check_on_keeper(struct local_watch *w)
{
    int64_t now = clock_mono_ns();
    if (now - w->heard < SILENCE_NS)
        return;
    w->heard = now;
    if (w->known)
        sweep_wake_stopped(&w->state);
}

/*
 * Without a keeper to listen to, the state is looked at instead: somebody else may be sweeping
 * just now, or a keeper that lives had no room for another listener.
 */
static int look_again(struct local_watch *w, nacre_error *err)
{
    if (w->known && state_is_final(&w->state))
        return 0;
    check_on_keeper(w);
    poll(NULL, 0, w->known && w->state.tier == NACRE_TIER_CLIENT ? FAR_MS : LOOK_MS);
    return take_last_word(w, err);
}

static int read_own(struct local_watch *w, nacre_error *err)
{
    int r = open_run(w, err);
    if (r == 0)
        r = run_read_state(&w->run, &w->state, err);
    w->known = w->known || r == 0;
    return r;
}

/* Takes in all that the keeper has said; only the newest state matters. */
static int listen_to_keeper(struct local_watch *w, nacre_error *err)
{
    if (w->own)
        return read_own(w, err);
    if (w->gone)
        return look_again(w, err);
    while (!w->gone) {
        struct wire_event event;
        ssize_t n = sock_recv(w->sock, &event, sizeof event, NULL, 0, MSG_DONTWAIT);
        if (n == -EAGAIN) {
            check_on_keeper(w);
            return 0;
        }
        if (n <= 0) {
            w->gone = true;
            return w->known && state_is_final(&w->state) ? 0 : take_last_word(w, err);
        }
        w->heard = clock_mono_ns();
        if (n == sizeof event && event.head.type == WIRE_EVENT) {
            w->state = event.state;
            w->known = true;
        }
        if (w->known && state_is_final(&w->state))
            break;
    }
    return 0;
}

int local_watch_new_own(int runs_fd, const nacre_id *id, uint64_t offset,
                        struct local_watch **ret_watch, nacre_error *err)
{
    struct local_watch *w = new_watch(runs_fd, id, -EBADF, offset);
    if (!w)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    w->own = w->gone = true;
    int r = read_own(w, err);
    if (r < 0) {
        local_watch_free(w);
        return r;
    }
    if (offset == UINT64_MAX)
        w->cursor = w->state.log.end;
    *ret_watch = w;
    return 0;
}

int local_watch_until(struct local_watch *w, int final, int64_t timeout_ms, nacre_error *err)
{
    int64_t deadline = clock_deadline(timeout_ms);
    for (;;) {
        int r = listen_to_keeper(w, err);
        if (r < 0)
            return r;
        if (w->known &&
            (final ? w->gone && state_is_final(&w->state) : w->state.outcome != NACRE_RUNNING))
            return 0;
        int left = clock_left_ms(deadline);
        if (left == 0)
            return err_set(err, NACRE_ETIMEOUT, "shell %s goes on", nacre_id_short(&w->id).s);
        struct pollfd poller = {.fd = w->sock, .events = POLLIN};
        poll(&poller, 1, left < 0 ? SLICE_MS : MIN(left, SLICE_MS));
    }
}

static int read_piece(struct local_watch *w, void *buf, size_t size, nacre_event *ret_event,
                      nacre_error *err)
{
    int r = open_run(w, err);
    if (r < 0)
        return r;
    if (!w->reading) {
        int e = logr_init(&w->reader, w->run.dir, w->run.state_fd);
        if (e < 0)
            return err_sys(err, NACRE_EIO, -e, "log", "cannot open the log of shell %s",
                           nacre_id_short(&w->id).s);
        w->reading = true;
    }
    struct log_piece piece;
    ssize_t n = logr_read(&w->reader, w->run.dir, &w->cursor, NACRE_BOTH, buf, size, &piece);
    if (n < 0)
        return err_sys(err, NACRE_EIO, (int)-n, "log", "the log of shell %s is damaged",
                       nacre_id_short(&w->id).s);
    if (n == 0 && piece.gap == 0)
        return 0;
    ret_event->kind = NACRE_EVENT_OUTPUT;
    ret_event->piece = (nacre_piece){
        .stream = piece.stream,
        .offset = piece.offset,
        .size = piece.size,
        .time_ms = report_time_ms(&w->state, piece.when_us),
        .gap_bytes = piece.gap,
    };
    return 0;
}

/* A paced command waits for this. */
static void say_seen(struct local_watch *w, bool caught_up)
{
    bool paced = w->spec.head && w->spec.head->paced && !w->gone;
    if (!paced || w->cursor == w->said || (!caught_up && w->cursor - w->said < SEEN_STEP))
        return;
    struct wire_seen seen = {.head = client_head(WIRE_SEEN), .offset = w->cursor};
    if (sock_send(w->sock, &seen, sizeof seen, NULL, 0, MSG_DONTWAIT) == 0)
        w->said = w->cursor;
}

int local_watch_next(void *self, void *buf, size_t size, nacre_event *ret_event, nacre_error *err)
{
    struct local_watch *w = self;
    bool over = w->known && state_is_final(&w->state);
    int r = over ? 0 : listen_to_keeper(w, err);
    if (r < 0 || !w->known)
        return r;
    if (w->cursor < w->state.log.end) {
        r = read_piece(w, buf, size, ret_event, err);
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

void local_watch_skip(void *self)
{
    struct local_watch *w = self;
    w->cursor = UINT64_MAX;
    say_seen(w, true);
}

int local_watch_record(void *self, nacre_record *ret_record, nacre_error *err)
{
    struct local_watch *w = self;
    if (!w->known)
        return err_set(err, NACRE_EBUSY, "shell %s has not been heard of yet",
                       nacre_id_short(&w->id).s);
    if (!w->spec.head && open_run(w, NULL) == 0)
        run_load_spec(&w->run, &w->spec, NULL);
    return report_fill(&w->state, w->spec.head ? &w->spec : NULL, ret_record, err);
}

static int local_fd(void *self)
{
    return ((struct local_watch *)self)->sock;
}

static void local_close(void *self)
{
    local_watch_free(self);
}

nacre_watch *local_watch_publish(struct local_watch *w)
{
    static const nacre_watch_ops ops = {.version = NACRE_BACKEND_VERSION,
                                        .size = sizeof ops,
                                        .fd = local_fd,
                                        .next = local_watch_next,
                                        .skip_output = local_watch_skip,
                                        .record = local_watch_record,
                                        .close = local_close};
    return nacre_watch_new(&ops, w);
}
