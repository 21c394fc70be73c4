#include "backend/launch.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/find_keeper.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "run/wire.h"
#include "sys/calls.h"
#include "sys/cgroup.h"
#include "sys/fd.h"
#include "sys/host.h"
#include "sys/sock.h"
#include "sys/spawn.h"

#define READY_MS    10000
#define MAKER_MS    20
#define WARM_MS     500
#define FAREWELL_MS 1000
#define COPIES_MAX \
    32 /* the kernel links what a copy may share with all before it: forks get slow */

struct launcher {
    pthread_mutex_t lock;
    int runs_fd;
    nacre_id session;
    nacre_tier tier;
    struct keeper_files files;
    int line[2]; /* the session's: keepers hold the first end, we the second */
    int pidfd;   /* ours */
    char cgroup_parent[CGROUP_PATH_MAX];
    int spaces_fd; /* see namespaces() */
    pid_t spaces_thread;
    bool have_warm;
    struct launched warm;
    pid_t *adopted; /* keepers that became our children */
    size_t adopted_count;
    size_t adopted_cap;
};

/* The directory of this thread's namespaces, kept open for the thread that asked last. */
static int namespaces(struct launcher *l)
{
    pid_t thread = gettid();
    if (l->spaces_fd >= 0 && l->spaces_thread == thread)
        return l->spaces_fd;
    close_fd(&l->spaces_fd);
    int fd = open("/proc/thread-self/ns", O_PATH | O_DIRECTORY | O_CLOEXEC);
    l->spaces_fd = fd_lift_consume(fd);
    l->spaces_thread = thread;
    return l->spaces_fd;
}

static void identify(struct identity *ret)
{
    memset(ret, 0, sizeof *ret);
    ret->uid = getuid();
    ret->euid = geteuid();
    ret->gid = getgid();
    ret->egid = getegid();
    ret->group_count = getgroups(ARRAY_SIZE(ret->groups), ret->groups);
    ret->no_new_privs = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);
    ret->seccomp = prctl(PR_GET_SECCOMP, 0, 0, 0, 0);
    struct __user_cap_header_struct version = {.version = _LINUX_CAPABILITY_VERSION_3};
    syscall(SYS_capget, &version, ret->capabilities);
}

static void locate(struct launcher *l, struct place *ret)
{
    static const char *const names[] = {"mnt", "net", "user", "pid_for_children"};
    struct stat st;
    memset(ret, 0, sizeof *ret);
    sched_getaffinity(0, sizeof ret->affinity, (cpu_set_t *)ret->affinity);
    ret->root = stat("/", &st) == 0 ? st.st_ino : 0;
    pthread_mutex_lock(&l->lock);
    int spaces = namespaces(l);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (readlinkat(spaces, names[i], ret->spaces[i], sizeof ret->spaces[i]) < 0) {
            /* The thread it was opened for is gone, and another has its number. */
            close_fd(&l->spaces_fd);
            ret->spaces[i][0] = '?';
        }
    pthread_mutex_unlock(&l->lock);
}

int launcher_new(int runs_fd, const nacre_id *session, const char *keeper, nacre_tier tier,
                 struct launcher **ret_launcher, nacre_error *err)
{
    struct launcher *l = calloc(1, sizeof *l);
    if (!l)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    pthread_mutex_init(&l->lock, NULL);
    l->runs_fd = runs_fd;
    l->session = *session;
    l->tier = tier;
    l->files = (struct keeper_files){-EBADF, -EBADF};
    l->line[0] = l->line[1] = -EBADF;
    l->pidfd = -EBADF;
    l->spaces_fd = -EBADF;
    int r = find_keeper(keeper, &l->files, err);
    if (r == 0) {
        int e = sock_pair(l->line);
        if (e < 0)
            r = err_sys(err, NACRE_ELIMIT, -e, "line",
                        "cannot open the session's line to its keepers");
    }
    if (r < 0) {
        launcher_free(l);
        return r;
    }
    int pidfd = fd_lift_consume(sys_pidfd_open(getpid()));
    if (pidfd >= 0)
        l->pidfd = pidfd;
    if (l->tier == NACRE_TIER_CGROUP && cgroup_own(l->cgroup_parent, sizeof l->cgroup_parent) < 0)
        l->cgroup_parent[0] = '\0';
    *ret_launcher = l;
    return 0;
}

void launched_drop(struct launched *launched)
{
    close_fd(&launched->sock);
    close_fd(&launched->word);
    close_fd(&launched->next);
}

static int say_hello(struct launcher *l, const struct launched *launched)
{
    struct wire_hello hello = {
        .head = {.type = WIRE_HELLO, .format = RUN_FORMAT},
        .session = l->session,
        .tier = l->tier,
        .host_pid = getpid(),
    };
    memcpy(hello.cgroup_parent, l->cgroup_parent, sizeof hello.cgroup_parent);
    int fds[4] = {l->runs_fd, l->line[0]};
    size_t count = 2;
    if (l->files.text_fd >= 0) {
        hello.fds |= WIRE_FD_TEXT;
        fds[count++] = l->files.text_fd;
    }
    if (l->pidfd >= 0) {
        hello.fds |= WIRE_FD_OWNER;
        fds[count++] = l->pidfd;
    }
    return sock_send(launched->sock, &hello, sizeof hello, fds, count, 0);
}

