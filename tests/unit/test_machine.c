/*
 * The keeper's states: every cell of state × event, with what the actions call noted instead of
 * done. What does not stand in the table changes nothing.
 */
#include "unit.h"

/* The table and its actions are private to their file. */
#include "keeper/machine.c"

static char calls[512];
static bool at_eof;

static void note(const char *what)
{
    snprintf(calls + strlen(calls), sizeof calls - strlen(calls), "%s%s", *calls ? " " : "", what);
}

void publish(struct keeper *k)
{
    k->publish_at = NEVER;
    note("publish");
}

void start_dismiss(struct keeper *k)
{
    (void)k;
    note("dismiss");
}

void setup_undo(struct keeper *k, bool all)
{
    (void)k;
    note(all ? "undo-all" : "undo");
}

bool drain_at_eof(const struct keeper *k)
{
    (void)k;
    return at_eof;
}

void drain_now(struct keeper *k)
{
    (void)k;
    note("drain");
}

void tree_signal(struct keeper *k, int signal)
{
    char text[32];
    k->st.signalled++;
    snprintf(text, sizeof text, "signal-%s", sigabbrev_np(signal));
    note(text);
}

void tree_force(struct keeper *k)
{
    (void)k;
    note("force");
}

void tree_sweep(struct keeper *k)
{
    (void)k;
    note("sweep");
}

void tree_reap(struct keeper *k)
{
    (void)k;
    note("reap");
}

void tree_count_survivors(struct keeper *k)
{
    k->st.survivors = 3;
    note("count");
}

void owner_look(struct keeper *k)
{
    k->owner_at = clock_deadline(1000);
    note("owner");
}

void ctl_tell_killers(struct keeper *k)
{
    (void)k;
    note("answer");
}

/* -- Every cell -------------------------------------------------------------------------------- */

#define GRACE_MS 5000

/* A keeper as it is in a state: what is known by then, and which timers run. */
static void prepare(struct keeper *k, enum keeper_state state)
{
    memset(k, 0, sizeof *k);
    k->state = state;
    k->spec.grace_ms = GRACE_MS;
    k->spec.timeout_ms = 60000;
    k->order = (struct kill_order){.signal = SIGTERM, .grace_ms = -1, .reason = NACRE_REASON_KILL};
    k->st.exit_code = -1;
    k->st.started_mono_ns = clock_mono_ns();
    k->quiet_at = k->deadline_at = k->grace_at = k->proof_at = NEVER;
    k->sweep_at = k->settle_at = k->publish_at = k->owner_at = NEVER;
    k->st.phase = state == ST_WARM ? PHASE_WARM : PHASE_RUN;
    if (state == ST_LINGERING || state == ST_DONE) {
        k->st.outcome = NACRE_EXITED;
        k->st.exit_code = 0;
        k->main_reaped = true;
    }
    if (state == ST_STOPPING || state == ST_FORCING)
        k->st.reason = NACRE_REASON_KILL;
    if (state == ST_STOPPING)
        k->grace_at = clock_deadline(GRACE_MS);
    if (state == ST_FORCING)
        k->proof_at = clock_deadline(5000);
    calls[0] = '\0';
    at_eof = false;
}

struct cell {
    enum keeper_state state;
    enum keeper_event event;
    enum keeper_state next;
    const char *calls;
};

