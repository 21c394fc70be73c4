/*
 * The keeper's two tables, that of a run and that of the process: every cell of state × event, with
 * what the actions call noted instead of done. What does not stand in a table changes nothing.
 */
#include "unit.h"

#include <fcntl.h>
#include <sys/mman.h>

/* The tables and their actions are private to their files. */
#include "keeper/life.c"
#include "keeper/machine.c"

static char calls[512];
static bool at_eof;

static void note(const char *what)
{
    snprintf(calls + strlen(calls), sizeof calls - strlen(calls), "%s%s", *calls ? " " : "", what);
}

#define STUB(name)                     \
    void name(struct keeper *k UNUSED) \
    {                                  \
    }

STUB(handshake_made)
STUB(restore_look)
STUB(connects_forget)
STUB(execs_forget)
STUB(execs_call_off)
STUB(execs_look)
STUB(appeared_look)
STUB(excess_begin)
STUB(excess_note)
STUB(tty_begin)
STUB(tty_end)
STUB(tty_revive)
STUB(reads_look)

void publish(struct keeper *k)
{
    k->at[AT_PUBLISH] = NEVER;
    note("publish");
}

void standin_dismiss(struct keeper *k)
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

void hunt_signal(struct keeper *k, int signal)
{
    char text[32];
    k->st.signalled++;
    snprintf(text, sizeof text, "signal-%s", sigabbrev_np(signal));
    note(text);
}

void hunt_force(struct keeper *k)
{
    (void)k;
    note("force");
}

void hunt_sweep(struct keeper *k)
{
    (void)k;
    note("sweep");
}

void hunt_go_first(struct keeper *k, bool first)
{
    k->first = first;
}

void tree_yield_memory(const struct keeper *k)
{
    (void)k;
    note("yield");
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
    k->at[AT_OWNER] = clock_deadline(1000);
    note("owner");
}

void excess_look(struct keeper *k)
{
    (void)k;
    note("limits");
}

void ctl_tell_killers(struct keeper *k)
{
    (void)k;
    note("answer");
}

void setup_leave_cgroup(struct keeper *k)
{
    (void)k;
    note("no-cgroup");
}

struct conn *ctl_place(struct keeper *k, int fd, bool watching)
{
    assert_int_equal(fd, -EBADF);
    assert_true(watching);
    note("place");
    return &k->conns[0];
}

void ctl_listen(struct keeper *k, const struct conn *c)
{
    assert_ptr_equal(c, &k->conns[0]);
    note("listen");
}

void loop_watch(struct keeper *k, enum keeper_fd which)
{
    (void)k;
    assert_int_equal(which, FD_BORN);
    note("watch-born");
}

void loop_ignore(struct keeper *k, enum keeper_fd which)
{
    (void)k;
    assert_int_equal(which, FD_NEXT);
}

void loop_close(struct keeper *k, enum keeper_fd which)
{
    assert_int_equal(which, FD_NEXT);
    close_fd(&k->fd[FD_NEXT]);
    note("close-next");
}

void loop_inherit(struct keeper *k)
{
    (void)k;
    note("inherit");
}

bool standin_is_over(struct keeper *k)
{
    (void)k;
    return true;
}

void standin_forget(struct keeper *k)
{
    (void)k;
    note("forget");
}

void flood_step_aside(struct keeper *k, bool aside)
{
    (void)k;
    note(aside ? "aside" : "back");
}

