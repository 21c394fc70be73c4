#include "home/overdue.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/defs.h"
#include "home/sweep.h"
#include "sys/cgroup.h"
#include "sys/fd.h"

#define HELP_MS  1500 /* after the grace, what a keeper has not ended by itself is ended */
#define HELD_MS  200  /* after the grace, of a keeper that somebody stops again and again */
#define WAKES    2    /* in vain: it is being held */
#define CALM_MS  500  /* one that was found late gets this long, should it have woken just now */
#define TREE_MAX 8192 /* in one round */

/* -- What is owed ----------------------------------------------------------------------------- */

void overdue_learn(struct overdue *o, const struct spec_head *spec)
{
    o->known = true;
    o->timeout_ms = spec->timeout_ms;
    o->grace_ms = MAX(spec->grace_ms, INT64_C(0));
    o->owner = (struct proc_ref){.pid = spec->owner_pid, .start = spec->owner_start};
}

void overdue_read(struct overdue *o, const struct run *run)
{
    struct spec spec;
    if (o->known || run_load_spec(run, &spec, NULL) < 0)
        return;
    overdue_learn(o, spec.head);
    free((void *)spec.head);
}

static int64_t later(int64_t ns, int64_t ms)
{
    return ms > (INT64_MAX - ns) / NS_PER_MS ? INT64_MAX : ns + ms * NS_PER_MS;
}

/* When its time is over; what has ended by itself, or waits for a person, has none. */
static int64_t end_of_time(const struct overdue *o, const struct run_state *state)
{
    bool counts = state->outcome == NACRE_RUNNING || state->reason == NACRE_REASON_DEADLINE;
    if (!o->known || o->timeout_ms <= 0 || !counts || state->waited_ms == STATE_WAITS)
        return INT64_MAX;
    return later(later(state->started_mono_ns, o->timeout_ms), state->waited_ms);
}

/* Who closes a session knows what it started. That a shell was taken out of it since, a keeper that
 * is held cannot confirm, and its command may have written that itself. */
static bool owner_is_gone(const struct overdue *o, const struct run_state *state, bool held)
{
    if (o->left_ns > 0)
        return !state->kept || held;
    return !state->kept && o->owner.start > 0 && !proc_alive(&o->owner);
}

static nacre_reason what_is_owed(const struct overdue *o, const struct run_state *state, bool held)
{
    return end_of_time(o, state) <= clock_mono_ns() ? NACRE_REASON_DEADLINE
           : owner_is_gone(o, state, held)          ? NACRE_REASON_OWNER
                                                    : NACRE_REASON_NONE;
}

/* When it has to be done. Nobody knows when an owner ended that was not this process: its keeper
 * may have begun just now. A keeper that is held does nothing, so there is nothing to wait for. */
static int64_t due_at(const struct overdue *o, const struct run_state *state, bool held)
{
    int64_t in_time = end_of_time(o, state);
    int64_t due = in_time == INT64_MAX
                      ? INT64_MAX
                      : later(later(in_time, o->grace_ms), held ? HELD_MS : HELP_MS);
    if (!owner_is_gone(o, state, held))
        return due;
    if (held)
        return 0;
    return o->left_ns > 0 ? MIN(due, later(later(o->left_ns, o->grace_ms), HELP_MS)) : due;
}

/* -- Its keeper ------------------------------------------------------------------------------- */

/* A state is as true as whoever could write it: only a keeper is treated like one. */
static bool is_keeper(const struct run_state *state, struct proc_stat *ret_stat)
{
    char path[32], name[32];
    if (state->tier == NACRE_TIER_CLIENT || proc_stat(state->keeper_pid, ret_stat) < 0 ||
        ret_stat->ref.start != state->keeper_start || !ret_stat->alive)
        return false;
    snprintf(path, sizeof path, "/proc/%d/comm", state->keeper_pid);
    return fd_slurp_at(AT_FDCWD, path, name, sizeof name) > 0 &&
           strcmp(name, "nacre-keeper\n") == 0;
}