static const struct cell cells[] = {
    {ST_WARM, EV_STARTED, ST_RUNNING, ""},
    {ST_WARM, EV_NOT_STARTED, ST_DONE, "dismiss undo-all"},
    {ST_WARM, EV_KILL, ST_DONE, "dismiss undo-all"},
    {ST_WARM, EV_OWNER_GONE, ST_DONE, "dismiss undo-all"},
    {ST_RUNNING, EV_EXIT, ST_LINGERING, ""},
    {ST_RUNNING, EV_KILL, ST_STOPPING, "signal-TERM"},
    {ST_RUNNING, EV_DEADLINE, ST_STOPPING, "signal-TERM"},
    {ST_RUNNING, EV_OWNER_GONE, ST_STOPPING, "signal-TERM"},
    {ST_LINGERING, EV_EMPTY, ST_DONE, "drain publish answer undo"},
    {ST_LINGERING, EV_KILL, ST_STOPPING, "signal-TERM"},
    {ST_LINGERING, EV_OWNER_GONE, ST_STOPPING, "signal-TERM"},
    {ST_STOPPING, EV_EXIT, ST_STOPPING, ""},
    {ST_STOPPING, EV_EMPTY, ST_DONE, "drain publish answer undo"},
    {ST_STOPPING, EV_KILL, ST_STOPPING, ""},
    {ST_STOPPING, EV_OWNER_GONE, ST_STOPPING, ""},
    {ST_STOPPING, EV_GRACE_OVER, ST_FORCING, "force"},
    {ST_FORCING, EV_EXIT, ST_FORCING, ""},
    {ST_FORCING, EV_EMPTY, ST_DONE, "drain publish answer undo"},
    {ST_FORCING, EV_KILL, ST_FORCING, ""},
    {ST_FORCING, EV_PROOF_OVER, ST_FORCING, "count publish answer"},
};

static const struct cell *find_cell(int state, int event)
{
    for (size_t i = 0; i < ARRAY_SIZE(cells); i++)
        if (cells[i].state == (enum keeper_state)state &&
            cells[i].event == (enum keeper_event)event)
            return &cells[i];
    return NULL;
}

static void every_cell(void **state)
{
    (void)state;
    static struct keeper k, before;
    for (int st = 0; st < ST_COUNT; st++) {
        for (int ev = 0; ev < EV_COUNT; ev++) {
            const struct cell *cell = find_cell(st, ev);
            prepare(&k, (enum keeper_state)st);
            before = k;
            machine_event(&k, (enum keeper_event)ev);
            enum keeper_state next = cell ? cell->next : (enum keeper_state)st;
            const char *want = cell ? cell->calls : "";
            if (k.state != next || strcmp(calls, want) != 0)
                fail_msg("state %d, event %d: went to %d and called \"%s\"", st, ev, (int)k.state,
                         calls);
            if (!cell && memcmp(&k, &before, sizeof k) != 0)
                fail_msg("state %d ignores event %d but changes something", st, ev);
        }
    }
}

/* -- What the actions do ------------------------------------------------------------------------
 */

static struct keeper k;

static bool soon(int64_t at, int64_t ms)
{
    int64_t left = at - clock_mono_ns();
    return left <= ms * NS_PER_MS && left > (ms - 1000) * NS_PER_MS;
}

static void a_start_sets_the_clocks(void **state)
{
    (void)state;
    prepare(&k, ST_WARM);
    machine_event(&k, EV_STARTED);
    assert_true(soon(k.deadline_at, 60000));
    /* It counts from the start, whenever that is noticed. */
    prepare(&k, ST_WARM);
    k.st.started_mono_ns -= 20000 * NS_PER_MS;
    machine_event(&k, EV_STARTED);
    assert_true(soon(k.deadline_at, 40000));
    prepare(&k, ST_WARM);
    k.spec.timeout_ms = 0;
    machine_event(&k, EV_STARTED);
    assert_int_equal(k.deadline_at, NEVER);
    prepare(&k, ST_WARM);
    k.spec.timeout_ms = INT64_MAX;
    machine_event(&k, EV_STARTED);
    assert_int_equal(k.deadline_at, NEVER);
}

static void an_exit_of_its_own(void **state)
{
    (void)state;
    prepare(&k, ST_RUNNING);
    k.deadline_at = clock_deadline(60000);
    k.st.exit_code = 3;
    machine_event(&k, EV_EXIT);
    assert_int_equal(k.st.outcome, NACRE_EXITED);
    assert_int_equal(k.st.reason, NACRE_REASON_NONE);
    assert_true(k.st.exited_ns > 0);
    /* The time of the command is no matter any more; the answer waits for what still prints. */
    assert_int_equal(k.deadline_at, NEVER);
    assert_false(k.st.settled);
    assert_true(soon(k.settle_at, 50));
    machine_event(&k, EV_EMPTY);
    assert_int_equal(k.st.outcome, NACRE_EXITED);
    assert_int_equal(k.st.tree, NACRE_TREE_EMPTY);
    assert_true(k.st.settled && k.st.empty_ns > 0);

    prepare(&k, ST_RUNNING);
    k.st.signal = SIGSEGV;
    at_eof = true;
    machine_event(&k, EV_EXIT);
    assert_int_equal(k.st.outcome, NACRE_SIGNALED);
    assert_true(k.st.settled);
    assert_int_equal(k.settle_at, NEVER);
}