void outlive_owner(struct keeper *k)
{
    (void)k;
    note("outlive");
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
    for (int i = 0; i < AT_COUNT; i++)
        k->at[i] = NEVER;
    k->st.phase = state == ST_WARM ? PHASE_WARM : PHASE_RUN;
    if (state == ST_LINGERING || state == ST_DONE) {
        k->st.outcome = NACRE_EXITED;
        k->st.exit_code = 0;
        k->main_reaped = true;
    }
    if (state == ST_STOPPING || state == ST_FORCING)
        k->st.reason = NACRE_REASON_KILL;
    if (state == ST_STOPPING)
        k->at[AT_GRACE] = clock_deadline(GRACE_MS);
    if (state == ST_FORCING)
        k->at[AT_PROOF] = clock_deadline(5000);
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
    {ST_RUNNING, EV_LIMIT, ST_STOPPING, "signal-TERM"},
    {ST_LINGERING, EV_LIMIT, ST_STOPPING, "signal-TERM"},
    {ST_STOPPING, EV_LIMIT, ST_STOPPING, ""},
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

/* -- What the actions do ----------------------------------------------------------------------- */

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
    assert_true(soon(k.at[AT_DEADLINE], 60000));
    /* It counts from the start, whenever that is noticed. */
    prepare(&k, ST_WARM);
    k.st.started_mono_ns -= 20000 * NS_PER_MS;
    machine_event(&k, EV_STARTED);
    assert_true(soon(k.at[AT_DEADLINE], 40000));
    prepare(&k, ST_WARM);
    k.spec.timeout_ms = 0;
    machine_event(&k, EV_STARTED);
    assert_int_equal(k.at[AT_DEADLINE], NEVER);
    prepare(&k, ST_WARM);
    k.spec.timeout_ms = INT64_MAX;
    machine_event(&k, EV_STARTED);
    assert_int_equal(k.at[AT_DEADLINE], NEVER);
}