/* By a signal, or by a tracer. */
static bool is_held(const struct proc_stat *keeper)
{
    return keeper->state == 'T' || keeper->state == 't';
}

/* One that has named survivors does what can be done. */
static bool is_late(const struct overdue *o, const struct run_state *state, bool held)
{
    return state->phase == PHASE_RUN && state->survivors == 0 &&
           due_at(o, state, held) <= clock_mono_ns();
}

bool overdue_is(const struct overdue *o, const struct run_state *state)
{
    struct proc_stat keeper;
    if (state_is_final(state) || !is_keeper(state, &keeper))
        return false;
    return (is_held(&keeper) || is_late(o, state, false)) && sweep_is_here(state);
}

nacre_reason overdue_look(struct overdue *o, const struct run_state *state, bool *ret_force)
{
    struct proc_stat keeper;
    *ret_force = false;
    if (state_is_final(state) || !is_keeper(state, &keeper) || !sweep_is_here(state))
        return NACRE_REASON_NONE;
    bool held = is_held(&keeper);
    nacre_reason owed =
        state->phase == PHASE_RUN ? what_is_owed(o, state, held) : NACRE_REASON_NONE;
    o->timed_out = o->timed_out || owed == NACRE_REASON_DEADLINE;
    if (held) {
        proc_kill(&keeper.ref, SIGCONT);
        o->wakes++;
    }
    bool late = owed != NACRE_REASON_NONE && is_late(o, state, held);
    o->since_ns = !late ? 0 : o->since_ns ? o->since_ns : clock_mono_ns();
    *ret_force = late && (held ? o->wakes > WAKES : clock_mono_ns() >= later(o->since_ns, CALM_MS));
    return owed;
}

/* -- Its tree --------------------------------------------------------------------------------- */

bool overdue_has_leaf(const struct run_state *state)
{
    char leaf[NACRE_ID_DIGITS + 16];
    size_t n = strnlen(state->cgroup, sizeof state->cgroup);
    size_t wanted = (size_t)snprintf(leaf, sizeof leaf, "/nacre-%s", nacre_id_format(&state->id).s);
    return n < sizeof state->cgroup && n > wanted && strcmp(state->cgroup + n - wanted, leaf) == 0;
}

static int end_one(const struct proc_ref *ref, void *userdata)
{
    const struct run_state *state = userdata;
    if (ref->start >= state->keeper_start)
        proc_kill(ref, SIGKILL);
    return 0;
}

static void kill_leaf(const struct run_state *state)
{
    cleanup_close int fd =
        overdue_has_leaf(state) ? open(state->cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -EBADF;
    if (fd >= 0)
        cgroup_kill(fd);
}

/* What is left of the command's own group goes at one stroke, while the command is still there to
 * say that the group is its. */
static void kill_group(const struct run_state *state)
{
    struct proc_ref main;
    if (state->main_pid > 1 && proc_ref(state->main_pid, &main) == 0 &&
        main.start == state->main_start)
        kill(-state->main_pid, SIGKILL);
}

/* Each is killed before its children are listed, and forks no more; those of who is gone by then
 * are the keeper's, and met in the next round. */
size_t overdue_end_tree(const struct run_state *state, struct proc_ref *ret_refs, size_t max)
{
    cleanup_free struct proc_ref *refs = malloc(TREE_MAX * sizeof *refs);
    if (!refs)
        return 1;
    kill_leaf(state);
    kill_group(state);
    size_t count = proc_tree(state->keeper_pid, refs, TREE_MAX, end_one, (void *)state);
    if (state->tier == NACRE_TIER_GROUP && state->main_pid > 1) {
        size_t more = proc_group(state->main_pid, refs + count, TREE_MAX - count);
        for (size_t i = count; i < count + more; i++)
            end_one(&refs[i], (void *)state);
        count += more;
    }
    for (size_t i = 0; i < MIN(count, max); i++)
        ret_refs[i] = refs[i];
    return count;
}