struct ending {
    enum keeper_event event;
    nacre_reason reason; /* of the order, for a kill */
    nacre_reason want;
    nacre_outcome outcome;
};

static const struct ending endings[] = {
    {EV_KILL, NACRE_REASON_KILL, NACRE_REASON_KILL, NACRE_KILLED},
    {EV_KILL, NACRE_REASON_CANCEL, NACRE_REASON_CANCEL, NACRE_CANCELLED},
    {EV_KILL, NACRE_REASON_DEADLINE, NACRE_REASON_DEADLINE, NACRE_TIMED_OUT},
    {EV_DEADLINE, NACRE_REASON_NONE, NACRE_REASON_DEADLINE, NACRE_TIMED_OUT},
    {EV_OWNER_GONE, NACRE_REASON_NONE, NACRE_REASON_OWNER, NACRE_KILLED},
};

/* However the command ends after it was told to: the reason names the outcome. */
static void the_reason_names_the_outcome(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(endings); i++) {
        for (int killed = 0; killed < 2; killed++) {
            prepare(&k, ST_RUNNING);
            k.order.reason = endings[i].reason;
            machine_event(&k, endings[i].event);
            assert_int_equal(k.state, ST_STOPPING);
            assert_int_equal(k.st.outcome, NACRE_RUNNING);
            assert_true(soon(k.grace_at, GRACE_MS));
            if (killed)
                machine_event(&k, EV_GRACE_OVER);
            k.st.signal = killed ? SIGKILL : 0;
            k.st.exit_code = killed ? -1 : 0;
            machine_event(&k, EV_EXIT);
            assert_int_equal(k.st.outcome, endings[i].outcome);
            assert_int_equal(k.st.reason, endings[i].want);
            machine_event(&k, EV_EMPTY);
            assert_int_equal(k.state, ST_DONE);
            assert_int_equal(k.st.outcome, endings[i].outcome);
            assert_int_equal(k.st.signalled, 1);
        }
    }
}

/* What is known of the command's end is not changed by what happens to its children. */
static void the_first_outcome_stays(void **state)
{
    (void)state;
    static const enum keeper_event later[] = {EV_KILL, EV_OWNER_GONE};
    for (size_t i = 0; i < ARRAY_SIZE(later); i++) {
        prepare(&k, ST_RUNNING);
        k.st.exit_code = 0;
        machine_event(&k, EV_EXIT);
        machine_event(&k, later[i]);
        assert_int_equal(k.state, ST_STOPPING);
        machine_event(&k, EV_GRACE_OVER);
        machine_event(&k, EV_EMPTY);
        assert_int_equal(k.st.outcome, NACRE_EXITED);
        assert_int_equal(k.st.reason, NACRE_REASON_NONE);
    }
}

static void kept_shells_survive_their_owner(void **state)
{
    (void)state;
    static const enum keeper_state states[] = {ST_RUNNING, ST_LINGERING, ST_STOPPING};
    for (size_t i = 0; i < ARRAY_SIZE(states); i++) {
        prepare(&k, states[i]);
        k.st.kept = true;
        int64_t grace_at = k.grace_at;
        machine_event(&k, EV_OWNER_GONE);
        assert_int_equal(k.state, states[i]);
        assert_int_equal(k.grace_at, grace_at);
        assert_string_equal(calls, "");
    }
}

