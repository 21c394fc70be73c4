#include "home/sweep.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/op.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "home/door.h"
#include "home/home.h"
#include "home/overdue.h"
#include "run/log.h"
#include "sys/cgroup.h"
#include "sys/fd.h"
#include "sys/fsize.h"
#include "sys/host.h"
#include "sys/proc.h"

#define SWEEP_MS 5000
#define LAST_MS  3000
#define DYING_MS 8000 /* that a keeper may take to die which was killed */
#define TREE_MS  2000 /* for the tree of a keeper that lives, if nothing changes any more */
#define PROOF_MS 6000 /* the same, for one that works, and will name who is left */
#define LEFT_MS  1000 /* and for what that has left */
#define WORD_MS  1000 /* for that keeper to say that it is over */
#define CALM_MS  300  /* a keeper that was woken is looked at for so long */
#define AGAIN_MS 20   /* and that often */
#define DOUBTS   10   /* rounds: an exec is shorter, and who has no environment stays without */

static bool same_boot(const struct run_state *state, const struct host *host)
{
    return memcmp(state->boot, host->boot, sizeof host->boot) == 0;
}

bool sweep_is_here(const struct run_state *state)
{
    struct host host;
    return host_identify(&host) == 0 && same_boot(state, &host) && state->pid_ns == host.pid_ns &&
           proc_is_ours();
}

/* Who was there to be killed in a round: those of the last one have survived. */
struct found {
    int32_t count;
    int32_t pids[STATE_SURVIVORS];
    bool doubtful; /* somebody may have been in the middle of an exec */
};

struct search {
    const struct run_state *state;
    char mark[64];
    struct found *found;
};

static void note_found(struct found *found, pid_t pid)
{
    if (found->count < STATE_SURVIVORS)
        found->pids[found->count] = pid;
    found->count++;
}

/* Every process that carries the mark of the run and is not older than it, except ourselves. */
static int kill_marked(pid_t pid, void *userdata)
{
    struct search *search = userdata;
    struct proc_ref ref;
    int marked = proc_is_marked(pid, search->mark, search->state->keeper_start, &ref);
    if (marked < 0)
        search->found->doubtful = true;
    if (marked > 0 && proc_kill(&ref, SIGKILL) == 0)
        note_found(search->found, pid);
    return 0;
}

static struct found kill_by_mark(const struct run_state *state)
{
    struct found found = {0};
    struct search search = {.state = state, .found = &found};
    snprintf(search.mark, sizeof search.mark, "NACRE_ID=%s", nacre_id_format(&state->id).s);
    if (proc_each_born(kill_marked, &search) == -EAGAIN)
        found.doubtful = true;
    return found;
}

