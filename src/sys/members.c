#include "sys/members.h"

#include <errno.h>
#include <stdio.h>

#include "base/defs.h"
#include "sys/cgroup.h"
#include "sys/host.h"

#define PROBES 64 /* pids that are tried one by one; of more, all processes are looked at */

struct mark_search {
    struct members *members;
    char mark[48];
    pid_t above; /* nobody up to this pid belongs to the run; 0 = that is not known */
};

static bool is_listed(const struct members *m, pid_t pid)
{
    for (size_t i = 0; i < m->count; i++)
        if (m->refs[i].pid == pid)
            return true;
    return false;
}

static int add_member(pid_t pid, void *userdata)
{
    struct members *m = userdata;
    struct proc_stat stat;
    if (pid > 1 && pid != getpid() && m->count < m->max && !is_listed(m, pid) &&
        proc_stat(pid, &stat) == 0 && stat.alive)
        m->refs[m->count++] = stat.ref;
    return m->count >= m->max;
}

static int add_marked(pid_t pid, void *userdata)
{
    const struct mark_search *search = userdata;
    struct members *m = search->members;
    struct proc_stat stat;
    if (pid <= search->above || is_listed(m, pid) || proc_stat(pid, &stat) < 0 ||
        stat.ref.start < m->since || !proc_is_nested(pid))
        return 0;
    int marked = proc_is_marked(pid, search->mark, m->since, NULL);
    m->doubtful = m->doubtful || marked < 0;
    return marked > 0 ? add_member(pid, m) : 0;
}

static void add_all_marked(struct members *m)
{
    struct mark_search search = {.members = m};
    snprintf(search.mark, sizeof search.mark, "NACRE_ID=%s", nacre_id_format(&m->run).s);
    if (m->fresh && proc_each_later(m->main, PROBES, add_marked, &search) >= 0)
        return;
    if (m->fresh && host_last_pid() >= m->main)
        search.above = m->main;
    if (proc_each_born(add_marked, &search) == -EAGAIN)
        m->doubtful = true;
}

void members_add_strays(struct members *m)
{
    if (m->leaf >= 0)
        cgroup_each_member(m->leaf, add_member, m);
    else
        add_all_marked(m);
}
