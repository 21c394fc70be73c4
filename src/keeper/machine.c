/*
 * The states of a run as a table: state × event → action. What does not stand in the table is
 * ignored in that state. The actions set the next state. Below it, what each timer does.
 */
#include <sched.h>
#include <signal.h>

#include "base/clock.h"
#include "base/defs.h"
#include "keeper/keeper.h"

typedef void action(struct keeper *k);

static const nacre_outcome outcomes[] = {
    [NACRE_REASON_NONE] = NACRE_EXITED,        [NACRE_REASON_KILL] = NACRE_KILLED,
    [NACRE_REASON_DEADLINE] = NACRE_TIMED_OUT, [NACRE_REASON_CANCEL] = NACRE_CANCELLED,
    [NACRE_REASON_OWNER] = NACRE_KILLED,       [NACRE_REASON_LIMIT] = NACRE_KILLED,
};

/* The first terminal outcome wins: what is known of the command's own end is kept beside it. */
static void set_outcome(struct keeper *k)
{
    if (k->st.outcome != NACRE_RUNNING)
        return;
    k->st.outcome = outcomes[k->st.reason];
    if (k->st.reason == NACRE_REASON_NONE && k->st.signal)
        k->st.outcome = NACRE_SIGNALED;
    k->must_ring = true;
    k->st.exited_ns = clock_real_ns();
    k->st.elapsed_ns = clock_mono_ns() - k->st.started_mono_ns;
    k->at[AT_DEADLINE] = NEVER;
    if (k->st.tier == NACRE_TIER_GROUP && k->at[AT_SWEEP] == NEVER)
        k->at[AT_SWEEP] = clock_mono_ns() + LOOK_NS;
}

static void begin_command(struct keeper *k)
{
    k->state = ST_RUNNING;
    if (k->spec.timeout_ms > 0) {
        int64_t at = clock_deadline(k->spec.timeout_ms);
        k->at[AT_DEADLINE] = at == NEVER ? NEVER : at - (clock_mono_ns() - k->st.started_mono_ns);
    }
}

static void abandon(struct keeper *k)
{
    k->state = ST_DONE;
    standin_dismiss(k);
    setup_undo(k, true);
}

/* Whoever waits for it ends what is late from outside: then it ended because its time was over. And
 * we may have had no processor, or been stopped: whatever it returned long after, it was too late.
 */
static bool was_late(const struct keeper *k)
{
    int64_t late = clock_mono_ns() - k->at[AT_DEADLINE];
    return late >= (k->st.signal == SIGKILL ? 0 : LATE_EXIT_NS);
}

static void linger(struct keeper *k)
{
    k->state = ST_LINGERING;
    if (was_late(k))
        k->st.reason = NACRE_REASON_DEADLINE;
    set_outcome(k);
    k->at[AT_SETTLE] = clock_mono_ns() + SETTLE_NS;
    if (drain_at_eof(k)) {
        k->st.settled = true;
        k->at[AT_SETTLE] = NEVER;
    }
}

static void end_tree(struct keeper *k)
{
    drain_now(k);
    appeared_look(k);
    excess_note(k);
    k->state = ST_DONE;
    k->st.tree = NACRE_TREE_EMPTY;
    k->st.settled = true;
    k->st.survivors = 0;
    k->must_ring = true;
    k->st.empty_ns = clock_real_ns();
    close_fd(&k->fd[FD_SIGN]);
    publish(k);
    ctl_tell_killers(k);
    /* The scheduler expects us to sleep now and has queued who hears this behind us. */
    sched_yield();
    if (k->leader > 0)
        tty_end(k);
    setup_undo(k, false);
}

static void force_kill(struct keeper *k)
{
    k->state = ST_FORCING;
    k->at[AT_GRACE] = NEVER;
    k->at[AT_PROOF] = clock_mono_ns() + PROOF_NS;
    k->at[AT_SWEEP] = clock_mono_ns() + SWEEP_NS;
    hunt_force(k);
}

/* SIGTERM means "force" to many programs when it comes twice: one pass, one signal each. */
static void stop(struct keeper *k)
{
    int64_t grace = k->order.grace_ms >= 0 ? k->order.grace_ms : k->spec.grace_ms;
    if (k->st.outcome == NACRE_RUNNING)
        k->st.reason = k->order.reason;
    k->state = ST_STOPPING;
    execs_call_off(k);
    k->at[AT_GRACE] = clock_deadline(grace);
    hunt_signal(k, k->order.signal);
    if (k->order.signal == SIGKILL || grace == 0)
        force_kill(k);
}

