/*
 * Signalling, killing and reaping the tree. The keeper is a subreaper, so whatever the command
 * forks is its descendant for ever, and "no child left" is the proof that nothing is. A cgroup
 * makes the kill atomic; the sweep does the same in rounds.
 */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/defs.h"
#include "keeper/keeper.h"
#include "sys/cgroup.h"
#include "sys/fd.h"

#define FREEZE_MS 50

static struct proc_ref scan[TREE_MAX];
static struct proc_ref signalled[TREE_MAX];
static size_t signalled_count;

struct pass {
    struct keeper *k;
    int signal;
    uint64_t began; /* in clock ticks since boot; 0 = all are taken */
};

static bool was_signalled(const struct proc_ref *ref)
{
    for (size_t i = 0; i < signalled_count; i++)
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

/* Neither orphans nor descendants can be told: the command's group is all there is. */
static bool only_group(const struct keeper *k)
{
    return !k->proc_ours || k->st.tier == NACRE_TIER_GROUP;
}

static size_t count_alive(const struct keeper *k)
{
    if (!only_group(k))
        return proc_tree(getpid(), scan, TREE_MAX, NULL, NULL);
    if (k->proc_ours)
        return proc_group(k->main, scan, TREE_MAX);
    scan[0] = (struct proc_ref){.pid = k->main};
    return kill(-k->main, 0) == 0;
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

static void signal_once(const struct proc_ref *ref, void *userdata)
{
    const struct pass *pass = userdata;
    if (was_signalled(ref) || signalled_count == TREE_MAX)
        return;
    if (pass->began && !is_older(ref, pass->began))
        return;
    if (proc_kill(ref, pass->signal) < 0)
        return;
    /* A stopped process gets its SIGTERM only when it goes on. */
    proc_kill(ref, SIGCONT);
    signalled[signalled_count++] = *ref;
    pass->k->st.signalled++;
}

static uint64_t boot_ticks(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_BOOTTIME, &ts);
    uint64_t hz = (uint64_t)sysconf(_SC_CLK_TCK);
    return (uint64_t)ts.tv_sec * hz + (uint64_t)ts.tv_nsec * hz / NS_PER_S;
}

/* One look meets everybody who is there, and nobody who comes later. */
static bool signal_frozen(struct keeper *k, struct pass *pass)
{
    if (k->cgroup_fd < 0 || cgroup_freeze(k->cgroup_fd, FREEZE_MS) < 0)
        return false;
    size_t count = proc_tree(getpid(), scan, TREE_MAX, NULL, NULL);
    for (size_t i = 0; i < count; i++)
        signal_once(&scan[i], pass);
    cgroup_thaw(k->cgroup_fd);
    return true;
}

/*
 * Each process gets the signal before its children are listed, so that the first pass meets all
 * that were there; the second one is for those that changed parents or were skipped in /proc
 * while others exited. What is younger was forked by a handler, as part of a clean-up, or by
 * somebody who ignores the signal: it is left for SIGKILL.
 */
static void signal_moving(struct pass *pass)
{
    uint64_t began = boot_ticks();
    proc_tree(getpid(), scan, TREE_MAX, signal_once, pass);
    pass->began = began;
    proc_tree(getpid(), scan, TREE_MAX, signal_once, pass);
}

void tree_signal(struct keeper *k, int signal)
{
    if (only_group(k)) {
        signal_group(k, signal);
        signal_group(k, SIGCONT);
        k->st.signalled++;
        return;
    }
    struct pass pass = {.k = k, .signal = signal};
    if (!signal_frozen(k, &pass))
        signal_moving(&pass);
}

static void kill_one(const struct proc_ref *ref, void *userdata UNUSED)
{
    proc_kill(ref, SIGKILL);
}

void tree_sweep(struct keeper *k)
{
    if (k->cgroup_fd >= 0)
        cgroup_kill(k->cgroup_fd);
    if (k->proc_ours)
        proc_tree(getpid(), scan, TREE_MAX, kill_one, NULL);
    if (only_group(k))
        signal_group(k, SIGKILL);
    tree_reap(k);
}

void tree_force(struct keeper *k)
{
    k->st.force_killed += (int32_t)count_alive(k);
    tree_sweep(k);
}

void tree_count_survivors(struct keeper *k)
{
    size_t alive = count_alive(k);
    k->st.survivors = (int32_t)alive;
    for (size_t i = 0; i < STATE_SURVIVORS; i++)
        k->st.survivor_pids[i] = i < alive ? scan[i].pid : 0;
}

/* "3 0": what the shell's last pipeline left; only believed if it fits the exit code. */
static void read_pipestatus(struct keeper *k)
{
    char text[256];
    if (!k->spec.pipeline || fd_slurp_at(k->dir_fd, "pipestatus", text, sizeof text) <= 0)
        return;
    unlinkat(k->dir_fd, "pipestatus", 0);
    int count = 0;
    int last_failure = 0, last = -1;
    for (const char *p = text; p && *p >= '0' && *p <= '9' && count < NACRE_PIPESTATUS_MAX;) {
        last = (int)fd_parse_number(p);
        last_failure = last ? last : last_failure;
        k->st.pipestatus[count++] = (uint8_t)last;
        p = strchr(p, ' ');
        if (p)
            p++;
    }
    bool fits = k->st.exit_code == last || k->st.exit_code == last_failure;
    k->st.pipestatus_count = count > 0 && fits ? count : -1;
}

static void note_main_exit(struct keeper *k, int status, const struct rusage *usage)
{
    k->main_reaped = true;
    if (WIFSIGNALED(status)) {
        k->st.signal = WTERMSIG(status);
        k->st.core_dumped = WCOREDUMP(status);
    } else {
        k->st.exit_code = WEXITSTATUS(status);
        read_pipestatus(k);
    }
    k->st.cpu_us = (usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * INT64_C(1000000) +
                   usage->ru_utime.tv_usec + usage->ru_stime.tv_usec;
    k->st.max_rss_kb = usage->ru_maxrss;
    ctl_close_input(k);
    drain_now(k);
    machine_event(k, EV_EXIT);
}

static bool is_living_member(const struct keeper *k, const struct proc_ref *ref)
{
    struct proc_stat stat;
    return ref->pid > 0 && proc_stat(ref->pid, &stat) == 0 && stat.ref.start == ref->start &&
           stat.group == k->main && stat.alive;
}

/*
 * In the group tier orphans go elsewhere, and the group's own emptiness is what can be known. It
 * may consist of zombies that PID 1 does not reap. To find a living member is to look at every
 * process, so the last one found is remembered.
 */
static bool is_empty(struct keeper *k)
{
    if (k->st.tier != NACRE_TIER_GROUP)
        return true;
    if (kill(-k->main, 0) < 0 && errno == ESRCH)
        return true;
    return k->proc_ours && !is_living_member(k, &k->member) &&
           proc_group(k->main, &k->member, 1) == 0;
}

void tree_reap(struct keeper *k)
{
    bool exited = false;
    for (;;) {
        int status;
        struct rusage usage;
        pid_t pid = wait4(-1, &status, WNOHANG, &usage);
        if (pid == 0)
            break;
        if (pid < 0) {
            if (errno == ECHILD && k->main_reaped && is_empty(k)) {
                machine_event(k, EV_EMPTY);
                return;
            }
            break;
        }
        if (pid == k->main) {
            note_main_exit(k, status, &usage);
            exited = true;
        }
    }
    if (exited)
        publish(k);
}
