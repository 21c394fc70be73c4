#include "local/launch.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/grow.h"
#include "base/hold.h"
#include "local/fences.h"
#include "local/find_keeper.h"
#include "local/remedies.h"
#include "run/wire.h"
#include "sys/cgroup.h"
#include "sys/fd.h"
#include "sys/host.h"
#include "sys/sock.h"
#include "sys/spawn.h"
#include "sys/syscalls.h"
#include "systemd/ask_scope.h"

#define SCOPES_LATE_MAX 3 /* who did not grant so many in time is not asked again */
#define GROUP_MAX       8 /* of keepers that were made and have not got away yet */
#define COPIES_MAX \
    32 /* the kernel links what a copy may share with all before it: forks get slow */

/* One that was dismissed, and has not gone yet. */
struct leaving {
    int sock;
    struct proc_ref maker;
    struct proc_ref keeper; /* pid 0 = it has not said who it is */
};

struct launcher {
    pthread_mutex_t lock;
    unsigned home;
    uint32_t home_number;
    nacre_id session;
    nacre_tier tier;
    struct keeper_files files;
    int line[2];   /* the session's: keepers hold the first end, we the second */
    int pidfd;     /* ours */
    int policy_fd; /* the rules for keepers, borrowed; or -EBADF */
    char cgroup_parent[CGROUP_PATH_MAX];
    bool scopes;          /* keepers get a scope of their own: a better place than ours */
    bool scopes_stay;     /* those go on when the last login of the user is over */
    unsigned scope_count; /* that were asked for */
    unsigned scopes_late; /* of those, that were not granted in time */
    int spaces_fd;        /* see namespaces() */
    pid_t spaces_thread;
    bool have_warm;
    struct launched warm;
    struct leaving *leaving;
    size_t leaving_count;
    size_t leaving_cap;
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

static void who_asks(struct identity *ret)
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

static void where_it_stands(struct launcher *l, struct standpoint *ret)
{
    static const char *const names[] = {"mnt", "net", "user", "pid_for_children"};
    struct stat st;
    memset(ret, 0, sizeof *ret);
    sched_getaffinity(0, sizeof ret->affinity, (cpu_set_t *)ret->affinity);
    ret->root = stat("/", &st) == 0 ? st.st_ino : 0;
    HOLD(&l->lock);
    int spaces = namespaces(l);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (readlinkat(spaces, names[i], ret->spaces[i], sizeof ret->spaces[i]) < 0) {
            /* The thread it was opened for is gone, and another has its number. */
            close_fd(&l->spaces_fd);
            ret->spaces[i][0] = '?';
        }
}

int launcher_new(const nacre_id *session, uint32_t home, const char *keeper, nacre_tier tier,
                 struct launcher **ret_launcher, nacre_error *err)
{
    struct launcher *l = calloc(1, sizeof *l);
    if (!l)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    pthread_mutex_init(&l->lock, NULL);
    l->session = *session;
    l->home_number = home;
    l->tier = tier;
    l->files = (struct keeper_files){-EBADF, -EBADF};
    l->line[0] = l->line[1] = -EBADF;
    l->pidfd = -EBADF;
    l->policy_fd = -EBADF;
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
    l->scopes = l->tier == NACRE_TIER_CGROUP && scope_is_wanted() == 0;
    l->scopes_stay = l->scopes && scope_outlives_login();
    *ret_launcher = l;
    return 0;
}

void launched_drop(struct launched *launched)
{
    close_fd(&launched->sock);
    close_fd(&launched->word);
    close_fd(&launched->next);
    close_fd(&launched->runs);
    scope_ask_end(TAKE_PTR(launched->ask));
}

void launcher_set_policy(struct launcher *l, int policy_fd)
{
    l->policy_fd = policy_fd;
}

void launcher_set_home(struct launcher *l, unsigned moves)
{
    HOLD(&l->lock);
    l->home = moves;
}

static unsigned launcher_home(struct launcher *l)
{
    HOLD(&l->lock);
    return l->home;
}

int launcher_program(const struct launcher *l)
{
    return l->files.keeper_fd;
}

void launcher_fill_gate_order(const struct launcher *l, struct gate_order *order)
{
    order->line = l->line[0];
    order->owner = l->pidfd;
}

static int say_hello(const struct launcher *l, const struct launched *launched, int runs_fd,
                     const struct fences *fences)
{
    struct wire_hello hello = {
        .head = {.type = WIRE_HELLO, .format = RUN_FORMAT},
        .session = l->session,
        .tier = l->tier,
        .host_pid = getpid(),
        .home = l->home_number,
    };
    memcpy(hello.cgroup_parent, l->cgroup_parent, sizeof hello.cgroup_parent);
    int fds[5] = {runs_fd, l->line[0]};
    size_t count = 2;
    if (l->files.text_fd >= 0) {
        hello.fds |= WIRE_FD_TEXT;
        fds[count++] = l->files.text_fd;
    }
    if (l->pidfd >= 0) {
        hello.fds |= WIRE_FD_OWNER;
        fds[count++] = l->pidfd;
    }
    if (l->policy_fd >= 0) {
        hello.fds |= WIRE_FD_POLICY;
        fds[count++] = l->policy_fd;
    }
    if (launched->fence)
        hello.fds |= WIRE_FD_FENCE;
    if (launched->in_scope)
        hello.fds |= WIRE_IN_SCOPE;
    int r = sock_send(launched->sock, &hello, sizeof hello, fds, count, 0);
    return r == 0 && launched->fence ? fences_tell(fences, launched->fence, launched->sock) : r;
}

/* A keeper inside another shell carries that shell's mark, so that it ends with it: as an argument
 * too, since nobody sees the environment of one that is not dumpable. */
static pid_t execute(const struct launcher *l, int sock)
{
    char mark[64];
    const char *outer = getenv("NACRE_ID");
    char *argv[] = {(char *)"nacre-keeper", NULL, NULL};
    char *env[] = {NULL, NULL};
    if (outer && strlen(outer) == NACRE_ID_DIGITS) {
        snprintf(mark, sizeof mark, "NACRE_ID=%s", outer);
        argv[1] = env[0] = mark;
    }
    return spawn_orphan(l->files.keeper_fd, sock, argv, env);
}

/* A kept command may have to outlive more than a scope does: a login. */
static bool wants_scope(struct launcher *l, const struct errand *errand)
{
    HOLD(&l->lock);
    return l->scopes && (!errand->kept || l->scopes_stay);
}

static void note_scopes_refused(struct launcher *l)
{
    HOLD(&l->lock);
    l->scopes = false;
}

/* When a login has just begun, or the machine is busy, the next one may be in time. */
static void note_scope_late(struct launcher *l)
{
    HOLD(&l->lock);
    if (++l->scopes_late >= SCOPES_LATE_MAX)
        l->scopes = false;
}

/* Who cannot even be asked is not asked again. */
static void ask_for_scope(struct launcher *l, pid_t pid, struct launched *launched)
{
    char name[NACRE_ID_DIGITS + 48];
    pthread_mutex_lock(&l->lock);
    unsigned number = ++l->scope_count;
    pthread_mutex_unlock(&l->lock);
    snprintf(name, sizeof name, CGROUP_PREFIX "%s-%u" SCOPE_SUFFIX, nacre_id_format(&l->session).s,
             number);
    if (scope_ask_begin(name, pid, &launched->ask) < 0)
        note_scopes_refused(l);
}

int launcher_greet(struct launcher *l, const struct errand *errand, struct launched *launched,
                   bool late, nacre_error *err)
{
    int r = scope_ask_step(launched->ask);
    if (r == 0 && !late)
        return 0;
    if (r < 0)
        note_scopes_refused(l);
    else if (r == 0)
        note_scope_late(l);
    launched->in_scope = r > 0;
    scope_ask_end(TAKE_PTR(launched->ask));
    r = say_hello(l, launched, launched->runs, errand->fences);
    close_fd(&launched->runs);
    return r < 0 ? err_sys(err, NACRE_EBACKEND, -r, "keeper", "cannot talk to the keeper") : 1;
}

/* The service manager works while the keeper is executed. What it is told depends on both. */
static int greet_or_ask(struct launcher *l, int runs_fd, const struct errand *errand, pid_t pid,
                        struct launched *launched)
{
    if (wants_scope(l, errand))
        ask_for_scope(l, pid, launched);
    if (!launched->ask)
        return say_hello(l, launched, runs_fd, errand->fences);
    launched->runs = fd_lift_consume(fcntl(runs_fd, F_DUPFD_CLOEXEC, 3));
    return MIN(launched->runs, 0);
}

int launcher_take_new(struct launcher *l, int runs_fd, const struct errand *errand,
                      struct launched *ret_launched, nacre_error *err)
{
    struct launched launched = LAUNCHED_NONE;
    int pair[2];
    launched.fence = errand->fence;
    launched.home = launcher_home(l);
    who_asks(&launched.identity);
    where_it_stands(l, &launched.standpoint);
    int r = sock_pair(pair);
    if (r < 0)
        return err_sys(err, NACRE_ELIMIT, -r, "keeper", "cannot open a socket for a keeper");
    launched.sock = pair[0];
    pid_t pid = execute(l, pair[1]);
    close(pair[1]);
    if (pid > 0)
        proc_ref(pid, &launched.keeper);
    r = pid < 0 ? pid : greet_or_ask(l, runs_fd, errand, pid, &launched);
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
    if (GROW(l->adopted, l->adopted_count, l->adopted_cap) < 0)
        return;
    l->adopted[l->adopted_count++] = pid;
}

/* With the lock. */
static void note_ready(struct launcher *l, const struct wire_ready *ready, ssize_t size)
{
    if (size != sizeof *ready || ready->head.type != WIRE_READY || !ready->child_of_host)
        return;
    adopt(l, ready->pid);
}

/* Whoever may stop a keeper may stop it before it made the next one, and that one before it has
 * said who it is: it is in the group of its maker then. To wake one that is awake does no harm. */
static void wake_copy(const struct proc_ref *maker, const struct proc_ref *keeper)
{
    struct proc_ref group[GROUP_MAX];
    size_t count = 0;
    if (keeper->pid > 0)
        proc_kill(keeper, SIGCONT);
    else if (maker->pid > 0)
        count = proc_group(maker->pid, group, GROUP_MAX);
    for (size_t i = 0; i < count; i++)
        if (group[i].start >= maker->start)
            proc_kill(&group[i], SIGCONT);
}

static bool is_made(const void *message, ssize_t size, struct proc_ref *ret_keeper)
{
    const struct wire_made *made = message;
    if (size != sizeof *made || made->head.type != WIRE_MADE)
        return false;
    *ret_keeper = (struct proc_ref){.pid = made->pid, .start = made->start};
    return true;
}

/* One that was stopped could not even go. */
void launcher_dismiss(struct launcher *l, struct launched *launched)
{
    if (launched->sock >= 0)
        launched_wake(launched);
    HOLD(&l->lock);
    /* Without memory for it, it goes all the same, only unheard of. */
    if (launched->sock >= 0 && GROW(l->leaving, l->leaving_count, l->leaving_cap) == 0) {
        shutdown(launched->sock, SHUT_WR);
        l->leaving[l->leaving_count++] =
            (struct leaving){TAKE_FD(launched->sock), launched->maker, launched->keeper};
    }
    launched_drop(launched);
}

/* With the lock. Whoever may stop it may do so at any time. */
static bool is_gone(struct launcher *l, struct leaving *leaving)
{
    struct wire_ready ready;
    ssize_t n;
    while ((n = sock_recv(leaving->sock, &ready, sizeof ready, NULL, 0, MSG_DONTWAIT)) > 0 ||
           n == -EMSGSIZE)
        if (!is_made(&ready, n, &leaving->keeper))
            note_ready(l, &ready, n);
    if (n != -EAGAIN)
        close_fd(&leaving->sock);
    else
        wake_copy(&leaving->maker, &leaving->keeper);
    return n != -EAGAIN;
}

size_t launcher_dismissed(struct launcher *l, int *ret_fd)
{
    size_t left = 0;
    HOLD(&l->lock);
    for (size_t i = 0; i < l->leaving_count; i++)
        if (!is_gone(l, &l->leaving[i]))
            l->leaving[left++] = l->leaving[i];
    l->leaving_count = left;
    *ret_fd = left > 0 ? l->leaving[0].sock : -1;
    return left;
}

static ssize_t receive_ready(struct launched *launched, struct wire_ready *ret_ready)
{
    int fds[2] = {-EBADF, -EBADF};
    ssize_t n;
    do
        n = sock_recv(launched->sock, ret_ready, sizeof *ret_ready, fds, ARRAY_SIZE(fds),
                      MSG_DONTWAIT);
    while (is_made(ret_ready, n, &launched->keeper));
    launched->word = fds[0];
    launched->next = fds[1];
    return n;
}

/* One that was executed has no maker and must not hear this: what it leaves unread would come
 * before its last word. */
void launched_hurry(const struct launched *launched)
{
    struct wire_head word = {.type = WIRE_HURRY, .format = RUN_FORMAT};
    if (launched->maker.pid > 0)
        sock_send(launched->sock, &word, sizeof word, NULL, 0, MSG_DONTWAIT);
}

void launched_wake(const struct launched *launched)
{
    wake_copy(&launched->maker, &launched->keeper);
}

/* A keeper that did not come with this library. What version it says it is can be read only if it
 * speaks the same format. */
static int other_build(const struct wire_ready *ready, ssize_t size, nacre_error *err)
{
    uint32_t v = ready->head.format == RUN_FORMAT && size == sizeof *ready ? ready->version : 0;
    char version[32] = "of an unknown version";
    if (v != 0)
        snprintf(version, sizeof version, "%u.%u.%u", v >> 16, v >> 8 & 255, v & 255);
    return err_set(err, NACRE_EBACKEND,
                   "nacre-keeper (%s, format %u) and this library (" NACRE_VERSION
                   ", format %d) are not of one build; install the two together, and restart what "
                   "still runs",
                   version, ready->head.format, RUN_FORMAT);
}

/* Whether a READY is what a keeper of this build would send. One that did not understand the hello
 * says so; one that is ready sends its descriptors. */
static bool is_of_this_build(const struct wire_ready *ready, ssize_t size,
                             const struct launched *launched)
{
    return ready->head.format == RUN_FORMAT && size == sizeof *ready && ready->error != EPROTO &&
           ready->error != EMSGSIZE && (ready->error || launched->next != -EBADF);
}

int launcher_hear_ready(struct launcher *l, struct launched *launched, nacre_error *err)
{
    struct wire_ready ready = {0};
    ssize_t got = receive_ready(launched, &ready);
    if (got == -EAGAIN)
        return 0;
    /* One of another format may say more than we can take; its head is enough to tell. */
    bool heard = got == -EMSGSIZE || got >= (ssize_t)sizeof ready.head;
    if (!heard || ready.head.type != WIRE_READY)
        return err_set(err, NACRE_EBACKEND,
                       "nacre-keeper did not get ready: it ended, or is not the one that belongs "
                       "to this library; check the installation");
    if (!is_of_this_build(&ready, got, launched))
        return other_build(&ready, got, err);
    pthread_mutex_lock(&l->lock);
    note_ready(l, &ready, got);
    pthread_mutex_unlock(&l->lock);
    launched->id = ready.id;
    launched->copies = ready.copies;
    launched->error = ready.error;
    launched->keeper = (struct proc_ref){.pid = ready.pid, .start = ready.start};
    if (ready.error && ready.step)
        return fences_failed((enum fence_step)ready.step, ready.error, "", err);
    if (ready.error)
        return err_sys(err,
                       ready.error == EMFILE || ready.error == ENFILE ? NACRE_ELIMIT : NACRE_EIO,
                       ready.error, "prepare", "the keeper cannot prepare a run directory");
    if (launched->word < 0)
        return err_sys(err, NACRE_ELIMIT, EMFILE, "keeper", "no descriptor left for a start");
    fd_set_nonblock(launched->word);
    return 1;
}

static bool take_warm(struct launcher *l, struct launched *ret_launched)
{
    HOLD(&l->lock);
    bool have = l->have_warm;
    if (have)
        *ret_launched = l->warm;
    l->have_warm = false;
    return have;
}

static bool has_warm_for(struct launcher *l, const struct errand *errand)
{
    bool scope = wants_scope(l, errand);
    HOLD(&l->lock);
    return l->have_warm && l->warm.fence == errand->fence && (l->warm.in_scope || !scope) &&
           (!l->warm.in_scope || !errand->kept || l->scopes_stay);
}

/* Nobody will want it any more. */
static void dismiss_outdated(struct launcher *l)
{
    struct launched warm;
    pthread_mutex_lock(&l->lock);
    bool outdated = l->have_warm && l->warm.fence && l->warm.fence->replaced;
    pthread_mutex_unlock(&l->lock);
    if (outdated && take_warm(l, &warm))
        launcher_dismiss(l, &warm);
}

/* One of another kind stays: most commands of a session want the same. */
bool launcher_take_warm(struct launcher *l, const struct errand *errand,
                        struct launched *ret_launched)
{
    struct identity now;
    dismiss_outdated(l);
    if (!has_warm_for(l, errand) || !take_warm(l, ret_launched))
        return false;
    who_asks(&now);
    bool same = memcmp(&now, &ret_launched->identity, sizeof now) == 0 &&
                ret_launched->home == launcher_home(l);
    if (!same)
        launcher_dismiss(l, ret_launched);
    return same;
}

bool launcher_is_here(struct launcher *l, const struct launched *launched)
{
    struct standpoint now;
    where_it_stands(l, &now);
    return memcmp(&now, &launched->standpoint, sizeof now) == 0;
}

int launcher_line(const struct launcher *l)
{
    return l->line[1];
}

/* That of a kept command has the same place, which may be one that others do not want. */
bool launcher_wants_warm(struct launcher *l, const struct launched *launched)
{
    HOLD(&l->lock);
    return !l->have_warm && (launched->in_scope || !l->scopes) && l->line[1] >= 0 &&
           launched->next >= 0 && launched->copies < COPIES_MAX;
}

void launcher_keep(struct launcher *l, struct launched *of)
{
    struct launched successor = {.sock = TAKE_FD(of->next),
                                 .word = -EBADF,
                                 .next = -EBADF,
                                 .runs = -EBADF,
                                 .in_scope = of->in_scope,
                                 .maker = of->keeper,
                                 .home = of->home,
                                 .fence = of->fence,
                                 .identity = of->identity,
                                 .standpoint = of->standpoint};
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

size_t launcher_reap(struct launcher *l)
{
    size_t left = 0;
    HOLD(&l->lock);
    for (size_t i = 0; i < l->adopted_count; i++) {
        int status;
        if (waitpid(l->adopted[i], &status, WNOHANG | __WALL) == 0)
            l->adopted[left++] = l->adopted[i];
    }
    l->adopted_count = left;
    return left;
}

void launcher_end_session(struct launcher *l)
{
    struct launched warm;
    if (take_warm(l, &warm))
        launcher_dismiss(l, &warm);
    HOLD(&l->lock);
    close_fd(&l->line[1]);
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
    for (size_t i = 0; i < l->leaving_count; i++)
        close_fd(&l->leaving[i].sock);
    free(l->leaving);
    free(l->adopted);
    pthread_mutex_destroy(&l->lock);
    free(l);
}
