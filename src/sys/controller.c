#include "sys/controller.h"

#include <stdio.h>
#include <string.h>

#include "base/defs.h"
#include "sys/cgroup.h"
#include "sys/fd.h"

#define PERIOD_US 100000

static const char *const controller_names[CONTROLLER_COUNT] = {
    [CONTROLLER_MEMORY] = "memory",
    [CONTROLLER_PIDS] = "pids",
    [CONTROLLER_CPU] = "cpu",
};

int controller_own(enum controller which, char *ret_path, size_t size)
{
    return cgroup_own_of(controller_names[which], ret_path, size);
}

static int poke_number(int group, const char *file, uint64_t number)
{
    char text[32];
    snprintf(text, sizeof text, "%llu", (unsigned long long)number);
    return fd_poke_at(group, file, text);
}

/* Swap would make of a limit on memory one on speed. */
static int limit_memory(int group, bool v1, uint64_t limit)
{
    int r = poke_number(group, v1 ? "memory.limit_in_bytes" : "memory.max", limit);
    if (r < 0)
        return r;
    fd_poke_at(group, v1 ? "memory.swappiness" : "memory.swap.max", "0");
    if (!v1)
        fd_poke_at(group, "memory.oom.group", "1");
    return 0;
}

static int limit_cpu(int group, bool v1, uint64_t hundredths)
{
    char text[64];
    uint64_t quota = hundredths * (PERIOD_US / 100);
    if (v1) {
        int r = poke_number(group, "cpu.cfs_period_us", PERIOD_US);
        return r < 0 ? r : poke_number(group, "cpu.cfs_quota_us", quota);
    }
    snprintf(text, sizeof text, "%llu %d", (unsigned long long)quota, PERIOD_US);
    return fd_poke_at(group, "cpu.max", text);
}

int controller_limit(int group, enum controller which, bool v1, uint64_t limit)
{
    switch (which) {
    case CONTROLLER_MEMORY:
        return limit_memory(group, v1, limit);
    case CONTROLLER_PIDS:
        return poke_number(group, "pids.max", limit);
    case CONTROLLER_CPU:
        return limit_cpu(group, v1, limit);
    default:
        return -EINVAL;
    }
}

/* The number behind a key at the beginning of a line, or alone in its file; -1 if it is not there.
 */
static int64_t group_number(int group, const char *file, const char *key)
{
    char text[1024];
    ssize_t n = fd_slurp_at(group, file, text, sizeof text);
    if (n < 0)
        return -1;
    size_t length = strlen(key);
    for (const char *line = text; *line;) {
        if (strncmp(line, key, length) == 0)
            return fd_parse_number(line + length);
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    return -1;
}

static void take_count_from(uint64_t *to, int64_t number)
{
    if (number >= 0)
        *to = (uint64_t)number;
}

/* The kernel counts a member that it killed for want of memory of the machine, too: only in a group
 * that has met its limit it was for that. */
static void read_memory(int group, bool v1, struct controller_counts *counts)
{
    int64_t met = v1 ? group_number(group, "memory.failcnt", "")
                     : group_number(group, "memory.events", "oom ");
    take_count_from(&counts->used,
                    group_number(group, v1 ? "memory.usage_in_bytes" : "memory.current", ""));
    take_count_from(&counts->peak,
                    group_number(group, v1 ? "memory.max_usage_in_bytes" : "memory.peak", ""));
    if (met > 0)
        take_count_from(
            &counts->killed,
            group_number(group, v1 ? "memory.oom_control" : "memory.events", "oom_kill "));
}

void controller_read(int group, enum controller which, bool v1, struct controller_counts *counts)
{
    int64_t waited;
    switch (which) {
    case CONTROLLER_MEMORY:
        read_memory(group, v1, counts);
        return;
    case CONTROLLER_PIDS:
        take_count_from(&counts->refused, group_number(group, "pids.events", "max "));
        return;
    case CONTROLLER_CPU:
        waited = v1 ? group_number(group, "cpu.stat", "throttled_time ") / 1000
                    : group_number(group, "cpu.stat", "throttled_usec ");
        counts->waited_ms = waited > 0 ? waited / 1000 : counts->waited_ms;
        return;
    default:
        return;
    }
}
