/*
 * A child that shares our memory until it has executed, born in a cgroup: vfork() with clone3.
 *
 * The child runs while we stand still, on our stack: the function that calls keeper_clone3() must
 * not return in the child, which executes or exits. Where it cannot share our memory (sanitizers,
 * other machines) it has a copy instead, so what it wants to tell goes through shared memory.
 */
#ifndef NACRE_KEEPER_VFORK_H
#define NACRE_KEEPER_VFORK_H

#include <linux/sched.h>
#include <stddef.h>
#include <sys/types.h>

/* The bare system call: the pid, 0 in the child, or -errno. */
long keeper_clone3(struct clone_args *args, size_t size) __attribute__((returns_twice));

/* Its arguments for a child in the cgroup of cgroup_fd (< 0 = ours). */
void vfork_arguments(int cgroup_fd, struct clone_args *ret_args);

/* For where clone3 is refused: a copy, while we stand still. */
pid_t vfork_plain(void);

#endif
