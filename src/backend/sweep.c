#include "backend/sweep.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "run/log.h"
#include "sys/cgroup.h"
#include "sys/fd.h"
#include "sys/host.h"
#include "sys/lock.h"
#include "sys/proc.h"

#define SWEEP_MS 5000
#define ROUND_MS 2
#define LAST_MS  3000

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

struct search {
    const struct run_state *state;
    char mark[64];
    uid_t uid;
    int found;
};

/* Every process that carries the mark of the run and is not older than it, except ourselves. */
static int kill_marked(pid_t pid, void *userdata)
{
    struct search *search = userdata;
    char path[32];
    struct stat st;
    struct proc_ref ref;
    if (pid <= 1 || pid == getpid())
        return 0;
    snprintf(path, sizeof path, "/proc/%d", pid);
    if (stat(path, &st) < 0 || st.st_uid != search->uid)
        return 0;
    if (proc_ref(pid, &ref) < 0 || ref.start < search->state->keeper_start || !proc_alive(&ref) ||
        !proc_has_env(pid, search->mark))
        return 0;
    if (proc_kill(&ref, SIGKILL) == 0)
        search->found++;
    return 0;
}

static void kill_by_mark(const struct run_state *state)
{
    int64_t deadline = clock_deadline(SWEEP_MS);
    struct search search = {.state = state, .uid = geteuid()};
    snprintf(search.mark, sizeof search.mark, "NACRE_ID=%s", nacre_id_format(&state->id).s);
    for (;;) {
        search.found = 0;
        proc_each(kill_marked, &search);
        if (search.found == 0 || clock_left_ms(deadline) == 0)
            return;
        poll(NULL, 0, ROUND_MS);
    }
}

