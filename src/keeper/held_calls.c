/*
 * System calls of the command, and of all that it starts, that wait for us: the filter has them
 * wait (sys/filter.h), and whoever they are for here says what becomes of them. A few are served
 * each time the loop comes by, so that who makes very many starves nobody.
 */
#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/defs.h"
#include "keeper/keeper.h"
#include "sys/fd.h"
#include "sys/filter.h"

#define NOTIFY_ROOM 256 /* a kernel may say more than we know of */
#define TURN_MAX    8   /* calls */

/* The kernel says that nobody waits any more if whoever asked was ended. */
void calls_answer(struct keeper *k, uint64_t id, int error)
{
    struct seccomp_notif_resp response = {.id = id};
    if (error == CALL_GOES_ON)
        response.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    else
        response.error = error;
    (void)ioctl(k->fd[FD_CALLS], SECCOMP_IOCTL_NOTIF_SEND, &response);
}

bool calls_is_waiting(const struct keeper *k, uint64_t id)
{
    return ioctl(k->fd[FD_CALLS], SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}

pid_t calls_leader(pid_t thread)
{
    char path[32], text[1024];
    snprintf(path, sizeof path, "/proc/%d/status", thread);
    const char *at =
        fd_slurp_at(AT_FDCWD, path, text, sizeof text) > 0 ? strstr(text, "\nTgid:") : NULL;
    long leader = at ? fd_parse_number(at + strspn(at, "\nTgid: \t")) : -1;
    return leader > 0 ? (pid_t)leader : -ESRCH;
}

/* Those who wait for an answer are given none. */
static void calls_drop(struct keeper *k)
{
    connects_drop(k);
    execs_drop(k);
    loop_close(k, FD_CALLS);
}

static int serve_call(struct keeper *k, const struct seccomp_notif *n)
{
    size_t pointer;
    return filter_which(n->data.arch, n->data.nr, &pointer) == FILTERED_OTHER ? connects_serve(k, n)
                                                                              : execs_serve(k, n);
}

/* Whether there may be more. */
static bool serve_next(struct keeper *k)
{
    struct pollfd poller = {.fd = k->fd[FD_CALLS], .events = POLLIN};
    union {
        struct seccomp_notif notification;
        char room[NOTIFY_ROOM];
    } n = {0};
    if (poll(&poller, 1, 0) <= 0)
        return false;
    if (!(poller.revents & POLLIN)) {
        calls_drop(k); /* nobody is left who could ask */
        return false;
    }
    if (ioctl(k->fd[FD_CALLS], SECCOMP_IOCTL_NOTIF_RECV, &n) < 0)
        return true;
    int r = serve_call(k, &n.notification);
    if (r != CALL_WAITS)
        calls_answer(k, n.notification.id, r);
    return true;
}

void calls_look(struct keeper *k)
{
    for (int i = 0; i < TURN_MAX && k->fd[FD_CALLS] >= 0; i++)
        if (!serve_next(k))
            return;
}