/* A further request may only shorten what is under way. */
static void shorten(struct keeper *k)
{
    if (k->order.signal == SIGKILL) {
        force_kill(k);
    } else if (k->order.grace_ms >= 0) {
        int64_t at = clock_deadline(k->order.grace_ms);
        k->at[AT_GRACE] = MIN(k->at[AT_GRACE], at);
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
static void shorten_with_owner(struct keeper *k)
{
    if (k->st.kept)
        return;
    k->order = (struct kill_order){.signal = SIGTERM, .grace_ms = k->spec.grace_ms};
    shorten(k);
}

/* Asked again after SIGKILL did not help: the asker gets a proof or an admission of its own. */
static void force_again(struct keeper *k)
{
    if (k->at[AT_PROOF] == NEVER)
        force_kill(k);
}

/* Somebody is in uninterruptible sleep, or not ours to kill: say so, and go on looking. */
static void admit(struct keeper *k)
{
    k->at[AT_PROOF] = NEVER;
    k->st.settled = true;
    tree_count_survivors(k);
    publish(k);
    ctl_tell_killers(k);
}

/* clang-format off */
static action *const table[ST_COUNT][EV_COUNT] = {
    /*                STARTED        NOT_STARTED EXIT         EMPTY     KILL         DEADLINE  OWNER_GONE          GRACE_OVER  PROOF_OVER LIMIT */
    [ST_WARM]      = {begin_command, abandon,    NULL,        NULL,     abandon,     NULL,     abandon,            NULL,       NULL,      NULL},
    [ST_RUNNING]   = {NULL,          NULL,       linger,      NULL,     stop,        time_out, end_with_owner,     NULL,       NULL,      stop},
    [ST_LINGERING] = {NULL,          NULL,       NULL,        end_tree, stop,        NULL,     end_with_owner,     NULL,       NULL,      stop},
    [ST_STOPPING]  = {NULL,          NULL,       set_outcome, end_tree, shorten,     NULL,     shorten_with_owner, force_kill, NULL,      shorten},
    [ST_FORCING]   = {NULL,          NULL,       set_outcome, end_tree, force_again, NULL,     NULL,               NULL,       admit,     NULL},
    [ST_DONE]      = {NULL},
};
/* clang-format on */

void machine_event(struct keeper *k, enum keeper_event event)
{
    action *act = table[k->state][event];
    if (act)
        act(k);
}

static void quiet_over(struct keeper *k)
{
    life_event(k, LE_QUIET);
}

static void settle_answer(struct keeper *k)
{
    drain_now(k);
    k->st.settled = true;
    publish(k);
}

/* Who is killed needs time to end: at least as much as it takes to look for the rest. */
static void sweep_again(struct keeper *k)
{
    int64_t began = clock_mono_ns();
    hunt_sweep(k);
    int64_t now = clock_mono_ns();
    k->at[AT_SWEEP] = now + (k->at[AT_PROOF] == NEVER ? PROOF_NS : MAX(SWEEP_NS, now - began));
}

/* Orphans of the group tier and strays are not ours: nobody tells when they end, so we look. */
static void look_after(struct keeper *k)
{
    if (k->state == ST_FORCING) {
        sweep_again(k);
    } else if (k->main_reaped) {
        if (k->st.tier == NACRE_TIER_GROUP)
            k->at[AT_SWEEP] = clock_mono_ns() + LOOK_NS;
        tree_reap(k);
    }
}

/* clang-format off */
static const struct timer_row {
    action *act; /* else the event */
    enum keeper_event event;
} when_due[AT_COUNT] = {
    [AT_DEADLINE] = {NULL, EV_DEADLINE},
    [AT_GRACE]    = {NULL, EV_GRACE_OVER},
    [AT_PROOF]    = {NULL, EV_PROOF_OVER},
    [AT_REAP]     = {tree_reap},
    [AT_SWEEP]    = {look_after},
    [AT_SETTLE]   = {settle_answer},
    [AT_REVIVE]   = {tty_revive},
    [AT_PUBLISH]  = {publish},
    [AT_OWNER]    = {owner_look},
    [AT_ASKED]    = {execs_look},
    [AT_LIMITS]   = {excess_look},
    [AT_READS]    = {reads_look},
    [AT_QUIET]    = {quiet_over},
};
/* clang-format on */

void machine_timers(struct keeper *k)
{
    int64_t now = clock_mono_ns();
    for (int i = 0; i < AT_COUNT && k->state != ST_DONE; i++)
        if (k->at[i] <= now) {
            k->at[i] = NEVER;
            if (when_due[i].act)
                when_due[i].act(k);
            else
                machine_event(k, when_due[i].event);
        }
}

int64_t machine_next_timer(const struct keeper *k)
{
    int64_t next = NEVER;
    for (int i = 0; i < AT_COUNT; i++)
        next = MIN(next, k->at[i]);
    return next;
}

int64_t machine_kill_ms(const struct keeper *k)
{
    int64_t asked = k->order.grace_ms >= 0 ? k->order.grace_ms : k->spec.grace_ms;
    int64_t left = MAX(k->at[AT_GRACE] - clock_mono_ns(), INT64_C(0)) / NS_PER_MS;
    int64_t grace = k->state == ST_STOPPING ? left : k->state == ST_FORCING ? 0 : asked;
    return grace + PROOF_NS / NS_PER_MS;
}
