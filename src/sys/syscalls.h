/*
 * System calls that this libc has no wrapper for, each wrapped once. They return >= 0 or -errno.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#define SYS_CLOSE_RANGE_CLOEXEC (1u << 2)

int sys_pidfd_open(pid_t pid);
int sys_pidfd_send_signal(int pidfd, int signal);
int sys_pidfd_getfd(int pidfd, int fd); /* close-on-exec */
int sys_close_range(unsigned first, unsigned last, unsigned flags);

/*
 * fork() whose child is born in the cgroup of cgroup_fd (< 0 = ours). Only for single-threaded
 * programs: the child may touch nothing that another thread could have locked.
 */
pid_t sys_fork_into(int cgroup_fd);

/* fork() whose child becomes a sibling of ours instead; the same rule. */
pid_t sys_fork_sibling(void);

/* _exit() that no sanitizer takes for the end of the program it shares memory with. */
_Noreturn void sys_exit(int status);

/* One stretch of directory entries, without malloc; see sys/fd.h for a walk. */
ssize_t sys_getdents(int fd, void *buf, size_t size);
