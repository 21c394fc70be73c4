#include "backend/kill.h"

#include <poll.h>
#include <signal.h>
#include <string.h>

#include "backend/client.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"

#define SLACK_MS 2000 /* what a busy machine may add to what the keeper promised */
#define RETRY_MS 5
#define DOOR_MS  1500 /* a keeper that lives opens its door within this */

int kill_check_reach(const struct run_state *state, nacre_error *err)
{
    if (state->tier != NACRE_TIER_CLIENT || state_is_final(state))
        return 0;
    return err_set(err, NACRE_EUNSUPPORTED,
                   "shell %s runs in a terminal of an ACP client; only its own session reaches it",
                   nacre_id_short(&state->id).s);
}

static int check(const nacre_kill_options *options, nacre_error *err)
{
    if (options->size != sizeof *options)
        return err_set(err, NACRE_EINVAL, "the options must start from NACRE_KILL_OPTIONS_INIT");
    if (options->signal < 0 || options->signal >= NSIG)
        return err_set(err, NACRE_EINVAL, "there is no signal %d", options->signal);
    return 0;
}

/* -- Results ---------------------------------------------------------------------------------- */

/* For good or ill. */
static int finish(struct killing *k)
{
    ask_end(&k->ask);
    sweep_end(&k->sweeping);
    k->phase = KILL_DONE;
    return 1;
}

static void take_counts(struct killing *k, const struct run_state *state)
{
    k->result.was_alive = 1;
    k->result.signalled = state->signalled;
    k->result.force_killed = state->force_killed;
    k->result.survivors = state->survivors;
    for (size_t i = 0; i < ARRAY_SIZE(k->result.survivor_pids) && i < STATE_SURVIVORS; i++)
        k->result.survivor_pids[i] = state->survivor_pids[i];
}

/* -- Phases: 1 = done, 0 = not yet, or the next phase -------------------------------------------
 */

/* There is no keeper any more that works on it. */
static int finish_without(struct killing *k)
{
    if (k->result.was_alive)
        take_counts(k, &k->state);
    return finish(k);
}

static int force(struct killing *k, nacre_error *err)
{
    ask_end(&k->ask);
    k->phase = KILL_SWEEP;
    k->result.was_alive = 1;
    int r = sweep_by_force(&k->run, &k->sweeping, &k->state, err);
    k->result.keeper_killed = r == 0;
    return r > 0 ? finish_without(k) : r;
}

/* The door is closed: it is about to be final, or has too many visitors, or somebody removed the
 * socket. */
static int knock_again(struct killing *k, nacre_error *err)
{
    ask_end(&k->ask);
    if (clock_left_ms(k->door_ns) == 0)
        return force(k, err);
    k->phase = KILL_KNOCK;
    k->wake_ns = clock_deadline(RETRY_MS);
    return 0;
}

static int fail(const struct killing *k, int e, nacre_error *err)
{
    return err_sys(err, e == -EMFILE ? NACRE_ELIMIT : NACRE_EBACKEND, -e, "kill",
                   "cannot reach the keeper of shell %s", nacre_id_short(&k->run.id).s);
}

static int knock(struct killing *k, nacre_error *err)
{
    struct wire_kill request = {
        .head = client_head(WIRE_KILL),
        .signal = k->options.signal ? k->options.signal : SIGTERM,
        .reason = k->options.cancel ? NACRE_REASON_CANCEL : NACRE_REASON_KILL,
        .grace_ms = k->options.grace_ms,
    };
    int r = sweep_begin(&k->run, &k->sweeping, &k->state, err);
    if (r == 0)
        k->phase = KILL_SWEEP;
    if (r > 0)
        r = kill_check_reach(&k->state, err);
    if (r < 0 || k->phase == KILL_SWEEP)
        return r;
    if (state_is_final(&k->state))
        return finish_without(k);
    r = ask_begin(&k->ask, &k->run, &k->state, &request, sizeof request);
    if (r == -ECONNREFUSED || r == -EAGAIN)
        return knock_again(k, err);
    if (r < 0)
        return fail(k, r, err);
    k->phase = KILL_ASKED;
    k->wake_ns = k->ask.deadline_ns;
    return 0;
}

static int take_word(struct killing *k, const struct wire_killed *message, ssize_t size)
{
    struct wire_ack ack;
    if (message->head.type == WIRE_ACK && k->phase == KILL_ASKED) {
        memcpy(&ack, message, sizeof ack);
        k->phase = KILL_PROMISED;
        k->result.was_alive = 1;
        ask_expect(&k->ask, ack.wait_ms + SLACK_MS);
        k->wake_ns = k->ask.deadline_ns;
        return k->options.no_wait ? finish(k) : 0;
    }
    if (size == sizeof *message)
        take_counts(k, &message->state);
    return finish(k);
}

static int hear(struct killing *k, nacre_error *err)
{
    struct wire_killed message;
    ssize_t n = ask_step(&k->ask, &k->state, &message, sizeof message);
    k->wake_ns = k->ask.deadline_ns;
    if (n == -EAGAIN)
        return 0;
    if (n == -ETIMEDOUT)
        return force(k, err);
    if (n == 0 && k->phase == KILL_PROMISED)
        k->door_ns = clock_deadline(DOOR_MS);
    if (n == 0)
        return knock_again(k, err);
    return n < 0 ? fail(k, (int)n, err) : take_word(k, &message, n);
}

static int sweep_on(struct killing *k, nacre_error *err)
{
    int r = sweep_step(&k->run, &k->sweeping, &k->state, err);
    k->wake_ns = clock_deadline(SWEEP_ROUND_MS);
    return r > 0 ? finish_without(k) : r;
}

static int is_done(struct killing *k UNUSED, nacre_error *err UNUSED)
{
    return 1;
}

/* -- The whole -------------------------------------------------------------------------------- */

int killing_step(struct killing *k, nacre_error *err)
{
    static int (*const phases[])(struct killing *, nacre_error *) = {
        [KILL_KNOCK] = knock,    [KILL_ASKED] = hear,   [KILL_PROMISED] = hear,
        [KILL_SWEEP] = sweep_on, [KILL_DONE] = is_done,
    };
    for (;;) {
        enum kill_phase phase = k->phase;
        if (phase == KILL_KNOCK && clock_left_ms(k->wake_ns) > 0)
            return 0;
        int r = phases[phase](k, err);
        if (r < 0)
            finish(k);
        if (r != 0 || k->phase == phase)
            return r;
    }
}

int killing_begin(struct killing *k, const nacre_kill_options *options, nacre_error *err)
{
    nacre_kill_options defaults = NACRE_KILL_OPTIONS_INIT;
    k->options = options ? *options : defaults;
    k->door_ns = clock_deadline(DOOR_MS);
    int r = check(&k->options, err);
    if (r < 0)
        return r;
    k->phase = KILL_KNOCK;
    return killing_step(k, err);
}

int killing_fd(const struct killing *k)
{
    return k->phase == KILL_ASKED || k->phase == KILL_PROMISED ? k->ask.sock : -1;
}

bool killing_is_promised(const struct killing *k)
{
    return k->phase == KILL_PROMISED || k->phase == KILL_DONE;
}

int killing_wait(struct killing *k, nacre_error *err)
{
    int r;
    while ((r = killing_step(k, err)) == 0) {
        struct pollfd poller = {.fd = killing_fd(k), .events = POLLIN};
        poll(&poller, 1, clock_left_ms(k->wake_ns));
    }
    return MIN(r, 0);
}

void killing_end(struct killing *k)
{
    finish(k);
    run_close(&k->run);
}
