/* nacre-keeper: started by the library, never by hand. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/defs.h"
#include "keeper/keeper.h"
#include "sys/calls.h"
#include "sys/fd.h"
#include "sys/sock.h"

#define LAUNCH_FD  3
#define REBIRTH_FD 32 /* above everything that is being moved */

static struct keeper keeper;

void loop_add(struct keeper *k, int fd, uint32_t events, enum tag tag, uint32_t index)
{
    struct epoll_event event = {.events = events, .data.u64 = (uint64_t)index << 32 | tag};
    if (epoll_ctl(k->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 && errno == EEXIST)
        epoll_ctl(k->epoll_fd, EPOLL_CTL_MOD, fd, &event);
}

void loop_remove(struct keeper *k, int fd)
{
    if (fd >= 0)
        epoll_ctl(k->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

void loop_close(struct keeper *k, int *fd)
{
    loop_remove(k, *fd);
    close_fd(fd);
}

static void no_descriptors(struct keeper *k)
{
    int *fds[] = {&k->epoll_fd,  &k->signal_fd, &k->launch_fd,  &k->runs_fd,
                  &k->dir_fd,    &k->state_fd,  &k->spec_fd,    &k->listen_fd,
                  &k->text_fd,   &k->cgroup_fd, &k->owner_pipe, &k->owner_pidfd,
                  &k->out_fd[0], &k->out_fd[1], &k->in_fd,      &k->start_pipe};
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        *fds[i] = -EBADF;
    for (int i = 0; i < CONN_MAX; i++)
        k->conns[i].fd = -EBADF;
}

static void no_timers(struct keeper *k)
{
    k->deadline_at = k->grace_at = k->proof_at = k->sweep_at = NEVER;
    k->settle_at = k->publish_at = NEVER;
}

/* A process of its own: nothing of the host's is left but what the library sends. */
static void detach(void)
{
    setsid();
    /* The kernel sees an exec through a descriptor and would call us by its number. */
    prctl(PR_SET_NAME, "nacre-keeper");
    umask(077);
    if (chdir("/") < 0)
        _exit(1);
    /* Not close-on-exec: it may come to lie where it has to stay. */
    int null = open("/dev/null", O_RDWR);
    for (int fd = 0; fd <= 2; fd++)
        if (null < 0 || dup2(null, fd) < 0)
            _exit(1);
    fd_close_from(LAUNCH_FD + 1);
    fcntl(LAUNCH_FD, F_SETFD, FD_CLOEXEC);
}

/* Nothing but SIGKILL and SIGSTOP reaches us: `kill $PPID` is for others. */
static void shield(void)
{
    struct sigaction dfl = {.sa_handler = SIG_DFL};
    for (int i = 1; i < NSIG; i++)
        sigaction(i, &dfl, NULL);
    sigset_t mask;
    sigfillset(&mask);
    sigdelset(&mask, SIGBUS);
    sigprocmask(SIG_SETMASK, &mask, NULL);
}

static int watch_children(void)
{
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    int fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd < 0 ? -errno : fd;
}

static int hear_hello(struct keeper *k)
{
    struct wire_hello *hello = &k->hello;
    int fds[4];
    ssize_t n = sock_recv(k->launch_fd, hello, sizeof *hello, fds, ARRAY_SIZE(fds), 0);
    if (n != sizeof *hello || hello->head.type != WIRE_HELLO)
        return n < 0 ? (int)n : -EPROTO;
    hello->cgroup_parent[sizeof hello->cgroup_parent - 1] = '\0';
    size_t next = 0;
    k->runs_fd = fds[next++];
    k->owner_pipe = fds[next++];
    if (hello->fds & WIRE_FD_TEXT)
        k->text_fd = fds[next++];
    if (hello->fds & WIRE_FD_OWNER)
        k->owner_pidfd = fds[next++];
    return hello->head.format == RUN_FORMAT ? 0 : -EPROTO;
}

static void say_ready(struct keeper *k, int error)
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

static int watch_everything(struct keeper *k)
{
    k->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (k->epoll_fd < 0)
        return -errno;
    loop_add(k, k->signal_fd, EPOLLIN, TAG_SIGNAL, 0);
    loop_add(k, k->listen_fd, EPOLLIN, TAG_LISTEN, 0);
    loop_add(k, k->start_pipe, EPOLLIN, TAG_START, 0);
    loop_add(k, k->out_fd[0], EPOLLIN, TAG_OUT, 0);
    loop_add(k, k->out_fd[1], EPOLLIN, TAG_ERR, 0);
    /* Nothing is ever written to the session's pipe: its end is the message. */
    loop_add(k, k->owner_pipe, 0, TAG_OWNER, 0);
    if (k->owner_pidfd >= 0)
        loop_add(k, k->owner_pidfd, EPOLLIN, TAG_OWNER, 0);
    return 0;
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
    struct wire_hello hello = k->hello;
    struct host host = k->host;
    int kept[] = {launch_fd, k->runs_fd, k->owner_pipe, k->owner_pidfd, k->text_fd};
    int at[ARRAY_SIZE(kept)];
    for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
        at[i] = kept[i] < 0 ? -EBADF : fcntl(kept[i], F_DUPFD_CLOEXEC, REBIRTH_FD);
    for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
        at[i] = at[i] < 0 ? -EBADF : dup3(at[i], LAUNCH_FD + (int)i, O_CLOEXEC);
    fd_close_from(LAUNCH_FD + (int)ARRAY_SIZE(kept));
    setsid();
    memset(k, 0, sizeof *k);
    no_descriptors(k);
    k->hello = hello;
    k->host = host;
    k->launch_fd = at[0];
    k->runs_fd = at[1];
    k->owner_pipe = at[2];
    k->owner_pidfd = at[3];
    k->text_fd = at[4];
    k->reborn = true;
    k->state = ST_DONE;
}

static void announce_start(struct keeper *k)
{
    int pair[2] = {-EBADF, -EBADF};
    if (k->spec.successor && sock_pair(pair) < 0)
        pair[0] = pair[1] = -EBADF;
    say_started(k, STAGE_NONE, 0, pair[0]);
    close_fd(&pair[0]);
    if (pair[1] >= 0 && sys_fork_sibling() == 0)
        be_reborn(k, pair[1]);
    else
        close_fd(&pair[1]);
}

static void refuse(struct keeper *k, int stage, int error)
{
    machine_event(k, EV_NOT_STARTED);
    if (stage != STAGE_ABANDON)
        say_started(k, stage, error, -EBADF);
}

/* The start pipe ended in silence: the child is the command now. */
static void on_started(struct keeper *k)
{
    int r = spec_read_head(k->spec_fd, &k->spec);
    if (r < 0) {
        refuse(k, STAGE_SPEC, -r);
        return;
    }
    k->log.half = MAX(k->spec.quota, LOG_QUOTA_MIN) / 2;
    if (k->spec.input != NACRE_STDIN_PIPE)
        close_fd(&k->in_fd);
    close_fd(&k->spec_fd);
    machine_event(k, EV_STARTED);
    announce_start(k);
    if (k->reborn)
        return;
    close_fd(&k->text_fd);
    if (k->st.kept) {
        loop_close(k, &k->owner_pipe);
        loop_close(k, &k->owner_pidfd);
    }
    fd_set_nonblock(k->launch_fd);
    ctl_add(k, TAKE_FD(k->launch_fd), true);
}

static void on_start_pipe(struct keeper *k)
{
    struct start_report report;
    ssize_t n = RETRY(read(k->start_pipe, &report, sizeof report));
    if (n < 0)
        return;
    loop_close(k, &k->start_pipe);
    if (n == sizeof report)
        refuse(k, report.stage, report.error);
    else
        on_started(k);
}

static void on_signal(struct keeper *k)
{
    /* One is pending at most: signals of a kind do not queue. */
    struct signalfd_siginfo info;
    if (read(k->signal_fd, &info, sizeof info) < 0)
        return;
    /* The child's report, or its silence, was there before its exit. */
    if (k->state == ST_WARM && k->start_pipe >= 0)
        on_start_pipe(k);
    if (k->state != ST_WARM && k->state != ST_DONE)
        tree_reap(k);
}

static void on_owner_gone(struct keeper *k)
{
    loop_close(k, &k->owner_pipe);
    loop_close(k, &k->owner_pidfd);
    /* What was started or ended before its owner went was started or ended by itself. */
    if (k->state == ST_WARM && k->start_pipe >= 0)
        on_start_pipe(k);
    if (k->state != ST_WARM && k->state != ST_DONE)
        tree_reap(k);
    machine_event(k, EV_OWNER_GONE);
}

static void dispatch(struct keeper *k, uint64_t data)
{
    uint32_t index = (uint32_t)(data >> 32);
    switch ((enum tag)(uint32_t)data) {
    case TAG_SIGNAL:
        on_signal(k);
        break;
    case TAG_LISTEN:
        ctl_accept(k);
        break;
    case TAG_START:
        if (k->start_pipe >= 0)
            on_start_pipe(k);
        break;
    case TAG_OWNER:
        if (k->owner_pipe >= 0)
            on_owner_gone(k);
        break;
    case TAG_OUT:
        drain_stream(k, NACRE_STDOUT);
        break;
    case TAG_ERR:
        drain_stream(k, NACRE_STDERR);
        break;
    case TAG_IN:
        ctl_feed(k);
        break;
    case TAG_CONN:
        if (k->conns[index].fd >= 0)
            ctl_readable(k, &k->conns[index]);
        break;
    }
}

static void loop(struct keeper *k)
{
    while (k->state != ST_DONE) {
        struct epoll_event events[16];
        int timeout = clock_left_ms(machine_next_timer(k));
        int n = epoll_wait(k->epoll_fd, events, ARRAY_SIZE(events), timeout);
        for (int i = 0; i < n && k->state != ST_DONE; i++)
            dispatch(k, events[i].data.u64);
        if (k->state != ST_DONE)
            machine_timers(k);
    }
}

/* What is done once; a successor inherits it. */
static int introduce(struct keeper *k)
{
    shield();
    int r = hear_hello(k);
    if (r == 0)
        r = host_identify(&k->host);
    if (r < 0)
        say_ready(k, r);
    return r;
}

/* From the preparation of a run to its end. */
static int keep(struct keeper *k)
{
    no_timers(k);
    k->reborn = false;
    k->state = ST_WARM;
    k->signal_fd = watch_children();
    int r = k->signal_fd < 0 ? k->signal_fd : setup(k);
    if (r == 0)
        r = watch_everything(k);
    drain_guard(k);
    say_ready(k, r);
    if (r == 0)
        loop(k);
    return r;
}

int main(void)
{
    struct keeper *k = &keeper;
    struct stat st;
    if (fstat(LAUNCH_FD, &st) < 0 || !S_ISSOCK(st.st_mode)) {
        fputs("nacre-keeper is started by nacre, not by hand; see nacre(1).\n", stderr);
        return 2;
    }
    detach();
    no_descriptors(k);
    k->launch_fd = LAUNCH_FD;
    if (introduce(k) < 0)
        return 1;
    int r;
    do
        r = keep(k);
    while (k->reborn);
    return r < 0;
}
