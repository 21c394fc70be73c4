#include "keeper/vfork.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/defs.h"

/* Kernel headers may be older than the kernel. */
#ifndef CLONE_INTO_CGROUP
#define CLONE_INTO_CGROUP 0x200000000ULL
#endif

/*
 * The call must not have a stack frame of its own: the child would return from it first and
 * overwrite the return address that we still need. So it is kept in a register.
 */
#if defined(__x86_64__) && !SANITIZED
#define MEMORY CLONE_VM
__asm__(".pushsection .text\n"
        ".globl keeper_clone3\n"
        ".type keeper_clone3, @function\n"
        "keeper_clone3:\n"
        "	pop %rdx\n"
        "	mov $435, %eax\n"
        "	syscall\n"
        "	push %rdx\n"
        "	ret\n"
        ".size keeper_clone3, . - keeper_clone3\n"
        ".popsection\n");
#elif defined(__aarch64__) && !SANITIZED
#define MEMORY CLONE_VM
__asm__(".pushsection .text\n"
        ".globl keeper_clone3\n"
        ".type keeper_clone3, @function\n"
        "keeper_clone3:\n"
        "	mov x8, #435\n"
        "	svc #0\n"
        "	ret\n"
        ".size keeper_clone3, . - keeper_clone3\n"
        ".popsection\n");
#else
#define MEMORY 0
long keeper_clone3(struct clone_args *args, size_t size)
{
    long r = syscall(SYS_clone3, args, size);
    return r < 0 ? -errno : r;
}
#endif

void vfork_arguments(int cgroup_fd, struct clone_args *ret_args)
{
    *ret_args = (struct clone_args){
        .flags = CLONE_VFORK | MEMORY | (cgroup_fd >= 0 ? CLONE_INTO_CGROUP : 0),
        .exit_signal = SIGCHLD,
        .cgroup = cgroup_fd >= 0 ? (uint64_t)cgroup_fd : 0,
    };
}

pid_t vfork_plain(void)
{
    long r = syscall(SYS_clone, CLONE_VFORK | SIGCHLD, 0, 0, 0, 0);
    return (pid_t)(r < 0 ? -errno : r);
}
