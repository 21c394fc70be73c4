/*
 * The owner's life, by three signs: the end of the session's line, a pidfd, and, where the kernel
 * has no pidfds, a look at /proc each second. The line alone does not tell: a child that the owner
 * forked holds it open.
 */
#include <signal.h>

#include "base/clock.h"
#include "base/defs.h"
#include "keeper/keeper.h"
#include "sys/sock.h"

/* /proc may hide what is there. */
static bool may_exist(pid_t pid)
{
    return kill(pid, 0) == 0 || errno != ESRCH;
}

void owner_note(struct keeper *k)
{
    struct proc_ref owner = {.pid = sock_peer_pid(k->fd[FD_LAUNCH])};
    if (k->fd[FD_OWNER] >= 0 || owner.pid <= 0 || !proc_is_ours())
        return;
    if (proc_ref(owner.pid, &owner) == 0 || !may_exist(owner.pid))
        k->session.owner = owner;
}

void owner_watch(struct keeper *k)
{
    loop_watch(k, FD_LINE);
    loop_watch(k, FD_OWNER);
    if (k->fd[FD_OWNER] < 0 && k->session.owner.pid > 0)
        k->at[AT_OWNER] = clock_mono_ns() + OWNER_NS;
}

/* The line stays: it is still rung for as long as somebody is there. */
void outlive_owner(struct keeper *k)
{
    loop_ignore(k, FD_LINE);
    loop_close(k, FD_OWNER);
    k->at[AT_OWNER] = NEVER;
}

void owner_gone(struct keeper *k)
{
    if (k->fd[FD_LINE] < 0)
        return;
    outlive_owner(k);
    close_fd(&k->fd[FD_LINE]);
    /* What began before its owner ended has begun, and what ended ended by itself. */
    life_look(k);
    if (k->state != ST_WARM)
        tree_reap(k);
    machine_event(k, EV_OWNER_GONE);
}

static bool is_still_there(const struct proc_ref *owner)
{
    struct proc_stat stat;
    if (proc_stat(owner->pid, &stat) < 0)
        return may_exist(owner->pid);
    return stat.ref.start == owner->start && stat.alive;
}

void owner_look(struct keeper *k)
{
    if (is_still_there(&k->session.owner))
        k->at[AT_OWNER] = clock_mono_ns() + OWNER_NS;
    else
        owner_gone(k);
}