static void an_exit_of_its_own(void **state)
{
    (void)state;
    prepare(&k, ST_RUNNING);
    k.at[AT_DEADLINE] = clock_deadline(60000);
    k.st.exit_code = 3;
    machine_event(&k, EV_EXIT);
    assert_int_equal(k.st.outcome, NACRE_EXITED);
    assert_int_equal(k.st.reason, NACRE_REASON_NONE);
    assert_true(k.st.exited_ns > 0);
    /* The time of the command is no matter any more; the answer waits for what still prints. */
    assert_int_equal(k.at[AT_DEADLINE], NEVER);
    assert_false(k.st.settled);
    assert_true(soon(k.at[AT_SETTLE], 50));
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
    assert_int_equal(k.at[AT_SETTLE], NEVER);
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
    {EV_LIMIT, NACRE_REASON_LIMIT, NACRE_REASON_LIMIT, NACRE_KILLED},
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
            assert_true(soon(k.at[AT_GRACE], GRACE_MS));
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

/* A keeper that had no processor finds the command ended long after its time: that is no success.
 */
static void an_exit_long_after_the_deadline(void **state)
{
    (void)state;
    static const struct {
        int64_t late_ns;
        int signal;
        nacre_outcome outcome;
    } exits[] = {
        {-NS_PER_S, 0, NACRE_EXITED},         {NS_PER_S / 2, 0, NACRE_EXITED},
        {2 * NS_PER_S, 0, NACRE_TIMED_OUT},   {NS_PER_S / 2, SIGKILL, NACRE_TIMED_OUT},
        {-NS_PER_S, SIGKILL, NACRE_SIGNALED},
    };
    for (size_t i = 0; i < ARRAY_SIZE(exits); i++) {
        prepare(&k, ST_RUNNING);
        k.at[AT_DEADLINE] = clock_mono_ns() - exits[i].late_ns;
        k.st.exit_code = exits[i].signal ? -1 : 0;
        k.st.signal = exits[i].signal;
        machine_event(&k, EV_EXIT);
        assert_int_equal(k.st.outcome, exits[i].outcome);
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
        int64_t grace_at = k.at[AT_GRACE];
        machine_event(&k, EV_OWNER_GONE);
        assert_int_equal(k.state, states[i]);
        assert_int_equal(k.at[AT_GRACE], grace_at);
        assert_string_equal(calls, "");
    }
}

static void the_grace(void **state)
{
    (void)state;
    prepare(&k, ST_RUNNING);
    k.order.grace_ms = 700;
    machine_event(&k, EV_KILL);
    assert_true(soon(k.at[AT_GRACE], 700));
    /* None at all: SIGTERM, and SIGKILL right behind it. */
    prepare(&k, ST_RUNNING);
    k.order.grace_ms = 0;
    machine_event(&k, EV_KILL);
    assert_int_equal(k.state, ST_FORCING);
    assert_string_equal(calls, "signal-TERM force");
    assert_int_equal(k.at[AT_GRACE], NEVER);
    assert_true(soon(k.at[AT_PROOF], 5000));
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
    assert_true(soon(k.at[AT_GRACE], GRACE_MS));
    k.order.grace_ms = 60000;
    machine_event(&k, EV_KILL);
    assert_true(soon(k.at[AT_GRACE], GRACE_MS));
    k.order.grace_ms = 2500;
    machine_event(&k, EV_KILL);
    assert_true(soon(k.at[AT_GRACE], 2500));
    machine_event(&k, EV_OWNER_GONE);
    assert_true(soon(k.at[AT_GRACE], 2500));
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
    k.at[AT_GRACE] = clock_deadline(3600000);
    machine_event(&k, EV_OWNER_GONE);
    assert_true(soon(k.at[AT_GRACE], GRACE_MS));
}

static void an_admission_and_a_second_try(void **state)
{
    (void)state;
    prepare(&k, ST_FORCING);
    machine_event(&k, EV_PROOF_OVER);
    assert_int_equal(k.st.survivors, 3);
    assert_true(k.st.settled);
    assert_int_equal(k.st.tree, NACRE_TREE_ALIVE);
    assert_int_equal(k.at[AT_PROOF], NEVER);
    /* Only after an admission: before it the proof is still under way. */
    calls[0] = '\0';
    machine_event(&k, EV_KILL);
    assert_string_equal(calls, "force");
    assert_true(soon(k.at[AT_PROOF], 5000));
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
    k.at[AT_GRACE] = clock_mono_ns() - 1;
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
    k.at[AT_QUIET] = future;
    assert_int_equal(machine_next_timer(&k), future);
    k.at[AT_QUIET] = NEVER;
    k.at[AT_DEADLINE] = future;
    assert_int_equal(machine_next_timer(&k), future);
    machine_timers(&k);
    assert_int_equal(k.state, ST_RUNNING);
    assert_int_equal(k.at[AT_DEADLINE], future);
    k.at[AT_DEADLINE] = past;
    machine_timers(&k);
    assert_int_equal(k.state, ST_STOPPING);
    assert_int_equal(k.st.reason, NACRE_REASON_DEADLINE);
    assert_int_equal(k.at[AT_DEADLINE], NEVER);
    assert_int_equal(machine_next_timer(&k), k.at[AT_GRACE]);
    k.at[AT_GRACE] = past;
    machine_timers(&k);
    assert_int_equal(k.state, ST_FORCING);
    assert_true(machine_next_timer(&k) <= k.at[AT_PROOF]);
    calls[0] = '\0';
    k.at[AT_SWEEP] = past;
    machine_timers(&k);
    assert_string_equal(calls, "sweep");
    assert_true(soon(k.at[AT_SWEEP], 5));
    k.at[AT_PROOF] = past;
    calls[0] = '\0';
    machine_timers(&k);
    assert_string_equal(calls, "count publish answer");
    /* Then the looks become rare. */
    k.at[AT_SWEEP] = past;
    machine_timers(&k);
    assert_true(soon(k.at[AT_SWEEP], 5000));
    assert_int_equal(machine_next_timer(&k), k.at[AT_SWEEP]);
}

/* In the group tier nobody tells when orphans end: after the command's exit we look. */
static void looks_in_the_group_tier(void **state)
{
    (void)state;
    prepare(&k, ST_RUNNING);
    k.st.tier = NACRE_TIER_GROUP;
    k.main_reaped = true;
    machine_event(&k, EV_EXIT);
    assert_true(soon(k.at[AT_SWEEP], 20));
    k.at[AT_SWEEP] = clock_mono_ns() - 1;
    calls[0] = '\0';
    machine_timers(&k);
    assert_string_equal(calls, "reap");
    assert_true(soon(k.at[AT_SWEEP], 20));
    prepare(&k, ST_RUNNING);
    k.main_reaped = true;
    machine_event(&k, EV_EXIT);
    assert_int_equal(k.at[AT_SWEEP], NEVER);
}

static void timers_of_the_answer(void **state)
{
    (void)state;
    int64_t past = clock_mono_ns() - 1;
    prepare(&k, ST_LINGERING);
    k.at[AT_SETTLE] = past;
    machine_timers(&k);
    assert_true(k.st.settled);
    assert_string_equal(calls, "drain publish");
    assert_int_equal(k.at[AT_SETTLE], NEVER);
    prepare(&k, ST_RUNNING);
    k.at[AT_PUBLISH] = past;
    machine_timers(&k);
    assert_string_equal(calls, "publish");
    assert_int_equal(k.at[AT_PUBLISH], NEVER);
    prepare(&k, ST_WARM);
    k.at[AT_OWNER] = past;
    assert_int_equal(machine_next_timer(&k), past);
    machine_timers(&k);
    assert_string_equal(calls, "owner");
    assert_int_equal(machine_next_timer(&k), k.at[AT_OWNER]);
    /* A timer that is due in a state that ignores it is used up, and wakes nobody again. */
    prepare(&k, ST_LINGERING);
    k.at[AT_DEADLINE] = k.at[AT_GRACE] = k.at[AT_PROOF] = past;
    machine_timers(&k);
    assert_int_equal(k.state, ST_LINGERING);
    assert_string_equal(calls, "");
    assert_int_equal(machine_next_timer(&k), NEVER);
}

/* -- The life of the process ------------------------------------------------------------------- */

/* A process as it is in a state. Its next keeper may be asked for; none is wanted. */
static void prepare_life(enum keeper_life life)
{
    close_fd(&k.fd[FD_NEXT]);
    close_fd(&k.fd[FD_STATE]);
    prepare(&k, life < LIFE_BEGUN ? ST_WARM : life < LIFE_REBORN ? ST_RUNNING : ST_DONE);
    for (int i = 0; i < FD_COUNT; i++)
        k.fd[i] = -EBADF;
    k.life = life;
    k.st.size = sizeof k.st;
    k.fd[FD_STATE] = memfd_create("state", MFD_CLOEXEC);
    if (life < LIFE_FOLLOWED)
        k.fd[FD_NEXT] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    k.page = mmap(NULL, sizeof *k.page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(k.page != MAP_FAILED && k.fd[FD_STATE] >= 0);
}

struct life_cell {
    enum keeper_life life;
    enum life_event event;
    enum keeper_life next;
    enum keeper_state state;
    const char *calls;
};

static const struct life_cell life_cells[] = {
    {LIFE_READY, LE_STARTED, LIFE_BEGUN, ST_RUNNING, "place reap listen"},
    {LIFE_READY, LE_NOT_STARTED, LIFE_READY, ST_DONE, "dismiss undo-all"},
    {LIFE_READY, LE_HURRY, LIFE_HURRIED, ST_WARM, "watch-born"},
    {LIFE_READY, LE_UNWANTED, LIFE_READY, ST_WARM, "close-next"},
    {LIFE_READY, LE_RUN_OVER, LIFE_OVER, ST_WARM, ""},
    {LIFE_HURRIED, LE_STARTED, LIFE_BEGUN, ST_RUNNING, "place reap listen"},
    {LIFE_HURRIED, LE_NOT_STARTED, LIFE_HURRIED, ST_DONE, "dismiss undo-all"},
    {LIFE_HURRIED, LE_UNWANTED, LIFE_HURRIED, ST_WARM, "close-next"},
    {LIFE_HURRIED, LE_RUN_OVER, LIFE_OVER, ST_WARM, ""},
    {LIFE_BEGUN, LE_HURRY, LIFE_FOLLOWED, ST_RUNNING, "forget"},
    {LIFE_BEGUN, LE_UNWANTED, LIFE_BEGUN, ST_RUNNING, "close-next"},
    {LIFE_BEGUN, LE_QUIET, LIFE_FOLLOWED, ST_RUNNING, "forget yield outlive"},
    {LIFE_BEGUN, LE_RUN_OVER, LIFE_OVER, ST_RUNNING, ""},
    {LIFE_FOLLOWED, LE_QUIET, LIFE_FOLLOWED, ST_RUNNING, "yield outlive"},
    {LIFE_FOLLOWED, LE_RUN_OVER, LIFE_OVER, ST_RUNNING, ""},
};

static const struct life_cell *find_life_cell(int life, int event)
{
    for (size_t i = 0; i < ARRAY_SIZE(life_cells); i++)
        if (life_cells[i].life == (enum keeper_life)life &&
            life_cells[i].event == (enum life_event)event)
            return &life_cells[i];
    return NULL;
}

static void every_cell_of_the_life(void **state)
{
    (void)state;
    static struct keeper before;
    for (int life = 0; life < LIFE_COUNT; life++) {
        for (int ev = 0; ev < LE_COUNT; ev++) {
            const struct life_cell *cell = find_life_cell(life, ev);
            prepare_life((enum keeper_life)life);
            k.st.kept = true;
            before = k;
            life_event(&k, (enum life_event)ev);
            if (!cell && memcmp(&k, &before, sizeof k) != 0)
                fail_msg("life %d ignores event %d but changes something", life, ev);
            if (cell &&
                (k.life != cell->next || k.state != cell->state || strcmp(calls, cell->calls) != 0))
                fail_msg("life %d, event %d: went to %d, %d and called \"%s\"", life, ev,
                         (int)k.life, (int)k.state, calls);
        }
    }
}

static void who_starts_over(void **state)
{
    (void)state;
    static const enum keeper_life lives[] = {LIFE_READY, LIFE_HURRIED, LIFE_BEGUN};
    for (size_t i = 0; i < ARRAY_SIZE(lives); i++) {
        prepare_life(lives[i]);
        k.spec.successor = 1;
        k.fd[FD_LINE] = 0;
        k.session.nice = 7;
        k.main = 4711;
        life_event(&k, LE_RUN_OVER);
        assert_string_equal(calls, "forget back inherit");
        assert_int_equal(k.life, LIFE_REBORN);
        /* The loop ends, and nothing is left but the session. */
        assert_int_equal(k.state, ST_DONE);
        assert_int_equal(k.session.nice, 7);
        assert_true(k.main == 0 && k.spec.successor == 0 && k.page == NULL);
    }
    /* Not if the owner is gone, nobody wants one, or the end could not be written. */
    for (int why = 0; why < 3; why++) {
        prepare_life(LIFE_BEGUN);
        k.spec.successor = 1;
        k.fd[FD_LINE] = why == 0 ? -EBADF : 0;
        if (why == 1)
            life_event(&k, LE_UNWANTED);
        if (why == 2)
            close_fd(&k.fd[FD_STATE]);
        life_event(&k, LE_RUN_OVER);
        assert_int_equal(k.life, LIFE_OVER);
    }
}

static void how_a_run_begins(void **state)
{
    (void)state;
    prepare_life(LIFE_READY);
    k.page->st.phase = PHASE_RUN;
    life_look(&k);
    assert_int_equal(k.life, LIFE_BEGUN);
    assert_true(k.at[AT_QUIET] == k.st.started_mono_ns + QUIET_NS);
    /* A second look finds nothing new. */
    calls[0] = '\0';
    life_look(&k);
    assert_string_equal(calls, "");
    prepare_life(LIFE_HURRIED);
    k.page->st.phase = PHASE_RUN;
    k.page->outside = true;
    life_look(&k);
    assert_int_equal(k.at[AT_QUIET], 0);
    assert_string_equal(calls, "no-cgroup publish place reap listen");
    assert_int_equal(k.st.tier, NACRE_TIER_SUBREAPER);
    /* It failed; or there was no go, or it was killed before it wrote down that it begins. */
    for (int failed = 0; failed < 2; failed++) {
        prepare_life(LIFE_READY);
        k.page->st.phase = failed ? PHASE_RUN : PHASE_WARM;
        k.page->stage = failed ? STAGE_EXEC : STAGE_NONE;
        life_look(&k);
        assert_int_equal(k.state, ST_DONE);
        assert_string_equal(calls, "dismiss undo-all");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_cell),
        cmocka_unit_test(a_start_sets_the_clocks),
        cmocka_unit_test(an_exit_of_its_own),
        cmocka_unit_test(the_reason_names_the_outcome),
        cmocka_unit_test(an_exit_long_after_the_deadline),
        cmocka_unit_test(the_first_outcome_stays),
        cmocka_unit_test(kept_shells_survive_their_owner),
        cmocka_unit_test(the_grace),
        cmocka_unit_test(a_second_request_only_shortens),
        cmocka_unit_test(an_admission_and_a_second_try),
        cmocka_unit_test(how_long_a_kill_takes),
        cmocka_unit_test(timers_fire_once_and_in_time),
        cmocka_unit_test(looks_in_the_group_tier),
        cmocka_unit_test(timers_of_the_answer),
        cmocka_unit_test(every_cell_of_the_life),
        cmocka_unit_test(who_starts_over),
        cmocka_unit_test(how_a_run_begins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
