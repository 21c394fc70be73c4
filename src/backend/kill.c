#include "backend/kill.h"

#include <poll.h>
#include <signal.h>
#include <string.h>

#include "backend/client.h"
#include "backend/sweep.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"

#define ACK_MS   1000 /* a keeper that lives answers at once */
#define SLACK_MS 2000 /* what a busy machine may add to what the keeper promised */
#define RETRY_MS 5
#define DOOR_MS  1500 /* a keeper that lives opens its door within this */

static void fill_result(const struct run_state *state, nacre_kill_result *ret_result)
{
    *ret_result = (nacre_kill_result){
        .was_alive = 1,
        .signalled = state->signalled,
        .force_killed = state->force_killed,
        .survivors = state->survivors,
    };
    for (size_t i = 0; i < ARRAY_SIZE(ret_result->survivor_pids) && i < STATE_SURVIVORS; i++)
        ret_result->survivor_pids[i] = state->survivor_pids[i];
}

/* The next message; a keeper that was stopped is woken once on the way. */
static ssize_t await(int sock, const struct run_state *state, int64_t wait_ms,
                     struct wire_killed *ret_message)
{
    for (int attempt = 0; attempt < 2; attempt++) {
        int64_t deadline = clock_deadline(wait_ms);
        ssize_t n = client_recv(sock, ret_message, sizeof *ret_message, deadline);
        if (n != -ETIMEDOUT)
            return n;
        sweep_wake(state);
    }
    return -ETIMEDOUT;
}

/* One conversation: 1 = the result is there, 0 = the keeper is gone, -ETIMEDOUT = it is deaf. */
static int ask_to_kill(const struct run *run, const struct run_state *state,
                       const nacre_kill_options *options, nacre_kill_result *ret_result)
{
    cleanup_close int sock = client_connect(run);
    if (sock < 0)
        return sock == -ECONNREFUSED ? 0 : sock;
    struct wire_kill request = {
        .head = client_head(WIRE_KILL),
        .signal = options->signal ? options->signal : SIGTERM,
        .reason = options->cancel ? NACRE_REASON_CANCEL : NACRE_REASON_KILL,
        .grace_ms = options->grace_ms,
    };
    int r = client_send(sock, &request, sizeof request);
    if (r < 0)
        return r == -ECONNREFUSED ? 0 : r;
    struct wire_killed message;
    struct wire_ack ack;
    ssize_t n = await(sock, state, ACK_MS, &message);
    if (n > 0 && message.head.type == WIRE_ACK) {
        memcpy(&ack, &message, sizeof ack);
        if (options->no_wait) {
            ret_result->was_alive = 1;
            return 1;
        }
        n = await(sock, state, ack.wait_ms + SLACK_MS, &message);
    }
    if (n == sizeof message)
        fill_result(&message.state, ret_result);
    return n > 0 ? 1 : (int)n;
}

static int check(const nacre_kill_options *options, nacre_error *err)
{
    if (options->size != sizeof *options)
        return err_set(err, NACRE_EINVAL, "the options must start from NACRE_KILL_OPTIONS_INIT");
    if (options->signal < 0 || options->signal >= NSIG)
        return err_set(err, NACRE_EINVAL, "there is no signal %d", options->signal);
    return 0;
}

static int kill_deaf(const struct run *run, nacre_kill_result *ret_result, nacre_error *err)
{
    struct run_state state;
    int r = sweep_by_force(run, &state, err);
    if (r < 0)
        return r;
    fill_result(&state, ret_result);
    ret_result->keeper_killed = 1;
    return 0;
}

int kill_run(const struct run *run, const nacre_kill_options *options,
             nacre_kill_result *ret_result, nacre_error *err)
{
    nacre_kill_options defaults = NACRE_KILL_OPTIONS_INIT;
    nacre_kill_result unused;
    struct run_state state;
    options = options ? options : &defaults;
    ret_result = ret_result ? ret_result : &unused;
    *ret_result = (nacre_kill_result){0};
    int r = check(options, err);
    if (r < 0)
        return r;
    int64_t deadline = clock_deadline(DOOR_MS);
    for (;;) {
        r = sweep_state(run, &state, err);
        if (r < 0)
            return r;
        if (state_is_final(&state))
            return 0;
        r = ask_to_kill(run, &state, options, ret_result);
        if (r > 0)
            return 0;
        if (r == -ETIMEDOUT)
            return kill_deaf(run, ret_result, err);
        if (r < 0)
            return err_sys(err, r == -EMFILE ? NACRE_ELIMIT : NACRE_EBACKEND, -r, "kill",
                           "cannot reach the keeper of shell %s", nacre_id_short(&run->id).s);
        /* The door is closed: it is about to be final, or has too many visitors, or somebody
         * removed the socket. */
        if (clock_left_ms(deadline) == 0)
            return kill_deaf(run, ret_result, err);
        poll(NULL, 0, RETRY_MS);
    }
}

