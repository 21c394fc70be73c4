/* Starting and ending an agent. */
#include "acp/proxy_child.h"

#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/defs.h"
#include "sys/fd.h"
#include "sys/syscalls.h"

/* The program ignores SIGPIPE and SIGXFSZ, and blocks what stops it; the agent shall not. */
static int spawn(char **argv, int in, int out, pid_t *ret_pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, ignored;
    sigemptyset(&none);
    sigemptyset(&ignored);
    sigaddset(&ignored, SIGPIPE);
    sigaddset(&ignored, SIGXFSZ);
    int r = posix_spawn_file_actions_init(&actions);
    if (r)
        return -r;
    r = posix_spawnattr_init(&attributes);
    if (r) {
        posix_spawn_file_actions_destroy(&actions);
        return -r;
    }
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &ignored);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    r = posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
    if (r == 0)
        r = posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    if (r == 0)
        r = posix_spawnp(ret_pid, argv[0], &actions, &attributes, argv, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return -r;
}

int acp_child_start(char **argv, struct acp_child *ret)
{
    int to[2] = {-EBADF, -EBADF}, from[2] = {-EBADF, -EBADF};
    *ret = (struct acp_child){.pid = -1, .pidfd = -EBADF, .in = -EBADF, .out = -EBADF};
    int r = fd_pipe(to);
    if (r == 0)
        r = fd_pipe(from);
    if (r == 0)
        r = spawn(argv, to[0], from[1], &ret->pid);
    close_fd(&to[0]);
    close_fd(&from[1]);
    ret->in = to[1];
    ret->out = from[0];
    if (r == 0)
        ret->pidfd = sys_pidfd_open(ret->pid);
    if (r < 0) {
        close_fd(&ret->in);
        close_fd(&ret->out);
    }
    return r;
}

/* Waits up to that long for its exit: 0, or -ETIMEDOUT. */
static int await_exit(const struct acp_child *c, int64_t ms)
{
    struct pollfd poller = {.fd = c->pidfd, .events = POLLIN};
    return RETRY(poll(&poller, 1, (int)ms)) > 0 ? 0 : -ETIMEDOUT;
}

int acp_child_end(struct acp_child *c, int64_t grace_ms)
{
    int status = 0;
    close_fd(&c->in);
    if (await_exit(c, grace_ms) < 0 && c->pidfd >= 0)
        sys_pidfd_send_signal(c->pidfd, SIGTERM);
    if (await_exit(c, grace_ms) < 0)
        kill(c->pid, SIGKILL);
    RETRY(waitpid(c->pid, &status, 0));
    close_fd(&c->out);
    close_fd(&c->pidfd);
    return status;
}
