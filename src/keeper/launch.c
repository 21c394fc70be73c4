/* The conversation with the library until the command runs, and the making of the successor. */
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/defs.h"
#include "keeper/keeper.h"
#include "sys/calls.h"
#include "sys/fd.h"
#include "sys/sock.h"

#define REBIRTH_FD 32 /* above everything that is being moved */

int launch_hello(struct keeper *k)
{
    struct wire_hello *hello = &k->hello;
    int fds[4];
    ssize_t n = sock_recv(k->launch_fd, hello, sizeof *hello, fds, ARRAY_SIZE(fds), 0);
    if (n != sizeof *hello || hello->head.type != WIRE_HELLO)
        return n < 0 ? (int)n : -EPROTO;
    hello->cgroup_parent[sizeof hello->cgroup_parent - 1] = '\0';
    size_t next = 0;
    k->runs_fd = fds[next++];
    k->owner_line = fds[next++];
    if (hello->fds & WIRE_FD_TEXT)
        k->text_fd = fds[next++];
    if (hello->fds & WIRE_FD_OWNER)
        k->owner_pidfd = fds[next++];
    return hello->head.format == RUN_FORMAT ? 0 : -EPROTO;
}

int launch_ready(struct keeper *k, int error)
{
    struct wire_ready ready = {
        .head = {.type = WIRE_READY, .format = RUN_FORMAT},
        .error = -error,
        .pid = getpid(),
        .start = k->st.keeper_start,
        .id = k->st.id,
        .child_of_host = getppid() == k->hello.host_pid,
        .tier = k->st.tier,
        .copies = k->copies,
    };
    int pair[2];
    if (ready.error == 0)
        ready.error = -sock_pair(pair);
    if (ready.error != 0) {
        sock_send(k->launch_fd, &ready, sizeof ready, NULL, 0, 0);
        return -ready.error;
    }
    k->next_fd = pair[1];
    loop_add(k, k->next_fd, EPOLLIN, TAG_NEXT, 0);
    int fds[] = {k->born_fd, pair[0]};
    sock_send(k->launch_fd, &ready, sizeof ready, fds, ARRAY_SIZE(fds), 0);
    close(pair[0]);
    return 0;
}

/*
 * The next keeper is a copy of this one, or this one when it has nothing else to do: it costs no
 * exec, and an upgrade of the program changes nothing for a host that is up. It keeps what belongs
 * to the session and forgets all that belongs to the run, the lock above all.
 */
static void be_reborn(struct keeper *k, int launch_fd)
{
    struct keeper next = {.hello = k->hello,
                          .host = k->host,
                          .owner = k->owner,
                          .nice = k->nice,
                          .preload = k->preload,
                          .copies = k->copies};
    memcpy(next.limits, k->limits, sizeof next.limits);
    int kept[] = {launch_fd, k->runs_fd, k->owner_line, k->owner_pidfd, k->text_fd};
    int at[ARRAY_SIZE(kept)];
    for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
        at[i] = kept[i] < 0 ? -EBADF : fcntl(kept[i], F_DUPFD_CLOEXEC, REBIRTH_FD);
    for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
        at[i] = at[i] < 0 ? -EBADF : dup3(at[i], LAUNCH_FD + (int)i, O_CLOEXEC);
    fd_close_from(LAUNCH_FD + (int)ARRAY_SIZE(kept));
    setsid();
    *k = next;
    forget_descriptors(k);
    k->launch_fd = at[0];
    k->runs_fd = at[1];
    k->owner_line = at[2];
    k->owner_pidfd = at[3];
    k->text_fd = at[4];
    k->reborn = true;
    k->state = ST_DONE;
}

/* What the copy shares with us is copied when it is written to: now, and not when somebody waits
 * for our answer. */
static void unshare_pages(struct keeper *k)
{
    volatile char *bytes = (volatile char *)k;
    for (size_t i = 0; i < sizeof *k; i += 1024)
        bytes[i] = bytes[i];
}

void launch_successor(struct keeper *k)
{
    if (k->next_fd < 0)
        return;
    start_forget(k);
    loop_remove(k, k->next_fd);
    if (k->spec.successor && sys_fork_sibling() == 0) {
        k->copies++;
        be_reborn(k, k->next_fd);
        return;
    }
    close_fd(&k->next_fd);
    unshare_pages(k);
}

/*
 * Nothing is left of the run but what its directory says, if it says it all: a reader that finds
 * the lock free and no end would take a keeper that lives on for a sign of life.
 */
void launch_again(struct keeper *k)
{
    if (k->next_fd < 0 || !k->spec.successor || k->owner_line < 0 ||
        state_write(k->state_fd, &k->st) < 0)
        return;
    start_forget(k);
    logw_done(&k->log);
    drain_step(k, false);
    munmap(k->result, sizeof *k->result);
    be_reborn(k, k->next_fd);
}

void launch_next(struct keeper *k)
{
    struct wire_head word;
    if (sock_recv(k->next_fd, &word, sizeof word, NULL, 0, MSG_DONTWAIT) <= 0) {
        loop_close(k, &k->next_fd);
    } else if (k->state != ST_WARM) {
        launch_successor(k);
    } else {
        k->hurried = true;
        loop_add(k, k->born_fd, 0, TAG_BORN, 0);
    }
}

static void run_now(struct keeper *k, struct start_result result)
{
    k->log.half = MAX(k->spec.quota, LOG_QUOTA_MIN) / 2;
    machine_event(k, EV_STARTED);
    if (result.outside) {
        setup_leave_cgroup(k);
        k->st.tier = NACRE_TIER_SUBREAPER;
        publish(k);
    }
    k->quiet_at = k->hurried ? 0 : k->st.started_mono_ns + QUIET_NS;
    struct conn *first = ctl_place(k, TAKE_FD(k->launch_fd), true);
    k->pacer = k->spec.paced ? first : NULL;
    /* A short command is over before we hear that it began, and somebody waits for that. */
    tree_reap(k);
    if (k->state == ST_DONE)
        return;
    ctl_listen(k, first);
    if (k->spec.input != NACRE_STDIN_PIPE)
        close_fd(&k->in_fd);
}

static void launch_outcome(struct keeper *k, struct start_result result)
{
    if (result.waits)
        return;
    if (result.heard && result.stage == STAGE_NONE)
        run_now(k, result);
    else
        machine_event(k, EV_NOT_STARTED);
}

void launch_born(struct keeper *k)
{
    if (k->state == ST_WARM)
        launch_outcome(k, start_born(k));
}

void launch_alarm(struct keeper *k)
{
    if (k->state == ST_WARM)
        start_set_alarm(k);
    else
        loop_close(k, &k->alarm_fd);
}

void launch_go(struct keeper *k)
{
    if (k->state != ST_WARM)
        return;
    loop_remove(k, k->launch_fd);
    launch_outcome(k, start_by_fork(k));
}
