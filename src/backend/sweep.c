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
#define LAST_MS  3000
#define DOUBTS   10 /* rounds: an exec is shorter, and who has no environment stays without */
#define KERNEL   2  /* the parent of its threads */

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
    uid_t uid;
    struct found *found;
};

static void note(struct found *found, pid_t pid)
{
    if (found->count < STATE_SURVIVORS)
        found->pids[found->count] = pid;
    found->count++;
}

/* Every process that carries the mark of the run and is not older than it, except ourselves. */
static int kill_marked(pid_t pid, void *userdata)
{
    struct search *search = userdata;
    char path[32];
    struct stat owner;
    struct proc_stat stat;
    if (pid <= 1 || pid == getpid())
        return 0;
    snprintf(path, sizeof path, "/proc/%d", pid);
    if (lstat(path, &owner) < 0 || owner.st_uid != search->uid)
        return 0;
    if (proc_stat(pid, &stat) < 0 || stat.ref.start < search->state->keeper_start || !stat.alive ||
        stat.parent == KERNEL)
        return 0;
    int has = proc_has_env(pid, search->mark);
    if (has < 0)
        search->found->doubtful = true;
    if (has > 0 && proc_kill(&stat.ref, SIGKILL) == 0)
        note(search->found, pid);
    return 0;
}

static struct found kill_by_mark(const struct run_state *state)
{
    struct found found = {0};
    struct search search = {.state = state, .uid = geteuid(), .found = &found};
    snprintf(search.mark, sizeof search.mark, "NACRE_ID=%s", nacre_id_format(&state->id).s);
    proc_each(kill_marked, &search);
    return found;
}

