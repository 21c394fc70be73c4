#include "backend/feed.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#include "backend/client.h"
#include "backend/kill.h"
#include "backend/local.h"
#include "backend/local_parts.h"
#include "backend/sweep.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "sys/sock.h"

#define ACK_MS   1000 /* a keeper that lives answers at once */
#define STEP_MAX 16   /* messages in one step: others want their turn */

static int closed(const struct feed *f, nacre_error *err)
{
    return f->signal ? err_set(err, NACRE_ECLOSED, "the command of shell %s has ended",
                               nacre_id_short(&f->id).s)
                     : err_set(err, NACRE_ECLOSED,
                               "shell %s takes no input: it has ended, closed its stdin, or was "
                               "started without one",
                               nacre_id_short(&f->id).s);
}

static int failed(const struct feed *f, int e, nacre_error *err)
{
    if (e == -ECONNREFUSED || e == 0)
        return closed(f, err);
    return err_sys(err, e == -EMFILE ? NACRE_ELIMIT : NACRE_EBACKEND, -e,
                   f->signal ? "signal" : "input", "the keeper of shell %s does not answer",
                   nacre_id_short(&f->id).s);
}

int feed_open(const struct run *run, struct feed *ret, nacre_error *err)
{
    *ret = (struct feed){.sock = -1, .id = run->id};
    int r = sweep_state(run, &ret->state, err);
    if (r == 0)
        r = kill_check_reach(&ret->state, err);
    if (r < 0)
        return r;
    ret->sock = state_is_final(&ret->state) ? -ECONNREFUSED : client_connect(run);
    return ret->sock < 0 ? failed(ret, ret->sock, err) : 0;
}

void feed_close(struct feed *f)
{
    close_fd(&f->sock);
}

/* The next message's worth of bytes. The pipe takes all of them or none. */
static int send_bytes(const struct feed *f)
{
    struct wire_input request = {.head = client_head(WIRE_INPUT)};
    size_t size = MIN(f->size - f->taken, (size_t)WIRE_INPUT_MAX);
    request.size = (uint32_t)size;
    request.eof = f->eof && f->taken + size == f->size;
    if (size > 0)
        memcpy(request.data, f->data + f->taken, size);
    return client_send(f->sock, &request, offsetof(struct wire_input, data) + size);
}

int feed_write(struct feed *f, const void *data, size_t size, bool eof, nacre_error *err)
{
    f->signal = 0;
    f->data = data;
    f->size = size;
    f->taken = 0;
    f->eof = eof;
    int e = send_bytes(f);
    return e < 0 ? failed(f, e, err) : 0;
}

int feed_signal(struct feed *f, int signal, nacre_error *err)
{
    struct wire_signal request = {.head = client_head(WIRE_SIGNAL), .signal = signal};
    if (signal <= 0 || signal >= NSIG)
        return err_set(err, NACRE_EINVAL, "there is no signal %d", signal);
    f->signal = signal;
    int e = client_send(f->sock, &request, sizeof request);
    return e < 0 ? failed(f, e, err) : 0;
}

/* What the keeper said of the word. */
static int take_word(struct feed *f, const struct wire_input_done *done, nacre_error *err)
{
    if (f->signal)
        return done->error == 0       ? 1
               : done->error == ESRCH ? closed(f, err)
                                      : err_sys(err, NACRE_EPERM, done->error, "signal",
                                                "cannot signal shell %s", nacre_id_short(&f->id).s);
    f->taken += MIN((size_t)done->taken, f->size - f->taken);
    if (done->error)
        return closed(f, err);
    if (f->taken == f->size)
        return 1;
    int e = send_bytes(f);
    return e < 0 ? failed(f, e, err) : 0;
}

int feed_step(struct feed *f, nacre_error *err)
{
    for (int i = 0; i < STEP_MAX; i++) {
        struct wire_input_done done;
        ssize_t n = sock_recv(f->sock, &done, sizeof done, NULL, 0, MSG_DONTWAIT);
        if (n == -EAGAIN) {
            sweep_wake_stopped(&f->state);
            return 0;
        }
        if (n != sizeof done || done.head.type != WIRE_INPUT_DONE)
            return failed(f, n < 0 && n != -ECONNRESET ? (int)n : 0, err);
        int r = take_word(f, &done, err);
        if (r != 0)
            return r;
    }
    return 0;
}

/* -- Waiting ---------------------------------------------------------------------------------- */

/* 1, 0 at the deadline, or the error. */
static int await(struct feed *f, int64_t deadline, nacre_error *err)
{
    int r;
    while ((r = feed_step(f, err)) == 0) {
        int left = clock_left_ms(deadline);
        if (left == 0)
            return 0;
        struct pollfd poller = {.fd = f->sock, .events = POLLIN};
        poll(&poller, 1, left < 0 ? FEED_LOOK_MS : MIN(left, FEED_LOOK_MS));
    }
    return r;
}

int signal_run(const struct run *run, int signal, nacre_error *err)
{
    struct feed f;
    if (signal <= 0 || signal >= NSIG)
        return err_set(err, NACRE_EINVAL, "there is no signal %d", signal);
    int r = feed_open(run, &f, err);
    if (r == NACRE_ECLOSED) {
        f.signal = signal;
        return closed(&f, err);
    }
    if (r == 0)
        r = feed_signal(&f, signal, err);
    if (r == 0)
        r = await(&f, clock_deadline(ACK_MS), err);
    if (r == 0)
        r = failed(&f, -ETIMEDOUT, err);
    feed_close(&f);
    return MIN(r, 0);
}

int64_t input_run(const struct run *run, const void *data, size_t size, int eof, int64_t timeout_ms,
                  nacre_error *err)
{
    struct feed f;
    int64_t deadline = clock_deadline(timeout_ms);
    int r = feed_open(run, &f, err);
    if (r == 0)
        r = feed_write(&f, data, size, eof, err);
    if (r == 0)
        r = await(&f, deadline, err);
    if (r == 0 && f.taken == 0)
        r = err_set(err, NACRE_ETIMEOUT, "shell %s does not read its input",
                    nacre_id_short(&f.id).s);
    feed_close(&f);
    return r < 0 && f.taken == 0 ? r : (int64_t)f.taken;
}

int local_feed(void *self, const nacre_id *id, struct feed *ret, nacre_error *err)
{
    cleanup_run struct run run = RUN_NONE;
    *ret = (struct feed){.sock = -1, .id = *id};
    int r = local_open_run(self, id, &run, err);
    return r < 0 ? r : feed_open(&run, ret, err);
}