static void the_grace(void **state)
{
    (void)state;
    prepare(&k, ST_RUNNING);
    k.order.grace_ms = 700;
    machine_event(&k, EV_KILL);
    assert_true(soon(k.grace_at, 700));
    /* None at all: SIGTERM, and SIGKILL right behind it. */
    prepare(&k, ST_RUNNING);
    k.order.grace_ms = 0;
    machine_event(&k, EV_KILL);
    assert_int_equal(k.state, ST_FORCING);
    assert_string_equal(calls, "signal-TERM force");
    assert_int_equal(k.grace_at, NEVER);
    assert_true(soon(k.proof_at, 5000));
    prepare(&k, ST_RUNNING);
    k.order.signal = SIGKILL;
    machine_event(&k, EV_KILL);
    assert_int_equal(k.state, ST_FORCING);
    prepare(&k, ST_RUNNING);
    k.order.signal = SIGINT;
    machine_event(&k, EV_KILL);
    assert_string_equal(calls, "signal-INT");
    assert_int_equal(k.state, ST_STOPPING);
}

/* A second request never signals again and never gives more time. */
static void a_second_request_only_shortens(void **state)
{
    (void)state;
    prepare(&k, ST_RUNNING);
    machine_event(&k, EV_KILL);
    calls[0] = '\0';
    machine_event(&k, EV_KILL);
    assert_true(soon(k.grace_at, GRACE_MS));
    k.order.grace_ms = 60000;
    machine_event(&k, EV_KILL);
    assert_true(soon(k.grace_at, GRACE_MS));
    k.order.grace_ms = 2500;
    machine_event(&k, EV_KILL);
    assert_true(soon(k.grace_at, 2500));
    machine_event(&k, EV_OWNER_GONE);
    assert_true(soon(k.grace_at, 2500));
    assert_string_equal(calls, "");
    k.order = (struct kill_order){.signal = SIGKILL, .reason = NACRE_REASON_CANCEL};
    machine_event(&k, EV_KILL);
    assert_int_equal(k.state, ST_FORCING);
    assert_string_equal(calls, "force");
    /* The reason is that of the first. */
    machine_event(&k, EV_EXIT);
    assert_int_equal(k.st.outcome, NACRE_KILLED);
    /* Somebody asked for an hour, and is gone. */
    prepare(&k, ST_STOPPING);
    k.grace_at = clock_deadline(3600000);
    machine_event(&k, EV_OWNER_GONE);
    assert_true(soon(k.grace_at, GRACE_MS));
}

static void an_admission_and_a_second_try(void **state)
{
    (void)state;
    prepare(&k, ST_FORCING);
    machine_event(&k, EV_PROOF_OVER);
    assert_int_equal(k.st.survivors, 3);
    assert_true(k.st.settled);
    assert_int_equal(k.st.tree, NACRE_TREE_ALIVE);
    assert_int_equal(k.proof_at, NEVER);
    /* Only after an admission: before it the proof is still under way. */
    calls[0] = '\0';
    machine_event(&k, EV_KILL);
    assert_string_equal(calls, "force");
    assert_true(soon(k.proof_at, 5000));
    calls[0] = '\0';
    machine_event(&k, EV_KILL);
    assert_string_equal(calls, "");
    machine_event(&k, EV_EMPTY);
    assert_int_equal(k.st.survivors, 0);
    assert_int_equal(k.state, ST_DONE);
}

static void how_long_a_kill_takes(void **state)
{
    (void)state;
    prepare(&k, ST_RUNNING);
    machine_event(&k, EV_KILL);
    int64_t ms = machine_kill_ms(&k);
    assert_true(ms > GRACE_MS + 4000 && ms <= GRACE_MS + 5000);
    k.grace_at = clock_mono_ns() - 1;
    assert_int_equal(machine_kill_ms(&k), 5000);
    machine_event(&k, EV_GRACE_OVER);
    assert_int_equal(machine_kill_ms(&k), 5000);
}

/* -- Timers ------------------------------------------------------------------------------------ */

