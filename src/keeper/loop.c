/* Every descriptor, whose it is and what it wakes; and the loop that waits for them. */
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>

#include "base/clock.h"
#include "base/defs.h"
#include "keeper/keeper.h"
#include "sys/apart.h"
#include "sys/fd.h"

#define REBIRTH_FD 32 /* above everything that is being moved */

static void on_child(struct keeper *k)
{
    /* One is pending at most: signals of a kind do not queue. */
    struct signalfd_siginfo info;
    if (read(k->fd[FD_SIGNAL], &info, sizeof info) < 0)
        return;
    if (k->state != ST_WARM)
        tree_reap(k);
}

static void on_out(struct keeper *k)
{
    drain_stream(k, NACRE_STDOUT);
}

static void on_err(struct keeper *k)
{
    drain_stream(k, NACRE_STDERR);
}

enum belonging {
    OF_RUN,     /* closed with it */
    OF_SESSION, /* a successor has it too */
};

/* What does not stand here belongs to the run and wakes nobody. */
/* clang-format off */
static const struct descriptor {
    enum belonging of;
    uint32_t events; /* waited for, beside its end */
    void (*wakes)(struct keeper *k);
} descriptors[FD_COUNT] = {
    [FD_LAUNCH] = {OF_SESSION, 0,        NULL},
    [FD_RUNS]   = {OF_SESSION, 0,        NULL},
    [FD_LINE]   = {OF_SESSION, 0,        owner_gone}, /* nothing is said to us: its end counts */
    [FD_OWNER]  = {OF_SESSION, EPOLLIN,  owner_gone},
    [FD_TEXT]   = {OF_SESSION, 0,        NULL},
    [FD_FENCE_RECORD]  = {OF_SESSION, 0, NULL},
    [FD_FENCE_PRIVATE]   = {OF_SESSION, 0, NULL},
    [FD_FENCE_USER]    = {OF_SESSION, 0, NULL},
    [FD_FENCE_MOUNT]   = {OF_SESSION, 0, NULL},
    [FD_FENCE_NETWORK] = {OF_SESSION, 0, NULL},
    [FD_FENCE_IPC]     = {OF_SESSION, 0, NULL},
    [FD_FENCE_RULES]   = {OF_SESSION, 0, NULL},
    [FD_CALLS]         = {OF_RUN, EPOLLIN, calls_look},
    [FD_NEXT]   = {OF_RUN,     EPOLLIN,  life_hear_next},
    [FD_SIGNAL] = {OF_RUN,     EPOLLIN,  on_child},
    [FD_LISTEN] = {OF_RUN,     EPOLLIN,  ctl_accept},
    [FD_LEAF]   = {OF_RUN,     EPOLLPRI, tree_reap},
    [FD_DOOR]   = {OF_RUN,     EPOLLIN,  ctl_accept},
    [FD_OUT]    = {OF_RUN,     EPOLLIN,  on_out},
    [FD_ERR]    = {OF_RUN,     EPOLLIN,  on_err},
    [FD_IN]     = {OF_RUN,     EPOLLOUT, ctl_feed},
    [FD_BORN]   = {OF_RUN,     0,        NULL}, /* it is looked at whatever wakes us */
    [FD_ALARM]  = {OF_RUN,     EPOLLIN,  standin_alarm},
};
/* clang-format on */

#define FIRST_WAITING (FD_COUNT + CONN_MAX)
#define FIRST_ASKED   (FIRST_WAITING + WAITING_MAX)

/* What comes back with an event: a descriptor of the table, FD_COUNT + the connection,
 * FIRST_WAITING + who waits for one inside the fence, or FIRST_ASKED + who waits for a person. */
static void watch_number(struct keeper *k, int fd, uint32_t events, uint64_t which)
{
    struct epoll_event event = {.events = events, .data.u64 = which};
    if (epoll_ctl(k->fd[FD_EPOLL], EPOLL_CTL_ADD, fd, &event) < 0 && errno == EEXIST)
        epoll_ctl(k->fd[FD_EPOLL], EPOLL_CTL_MOD, fd, &event);
}

static void ignore_number(struct keeper *k, int fd)
{
    if (fd >= 0)
        epoll_ctl(k->fd[FD_EPOLL], EPOLL_CTL_DEL, fd, NULL);
}

void loop_watch(struct keeper *k, enum keeper_fd which)
{
    if (k->fd[which] >= 0)
        watch_number(k, k->fd[which], descriptors[which].events, which);
}

void loop_ignore(struct keeper *k, enum keeper_fd which)
{
    ignore_number(k, k->fd[which]);
}

