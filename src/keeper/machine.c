/*
 * The keeper's states as a table: state × event → action. What does not stand in the table is
 * ignored in that state. The actions set the next state.
 */
#include <sched.h>
#include <signal.h>

#include "base/clock.h"
#include "base/defs.h"
#include "keeper/keeper.h"

typedef void action(struct keeper *k);

/* The first terminal outcome wins: what is known of the command's own end is kept beside it. */
static void set_outcome(struct keeper *k)
{
    if (k->st.outcome != NACRE_RUNNING)
        return;
    switch ((nacre_reason)k->st.reason) {
    case NACRE_REASON_KILL:
    case NACRE_REASON_OWNER:
        k->st.outcome = NACRE_KILLED;
        break;
    case NACRE_REASON_DEADLINE:
        k->st.outcome = NACRE_TIMED_OUT;
        break;
    case NACRE_REASON_CANCEL:
        k->st.outcome = NACRE_CANCELLED;
        break;
    case NACRE_REASON_NONE:
        k->st.outcome = k->st.signal ? NACRE_SIGNALED : NACRE_EXITED;
        break;
    }
    k->bell_due = true;
    k->st.exited_ns = clock_real_ns();
    k->st.elapsed_ns = clock_mono_ns() - k->st.started_mono_ns;
    k->deadline_at = NEVER;
    if (k->st.tier == NACRE_TIER_GROUP && k->sweep_at == NEVER)
        k->sweep_at = clock_mono_ns() + LOOK_NS;
}

static void run(struct keeper *k)
{
    k->state = ST_RUNNING;
    if (k->spec.timeout_ms > 0) {
        int64_t at = clock_deadline(k->spec.timeout_ms);
        k->deadline_at = at == NEVER ? NEVER : at - (clock_mono_ns() - k->st.started_mono_ns);
    }
}

static void leave(struct keeper *k)
{
    k->state = ST_DONE;
    start_dismiss(k);
    setup_undo(k, true);
}

static void linger(struct keeper *k)
{
    k->state = ST_LINGERING;
    set_outcome(k);
    k->settle_at = clock_mono_ns() + SETTLE_NS;
    if (drain_at_eof(k)) {
        k->st.settled = true;
        k->settle_at = NEVER;
    }
}

static void note_exit(struct keeper *k)
{
    set_outcome(k);
}

static void finish(struct keeper *k)
{
    drain_now(k);
    k->state = ST_DONE;
    k->st.tree = NACRE_TREE_EMPTY;
    k->st.settled = true;
    k->st.survivors = 0;
    k->bell_due = true;
    k->st.empty_ns = clock_real_ns();
    publish(k);
    ctl_tell_killers(k);
    /* The scheduler expects us to sleep now and has queued who hears this behind us. */
    sched_yield();
    setup_undo(k, false);
}

static void force(struct keeper *k)
{
    k->state = ST_FORCING;
    k->grace_at = NEVER;
    k->proof_at = clock_mono_ns() + PROOF_NS;
    k->sweep_at = clock_mono_ns() + SWEEP_NS;
    tree_force(k);
}

/* SIGTERM means "force" to many programs when it comes twice: one pass, one signal each. */
static void stop(struct keeper *k)
{
    int64_t grace = k->order.grace_ms >= 0 ? k->order.grace_ms : k->spec.grace_ms;
    if (k->st.outcome == NACRE_RUNNING)
        k->st.reason = k->order.reason;
    k->state = ST_STOPPING;
    k->grace_at = clock_deadline(grace);
    tree_signal(k, k->order.signal);
    if (k->order.signal == SIGKILL || grace == 0)
        force(k);
}

/* A further request may only shorten what is under way. */
static void hurry(struct keeper *k)
{
    if (k->order.signal == SIGKILL) {
        force(k);
    } else if (k->order.grace_ms >= 0) {
        int64_t at = clock_deadline(k->order.grace_ms);
        k->grace_at = MIN(k->grace_at, at);
    }
}

static void time_out(struct keeper *k)
{
    k->order =
        (struct kill_order){.signal = SIGTERM, .grace_ms = -1, .reason = NACRE_REASON_DEADLINE};
    stop(k);
}

