/* The end of a shell, with an answer for every way that can fail. */
#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "home/keeper_line.h"
#include "local/ask.h"
#include "local/local.h"

#define SLACK_MS 2000 /* what a busy machine may add to what the keeper promised */

enum kill_phase {
    KILL_KNOCK,    /* the keeper is to be asked */
    KILL_ASKED,    /* it has not answered yet */
    KILL_PROMISED, /* it has, and is at work */
    KILL_SWEEP,    /* it was deaf: what it left is being swept */
};

struct kill_op {
    struct ask ask;
    nacre_kill_options options;
    enum kill_phase phase;
    int64_t knock_ns; /* the next time */
    nacre_kill_result result;
};

static int check_kill(const nacre_kill_options *options, nacre_error *err)
{
    if (options->size != sizeof *options)
        return err_set(err, NACRE_EINVAL, "the options must start from NACRE_KILL_OPTIONS_INIT");
    if (options->signal < 0 || options->signal >= NSIG)
        return err_set(err, NACRE_EINVAL, "there is no signal %d", options->signal);
    return 0;
}

static void take_counts(struct kill_op *k, const struct run_state *state)
{
    k->result.was_alive = 1;
    k->result.signalled = state->signalled;
    k->result.force_killed = state->force_killed;
    k->result.survivors = state->survivors;
    for (size_t i = 0; i < ARRAY_SIZE(k->result.survivor_pids) && i < STATE_SURVIVORS; i++)
        k->result.survivor_pids[i] = state->survivor_pids[i];
}

/* -- Phases: 1 = done, 0 = not yet, or the next phase ------------------------------------------ */

/* There is no keeper any more that works on it. */
static int finish_without(struct kill_op *k)
{
    if (k->result.was_alive)
        take_counts(k, &k->ask.state);
    return 1;
}

static int force_keeper(struct kill_op *k, nacre_error *err)
{
    k->phase = KILL_SWEEP;
    k->result.was_alive = 1;
    int r = ask_force(&k->ask, err);
    k->result.keeper_killed = r == 0;
    return r > 0 ? finish_without(k) : r;
}

/* The door is closed: it is about to be final, or has too many visitors, or somebody removed the
 * socket. */
static int knock_again(struct kill_op *k, nacre_error *err)
{
    ask_hang_up(&k->ask);
    if (clock_left_ms(k->ask.door_ns) == 0)
        return force_keeper(k, err);
    k->phase = KILL_KNOCK;
    k->ask.op.wake_ns = k->knock_ns = clock_deadline(ASK_KNOCK_MS);
    return 0;
}

static int cannot_reach(const struct kill_op *k, int e, nacre_error *err)
{
    return err_sys(err, e == -EMFILE ? NACRE_ELIMIT : NACRE_EBACKEND, -e, "kill",
                   "cannot reach the keeper of shell %s", nacre_id_short(&k->ask.run.id).s);
}

/* It has no files and says nothing: what it left is found when it is gone. */
static int force_unheard(struct kill_op *k)
{
    k->result.was_alive = k->result.keeper_killed = 1;
    door_force(&k->ask.door);
    ask_hang_up(&k->ask);
    return 0;
}

static int knock(struct kill_op *k, nacre_error *err)
{
    struct wire_kill request = {
        .head = keeper_line_head(WIRE_KILL),
        .signal = k->options.signal ? k->options.signal : SIGTERM,
        .reason = k->options.cancel ? NACRE_REASON_CANCEL : NACRE_REASON_KILL,
        .grace_ms = k->options.grace_ms,
    };
    if (clock_left_ms(k->knock_ns) > 0)
        return 0;
    int r = ask_look(&k->ask, err);
    if (r == NACRE_EBACKEND)
        return force_unheard(k);
    if (r <= 0)
        return r;
    r = ask_check_reach(&k->ask, err);
    if (r < 0)
        return r;
    if (state_is_final(&k->ask.state) || k->ask.swept)
        return finish_without(k);
    r = ask_send(&k->ask, &request, sizeof request);
    if (r == -ECONNREFUSED || r == -EAGAIN)
        return knock_again(k, err);
    if (r < 0)
        return cannot_reach(k, r, err);
    k->phase = KILL_ASKED;
    return 0;
}

static int take_word(struct kill_op *k, const struct wire_killed *message, ssize_t size)
{
    struct wire_ack ack;
    if (message->head.type == WIRE_ACK && k->phase == KILL_ASKED) {
        memcpy(&ack, message, sizeof ack);
        k->phase = KILL_PROMISED;
        k->result.was_alive = 1;
        ask_expect(&k->ask, ack.wait_ms + SLACK_MS);
        return k->options.no_wait != 0;
    }
    if (size == sizeof *message)
        take_counts(k, &message->state);
    return 1;
}

static int hear_keeper(struct kill_op *k, nacre_error *err)
{
    struct wire_killed message;
    ssize_t n = ask_hear(&k->ask, &message, sizeof message);
    if (n == -EAGAIN)
        return 0;
    if (n == -ETIMEDOUT)
        return force_keeper(k, err);
    if (n == 0 && k->phase == KILL_PROMISED)
        k->ask.door_ns = clock_deadline(ASK_DOOR_MS);
    if (n == 0)
        return knock_again(k, err);
    return n < 0 ? cannot_reach(k, (int)n, err) : take_word(k, &message, n);
}

static int sweep_on(struct kill_op *k, nacre_error *err)
{
    int r = ask_look(&k->ask, err);
    return r > 0 ? finish_without(k) : r;
}

static int step_kill(nacre_op *op, nacre_error *err)
{
    static int (*const phases[])(struct kill_op *, nacre_error *) = {
        [KILL_KNOCK] = knock,
        [KILL_ASKED] = hear_keeper,
        [KILL_PROMISED] = hear_keeper,
        [KILL_SWEEP] = sweep_on,
    };
    struct kill_op *k = (struct kill_op *)op;
    for (;;) {
        enum kill_phase phase = k->phase;
        int r = phases[phase](k, err);
        if (r != 0 || k->phase == phase)
            return r;
    }
}

int local_kill(void *self, const nacre_id *id, const nacre_kill_options *options, nacre_op **ret_op,
               nacre_error *err)
{
    static const nacre_op kill_op = OP_INIT(step_kill, ask_end);
    struct local *l = self;
    nacre_kill_options defaults = NACRE_KILL_OPTIONS_INIT;
    struct ask *a;
    options = options ? options : &defaults;
    int r = check_kill(options, err);
    if (r == 0)
        r = ask_new(l->home, id, sizeof(struct kill_op), &kill_op, &a, err);
    if (r < 0)
        return r;
    struct kill_op *k = (struct kill_op *)a;
    k->options = *options;
    a->op.result = &k->result;
    *ret_op = &a->op;
    return 0;
}
