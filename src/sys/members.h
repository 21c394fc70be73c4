/*
 * Who belongs to a run besides the descendants of its keeper. A process may join a pid namespace
 * whose init is none of ours: what it forks there is adopted by that init when it is orphaned, and
 * is a *stray*. Strays are found in the cgroup of the run; without one, among the processes of pid
 * namespaces below ours, by the mark of the run in their environment, as long as they did not wipe
 * it. Nothing is allocated.
 */
#pragma once

#include <nacre/id.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sys/proc.h"

struct members {
    nacre_id run;
    int leaf;   /* its cgroup; below 0 = none */
    pid_t main; /* of its command */
    bool fresh; /* since that began no machine has handed out all pids: members have later ones */
    uint64_t since; /* nobody of the run is older than this, in clock ticks */
    struct proc_ref *refs;
    size_t count;  /* of those who are listed already */
    size_t max;    /* when there are that many, the search ends */
    bool doubtful; /* somebody may have been in the middle of an exec, and has no mark */
};

/* Lists strays behind those who are listed. */
void members_add_strays(struct members *m);
