/*
 * Who belongs to the run, and when nobody does any more. Whoever the command made is our
 * descendant, since we are a subreaper; or a stray, see sys/members.h.
 */
#include <signal.h>

#include "base/clock.h"
#include "base/defs.h"
#include "keeper/keeper.h"
#include "sys/cgroup.h"
#include "sys/members.h"

#define OOM_MORE  500 /* as if it had half of the memory more than it has */
#define OOM_MOST  1000
#define YIELD_MAX 64 /* processes: of more, in its first moment, none is a loss */

/* No machine hands out all of its pids in that time. */
#define FRESH_NS (INT64_C(1) * 1000000000)
#define DOUBTS   10 /* looks: an exec is shorter, and who has no environment stays without */

bool tree_is_group(const struct keeper *k)
{
    return !k->proc_ours || k->st.tier == NACRE_TIER_GROUP;
}

static struct members members_of(const struct keeper *k, size_t count, size_t max)
{
    return (struct members){.run = k->st.id,
                            .leaf = k->fd[FD_CGROUP],
                            .main = k->main,
                            .fresh = clock_mono_ns() - k->st.started_mono_ns < FRESH_NS,
                            .since = k->st.keeper_start,
                            .refs = k->session.room->scan,
                            .count = count,
                            .max = max};
}

/* Who leads the session of a terminal is ours. */
static size_t without_leader(const struct keeper *k, size_t count)
{
    struct proc_ref *scan = k->session.room->scan;
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (scan[i].pid != k->leader)
            scan[kept++] = scan[i];
    return kept;
}

size_t tree_add_strays(struct keeper *k, size_t count)
{
    struct members m = members_of(k, count, TREE_MAX);
    members_add_strays(&m);
    return k->leader > 0 ? without_leader(k, m.count) : m.count;
}

size_t tree_list(struct keeper *k)
{
    struct proc_ref *scan = k->session.room->scan;
    if (!tree_is_group(k))
        return tree_add_strays(k, proc_tree(getpid(), scan, TREE_MAX, NULL, NULL));
    if (k->proc_ours)
        return proc_group(k->main, scan, TREE_MAX);
    scan[0] = (struct proc_ref){.pid = k->main};
    return kill(-k->main, 0) == 0;
}

static int yield_memory(const struct proc_ref *ref, void *userdata)
{
    const struct keeper *k = userdata;
    if (ref->pid == k->leader)
        return 0;
    proc_set_oom(ref, MIN(k->session.oom_score + OOM_MORE, OOM_MOST));
    return 0;
}

/* What it forks later inherits it; who was just being forked is met the second time. */
void tree_yield_memory(const struct keeper *k)
{
    for (int i = 0; i < 2 && k->proc_ours; i++)
        proc_tree(getpid(), k->session.room->scan, YIELD_MAX, yield_memory, (void *)k);
}

void tree_count_survivors(struct keeper *k)
{
    size_t alive = tree_list(k);
    k->st.survivors = (int32_t)alive;
    for (size_t i = 0; i < STATE_SURVIVORS; i++)
        k->st.survivor_pids[i] = i < alive ? k->session.room->scan[i].pid : 0;
}

/* -- Nobody ------------------------------------------------------------------------------------ */

static bool is_living_member(const struct keeper *k)
{
    struct proc_stat stat;
    const struct proc_ref *ref = &k->member;
    return ref->pid > 0 && proc_stat(ref->pid, &stat) == 0 && stat.ref.start == ref->start &&
           stat.alive && (k->st.tier != NACRE_TIER_GROUP || stat.group == k->main);
}

/* Of the group tier nobody is told who ends: its own emptiness is what can be known. It may consist
 * of zombies that PID 1 does not reap. */
static bool group_is_empty(struct keeper *k)
{
    if (kill(-k->main, 0) < 0 && errno == ESRCH)
        return true;
    return k->proc_ours && !is_living_member(k) && proc_group(k->main, &k->member, 1) == 0;
}

/* Whoever is in doubt is looked at again, but not for ever. */
static bool has_no_strays(struct keeper *k)
{
    struct members m = members_of(k, 0, 1);
    if (!k->proc_ours)
        return true;
    if (is_living_member(k))
        return false;
    members_add_strays(&m);
    if (m.count > 0) {
        k->member = m.refs[0];
        k->doubts = 0;
    }
    return m.count == 0 && (!m.doubtful || k->doubts++ >= DOUBTS);
}

/* The kernel's word for it, if there is a leaf; what cannot be asked cannot be doubted. */
bool tree_is_empty(struct keeper *k)
{
    if (k->fd[FD_LEAF] >= 0)
        return cgroup_events_populated(k->fd[FD_LEAF]) <= 0;
    return k->st.tier == NACRE_TIER_GROUP ? group_is_empty(k) : has_no_strays(k);
}