/* A keeper inside another shell carries that shell's mark, so that it ends with it. */
static int execute(const struct launcher *l, int sock)
{
    char mark[64];
    const char *outer = getenv("NACRE_ID");
    char *env[] = {NULL, NULL};
    if (outer && strlen(outer) == NACRE_ID_DIGITS) {
        snprintf(mark, sizeof mark, "NACRE_ID=%s", outer);
        env[0] = mark;
    }
    return spawn_orphan(l->files.keeper_fd, sock, "nacre-keeper", env);
}

static int launch(struct launcher *l, struct launched *ret_launched, nacre_error *err)
{
    struct launched launched = LAUNCHED_NONE;
    int pair[2];
    identify(&launched.identity);
    locate(l, &launched.place);
    int r = sock_pair(pair);
    if (r < 0)
        return err_sys(err, NACRE_ELIMIT, -r, "keeper", "cannot open a socket for a keeper");
    launched.sock = pair[0];
    r = execute(l, pair[1]);
    close(pair[1]);
    if (r == 0)
        r = say_hello(l, &launched);
    if (r < 0) {
        launched_drop(&launched);
        return err_sys(err, NACRE_EBACKEND, -r, "keeper", "cannot execute nacre-keeper");
    }
    *ret_launched = launched;
    return 0;
}

/* A keeper may be ready again after its first run. */
static void adopt(struct launcher *l, pid_t pid)
{
    for (size_t i = 0; i < l->adopted_count; i++)
        if (l->adopted[i] == pid)
            return;
    if (l->adopted_count == l->adopted_cap) {
        size_t cap = l->adopted_cap ? l->adopted_cap * 2 : 16;
        pid_t *list = realloc(l->adopted, cap * sizeof *list);
        if (!list)
            return;
        l->adopted = list;
        l->adopted_cap = cap;
    }
    l->adopted[l->adopted_count++] = pid;
}

static void note_ready(struct launcher *l, const struct wire_ready *ready, ssize_t size)
{
    if (size != sizeof *ready || ready->head.type != WIRE_READY || !ready->child_of_host)
        return;
    pthread_mutex_lock(&l->lock);
    adopt(l, ready->pid);
    pthread_mutex_unlock(&l->lock);
}

/* Says goodbye to a keeper that was not used and waits until it has cleaned up. */
void launcher_dismiss(struct launcher *l, struct launched *launched)
{
    struct wire_ready ready;
    struct pollfd poller = {.fd = launched->sock, .events = POLLIN};
    int64_t deadline = clock_deadline(FAREWELL_MS);
    shutdown(launched->sock, SHUT_WR);
    while (poll(&poller, 1, clock_left_ms(deadline)) > 0) {
        ssize_t n = sock_recv(launched->sock, &ready, sizeof ready, NULL, 0, MSG_DONTWAIT);
        if (n <= 0)
            break;
        note_ready(l, &ready, n);
    }
    launched_drop(launched);
}

static ssize_t receive_ready(struct launched *launched, struct wire_ready *ret_ready)
{
    int fds[2] = {-EBADF, -EBADF};
    ssize_t n =
        sock_recv(launched->sock, ret_ready, sizeof *ret_ready, fds, ARRAY_SIZE(fds), MSG_DONTWAIT);
    launched->word = fds[0];
    launched->next = fds[1];
    return n;
}

/* Its maker has other things to do first, unless somebody waits. One that was executed has no maker
 * and must not hear this: what it leaves unread would come before its last word. Whoever may stop a
 * keeper may stop it before it made the next one; to wake one that is awake does no harm. */
static void hurry(const struct launched *launched)
{
    struct pollfd poller = {.fd = launched->sock, .events = POLLIN};
    struct wire_head word = {.type = WIRE_HURRY, .format = RUN_FORMAT};
    if (launched->maker.pid <= 0)
        return;
    sock_send(launched->sock, &word, sizeof word, NULL, 0, MSG_DONTWAIT);
    if (poll(&poller, 1, MAKER_MS) == 0)
        proc_kill(&launched->maker, SIGCONT);
}

