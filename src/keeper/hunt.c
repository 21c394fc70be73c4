/*
 * Signals to everybody who belongs to the run. It may be thousands that fork as fast as they are
 * counted and take the processors for themselves: so they are held still while it lasts, by the
 * freezer of the leaf or by SIGSTOP, and we go first where we may.
 */
#include <sched.h>
#include <signal.h>
#include <time.h>

#include "base/clock.h"
#include "base/defs.h"
#include "keeper/keeper.h"
#include "sys/cgroup.h"
#include "sys/host.h"

#define FREEZE_MS   50
#define SIGNAL_MS   500 /* who had no turn by then gets no first signal: SIGKILL is for all */
#define STOP_PASSES 8
#define FIRST_NICE  "-10"

struct pass {
    struct keeper *k;
    int signal;
    uint64_t began; /* in clock ticks since boot; 0 = all are taken */
    int64_t until;
};

/*
 * The scheduler weighs sessions against each other, and a bomb of a thousand sessions leaves us a
 * thousandth. Whoever may has itself served before all of them; an ordinary user may not.
 */
void hunt_go_first(struct keeper *k, bool first)
{
    struct sched_param param = {.sched_priority = first ? 1 : 0};
    if (k->first == first)
        return;
    k->first = first;
    int r = sched_setscheduler(0, first ? SCHED_RR | SCHED_RESET_ON_FORK : SCHED_OTHER, &param);
    if (r < 0 || !first)
        host_set_session_nice(first ? FIRST_NICE : "0");
}

/* -- The first signal: once for each ----------------------------------------------------------- */

static bool was_signalled(const struct keeper *k, const struct proc_ref *ref)
{
    const struct proc_ref *signalled = k->session.room->signalled;
    for (size_t i = 0; i < k->signalled_count; i++)
        if (signalled[i].pid == ref->pid && signalled[i].start == ref->start)
            return true;
    return false;
}

/* Our own children cannot be reaped by anybody else: without a readable /proc the group is
 * all that can be reached. */
static void signal_group(const struct keeper *k, int signal)
{
    if (k->main > 1)
        kill(-k->main, signal);
}

/* Whether it was there before the kill, as far as the kernel's clock of 10 ms can tell; in the
 * same tick an orphan may be, and the child of somebody who has the signal is its clean-up. */
static bool is_older(const struct proc_ref *ref, uint64_t began)
{
    struct proc_stat stat;
    if (ref->start != began)
        return ref->start < began;
    return proc_stat(ref->pid, &stat) == 0 && stat.parent == getpid();
}

static int signal_once(const struct proc_ref *ref, void *userdata)
{
    const struct pass *pass = userdata;
    struct keeper *k = pass->k;
    if (ref->pid == k->leader)
        return 0;
    if (k->signalled_count == TREE_MAX || clock_left_ms(pass->until) == 0)
        return 1;
    if (was_signalled(k, ref) || (pass->began && !is_older(ref, pass->began)))
        return 0;
    if (proc_kill(ref, pass->signal) < 0)
        return 0;
    /* A stopped process gets its SIGTERM only when it goes on. */
    proc_kill(ref, SIGCONT);
    k->session.room->signalled[k->signalled_count++] = *ref;
    k->st.signalled++;
    return 0;
}

static void signal_listed(struct pass *pass, size_t from, size_t count)
{
    for (size_t i = from; i < count; i++)
        signal_once(&pass->k->session.room->scan[i], pass);
}

static uint64_t boot_ticks(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_BOOTTIME, &ts);
    uint64_t hz = (uint64_t)sysconf(_SC_CLK_TCK);
    return (uint64_t)ts.tv_sec * hz + (uint64_t)ts.tv_nsec * hz / NS_PER_S;
}

/*
 * Each process gets the signal before its children are listed, so that the first pass meets all
 * that were there; the second one is for those that changed parents or were skipped in /proc
 * while others exited. What is younger was forked by a handler, as part of a clean-up, or by
 * somebody who ignores the signal: it is left for SIGKILL.
 */
