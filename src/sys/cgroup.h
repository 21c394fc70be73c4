/*
 * cgroup v2 leaves: one per run, where one can be made. No controller is needed, so the hybrid
 * `unified` tree and any delegated subtree will do. Membership is inherited by every fork, a kill
 * is atomic, and "populated" is the kernel's word for "somebody is left". Returns >= 0 or -errno.
 */
#ifndef NACRE_SYS_CGROUP_H
#define NACRE_SYS_CGROUP_H

#include <stddef.h>
#include <stdint.h>

#define CGROUP_PATH_MAX 512

/* The directory of our own cgroup v2, as a path. -ENOENT if there is no v2 tree. */
int cgroup_own(char *ret_path, size_t size);

/* Makes a leaf below a directory and opens it. */
int cgroup_create(const char *parent, const char *name);

/* Kills every member, also those that are being forked. */
int cgroup_kill(int fd);

/*
 * Holds every member still, and whatever is made below, so that nobody forks, and exits only
 * by a signal that ends it; handlers run after the thaw. Returns once all stand still, or
 * -ETIMEDOUT after wait_ms if one cannot be stopped (uninterruptible sleep): then nothing is held.
 */
int cgroup_freeze(int fd, int wait_ms);
int cgroup_thaw(int fd);

/* 1 if it has living members, 0 if not. */
int cgroup_populated(int fd);

/* The CPU time that everything in a leaf, given by its path, has used so far. */
int64_t cgroup_cpu_ms(const char *path);

/* Removes a leaf with whatever empty cgroups were made below it. -ENOENT counts as success. */
int cgroup_remove(const char *path);

#endif
