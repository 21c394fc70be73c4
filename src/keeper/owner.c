/*
 * The owner's life, by three signs: the end of the session's line, a pidfd, and, where the kernel
 * has no pidfds, a look at /proc each second. The line alone does not tell: a child that the owner
 * forked holds it open.
 */
#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/defs.h"
#include "keeper/keeper.h"
#include "sys/sock.h"

/* /proc may hide what is there. */
static bool exists(pid_t pid)
{
    return kill(pid, 0) == 0 || errno != ESRCH;
}

void owner_note(struct keeper *k)
{
    struct proc_ref owner = {.pid = sock_peer_pid(k->launch_fd)};
    if (k->owner_pidfd >= 0 || owner.pid <= 0 || !proc_is_ours())
        return;
    if (proc_ref(owner.pid, &owner) == 0 || !exists(owner.pid))
        k->owner = owner;
}

void owner_watch(struct keeper *k)
{
    /* Nothing is ever said to us on the session's line: its end is the message. */
    loop_add(k, k->owner_line, 0, TAG_OWNER, 0);
    if (k->owner_pidfd >= 0)
        loop_add(k, k->owner_pidfd, EPOLLIN, TAG_OWNER, 0);
    else if (k->owner.pid > 0)
        k->owner_at = clock_mono_ns() + OWNER_NS;
}

/* The line stays: it is still rung for as long as somebody is there. */
void outlive_owner(struct keeper *k)
{
    loop_remove(k, k->owner_line);
    loop_close(k, &k->owner_pidfd);
    k->owner_at = NEVER;
}

void owner_gone(struct keeper *k)
{
    if (k->owner_line < 0)
        return;
    outlive_owner(k);
    close_fd(&k->owner_line);
    /* What began before its owner ended has begun, and what ended ended by itself. */
    launch_born(k);
    if (k->state != ST_WARM)
        tree_reap(k);
    machine_event(k, EV_OWNER_GONE);
}

static bool is_alive(const struct proc_ref *owner)
{
    struct proc_stat stat;
    if (proc_stat(owner->pid, &stat) < 0)
        return exists(owner->pid);
    return stat.ref.start == owner->start && stat.alive;
}

void owner_look(struct keeper *k)
{
    if (is_alive(&k->owner))
        k->owner_at = clock_mono_ns() + OWNER_NS;
    else
        owner_gone(k);
}