static struct found kill_by_cgroup(const struct run_state *state)
{
    struct found found = {0};
    char text[4096];
    cleanup_close int fd =
        overdue_has_leaf(state) ? open(state->cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -EBADF;
    if (fd < 0)
        return found;
    cgroup_kill(fd);
    if (cgroup_populated(fd) <= 0)
        return found;
    ssize_t n = fd_slurp_at(fd, "cgroup.procs", text, sizeof text);
    for (const char *p = text; n > 0 && *p; p += strcspn(p, "\n"), p += *p == '\n')
        note_found(&found, (pid_t)fd_parse_number(p));
    found.count = MAX(found.count, 1); /* it may be in a cgroup below */
    return found;
}

static int find_marked(pid_t pid, void *userdata)
{
    return proc_is_marked(pid, userdata, 0, NULL) > 0;
}

bool sweep_finds_life(const struct run_state *state)
{
    char mark[NACRE_ID_DIGITS + 16];
    snprintf(mark, sizeof mark, "NACRE_ID=%s", nacre_id_format(&state->id).s);
    cleanup_close int leaf =
        overdue_has_leaf(state) ? open(state->cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -EBADF;
    return (leaf >= 0 && cgroup_populated(leaf) > 0) || proc_each(find_marked, mark) > 0;
}

static void kill_main(const struct run_state *state)
{
    struct proc_ref main = {.pid = state->main_pid, .start = state->main_start};
    if (overdue_has_leaf(state))
        cgroup_remove(state->cgroup);
    if (state->main_start > 0)
        proc_kill(&main, SIGKILL);
}

/* Who ended it knows why; else how it ended is not known. */
static void judge_outcome(struct run_state *state, nacre_reason why)
{
    why = state->reason == NACRE_REASON_DEADLINE ? NACRE_REASON_DEADLINE : why;
    state->outcome = why == NACRE_REASON_DEADLINE ? NACRE_TIMED_OUT
                     : why == NACRE_REASON_OWNER  ? NACRE_KILLED
                                                  : NACRE_LOST;
    state->exited_ns = clock_real_ns();
    if (state->outcome == NACRE_LOST)
        return;
    state->reason = why;
    state->elapsed_ns = clock_mono_ns() - state->started_mono_ns;
}

static int record_lost(const struct run *run, int state_fd, struct run_state *state,
                       nacre_reason why)
{
    FSIZE_SHELTER();
    log_recover(run->dir, &state->log);
    if (state->outcome == NACRE_RUNNING)
        judge_outcome(state, why);
    state->tree = state->survivors > 0 ? NACRE_TREE_ALIVE : NACRE_TREE_EMPTY;
    state->settled = true;
    unlinkat(run->dir, "ctl", 0);
    return state_write(state_fd, state);
}

/* -- The steps -------------------------------------------------------------------------------- */

static int go_to(struct sweeping *s, enum sweep_phase phase, int64_t limit_ms)
{
    s->phase = phase;
    s->deadline_ns = s->first_ns + limit_ms * NS_PER_MS;
    return 0;
}

/* Whoever swept before has waited long enough; and who resisted while its keeper lived will go on
 * doing so. */
static int64_t patience(const struct sweeping *s)
{
    return s->again ? 0 : s->left[0].pid > 0 ? LEFT_MS : SWEEP_MS;
}

static bool sweep_is_late(const struct sweeping *s)
{
    return clock_left_ms(s->deadline_ns) == 0;
}

static int lost_elsewhere(const struct run *run, nacre_error *err)
{
    return err_set(err, NACRE_EPERM,
                   "shell %s lost its keeper in another pid namespace; look at it from there",
                   nacre_id_short(&run->id).s);
}

static void name_left(struct sweeping *s)
{
    int32_t count = 0, pids[STATE_SURVIVORS] = {0};
    for (size_t i = 0; i < STATE_SURVIVORS; i++)
        if (s->left[i].pid > 0 && proc_alive(&s->left[i]))
            pids[count++] = s->left[i].pid;
    if (count <= s->state.survivors)
        return;
    s->state.survivors = count;
    memcpy(s->state.survivor_pids, pids, sizeof pids);
}

/* Only now: who was an orphan before would have been out of reach. */
static int end_keeper(struct sweeping *s, const struct proc_ref *keeper)
{
    proc_kill(keeper, SIGKILL);
    s->first_ns = clock_mono_ns();
    return go_to(s, SWEEP_LOCK, 2L * SWEEP_MS);
}

/* Whether the keeper has said the last word: it is over, or who is left cannot be ended. */
static bool keeper_has_spoken(const struct run *run, const struct sweeping *s,
                              struct run_state *ret_state)
{
    struct run_state now;
    if (state_read(run->state_fd, &now) < 0 || !nacre_id_equal(&now.id, &run->id) ||
        !(state_is_final(&now) || (s->why != NACRE_REASON_NONE && now.survivors > 0)))
        return false;
    *ret_state = now;
    return true;
}

/* One round; how long nothing has changed since. */
static int64_t end_tree_once(struct sweeping *s)
{
    struct proc_ref left[STATE_SURVIVORS] = {{0}};
    size_t count = overdue_end_tree(&s->state, left, STATE_SURVIVORS);
    bool same = count == s->count && s->moved_ns != 0;
    for (size_t i = 0; i < STATE_SURVIVORS; i++)
        same = same && left[i].pid == s->left[i].pid && left[i].start == s->left[i].start;
    if (!same)
        s->moved_ns = clock_mono_ns();
    s->count = count;
    memcpy(s->left, left, sizeof left);
    return (clock_mono_ns() - s->moved_ns) / NS_PER_MS;
}

/* A keeper that was only slow, or is free again now, says itself how it ended. */
static int empty_tree(const struct run *run, struct sweeping *s, struct run_state *ret_state,
                      nacre_error *err UNUSED)
{
    struct proc_ref keeper = {.pid = s->state.keeper_pid, .start = s->state.keeper_start};
    if (keeper_has_spoken(run, s, ret_state))
        return 1;
    if (!proc_alive(&keeper))
        return end_keeper(s, &keeper);
    int64_t still_ms = end_tree_once(s);
    bool works = !sweep_wake_stopped(&s->state) && s->why != NACRE_REASON_NONE;
    int64_t limit_ms = s->count > 0 ? (works ? PROOF_MS : TREE_MS) : s->why ? WORD_MS : 0;
    return still_ms < limit_ms ? 0 : end_keeper(s, &keeper);
}

/* With the lock in hand nobody else writes. */
static int look_under_lock(const struct run *run, struct sweeping *s, struct run_state *ret_state,
                           nacre_error *err)
{
    struct host host;
    int r = state_read(s->fd, &s->state);
    if (r < 0 || !nacre_id_equal(&s->state.id, &run->id)) {
        r = run_read_state(run, ret_state, err);
        return r < 0 ? r : 1;
    }
    if (state_is_final(&s->state)) {
        *ret_state = s->state;
        return 1;
    }
    s->again = s->state.survivors > 0;
    r = host_identify(&host);
    if (r < 0)
        return err_sys(err, NACRE_EIO, -r, "host", "cannot tell which boot this is");
    if (!same_boot(&s->state, &host)) {
        s->state.survivors = 0;
        return go_to(s, SWEEP_RECORD, 0);
    }
    if (!sweep_is_here(&s->state))
        return lost_elsewhere(run, err);
    return go_to(s, SWEEP_KEEPER, LAST_MS);
}

/* Another front end may be sweeping; it is done when the lock is free again. */
static int take_sweep_lock(const struct run *run, struct sweeping *s, struct run_state *ret_state,
                           nacre_error *err)
{
    int r = lock_take(s->fd);
    if (r == -EAGAIN && !sweep_is_late(s))
        return 0;
    if (r < 0)
        return err_sys(err, NACRE_EBUSY, -r, "lock", "somebody else holds shell %s",
                       nacre_id_short(&run->id).s);
    return look_under_lock(run, s, ret_state, err);
}

/*
 * A keeper lets go of its lock a moment before it is gone. One that stays has lost it to nobody:
 * this directory is a copy, and its keeper's business is elsewhere.
 */
static int await_keeper(const struct run *run, struct sweeping *s, struct run_state *ret_state,
                        nacre_error *err)
{
    struct proc_ref keeper = {.pid = s->state.keeper_pid, .start = s->state.keeper_start};
    if (!proc_alive(&keeper))
        return go_to(s, SWEEP_CGROUP, patience(s));
    bool dies = proc_is_ending(&keeper) && clock_left_ms(s->first_ns + DYING_MS * NS_PER_MS) > 0;
    if (!sweep_is_late(s) || dies)
        return 0;
    int r = run_read_state(run, ret_state, err);
    return r < 0 ? r : 1;
}

static void name_survivors(struct sweeping *s, const struct found *found)
{
    s->state.survivors = found->count;
    memcpy(s->state.survivor_pids, found->pids, sizeof found->pids);
}

static int empty_cgroup(const struct run *run UNUSED, struct sweeping *s,
                        struct run_state *ret_state UNUSED, nacre_error *err UNUSED)
{
    struct found found = {0};
    if (s->state.cgroup[0])
        found = kill_by_cgroup(&s->state);
    if (found.count > 0 && !sweep_is_late(s))
        return 0;
    kill_main(&s->state);
    name_survivors(s, &found);
    return go_to(s, SWEEP_MARK, patience(s));
}

static int empty_mark(const struct run *run UNUSED, struct sweeping *s,
                      struct run_state *ret_state UNUSED, nacre_error *err UNUSED)
{
    struct found found = kill_by_mark(&s->state);
    if (found.count > 0 && !sweep_is_late(s))
        return 0;
    if (found.count > 0)
        name_survivors(s, &found);
    if (found.doubtful && s->doubts++ < DOUBTS)
        return 0;
    return go_to(s, SWEEP_RECORD, 0);
}

/* The groups of its limits are found by their names; nobody is left in them. */
static void remove_groups(const struct run *run)
{
    struct spec spec;
    char path[CGROUP_PATH_MAX + 64];
    if (run_load_spec(run, &spec, NULL) < 0)
        return;
    const char *parent = spec_string(&spec, spec.head->groups);
    for (int i = 0; i < SPEC_GROUPS; i++, parent += strlen(parent) + 1) {
        snprintf(path, sizeof path, "%.*s/" CGROUP_PREFIX "%s", CGROUP_PATH_MAX, parent,
                 nacre_id_format(&run->id).s);
        if (*parent)
            cgroup_remove(path);
    }
    free((void *)spec.head);
}

static int record(const struct run *run, struct sweeping *s, struct run_state *ret_state,
                  nacre_error *err)
{
    remove_groups(run);
    if (s->state.phase == PHASE_WARM) {
        cleanup_close int runs = openat(run->dir, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (runs >= 0)
            run_remove(runs, &run->id);
        return err_set(err, NACRE_ENOTFOUND, "no shell with id \"%s\"", nacre_id_short(&run->id).s);
    }
    name_left(s);
    int r = record_lost(run, s->fd, &s->state, s->why);
    *ret_state = s->state;
    return r < 0 ? err_sys(err, NACRE_EIO, -r, "state", "cannot record that shell %s is lost",
                           nacre_id_short(&run->id).s)
                 : 1;
}

int sweep_step(const struct run *run, struct sweeping *s, struct run_state *ret_state,
               nacre_error *err)
{
    static int (*const steps[])(const struct run *, struct sweeping *, struct run_state *,
                                nacre_error *) = {
        [SWEEP_TREE] = empty_tree,     [SWEEP_LOCK] = take_sweep_lock,
        [SWEEP_KEEPER] = await_keeper, [SWEEP_CGROUP] = empty_cgroup,
        [SWEEP_MARK] = empty_mark,     [SWEEP_RECORD] = record,
    };
    for (;;) {
        enum sweep_phase phase = s->phase;
        int r = steps[phase](run, s, ret_state, err);
        if (r != 0 || s->phase == phase)
            return r;
    }
}

void sweep_end(struct sweeping *s)
{
    close_fd(&s->fd);
}

/* What cannot be recorded can still be said. */
static int say_lost(const struct run *run, struct run_state *ret_state, nacre_error *err)
{
    int r = run_read_state(run, ret_state, err);
    if (r == 0 && ret_state->outcome == NACRE_RUNNING)
        ret_state->outcome = NACRE_LOST;
    return r;
}

/* 1 = there is nothing to do but to say it. */
static int begin_sweep(const struct run *run, struct sweeping *s, struct run_state *ret_state,
                       nacre_error *err)
{
    s->fd = run_open_file(run->dir, "state", O_RDWR);
    if (s->fd == -EROFS) {
        int r = say_lost(run, ret_state, err);
        return r < 0 ? r : 1;
    }
    if (s->fd < 0)
        return err_sys(err, NACRE_EIO, -s->fd, "state", "cannot write the state of shell %s",
                       nacre_id_short(&run->id).s);
    s->first_ns = s->first_ns ? s->first_ns : clock_mono_ns();
    return go_to(s, SWEEP_LOCK, 2L * SWEEP_MS);
}

int sweep_begin(const struct run *run, struct sweeping *s, struct run_state *ret_state,
                nacre_error *err)
{
    /* The lock first, the state after it: a keeper that finishes in between is no loss. */
    int held = lock_held(run->state_fd);
    int r = state_read(run->state_fd, ret_state);
    if (held == 0 && (r < 0 ? r != -EPROTO : !state_is_final(ret_state)))
        return begin_sweep(run, s, ret_state, err);
    r = run_check_state(run, r, ret_state, err);
    return r < 0 ? r : 1;
}

int sweep_look(const struct run *run, struct sweeping *s, struct run_state *ret_state,
               nacre_error *err)
{
    int r = sweep_begin(run, s, ret_state, err);
    if (r == 0)
        r = sweep_step(run, s, ret_state, err);
    sweep_end(s);
    return r;
}

static int peek_at_kept(const struct run *run, const struct run_state *state)
{
    struct overdue overdue = {0};
    overdue_read(&overdue, run);
    return overdue_is(&overdue, state);
}

int sweep_peek(const struct run *run, struct run_state *ret_state, nacre_error *err)
{
    struct host host;
    int held = lock_held(run->state_fd);
    int r = run_read_state(run, ret_state, err);
    if (r < 0 || state_is_final(ret_state))
        return r;
    if (held > 0)
        return peek_at_kept(run, ret_state);
    if (held < 0 || host_identify(&host) < 0)
        return r;
    struct proc_ref keeper = {.pid = ret_state->keeper_pid, .start = ret_state->keeper_start};
    if (same_boot(ret_state, &host) && !sweep_is_here(ret_state))
        return lost_elsewhere(run, err);
    /* A keeper lets go of its lock a moment before it is gone; one that stays holds another
     * directory, of which this is a copy. A look tells the two apart. */
    if (ret_state->outcome == NACRE_RUNNING &&
        !(same_boot(ret_state, &host) && proc_alive(&keeper)))
        ret_state->outcome = NACRE_LOST;
    return 1;
}

void sweep_wake(const struct run_state *state)
{
    struct proc_ref keeper = {.pid = state->keeper_pid, .start = state->keeper_start};
    if (sweep_is_here(state))
        proc_kill(&keeper, SIGCONT);
}

bool sweep_wake_stopped(const struct run_state *state)
{
    struct proc_stat stat;
    bool stopped = proc_stat(state->keeper_pid, &stat) == 0 &&
                   (stat.state == 'T' || stat.state == 't') &&
                   stat.ref.start == state->keeper_start;
    if (stopped)
        sweep_wake(state);
    return stopped;
}

int sweep_by_force(const struct run *run, struct sweeping *ret, nacre_reason why,
                   struct run_state *ret_state, nacre_error *err)
{
    struct run_state state;
    int held = lock_held(run->state_fd);
    int r = run_read_state(run, &state, err);
    if (r < 0)
        return r;
    if (state_is_final(&state)) {
        *ret_state = state;
        return 1;
    }
    struct proc_ref keeper = {.pid = state.keeper_pid, .start = state.keeper_start};
    if (held == 0 && proc_alive(&keeper))
        return err_set(err, NACRE_EBUSY,
                       "the directory of shell %s is a copy; its keeper is not here",
                       nacre_id_short(&run->id).s);
    if (!sweep_is_here(&state))
        return err_set(err, NACRE_EPERM, "shell %s runs in another pid namespace",
                       nacre_id_short(&run->id).s);
    ret->why = why;
    ret->first_ns = 0;
    r = begin_sweep(run, ret, ret_state, err);
    if (r != 0)
        return r;
    ret->state = state;
    ret->moved_ns = 0;
    return go_to(ret, SWEEP_TREE, 0);
}

/* -- A look as an operation ------------------------------------------------------------------- */

/* What its keeper left behind is swept first; one that lives and is held is woken, and seen to go
 * on if it owes something. */
struct look_op {
    nacre_op op;
    struct run run;
    struct sweeping sweeping;
    struct overdue overdue;
    int64_t calm_ns; /* until then it is seen whether it goes on; 0 = it was not held */
    struct run_state state;
    struct door door;
};

static int look_after_keeper(struct look_op *l, nacre_error *err)
{
    bool force;
    overdue_read(&l->overdue, &l->run);
    nacre_reason owed = overdue_look(&l->overdue, &l->state, &force);
    if (force && l->run.dir >= 0)
        return sweep_by_force(&l->run, &l->sweeping, owed, &l->state, err);
    if (owed == NACRE_REASON_NONE || (l->overdue.wakes == 0 && l->overdue.since_ns == 0))
        return 1;
    if (l->calm_ns == 0)
        l->calm_ns = clock_deadline(CALM_MS);
    l->op.wake_ns = clock_deadline(AGAIN_MS);
    return l->overdue.since_ns == 0 && clock_left_ms(l->calm_ns) == 0;
}

static int step_look(nacre_op *op, nacre_error *err)
{
    struct look_op *l = (struct look_op *)op;
    bool sweeping = l->sweeping.fd >= 0;
    int r = door_look(&l->door, err);
    op->fd = l->door.sock;
    op->wake_ns = clock_deadline(SWEEP_ROUND_MS);
    if (sweeping)
        return r;
    if (r == NACRE_ENOTFOUND)
        overdue_look(&l->overdue, &l->state, &(bool){false}); /* one that is warm may be stopped */
    return r > 0 && !state_is_final(&l->state) ? look_after_keeper(l, err) : r;
}

static void end_look(nacre_op *op)
{
    struct look_op *l = (struct look_op *)op;
    sweep_end(&l->sweeping);
    door_close(&l->door);
    run_close(&l->run);
    free(l);
}

int home_look(nacre_home *h, const nacre_id *id, int64_t left_ns, nacre_op **ret_op,
              nacre_error *err)
{
    struct look_op *l = malloc(sizeof *l);
    if (!l)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    *l = (struct look_op){.op = OP_INIT(step_look, end_look),
                          .run = RUN_NONE,
                          .sweeping = SWEEPING_NONE,
                          .overdue = {.left_ns = left_ns},
                          .door = DOOR_OF(h, &l->run, &l->sweeping, &l->state)};
    l->run.id = *id;
    int r = door_begin(&l->door, err);
    if (r < 0) {
        end_look(&l->op);
        return r;
    }
    *ret_op = &l->op;
    return 0;
}