/* Waits for the keeper's word that everything is prepared. */
static int await_ready(struct launcher *l, struct launched *launched, int wait_ms, nacre_error *err)
{
    struct wire_ready ready = {0};
    struct pollfd poller = {.fd = launched->sock, .events = POLLIN};
    int64_t deadline = clock_deadline(wait_ms);
    ssize_t got = receive_ready(launched, &ready);
    if (got == -EAGAIN)
        hurry(launched);
    while (got == -EAGAIN && clock_left_ms(deadline) != 0) {
        poll(&poller, 1, clock_left_ms(deadline));
        got = receive_ready(launched, &ready);
    }
    /* One of another format may say more than we can take; its head is enough to tell. */
    bool heard = got == -EMSGSIZE || got >= (ssize_t)sizeof ready.head;
    if (!heard || ready.head.type != WIRE_READY)
        return err_set(err, NACRE_EBACKEND,
                       "nacre-keeper did not get ready: it ended, or is not the one that belongs "
                       "to this library; check the installation");
    if (ready.head.format != RUN_FORMAT)
        return err_set(err, NACRE_EBACKEND,
                       "nacre-keeper speaks format %u and this library format %u; install the "
                       "two together",
                       ready.head.format, RUN_FORMAT);
    note_ready(l, &ready, got);
    launched->id = ready.id;
    launched->copies = ready.copies;
    launched->keeper = (struct proc_ref){.pid = ready.pid, .start = ready.start};
    if (ready.error)
        return err_sys(err,
                       ready.error == EMFILE || ready.error == ENFILE ? NACRE_ELIMIT : NACRE_EIO,
                       ready.error, "prepare", "the keeper cannot prepare a run directory");
    if (launched->word < 0)
        return err_sys(err, NACRE_ELIMIT, EMFILE, "keeper", "no descriptor left for a start");
    return 0;
}

static bool take_warm(struct launcher *l, struct launched *ret_launched)
{
    pthread_mutex_lock(&l->lock);
    bool have = l->have_warm;
    if (have)
        *ret_launched = l->warm;
    l->have_warm = false;
    pthread_mutex_unlock(&l->lock);
    return have;
}

/* What takes the warm one away, or makes it another's, is no reason to refuse a new one. */
bool launcher_take_warm(struct launcher *l, struct launched *ret_launched)
{
    struct identity now;
    if (!take_warm(l, ret_launched))
        return false;
    identify(&now);
    if (memcmp(&now, &ret_launched->identity, sizeof now) != 0) {
        launcher_dismiss(l, ret_launched);
        return false;
    }
    if (await_ready(l, ret_launched, WARM_MS, NULL) == 0)
        return true;
    launched_drop(ret_launched);
    return false;
}

bool launcher_is_here(struct launcher *l, const struct launched *launched)
{
    struct place now;
    locate(l, &now);
    return memcmp(&now, &launched->place, sizeof now) == 0;
}

int launcher_take_new(struct launcher *l, struct launched *ret_launched, nacre_error *err)
{
    struct launched launched;
    int r = launch(l, &launched, err);
    if (r < 0)
        return r;
    r = await_ready(l, &launched, READY_MS, err);
    if (r < 0)
        launched_drop(&launched);
    else
        *ret_launched = launched;
    return r;
}

int launcher_line(const struct launcher *l)
{
    return l->line[1];
}

bool launcher_wants_warm(struct launcher *l, const struct launched *launched)
{
    pthread_mutex_lock(&l->lock);
    bool wants =
        !l->have_warm && l->line[1] >= 0 && launched->next >= 0 && launched->copies < COPIES_MAX;
    pthread_mutex_unlock(&l->lock);
    return wants;
}

void launcher_keep(struct launcher *l, struct launched *of)
{
    struct launched successor = {.sock = TAKE_FD(of->next),
                                 .word = -EBADF,
                                 .next = -EBADF,
                                 .maker = of->keeper,
                                 .identity = of->identity,
                                 .place = of->place};
    pthread_mutex_lock(&l->lock);
    bool room = !l->have_warm && l->line[1] >= 0;
    if (room) {
        l->warm = successor;
        l->have_warm = true;
    }
    pthread_mutex_unlock(&l->lock);
    if (!room)
        launched_drop(&successor);
}

void launcher_reap(struct launcher *l, int wait_ms)
{
    int64_t deadline = clock_deadline(wait_ms);
    pthread_mutex_lock(&l->lock);
    while (l->adopted_count > 0) {
        size_t kept = 0;
        for (size_t i = 0; i < l->adopted_count; i++) {
            int status;
            if (waitpid(l->adopted[i], &status, WNOHANG | __WALL) == 0)
                l->adopted[kept++] = l->adopted[i];
        }
        l->adopted_count = kept;
        if (kept == 0 || clock_left_ms(deadline) == 0)
            break;
        poll(NULL, 0, 1);
    }
    pthread_mutex_unlock(&l->lock);
}

void launcher_end_session(struct launcher *l)
{
    struct launched launched;
    if (take_warm(l, &launched))
        launcher_dismiss(l, &launched);
    pthread_mutex_lock(&l->lock);
    close_fd(&l->line[1]);
    pthread_mutex_unlock(&l->lock);
}

void launcher_free(struct launcher *l)
{
    if (!l)
        return;
    if (l->have_warm)
        launched_drop(&l->warm);
    close_fd(&l->line[0]);
    close_fd(&l->line[1]);
    close_fd(&l->pidfd);
    close_fd(&l->spaces_fd);
    close_fd(&l->files.keeper_fd);
    close_fd(&l->files.text_fd);
    free(l->adopted);
    pthread_mutex_destroy(&l->lock);
    free(l);
}