static void end_with_owner(struct keeper *k)
{
    if (k->st.kept)
        return;
    k->order = (struct kill_order){.signal = SIGTERM, .grace_ms = -1, .reason = NACRE_REASON_OWNER};
    stop(k);
}

/* A long grace was meant for somebody who is gone now. */
static void hurry_with_owner(struct keeper *k)
{
    if (k->st.kept)
        return;
    k->order = (struct kill_order){.signal = SIGTERM, .grace_ms = k->spec.grace_ms};
    hurry(k);
}

/* Asked again after SIGKILL did not help: the asker gets a proof or an admission of its own. */
static void force_again(struct keeper *k)
{
    if (k->proof_at == NEVER)
        force(k);
}

/* Somebody is in uninterruptible sleep, or not ours to kill: say so, and go on looking. */
static void admit(struct keeper *k)
{
    k->proof_at = NEVER;
    k->st.settled = true;
    tree_count_survivors(k);
    publish(k);
    ctl_tell_killers(k);
}

/* clang-format off */
static action *const table[ST_COUNT][EV_COUNT] = {
    /*                STARTED NOT_STARTED EXIT       EMPTY   KILL         DEADLINE  OWNER_GONE        GRACE_OVER PROOF_OVER */
    [ST_WARM]      = {run,    leave,      NULL,      NULL,   leave,       NULL,     leave,            NULL,      NULL},
    [ST_RUNNING]   = {NULL,   NULL,       linger,    NULL,   stop,        time_out, end_with_owner,   NULL,      NULL},
    [ST_LINGERING] = {NULL,   NULL,       NULL,      finish, stop,        NULL,     end_with_owner,   NULL,      NULL},
    [ST_STOPPING]  = {NULL,   NULL,       note_exit, finish, hurry,       NULL,     hurry_with_owner, force,     NULL},
    [ST_FORCING]   = {NULL,   NULL,       note_exit, finish, force_again, NULL,     NULL,             NULL,      admit},
    [ST_DONE]      = {NULL},
};
/* clang-format on */

void machine_event(struct keeper *k, enum keeper_event event)
{
    action *act = table[k->state][event];
    if (act)
        act(k);
}

static bool due(int64_t *at, int64_t now)
{
    if (*at > now)
        return false;
    *at = NEVER;
    return true;
}

static void settle(struct keeper *k)
{
    drain_now(k);
    k->st.settled = true;
    publish(k);
}

/* Orphans of the group tier are not ours: nobody tells when they end, so we look. */
static void look_after(struct keeper *k, int64_t now)
{
    if (k->state == ST_FORCING) {
        k->sweep_at = now + (k->proof_at == NEVER ? PROOF_NS : SWEEP_NS);
        tree_sweep(k);
    } else if (k->main_reaped && k->st.tier == NACRE_TIER_GROUP) {
        k->sweep_at = now + LOOK_NS;
        tree_reap(k);
    }
}

void machine_timers(struct keeper *k)
{
    int64_t now = clock_mono_ns();
    if (due(&k->deadline_at, now))
        machine_event(k, EV_DEADLINE);
    if (due(&k->grace_at, now))
        machine_event(k, EV_GRACE_OVER);
    if (due(&k->proof_at, now))
        machine_event(k, EV_PROOF_OVER);
    if (due(&k->sweep_at, now))
        look_after(k, now);
    if (due(&k->settle_at, now))
        settle(k);
    if (due(&k->publish_at, now))
        publish(k);
    if (due(&k->owner_at, now))
        owner_look(k);
}

int64_t machine_kill_ms(const struct keeper *k)
{
    int64_t asked = k->order.grace_ms >= 0 ? k->order.grace_ms : k->spec.grace_ms;
    int64_t left = MAX(k->grace_at - clock_mono_ns(), INT64_C(0)) / NS_PER_MS;
    int64_t grace = k->state == ST_STOPPING ? left : k->state == ST_FORCING ? 0 : asked;
    return grace + PROOF_NS / NS_PER_MS;
}

int64_t machine_next_timer(const struct keeper *k)
{
    int64_t at = MIN(MIN(k->deadline_at, k->grace_at), MIN(k->proof_at, k->settle_at));
    at = MIN(MIN(at, k->owner_at), MIN(k->sweep_at, k->publish_at));
    return MIN(at, k->quiet_at);
}
