/*
 * cgroup v2 leaves: one per run, where one can be made. No controller is needed, so the hybrid
 * `unified` tree and any delegated subtree will do. Membership is inherited by every fork, a kill
 * is atomic, and "populated" is the kernel's word for "somebody is left". Returns >= 0 or -errno.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CGROUP_PATH_MAX 512
#define CGROUP_PREFIX   "nacre-" /* of the groups of runs; then the id */
#define SCOPE_SUFFIX    ".scope" /* of those of the service manager's, in which those are */

/* The directory of our own cgroup v2, as a path. -ENOENT if there is no v2 tree. */
int cgroup_own(char *ret_path, size_t size);

/* The same in the tree of version 1 of a controller. */
int cgroup_own_of(const char *controller, char *ret_path, size_t size);

/*
 * Makes our own cgroup one that can have leaves with controllers: since members of its own forbid
 * that, we move to a group below it, where others of our kind may be already. Only if it is a scope
 * that was made for us (SCOPE_SUFFIX). The directory for leaves.
 */
int cgroup_divide(char *ret_path, size_t size);

/* Whether leaves below a directory can be made, and have the controller of memory. */
bool cgroup_is_divided(const char *path);

/* Makes a leaf below a directory and opens it. */
int cgroup_create(const char *parent, const char *name);

/* Kills every member, also those that are being forked. */
int cgroup_kill(int fd);

/*
 * Holds every member still, and whatever is made below, so that nobody forks, and exits only
 * by a signal that ends it; handlers run after the thaw. Returns once all stand still, or
 * -ETIMEDOUT after wait_ms if one does not (uninterruptible sleep): then the others are held all
 * the same, until the thaw.
 */
int cgroup_freeze(int fd, int wait_ms);
int cgroup_thaw(int fd);

/* The file that says whether it has members; it can be polled for POLLPRI, until it is read. */
int cgroup_open_events(int fd);

/* 1 if it has living members, 0 if not: by its directory, or by that file. */
int cgroup_populated(int fd);
int cgroup_events_populated(int events);

/* Calls fn for the pid of every living member, also of what was made below; 0 for one that has no
 * pid in our namespace. A result != 0 ends it and is returned. */
typedef int cgroup_member_fn(pid_t pid, void *userdata);
int cgroup_each_member(int fd, cgroup_member_fn *fn, void *userdata);

/* The CPU time that everything in a leaf, given by its path, has used so far. */
int64_t cgroup_cpu_ms(const char *path);

/* Removes a leaf with whatever empty cgroups were made below it. -ENOENT counts as success. */
int cgroup_remove(const char *path);
