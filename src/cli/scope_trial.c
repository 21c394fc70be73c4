#include "cli/scope_trial.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/defs.h"
#include "sys/cgroup.h"
#include "sys/syscalls.h"
#include "systemd/ask_scope.h"

#define TRIAL_MS 5000

/* The way of a keeper, with a process that does nothing. */
static int ask_for(pid_t pid, char *detail, size_t size)
{
    char name[64];
    struct scope_ask *ask = NULL;
    snprintf(name, sizeof name, CGROUP_PREFIX "doctor-%d" SCOPE_SUFFIX, getpid());
    int r = scope_ask_begin(name, pid, &ask);
    int64_t deadline = clock_deadline(TRIAL_MS);
    while (r == 0 && (r = scope_ask_step(ask)) == 0) {
        struct pollfd poller = {.fd = scope_ask_fd(ask), .events = POLLIN};
        if (clock_left_ms(deadline) == 0)
            r = -ETIMEDOUT;
        else
            poll(&poller, 1, clock_left_ms(deadline));
    }
    if (ask)
        snprintf(detail, size, "%s", scope_ask_reason(ask));
    scope_ask_end(ask);
    return r;
}

static int try_scope(char *detail, size_t size)
{
    int status;
    pid_t pid = sys_fork_into(-1);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        for (;;)
            pause();
    }
    if (pid < 0)
        return pid;
    int r = ask_for(pid, detail, size);
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    return r;
}

static const char *words_for(int r)
{
    switch (r) {
    case -EALREADY:
        return "not needed: the cgroup of this process can be divided, controllers included";
    case -ESRCH:
        return "there is none to ask: this is no login session of this user, or it is a shell of "
               "nacre";
    case -ENOENT:
        return "no bus of a user's systemd is there; Debian has it in dbus-user-session";
    case -ETIMEDOUT:
        return "no answer in 5 s; the login may have just begun, and sessions ask again";
    default:
        if (r < 0 || scope_outlives_login())
            return "";
        return "granted, but not to kept shells, since it ends with your last login (loginctl "
               "enable-linger)";
    }
}

void trial_of_scope(struct probe_result *ret)
{
    *ret = (struct probe_result){.name = "scope",
                                 .meaning = "your systemd gives shells a cgroup with controllers"};
    int r = scope_is_wanted();
    if (r == 0)
        r = try_scope(ret->detail, sizeof ret->detail);
    ret->ok = r >= 0 || r == -EALREADY;
    if (!ret->detail[0])
        snprintf(ret->detail, sizeof ret->detail, "%s", words_for(r));
    ret->err = ret->ok || ret->detail[0] ? 0 : -r;
}