static void timers_fire_once_and_in_time(void **state)
{
    (void)state;
    int64_t past = clock_mono_ns() - 1, future = clock_deadline(60000);
    prepare(&k, ST_RUNNING);
    assert_int_equal(machine_next_timer(&k), NEVER);
    k.quiet_at = future;
    assert_int_equal(machine_next_timer(&k), future);
    k.quiet_at = NEVER;
    k.deadline_at = future;
    assert_int_equal(machine_next_timer(&k), future);
    machine_timers(&k);
    assert_int_equal(k.state, ST_RUNNING);
    assert_int_equal(k.deadline_at, future);
    k.deadline_at = past;
    machine_timers(&k);
    assert_int_equal(k.state, ST_STOPPING);
    assert_int_equal(k.st.reason, NACRE_REASON_DEADLINE);
    assert_int_equal(k.deadline_at, NEVER);
    assert_int_equal(machine_next_timer(&k), k.grace_at);
    k.grace_at = past;
    machine_timers(&k);
    assert_int_equal(k.state, ST_FORCING);
    assert_true(machine_next_timer(&k) <= k.proof_at);
    calls[0] = '\0';
    k.sweep_at = past;
    machine_timers(&k);
    assert_string_equal(calls, "sweep");
    assert_true(soon(k.sweep_at, 5));
    k.proof_at = past;
    calls[0] = '\0';
    machine_timers(&k);
    assert_string_equal(calls, "count publish answer");
    /* Then the looks become rare. */
    k.sweep_at = past;
    machine_timers(&k);
    assert_true(soon(k.sweep_at, 5000));
    assert_int_equal(machine_next_timer(&k), k.sweep_at);
}

/* In the group tier nobody tells when orphans end: after the command's exit we look. */
static void looks_in_the_group_tier(void **state)
{
    (void)state;
    prepare(&k, ST_RUNNING);
    k.st.tier = NACRE_TIER_GROUP;
    k.main_reaped = true;
    machine_event(&k, EV_EXIT);
    assert_true(soon(k.sweep_at, 20));
    k.sweep_at = clock_mono_ns() - 1;
    calls[0] = '\0';
    machine_timers(&k);
    assert_string_equal(calls, "reap");
    assert_true(soon(k.sweep_at, 20));
    prepare(&k, ST_RUNNING);
    k.main_reaped = true;
    machine_event(&k, EV_EXIT);
    assert_int_equal(k.sweep_at, NEVER);
}

static void timers_of_the_answer(void **state)
{
    (void)state;
    int64_t past = clock_mono_ns() - 1;
    prepare(&k, ST_LINGERING);
    k.settle_at = past;
    machine_timers(&k);
    assert_true(k.st.settled);
    assert_string_equal(calls, "drain publish");
    assert_int_equal(k.settle_at, NEVER);
    prepare(&k, ST_RUNNING);
    k.publish_at = past;
    machine_timers(&k);
    assert_string_equal(calls, "publish");
    assert_int_equal(k.publish_at, NEVER);
    prepare(&k, ST_WARM);
    k.owner_at = past;
    assert_int_equal(machine_next_timer(&k), past);
    machine_timers(&k);
    assert_string_equal(calls, "owner");
    assert_int_equal(machine_next_timer(&k), k.owner_at);
    /* A timer that is due in a state that ignores it is used up, and wakes nobody again. */
    prepare(&k, ST_LINGERING);
    k.deadline_at = k.grace_at = k.proof_at = past;
    machine_timers(&k);
    assert_int_equal(k.state, ST_LINGERING);
    assert_string_equal(calls, "");
    assert_int_equal(machine_next_timer(&k), NEVER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_cell),
        cmocka_unit_test(a_start_sets_the_clocks),
        cmocka_unit_test(an_exit_of_its_own),
        cmocka_unit_test(the_reason_names_the_outcome),
        cmocka_unit_test(the_first_outcome_stays),
        cmocka_unit_test(kept_shells_survive_their_owner),
        cmocka_unit_test(the_grace),
        cmocka_unit_test(a_second_request_only_shortens),
        cmocka_unit_test(an_admission_and_a_second_try),
        cmocka_unit_test(how_long_a_kill_takes),
        cmocka_unit_test(timers_fire_once_and_in_time),
        cmocka_unit_test(looks_in_the_group_tier),
        cmocka_unit_test(timers_of_the_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
