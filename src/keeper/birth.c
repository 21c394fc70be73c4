/* The child that runs beside us: system calls for which libc has no function. */
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "base/defs.h"
#include "keeper/keeper.h"
#include "sys/syscalls.h"

/* Kernel headers may be older than the kernel. */
#ifndef CLONE_INTO_CGROUP
#define CLONE_INTO_CGROUP 0x200000000ULL
#endif

#if (defined(__x86_64__) || defined(__aarch64__)) && !SANITIZED
#define SHARED CLONE_VM
#else
#define SHARED 0 /* the memory is copied, the stack with it */
#endif

/*
 * The system calls clone3 (first, second = its arguments) and clone (first, second = flags, stack);
 * in the child, fn(argument) on the new stack. Registers keep fn and argument across the call.
 */
long keeper_clone(long number, long first, long second, birth_fn *fn, void *argument);

#if SHARED && defined(__x86_64__)
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
#elif SHARED
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
#else
long keeper_clone(long number, long first, long second, birth_fn *fn, void *argument)
{
    long pid = syscall(number, first, second, 0, 0, 0);
    if (pid == 0) {
        fn(argument);
        sys_exit(127);
    }
    return pid < 0 ? -errno : pid;
}
#endif

pid_t birth_sibling(char *stack, birth_fn *fn, void *argument)
{
    long flags = CLONE_PARENT | SHARED | SIGCHLD;
    long top = SHARED ? (long)(stack + STANDIN_STACK) : 0;
    return (pid_t)keeper_clone(SYS_clone, flags, top, fn, argument);
}

pid_t birth(int cgroup_fd, char *stack, birth_fn *fn, void *argument, bool *ret_outside)
{
    struct clone_args args = {
        .flags = SHARED | (cgroup_fd >= 0 ? CLONE_INTO_CGROUP : 0),
        .exit_signal = SIGCHLD,
        .stack = SHARED ? (uint64_t)(uintptr_t)stack : 0,
        .stack_size = SHARED ? STANDIN_STACK : 0,
        .cgroup = cgroup_fd >= 0 ? (uint64_t)cgroup_fd : 0,
    };
    *ret_outside = false;
    long pid = keeper_clone(SYS_clone3, (long)&args, sizeof args, fn, argument);
    if (pid >= 0)
        return (pid_t)pid;
    *ret_outside = cgroup_fd >= 0;
    long top = SHARED ? (long)(stack + STANDIN_STACK) : 0;
    return (pid_t)keeper_clone(SYS_clone, SHARED | SIGCHLD, top, fn, argument);
}

#if SHARED && defined(__x86_64__)
/*
 * All but the page that this stands in is unmapped, the stack with it: so it is not C. It does not
 * cross the end of a page, since it is shorter than what it is aligned to.
 */
#define END_OF_MEMORY 0x7ffffffff000
_Noreturn void keeper_unmap_and_sleep(long page, long after, long end);
__asm__(".pushsection .text\n"
        ".balign 64\n"
        ".type keeper_unmap_and_sleep, @function\n"
        "keeper_unmap_and_sleep:\n"
        "	mov %rsi, %r8\n"
        "	mov %rdx, %r9\n"
        "	mov %rdi, %rsi\n"
        "	xor %edi, %edi\n"
        "	mov $11, %eax\n" /* munmap */
        "	syscall\n"
        "	mov %r8, %rdi\n"
        "	mov %r9, %rsi\n"
        "	sub %r8, %rsi\n"
        "	mov $11, %eax\n"
        "	syscall\n"
        "1:	mov $34, %eax\n" /* pause */
        "	syscall\n"
        "	jmp 1b\n"
        ".size keeper_unmap_and_sleep, . - keeper_unmap_and_sleep\n"
        ".popsection\n");

_Noreturn void birth_sleep(void)
{
    long size = sysconf(_SC_PAGESIZE), page = (long)(uintptr_t)keeper_unmap_and_sleep & -size;
    keeper_unmap_and_sleep(page, page + size, END_OF_MEMORY);
}
#else
_Noreturn void birth_sleep(void)
{
    for (;;)
        pause();
}
#endif
