#include "keeper/birth.h"

#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Kernel headers may be older than the kernel. */
#ifndef CLONE_INTO_CGROUP
#define CLONE_INTO_CGROUP 0x200000000ULL
#endif

#if BIRTH_SHARES

#define STACK_SIZE ((size_t)32 * 1024)

static _Alignas(4096) char stack[STACK_SIZE];

/*
 * The system calls clone3 (first, second = its arguments) and clone (first, second = flags, stack);
 * in the child, fn(argument) on the new stack. Registers keep fn and argument across the call.
 */
long keeper_clone(long number, long first, long second, birth_fn *fn, void *argument);

#if defined(__x86_64__)
__asm__(".pushsection .text\n"
        ".type keeper_clone, @function\n"
        "keeper_clone:\n"
        "	mov %rdi, %rax\n"
        "	mov %rsi, %rdi\n"
        "	mov %rdx, %rsi\n"
        "	mov %r8, %r9\n"
        "	mov %rcx, %r8\n"
        "	xor %edx, %edx\n"
        "	xor %r10d, %r10d\n"
        "	syscall\n"
        "	test %rax, %rax\n"
        "	jnz 1f\n"
        "	xor %ebp, %ebp\n"
        "	mov %r9, %rdi\n"
        "	call *%r8\n"
        "	ud2\n"
        "1:	ret\n"
        ".size keeper_clone, . - keeper_clone\n"
        ".popsection\n");
#else
__asm__(".pushsection .text\n"
        ".type keeper_clone, %function\n"
        "keeper_clone:\n"
        "	mov x8, x0\n"
        "	mov x0, x1\n"
        "	mov x1, x2\n"
        "	mov x9, x3\n"
        "	mov x10, x4\n"
        "	mov x2, xzr\n"
        "	mov x3, xzr\n"
        "	mov x4, xzr\n"
        "	svc #0\n"
        "	cbnz x0, 1f\n"
        "	mov x29, xzr\n"
        "	mov x0, x10\n"
        "	blr x9\n"
        "	brk #0\n"
        "1:	ret\n"
        ".size keeper_clone, . - keeper_clone\n"
        ".popsection\n");
#endif

pid_t birth(int cgroup_fd, birth_fn *fn, void *argument, bool *ret_outside)
{
    struct clone_args args = {
        .flags = CLONE_VM | (cgroup_fd >= 0 ? CLONE_INTO_CGROUP : 0),
        .exit_signal = SIGCHLD,
        .stack = (uint64_t)(uintptr_t)stack,
        .stack_size = STACK_SIZE,
        .cgroup = cgroup_fd >= 0 ? (uint64_t)cgroup_fd : 0,
    };
    *ret_outside = false;
    long pid = keeper_clone(SYS_clone3, (long)&args, sizeof args, fn, argument);
    if (pid >= 0)
        return (pid_t)pid;
    *ret_outside = cgroup_fd >= 0;
    return (pid_t)keeper_clone(SYS_clone, CLONE_VM | SIGCHLD, (long)(stack + STACK_SIZE), fn,
                               argument);
}

void birth_over(void)
{
    madvise(stack, sizeof stack, MADV_DONTNEED);
}

#else

pid_t birth(int cgroup_fd UNUSED, birth_fn *fn UNUSED, void *argument UNUSED, bool *ret_outside)
{
    *ret_outside = false;
    return -ENOSYS;
}

void birth_over(void)
{
}

#endif

pid_t birth_copy(void)
{
    long r = syscall(SYS_clone, CLONE_VFORK | SIGCHLD, 0, 0, 0, 0);
    return (pid_t)(r < 0 ? -errno : r);
}
