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
#include "sys/fd.h"

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

void forget_descriptors(struct keeper *k)
{
    int *fds[] = {&k->epoll_fd,    &k->signal_fd,   &k->launch_fd,   &k->next_fd,   &k->runs_fd,
                  &k->dir_fd,      &k->state_fd,    &k->spec_fd,     &k->listen_fd, &k->text_fd,
                  &k->cgroup_fd,   &k->owner_line,  &k->owner_pidfd, &k->out_fd[0], &k->out_fd[1],
                  &k->in_fd,       &k->child_fd[0], &k->child_fd[1], &k->child_in,  &k->born_fd,
                  &k->ended_fd[0], &k->ended_fd[1], &k->word_fd,     &k->alarm_fd};
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        *fds[i] = -EBADF;
    for (int i = 0; i < CONN_MAX; i++)
        k->conns[i].fd = -EBADF;
}

static void no_timers(struct keeper *k)
{
    k->quiet_at = k->deadline_at = k->grace_at = k->proof_at = k->sweep_at = NEVER;
    k->settle_at = k->publish_at = k->owner_at = NEVER;
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

static int watch_everything(struct keeper *k)
{
    k->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (k->epoll_fd < 0)
        return -errno;
    loop_add(k, k->signal_fd, EPOLLIN, TAG_SIGNAL, 0);
    loop_add(k, k->listen_fd, EPOLLIN, TAG_LISTEN, 0);
    loop_add(k, k->out_fd[0], EPOLLIN, TAG_OUT, 0);
    loop_add(k, k->out_fd[1], EPOLLIN, TAG_ERR, 0);
    owner_watch(k);
    return 0;
}

static void on_signal(struct keeper *k)
{
    /* One is pending at most: signals of a kind do not queue. */
    struct signalfd_siginfo info;
    if (read(k->signal_fd, &info, sizeof info) < 0)
        return;
    if (k->state != ST_WARM)
        tree_reap(k);
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
    case TAG_LAUNCH:
        launch_go(k);
        break;
    case TAG_BORN: /* looked at already */
        break;
    case TAG_NEXT:
        launch_next(k);
        break;
    case TAG_ALARM:
        launch_alarm(k);
        break;
    case TAG_OWNER:
        owner_gone(k);
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

/* For whoever has to tell the command from another process after we are gone. */
static void note_main_start(struct keeper *k)
{
    struct proc_ref ref;
    if (k->main_reaped || !k->proc_ours || proc_ref(k->main, &ref) < 0)
        return;
    k->st.main_start = ref.start;
    state_write(k->state_fd, &k->st);
}

/*
 * What nobody waits for. Most commands are over in a moment, and all that is done beside them slows
 * them down: so we sleep through that moment, and do this afterwards, or when it lasts.
 */
static void on_quiet(struct keeper *k)
{
    k->quiet_at = NEVER;
    launch_successor(k);
    if (k->reborn)
        return;
    close_fd(&k->text_fd);
    note_main_start(k);
    if (k->st.kept)
        outlive_owner(k);
}

/* The ends of the streams come before the news that the command has exited; but that is what
 * somebody waits for. */
static void exits_first(struct epoll_event *events, int count)
{
    for (int i = 0; i < count; i++)
        if (events[i].data.u64 == TAG_SIGNAL) {
            struct epoll_event signal = events[i];
            events[i] = events[0];
            events[0] = signal;
        }
}

static void loop(struct keeper *k)
{
    while (k->state != ST_DONE) {
        struct epoll_event events[16];
        int timeout = clock_left_ms(machine_next_timer(k));
        int n = epoll_wait(k->epoll_fd, events, ARRAY_SIZE(events), timeout);
        launch_born(k);
        exits_first(events, n);
        for (int i = 0; i < n && k->state != ST_DONE; i++)
            dispatch(k, events[i].data.u64);
        if (k->state != ST_DONE) {
            machine_timers(k);
            drain_close_ended(k);
        }
        if (k->state != ST_DONE && clock_mono_ns() >= k->quiet_at)
            on_quiet(k);
    }
    if (!k->reborn)
        launch_again(k);
}

/* What is done once; a successor inherits it. */
static int introduce(struct keeper *k)
{
    shield();
    int r = launch_hello(k);
    if (r == 0)
        r = host_identify(&k->host);
    owner_note(k);
    start_introduce(k);
    k->nice = getpriority(PRIO_PROCESS, 0);
    for (int i = 0; i < SPEC_LIMITS && i < (int)RLIM_NLIMITS; i++) {
        struct rlimit limit;
        if (getrlimit((__rlimit_resource_t)i, &limit) == 0)
            k->limits[i] = (struct spec_limit){limit.rlim_cur, limit.rlim_max};
    }
    if (r < 0)
        launch_ready(k, r);
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
    if (r == 0)
        r = start_prepare(k);
    r = launch_ready(k, r);
    if (r == 0)
        loop(k);
    return r;
}

#if SANITIZED
/* Allocates nothing, so there is nothing to search its memory for whenever one ends. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}
#endif

int main(void)
{
    struct keeper *k = &keeper;
    struct stat st;
    if (fstat(LAUNCH_FD, &st) < 0 || !S_ISSOCK(st.st_mode)) {
        fputs("nacre-keeper is started by nacre, not by hand; see nacre(1).\n", stderr);
        return 2;
    }
    detach();
    forget_descriptors(k);
    k->launch_fd = LAUNCH_FD;
    if (introduce(k) < 0)
        return 1;
    int r;
    do
        r = keep(k);
    while (k->reborn);
    return r < 0;
}
