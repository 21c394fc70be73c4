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

int kill_check_reach(const struct run_state *state, nacre_error *err)
{
    if (state->tier != NACRE_TIER_CLIENT || state_is_final(state))
        return 0;
    return err_set(err, NACRE_EUNSUPPORTED,
                   "shell %s runs in a terminal of an ACP client; only its own session reaches it",
                   nacre_id_short(&state->id).s);
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
        r = kill_check_reach(&state, err);
        if (r < 0)
            return r;
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