static void kill_by_cgroup(const struct run_state *state)
{
    cleanup_close int fd = open(state->cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    int64_t deadline = clock_deadline(SWEEP_MS);
    do {
        cgroup_kill(fd);
        if (cgroup_populated(fd) <= 0)
            break;
        poll(NULL, 0, ROUND_MS);
    } while (clock_left_ms(deadline) != 0);
    cgroup_remove(state->cgroup);
}

static void kill_rest(const struct run_state *state)
{
    struct proc_ref main = {.pid = state->main_pid, .start = state->main_start};
    if (state->cgroup[0])
        kill_by_cgroup(state);
    if (state->main_start > 0)
        proc_kill(&main, SIGKILL);
    kill_by_mark(state);
}

static int record_lost(const struct run *run, int state_fd, struct run_state *state)
{
    log_recover(run->dir, &state->log);
    if (state->outcome == NACRE_RUNNING) {
        state->outcome = NACRE_LOST;
        state->exited_ns = clock_real_ns();
    }
    state->tree = NACRE_TREE_EMPTY;
    state->settled = true;
    unlinkat(run->dir, "ctl", 0);
    return state_write(state_fd, state);
}

/*
 * A keeper lets go of its lock a moment before it is gone. One that stays has lost it to nobody:
 * this directory is a copy, and its keeper's business is elsewhere.
 */
static bool keeper_lives(const struct run_state *state)
{
    struct proc_ref keeper = {.pid = state->keeper_pid, .start = state->keeper_start};
    int64_t deadline = clock_deadline(LAST_MS);
    while (proc_alive(&keeper)) {
        if (clock_left_ms(deadline) == 0)
            return true;
        poll(NULL, 0, ROUND_MS);
    }
    return false;
}

/* With the lock in hand nobody else writes. */
static int sweep_locked(const struct run *run, int state_fd, struct run_state *ret_state,
                        nacre_error *err)
{
    struct run_state state;
    struct host host;
    int r = state_read(state_fd, &state);
    if (r < 0 || !nacre_id_equal(&state.id, &run->id))
        return run_read_state(run, ret_state, err);
    if (state_is_final(&state)) {
        *ret_state = state;
        return 0;
    }
    r = host_identify(&host);
    if (r < 0)
        return err_sys(err, NACRE_EIO, -r, "host", "cannot tell which boot this is");
    bool rebooted = !same_boot(&state, &host);
    if (!rebooted && !sweep_is_here(&state))
        return err_set(err, NACRE_EPERM,
                       "shell %s lost its keeper in another pid namespace; look at it from there",
                       nacre_id_short(&run->id).s);
    if (!rebooted && keeper_lives(&state)) {
        return run_read_state(run, ret_state, err);
    }
    if (!rebooted)
        kill_rest(&state);
    if (state.phase == PHASE_WARM) {
        cleanup_close int runs = openat(run->dir, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (runs >= 0)
            run_remove(runs, &run->id);
        return err_set(err, NACRE_ENOTFOUND, "no shell with id \"%s\"", nacre_id_short(&run->id).s);
    }
    r = record_lost(run, state_fd, &state);
    *ret_state = state;
    return r < 0 ? err_sys(err, NACRE_EIO, -r, "state", "cannot record that shell %s is lost",
                           nacre_id_short(&run->id).s)
                 : 0;
}

/* What cannot be recorded can still be said. */
static int say_lost(const struct run *run, struct run_state *ret_state, nacre_error *err)
{
    int r = run_read_state(run, ret_state, err);
    if (r == 0 && ret_state->outcome == NACRE_RUNNING)
        ret_state->outcome = NACRE_LOST;
    return r;
}

static int sweep(const struct run *run, struct run_state *ret_state, nacre_error *err)
{
    cleanup_close int fd = fd_open_file_at(run->dir, "state", O_RDWR);
    if (fd == -EROFS)
        return say_lost(run, ret_state, err);
    if (fd < 0)
        return err_sys(err, NACRE_EIO, -fd, "state", "cannot write the state of shell %s",
                       nacre_id_short(&run->id).s);
    int64_t deadline = clock_deadline(2L * SWEEP_MS);
    int r;
    /* Another front end may be sweeping; it is done when the lock is free again. */
    while ((r = lock_take(fd)) == -EAGAIN && clock_left_ms(deadline) != 0)
        poll(NULL, 0, ROUND_MS);
    if (r < 0)
        return err_sys(err, NACRE_EBUSY, -r, "lock", "somebody else holds shell %s",
                       nacre_id_short(&run->id).s);
    return sweep_locked(run, fd, ret_state, err);
}

int sweep_state(const struct run *run, struct run_state *ret_state, nacre_error *err)
{
    /* The lock first, the state after it: a keeper that finishes in between is no loss. */
    int held = lock_held(run->state_fd);
    int r = state_read(run->state_fd, ret_state);
    if (held == 0 && (r < 0 ? r != -EPROTO : !state_is_final(ret_state)))
        return sweep(run, ret_state, err);
    return run_check_state(run, r, ret_state, err);
}

void sweep_wake(const struct run_state *state)
{
    struct proc_ref keeper = {.pid = state->keeper_pid, .start = state->keeper_start};
    if (sweep_is_here(state))
        proc_kill(&keeper, SIGCONT);
}

int sweep_by_force(const struct run *run, struct run_state *ret_state, nacre_error *err)
{
    struct run_state state;
    int held = lock_held(run->state_fd);
    int r = run_read_state(run, &state, err);
    if (r < 0)
        return r;
    if (state_is_final(&state)) {
        *ret_state = state;
        return 0;
    }
    struct proc_ref keeper = {.pid = state.keeper_pid, .start = state.keeper_start};
    if (held == 0 && proc_alive(&keeper))
        return err_set(err, NACRE_EBUSY,
                       "the directory of shell %s is a copy; its keeper is not here",
                       nacre_id_short(&run->id).s);
    if (!sweep_is_here(&state))
        return err_set(err, NACRE_EPERM, "shell %s runs in another pid namespace",
                       nacre_id_short(&run->id).s);
    proc_kill(&keeper, SIGKILL);
    return sweep(run, ret_state, err);
}