static struct found kill_by_cgroup(const struct run_state *state)
{
    struct found found = {0};
    char text[4096];
    cleanup_close int fd = open(state->cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return found;
    cgroup_kill(fd);
    if (cgroup_populated(fd) <= 0)
        return found;
    ssize_t n = fd_slurp_at(fd, "cgroup.procs", text, sizeof text);
    for (const char *p = text; n > 0 && *p; p += strcspn(p, "\n"), p += *p == '\n')
        note(&found, (pid_t)fd_parse_number(p));
    found.count = MAX(found.count, 1); /* it may be in a cgroup below */
    return found;
}

static void kill_main(const struct run_state *state)
{
    struct proc_ref main = {.pid = state->main_pid, .start = state->main_start};
    if (state->cgroup[0])
        cgroup_remove(state->cgroup);
    if (state->main_start > 0)
        proc_kill(&main, SIGKILL);
}

static int record_lost(const struct run *run, int state_fd, struct run_state *state)
{
    log_recover(run->dir, &state->log);
    if (state->outcome == NACRE_RUNNING) {
        state->outcome = NACRE_LOST;
        state->exited_ns = clock_real_ns();
    }
    state->tree = state->survivors > 0 ? NACRE_TREE_ALIVE : NACRE_TREE_EMPTY;
    state->settled = true;
    unlinkat(run->dir, "ctl", 0);
    return state_write(state_fd, state);
}

/* -- The steps -------------------------------------------------------------------------------- */

static int go_to(struct sweeping *s, enum sweep_phase phase, int64_t limit_ms)
{
    s->phase = phase;
    s->deadline_ns = clock_deadline(limit_ms);
    return 0;
}

/* Whoever swept before has waited long enough. */
static int64_t patience(const struct sweeping *s)
{
    return s->again ? 0 : SWEEP_MS;
}

static bool is_late(const struct sweeping *s)
{
    return clock_left_ms(s->deadline_ns) == 0;
}

/* With the lock in hand nobody else writes. */
static int look(const struct run *run, struct sweeping *s, struct run_state *ret_state,
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
        return err_set(err, NACRE_EPERM,
                       "shell %s lost its keeper in another pid namespace; look at it from there",
                       nacre_id_short(&run->id).s);
    return go_to(s, SWEEP_KEEPER, LAST_MS);
}

/* Another front end may be sweeping; it is done when the lock is free again. */
static int take_lock(const struct run *run, struct sweeping *s, struct run_state *ret_state,
                     nacre_error *err)
{
    int r = lock_take(s->fd);
    if (r == -EAGAIN && !is_late(s))
        return 0;
    if (r < 0)
        return err_sys(err, NACRE_EBUSY, -r, "lock", "somebody else holds shell %s",
                       nacre_id_short(&run->id).s);
    return look(run, s, ret_state, err);
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
    if (!is_late(s))
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
    if (found.count > 0 && !is_late(s))
        return 0;
    kill_main(&s->state);
    name_survivors(s, &found);
    return go_to(s, SWEEP_MARK, patience(s));
}

static int empty_mark(const struct run *run UNUSED, struct sweeping *s,
                      struct run_state *ret_state UNUSED, nacre_error *err UNUSED)
{
    struct found found = kill_by_mark(&s->state);
    if (found.count > 0 && !is_late(s))
        return 0;
    if (found.count > 0)
        name_survivors(s, &found);
    if (found.doubtful && s->doubts++ < DOUBTS)
        return 0;
    return go_to(s, SWEEP_RECORD, 0);
}

static int record(const struct run *run, struct sweeping *s, struct run_state *ret_state,
                  nacre_error *err)
{
    if (s->state.phase == PHASE_WARM) {
        cleanup_close int runs = openat(run->dir, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (runs >= 0)
            run_remove(runs, &run->id);
        return err_set(err, NACRE_ENOTFOUND, "no shell with id \"%s\"", nacre_id_short(&run->id).s);
    }
    int r = record_lost(run, s->fd, &s->state);
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
        [SWEEP_LOCK] = take_lock,  [SWEEP_KEEPER] = await_keeper, [SWEEP_CGROUP] = empty_cgroup,
        [SWEEP_MARK] = empty_mark, [SWEEP_RECORD] = record,
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
static int begin(const struct run *run, struct sweeping *s, struct run_state *ret_state,
                 nacre_error *err)
{
    s->fd = fd_open_file_at(run->dir, "state", O_RDWR);
    if (s->fd == -EROFS) {
        int r = say_lost(run, ret_state, err);
        return r < 0 ? r : 1;
    }
    if (s->fd < 0)
        return err_sys(err, NACRE_EIO, -s->fd, "state", "cannot write the state of shell %s",
                       nacre_id_short(&run->id).s);
    return go_to(s, SWEEP_LOCK, 2L * SWEEP_MS);
}

int sweep_begin(const struct run *run, struct sweeping *s, struct run_state *ret_state,
                nacre_error *err)
{
    /* The lock first, the state after it: a keeper that finishes in between is no loss. */
    int held = lock_held(run->state_fd);
    int r = state_read(run->state_fd, ret_state);
    if (held == 0 && (r < 0 ? r != -EPROTO : !state_is_final(ret_state)))
        return begin(run, s, ret_state, err);
    r = run_check_state(run, r, ret_state, err);
    return r < 0 ? r : 1;
}

int sweep_state(const struct run *run, struct run_state *ret_state, nacre_error *err)
{
    struct sweeping s = SWEEPING_NONE;
    int r = sweep_begin(run, &s, ret_state, err);
    while (r == 0 && (r = sweep_step(run, &s, ret_state, err)) == 0)
        poll(NULL, 0, SWEEP_ROUND_MS);
    sweep_end(&s);
    return MIN(r, 0);
}

void sweep_wake(const struct run_state *state)
{
    struct proc_ref keeper = {.pid = state->keeper_pid, .start = state->keeper_start};
    if (sweep_is_here(state))
        proc_kill(&keeper, SIGCONT);
}

void sweep_wake_stopped(const struct run_state *state)
{
    struct proc_stat stat;
    if (proc_stat(state->keeper_pid, &stat) == 0 && stat.state == 'T' &&
        stat.ref.start == state->keeper_start)
        sweep_wake(state);
}

int sweep_by_force(const struct run *run, struct sweeping *ret, struct run_state *ret_state,
                   nacre_error *err)
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
    proc_kill(&keeper, SIGKILL);
    return begin(run, ret, ret_state, err);
}