int signal_run(const struct run *run, int signal, nacre_error *err)
{
    struct run_state state;
    struct wire_signal request = {.head = client_head(WIRE_SIGNAL), .signal = signal};
    struct wire_input_done done = {.error = ESRCH};
    if (signal <= 0 || signal >= NSIG)
        return err_set(err, NACRE_EINVAL, "there is no signal %d", signal);
    int r = sweep_state(run, &state, err);
    if (r < 0)
        return r;
    cleanup_close int sock = state_is_final(&state) ? -ECONNREFUSED : client_connect(run);
    int e = sock < 0 ? sock : client_send(sock, &request, sizeof request);
    ssize_t n = e < 0 ? e : client_recv(sock, &done, sizeof done, clock_deadline(ACK_MS));
    if (n < 0 && n != -ECONNREFUSED)
        return err_sys(err, NACRE_EBACKEND, (int)-n, "signal",
                       "the keeper of shell %s does not answer", nacre_id_short(&run->id).s);
    if (n != sizeof done || done.error == ESRCH)
        return err_set(err, NACRE_ECLOSED, "the command of shell %s has ended",
                       nacre_id_short(&run->id).s);
    return done.error == 0 ? 0
                           : err_sys(err, NACRE_EPERM, done.error, "signal",
                                     "cannot signal shell %s", nacre_id_short(&run->id).s);
}

/* One message's worth: bytes taken, or -errno; *ret_error is the keeper's word. */
static ssize_t feed(int sock, const char *data, size_t size, bool eof, int64_t deadline,
                    int *ret_error)
{
    struct wire_input request = {
        .head = client_head(WIRE_INPUT), .size = (uint32_t)size, .eof = eof};
    if (size > 0)
        memcpy(request.data, data, size);
    int r = client_send(sock, &request, offsetof(struct wire_input, data) + size);
    if (r < 0)
        return r;
    struct wire_input_done done;
    ssize_t n = client_recv(sock, &done, sizeof done, deadline);
    if (n < 0)
        return n;
    if (n != sizeof done || done.head.type != WIRE_INPUT_DONE)
        return -ECONNREFUSED;
    *ret_error = done.error;
    return done.taken;
}

static int closed(const struct run *run, nacre_error *err)
{
    return err_set(err, NACRE_ECLOSED,
                   "shell %s takes no input: it has ended, closed its stdin, or was started "
                   "without one",
                   nacre_id_short(&run->id).s);
}

int64_t input_run(const struct run *run, const void *data, size_t size, int eof, int64_t timeout_ms,
                  nacre_error *err)
{
    struct run_state state;
    int64_t deadline = clock_deadline(timeout_ms);
    int r = sweep_state(run, &state, err);
    if (r < 0)
        return r;
    cleanup_close int sock = state_is_final(&state) ? -ECONNREFUSED : client_connect(run);
    if (sock < 0)
        return sock == -ECONNREFUSED
                   ? closed(run, err)
                   : err_sys(err, NACRE_ELIMIT, -sock, "input", "cannot reach the keeper");
    size_t done = 0;
    do {
        size_t chunk = MIN(size - done, (size_t)WIRE_INPUT_MAX);
        bool last = done + chunk == size;
        int error = 0;
        const char *at = size > 0 ? (const char *)data + done : "";
        ssize_t n = feed(sock, at, chunk, eof && last, deadline, &error);
        if (n == -ETIMEDOUT)
            return done > 0 ? (int64_t)done
                            : err_set(err, NACRE_ETIMEOUT, "shell %s does not read its input",
                                      nacre_id_short(&run->id).s);
        if (n < 0 || error)
            return done > 0 && n >= 0 ? (int64_t)done + n : closed(run, err);
        done += (size_t)n;
    } while (done < size);
    return (int64_t)done;
}