void loop_close(struct keeper *k, enum keeper_fd which)
{
    ignore_number(k, k->fd[which]);
    close_fd(&k->fd[which]);
}

void loop_watch_conn(struct keeper *k, const struct conn *c, uint32_t events)
{
    watch_number(k, c->fd, events, FD_COUNT + (uint64_t)(c - k->conns));
}

void loop_close_conn(struct keeper *k, struct conn *c)
{
    ignore_number(k, c->fd);
    close_fd(&c->fd);
}

void loop_watch_waiting(struct keeper *k, int which)
{
    watch_number(k, k->session.room->waiting[which].sock, EPOLLOUT,
                 FIRST_WAITING + (uint64_t)which);
}

void loop_close_waiting(struct keeper *k, int which)
{
    ignore_number(k, k->session.room->waiting[which].sock);
    close_fd(&k->session.room->waiting[which].sock);
}

void loop_watch_asked(struct keeper *k, int which)
{
    watch_number(k, k->session.room->asked[which].reply, EPOLLIN, FIRST_ASKED + (uint64_t)which);
}

void loop_close_asked(struct keeper *k, int which)
{
    ignore_number(k, k->session.room->asked[which].reply);
    close_fd(&k->session.room->asked[which].reply);
}

void loop_forget(struct keeper *k)
{
    for (int i = 0; i < FD_COUNT; i++)
        k->fd[i] = -EBADF;
    for (int i = 0; i < CONN_MAX; i++)
        k->conns[i].fd = -EBADF;
}

void loop_inherit(struct keeper *k)
{
    int kept[FD_COUNT], end = APART_FD;
    k->fd[FD_LAUNCH] = k->fd[FD_NEXT];
    for (int i = 0; i < FD_COUNT; i++) {
        bool keep = descriptors[i].of == OF_SESSION && k->fd[i] >= 0;
        kept[i] = keep ? fcntl(k->fd[i], F_DUPFD_CLOEXEC, REBIRTH_FD) : -EBADF;
    }
    loop_forget(k);
    for (int i = 0; i < FD_COUNT; i++)
        if (kept[i] >= 0)
            k->fd[i] = dup3(kept[i], end++, O_CLOEXEC);
    fd_close_from(end);
}

int loop_open(struct keeper *k)
{
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    k->fd[FD_SIGNAL] = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    k->fd[FD_EPOLL] = epoll_create1(EPOLL_CLOEXEC);
    if (k->fd[FD_SIGNAL] < 0 || k->fd[FD_EPOLL] < 0)
        return -errno;
    loop_watch(k, FD_SIGNAL);
    loop_watch(k, FD_LISTEN);
    loop_watch(k, FD_DOOR);
    loop_watch(k, FD_OUT);
    loop_watch(k, FD_ERR);
    owner_watch(k);
    return 0;
}

/* What was closed since the event was there wakes nobody. */
static void wake(struct keeper *k, uint64_t which)
{
    if (which >= FIRST_ASKED) {
        if (k->session.room->asked[which - FIRST_ASKED].reply > 0)
            execs_know(k, (int)(which - FIRST_ASKED));
    } else if (which >= FIRST_WAITING) {
        if (k->session.room->waiting[which - FIRST_WAITING].sock > 0)
            connects_know(k, (int)(which - FIRST_WAITING));
    } else if (which >= FD_COUNT) {
        struct conn *c = &k->conns[which - FD_COUNT];
        if (c->fd >= 0)
            ctl_readable(k, c);
    } else if (k->fd[which] >= 0 && descriptors[which].wakes) {
        descriptors[which].wakes(k);
    }
}

/* The ends of the streams come before the news that the command has exited; but that is what
 * somebody waits for. */
static void exits_first(struct epoll_event *events, int count)
{
    for (int i = 0; i < count; i++)
        if (events[i].data.u64 == FD_SIGNAL) {
            struct epoll_event signal = events[i];
            events[i] = events[0];
            events[0] = signal;
        }
}

void loop_run(struct keeper *k)
{
    while (k->state != ST_DONE) {
        struct epoll_event events[16];
        int timeout = clock_left_ms(machine_next_timer(k));
        int n = epoll_wait(k->fd[FD_EPOLL], events, ARRAY_SIZE(events), timeout);
        life_look(k);
        exits_first(events, n);
        for (int i = 0; i < n && k->state != ST_DONE; i++)
            wake(k, events[i].data.u64);
        if (k->state != ST_DONE) {
            machine_timers(k);
            drain_close_ended(k);
        }
    }
}
