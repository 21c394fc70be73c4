/*
 * Controllers of cgroups, which hold limits for all members together: of version 2 in the leaf that
 * a run has anyway, where the machine gives it some; of version 1 in a group of its own below ours,
 * one for each controller. Returns >= 0 or -errno.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum controller { CONTROLLER_MEMORY, CONTROLLER_PIDS, CONTROLLER_CPU, CONTROLLER_COUNT };

/* The directory of our own group of version 1. -ENOENT if there is no such tree. */
int controller_own(enum controller which, char *ret_path, size_t size);

/* Sets the limit of a group: bytes without swap, tasks, or hundredths of a processor. v1 says of
 * which version it is. -ENOENT if it does not have the controller. */
int controller_limit(int group, enum controller which, bool v1, uint64_t limit);

/* What a group has counted. What it does not know is left alone. */
struct controller_counts {
    uint64_t used;     /* bytes now, */
    uint64_t peak;     /* and the most */
    uint64_t killed;   /* members, because of its limit */
    uint64_t refused;  /* forks */
    int64_t waited_ms; /* for the processor, on all processors together */
};

void controller_read(int group, enum controller which, bool v1, struct controller_counts *counts);
