#include "sys/spawn.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/defs.h"
#include "sys/syscalls.h"

#define CHILD_STACK ((size_t)32 * 1024)
#define PASS_FD     3

struct order {
    int exec_fd;
    int pass_fd;
    char *const *argv;
    char *const *env;
    const char *path; /* the same program by another road, where execveat is refused */
    int error;
    pid_t pid;
    _Alignas(16) char stacks[2 * CHILD_STACK]; /* of the second process, and of the first */
};

/*
 * Both functions run in the memory of the host, which stands still until the exec, on stacks of
 * their own, with all signals blocked: only system calls from here on. The host's handlers cannot
 * run, since the signals stay blocked until the exec has removed them.
 */
NO_SANITIZE static int grandchild(void *data)
{
    struct order *order = data;
    if (order->pass_fd == PASS_FD)
        syscall(SYS_fcntl, PASS_FD, F_SETFD, 0);
    else if (syscall(SYS_dup3, order->pass_fd, PASS_FD, 0) < 0)
        goto failed;
    syscall(SYS_execveat, order->exec_fd, "", order->argv, order->env, AT_EMPTY_PATH);
    if (errno == ENOSYS || errno == EPERM)
        syscall(SYS_execve, order->path, order->argv, order->env);
failed:
    order->error = errno;
    sys_exit(127);
}

/*
 * Runs fn while we stand still: in our memory on a stack of its own, or, under a sanitizer, in a
 * copy of it. Returns the pid or -1.
 */
NO_SANITIZE static pid_t run_apart(int (*fn)(void *), char *stack, int flags, void *order)
{
#if SANITIZED
    (void)stack;
    pid_t pid = (pid_t)syscall(SYS_clone, CLONE_VFORK | flags, 0, 0, 0, 0);
    if (pid == 0)
        sys_exit(fn(order));
    return pid;
#else
    return clone(fn, stack + CHILD_STACK, CLONE_VM | CLONE_VFORK | flags, order);
#endif
}

/* Never executes anything, so that it keeps its lack of an exit signal to the end. */
NO_SANITIZE static int child(void *data)
{
    struct order *order = data;
    pid_t pid = run_apart(grandchild, order->stacks, SIGCHLD, order);
    order->pid = pid;
    if (pid < 0)
        order->error = errno;
    else if (order->error)
        waitpid(pid, NULL, 0); /* the exec failed: leave no zombie to whoever adopts it */
    sys_exit(0);
}

/* What one does while a child may run in its memory. */
struct stillness {
    sigset_t before;
    int cancel;
};

static void stand_still(struct stillness *still)
{
    sigset_t all;
    sigfillset(&all);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &still->cancel);
    pthread_sigmask(SIG_SETMASK, &all, &still->before);
}

static void move_again(const struct stillness *still)
{
    pthread_sigmask(SIG_SETMASK, &still->before, NULL);
    pthread_setcancelstate(still->cancel, NULL);
}

pid_t spawn_orphan(int exec_fd, int pass_fd, char *const *argv, char *const *env)
{
    char path[32];
    /* dup2() in the child must not hit the program's own descriptor. */
    cleanup_close int program = exec_fd == PASS_FD ? fcntl(exec_fd, F_DUPFD_CLOEXEC, 4) : -EBADF;
    struct order *order =
        mmap(NULL, sizeof *order, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (order == MAP_FAILED)
        return -errno;
    order->exec_fd = program >= 0 ? program : exec_fd;
    order->pass_fd = pass_fd;
    order->argv = argv;
    order->env = env;
    order->path = path;
    snprintf(path, sizeof path, "/proc/self/fd/%d", order->exec_fd);
    struct stillness still;
    stand_still(&still);
    /* No exit signal: nothing for a SIGCHLD handler or waitpid(-1) to meet. */
    pid_t pid = run_apart(child, order->stacks + CHILD_STACK, 0, order);
    if (pid < 0)
        order->error = errno;
    else
        (void)RETRY(waitpid(pid, NULL, __WALL));
    move_again(&still);
    pid_t result = order->error ? -order->error : order->pid;
    munmap(order, sizeof *order);
    return result;
}

struct attempt {
    int (*fn)(void *data);
    void *data;
    int result;
    _Alignas(16) char stack[CHILD_STACK];
};

NO_SANITIZE static int attempt_in_child(void *data)
{
    struct attempt *attempt = data;
    attempt->result = attempt->fn(attempt->data);
    sys_exit(0);
}

int spawn_try(int (*fn)(void *data), void *data)
{
    struct attempt *attempt =
        mmap(NULL, sizeof *attempt, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (attempt == MAP_FAILED)
        return -errno;
    attempt->fn = fn;
    attempt->data = data;
    attempt->result = -ECHILD;
    struct stillness still;
    stand_still(&still);
    pid_t pid = run_apart(attempt_in_child, attempt->stack, 0, attempt);
    int result = pid < 0 ? -errno : 0;
    if (pid >= 0)
        (void)RETRY(waitpid(pid, NULL, __WALL));
    move_again(&still);
    result = pid < 0 ? result : attempt->result;
    munmap(attempt, sizeof *attempt);
    return result;
}
