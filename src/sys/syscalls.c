#include "sys/syscalls.h"

#include <linux/sched.h>
#include <signal.h>
#include <sys/syscall.h>

#include "base/defs.h"

/* Kernel headers may be older than the kernel. */
#ifndef CLONE_INTO_CGROUP
#define CLONE_INTO_CGROUP 0x200000000ULL
#endif

static long result(long r)
{
    return r < 0 ? -errno : r;
}

int sys_pidfd_open(pid_t pid)
{
    return (int)result(syscall(SYS_pidfd_open, pid, 0));
}

int sys_pidfd_send_signal(int pidfd, int signal)
{
    return (int)result(syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0));
}

#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif

int sys_pidfd_getfd(int pidfd, int fd)
{
    return (int)result(syscall(SYS_pidfd_getfd, pidfd, fd, 0));
}

int sys_close_range(unsigned first, unsigned last, unsigned flags)
{
    return (int)result(syscall(SYS_close_range, first, last, flags));
}

pid_t sys_fork_into(int cgroup_fd)
{
    if (cgroup_fd < 0)
        return (pid_t)result(fork());
    struct clone_args args = {
        .flags = CLONE_INTO_CGROUP,
        .exit_signal = SIGCHLD,
        .cgroup = (uint64_t)cgroup_fd,
    };
    return (pid_t)result(syscall(SYS_clone3, &args, sizeof args));
}

pid_t sys_fork_sibling(void)
{
    return (pid_t)result(syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0));
}

NO_SANITIZE _Noreturn void sys_exit(int status)
{
    for (;;)
        syscall(SYS_exit_group, status);
}

ssize_t sys_getdents(int fd, void *buf, size_t size)
{
    return result(syscall(SYS_getdents64, fd, buf, size));
}