static void signal_moving(struct pass *pass)
{
    struct keeper *k = pass->k;
    uint64_t began = boot_ticks();
    proc_tree(getpid(), k->session.room->scan, TREE_MAX, signal_once, pass);
    pass->began = began;
    size_t count = proc_tree(getpid(), k->session.room->scan, TREE_MAX, signal_once, pass);
    pass->began = 0;
    signal_listed(pass, count, tree_add_strays(k, count));
}

/* One look meets everybody who is there, and nobody who comes later. If somebody could not be
 * frozen, the others do not compete with us at least. */
static void signal_frozen(struct pass *pass, int frozen)
{
    if (frozen == 0)
        signal_listed(pass, 0, tree_list(pass->k));
    else
        signal_moving(pass);
    cgroup_thaw(pass->k->fd[FD_CGROUP]);
}

void hunt_signal(struct keeper *k, int signal)
{
    struct pass pass = {.k = k, .signal = signal, .until = clock_deadline(SIGNAL_MS)};
    hunt_go_first(k, true);
    if (tree_is_group(k)) {
        signal_group(k, signal);
        signal_group(k, SIGCONT);
        k->st.signalled++;
        return;
    }
    int frozen = k->fd[FD_CGROUP] < 0 ? -ENOENT : cgroup_freeze(k->fd[FD_CGROUP], FREEZE_MS);
    if (frozen == 0 || frozen == -ETIMEDOUT)
        signal_frozen(&pass, frozen);
    else
        signal_moving(&pass);
}

/* -- SIGKILL ----------------------------------------------------------------------------------- */

static int stop_ref(const struct proc_ref *ref, void *userdata UNUSED)
{
    proc_kill(ref, SIGSTOP);
    return 0;
}

static uint64_t sum_of_scan(const struct keeper *k, size_t count)
{
    uint64_t sum = count;
    for (size_t i = 0; i < count; i++) {
        const struct proc_ref *ref = &k->session.room->scan[i];
        sum += ((uint64_t)ref->pid << 32) ^ ref->start;
    }
    return sum;
}

/*
 * Who is stopped forks nobody, and is missed by nobody who would replace it: so all are stopped
 * before any of them is killed. Each is stopped before its children are listed; the walk is
 * repeated until it meets the same as before.
 */
static size_t stop_all(struct keeper *k)
{
    uint64_t last = 0;
    size_t count = 0;
    for (int i = 0; i < STOP_PASSES; i++) {
        count = proc_tree(getpid(), k->session.room->scan, TREE_MAX, stop_ref, NULL);
        uint64_t sum = sum_of_scan(k, count);
        if (i > 0 && sum == last)
            break;
        last = sum;
    }
    return tree_add_strays(k, count);
}

/* Whoever lives, listed, and stopped where there is no leaf that could be killed as one. */
static size_t list_for_kill(struct keeper *k)
{
    return tree_is_group(k) || k->fd[FD_CGROUP] >= 0 ? tree_list(k) : stop_all(k);
}

/* The leaf as one, whoever is frozen or being forked in it; and who is not in it, one by one. */
static void kill_listed(struct keeper *k, size_t count)
{
    if (k->fd[FD_CGROUP] >= 0)
        cgroup_kill(k->fd[FD_CGROUP]);
    if (tree_is_group(k))
        signal_group(k, SIGKILL);
    for (size_t i = 0; i < count && k->proc_ours; i++)
        proc_kill(&k->session.room->scan[i], SIGKILL);
    tree_reap(k);
}

/* Most have ended since the last time: only who is left is looked for. */
void hunt_sweep(struct keeper *k)
{
    if (k->fd[FD_CGROUP] >= 0)
        cgroup_kill(k->fd[FD_CGROUP]);
    tree_reap(k);
    if (k->state != ST_DONE && k->at[AT_REAP] == NEVER)
        kill_listed(k, list_for_kill(k));
}

void hunt_force(struct keeper *k)
{
    hunt_go_first(k, true);
    if (k->fd[FD_CGROUP] >= 0)
        cgroup_freeze(k->fd[FD_CGROUP], FREEZE_MS);
    size_t count = list_for_kill(k);
    k->st.force_killed += (int32_t)count;
    kill_listed(k, count);
    if (k->fd[FD_CGROUP] >= 0)
        cgroup_thaw(k->fd[FD_CGROUP]);
}
