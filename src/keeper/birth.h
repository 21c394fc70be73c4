/*
 * A child that shares our memory until it executes, born in a cgroup, with a stack of its own: it
 * runs beside us. So one of the two has to keep still, and both know which. Where memory cannot be
 * shared (sanitizers, other machines) there is only an ordinary fork.
 */
#ifndef NACRE_KEEPER_BIRTH_H
#define NACRE_KEEPER_BIRTH_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/defs.h"

#if (defined(__x86_64__) || defined(__aarch64__)) && !SANITIZED
#define BIRTH_SHARES 1
#else
#define BIRTH_SHARES 0
#endif

/* What the child does; it never returns. */
typedef void birth_fn(void *argument);

/*
 * Returns the pid, or -errno. The child is in the cgroup of cgroup_fd (< 0 = ours); where clone3
 * is refused *ret_outside is set before it runs, and it has to walk in by itself. At most one such
 * child lives at a time. -ENOSYS if memory cannot be shared.
 */
pid_t birth(int cgroup_fd, birth_fn *fn, void *argument, bool *ret_outside);

/* A copy of us, which executes or exits while we stand still: the pid, 0 in the child, -errno. */
pid_t birth_copy(void);

/* The child is gone or has executed: its stack is given back. */
void birth_over(void);

#endif
