/* The conversation with the library until the command runs, and the making of the successor. */
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
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

void launch_ready(struct keeper *k, int error)
{
    struct wire_ready ready = {
        .head = {.type = WIRE_READY, .format = RUN_FORMAT},
        .error = -error,
        .pid = getpid(),
        .start = k->st.keeper_start,
        .id = k->st.id,
        .child_of_host = getppid() == k->hello.host_pid,
        .tier = k->st.tier,
    };
    sock_send(k->launch_fd, &ready, sizeof ready, NULL, 0, 0);
}

static void say_started(struct keeper *k, int stage, int error, int successor)
{
    struct wire_started started = {
        .head = {.type = WIRE_STARTED, .format = RUN_FORMAT}, .stage = stage, .error = error};
    sock_send(k->launch_fd, &started, sizeof started, &successor, successor >= 0, MSG_DONTWAIT);
}

/*
 * The next keeper is a copy of this one, made while the command runs: it costs no exec, and an
 * upgrade of the program changes nothing for a host that is up. It keeps what belongs to the
 * session and forgets all that belongs to the run, the lock above all.
 */
static void be_reborn(struct keeper *k, int launch_fd)
{
    struct keeper next = {.hello = k->hello, .host = k->host, .owner = k->owner, .nice = k->nice};
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
    int fd = TAKE_FD(k->successor_fd);
    if (fd >= 0 && sys_fork_sibling() == 0) {
        be_reborn(k, fd);
        return;
    }
    close_fd(&fd);
    unshare_pages(k);
}

/* The library gets the successor's socket now; the successor itself is made when we are idle. */
static void announce_start(struct keeper *k)
{
    int pair[2] = {-EBADF, -EBADF};
    if (k->spec.successor && sock_pair(pair) < 0)
        pair[0] = pair[1] = -EBADF;
    say_started(k, STAGE_NONE, 0, pair[0]);
    close_fd(&pair[0]);
    k->successor_fd = pair[1];
}

static void refuse(struct keeper *k, struct start_result result)
{
    machine_event(k, EV_NOT_STARTED);
    say_started(k, result.stage, result.error, -EBADF);
}

static void run_now(struct keeper *k, struct start_result result)
{
    close_fd(&k->child_fd[0]);
    close_fd(&k->child_fd[1]);
    close_fd(&k->spec_fd);
    k->log.half = MAX(k->spec.quota, LOG_QUOTA_MIN) / 2;
    k->st.main_pid = k->main;
    if (result.outside) {
        setup_leave_cgroup(k);
        k->st.tier = NACRE_TIER_SUBREAPER;
    }
    machine_event(k, EV_STARTED);
    announce_start(k);
    k->chores = true;
    loop_remove(k, k->launch_fd);
    fd_set_nonblock(k->launch_fd);
    struct conn *first = ctl_add(k, TAKE_FD(k->launch_fd), true);
    k->pacer = k->spec.paced ? first : NULL;
    /* A short command may be over before we hear that it began. */
    tree_reap(k);
}

static void launch_outcome(struct keeper *k, struct start_result result)
{
    if (!result.heard)
        machine_event(k, EV_NOT_STARTED);
    else if (result.stage == STAGE_NONE)
        run_now(k, result);
    else
        refuse(k, result);
}

void launch_born(struct keeper *k)
{
    struct pollfd poller = {.fd = k->born_fd, .events = POLLIN};
    if (k->state == ST_WARM && k->born_fd >= 0 && poll(&poller, 1, 0) > 0)
        launch_outcome(k, start_born(k));
}

void launch_go(struct keeper *k)
{
    if (k->state == ST_WARM)
        launch_outcome(k, start_by_fork(k));
}
