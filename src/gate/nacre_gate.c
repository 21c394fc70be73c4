/*
 * nacre-gate: the way out of a network namespace that has none. It stands outside, with a listening
 * socket that was made inside; started by the library, never by hand. This is its loop: who comes
 * gets a process, and all end with the session.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/defs.h"
#include "gate/visit.h"
#include "run/wire.h"
#include "sys/apart.h"
#include "sys/fd.h"
#include "sys/sock.h"
#include "sys/syscalls.h"

#define VISITS_MAX  128
#define TELLERS_MAX 32 /* who comes when there is no place is told so by one of these */
#define ALL_MAX     (VISITS_MAX + TELLERS_MAX)
#define PATIENCE_MS 30000
#define REST_MS     100 /* after an accept or a fork for which the system had no room */

enum gate_fd { FD_HOST, FD_LINE, FD_OWNER, FD_CHILDREN, FD_LISTEN, FD_COUNT };

struct gatekeeper {
    int fd[FD_COUNT];
    struct wire_gate_hello hello;
    char rules[HOST_RULES_SIZE + 1];
    pid_t pids[ALL_MAX]; /* 0 = free; the first VISITS_MAX are those that get through */
    int64_t rest_until_ns;
    bool over;
};

static struct gatekeeper the_gate;

/* -- Who comes
 * -------------------------------------------------------------------------------------- */

static pid_t *find_free(struct gatekeeper *g)
{
    for (size_t i = 0; i < ALL_MAX; i++)
        if (g->pids[i] == 0)
            return &g->pids[i];
    return NULL;
}

/* Nothing of the gate is left in it but the client and the rules. */
_Noreturn static void serve(struct gatekeeper *g, pid_t parent, int client, bool crowded)
{
    static struct visit visit;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    for (int i = 0; i < FD_COUNT; i++)
        close_fd(&g->fd[i]);
    visit.rules = g->rules;
    visit.patience_ms = g->hello.patience_ms ? (int)g->hello.patience_ms : PATIENCE_MS;
    visit.client = client;
    visit.crowded = crowded;
    visit_run(&visit);
    _exit(0);
}

static void rest(struct gatekeeper *g)
{
    g->rest_until_ns = clock_deadline(REST_MS);
}

static void on_client(struct gatekeeper *g)
{
    pid_t *place = find_free(g), self = getpid();
    if (!place)
        return;
    cleanup_close int client = accept4(g->fd[FD_LISTEN], NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (client < 0) {
        g->over |= errno == EINVAL || errno == EBADF;
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
            rest(g);
        return;
    }
    pid_t pid = sys_fork_into(-EBADF);
    if (pid == 0)
        serve(g, self, client, place >= g->pids + VISITS_MAX);
    if (pid < 0)
        rest(g);
    else
        *place = pid;
}

static void on_children(struct gatekeeper *g)
{
    struct signalfd_siginfo info;
    pid_t pid;
    if (read(g->fd[FD_CHILDREN], &info, sizeof info) < 0)
        return;
    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
        for (size_t i = 0; i < ALL_MAX; i++)
            if (g->pids[i] == pid)
                g->pids[i] = 0;
}

/* -- Whose gate it is
 * -------------------------------------------------------------------------------- */

static void on_end(struct gatekeeper *g)
{
    g->over = true;
}

/* Nothing more is said to us there; what is readable is the end. */
static void on_library(struct gatekeeper *g)
{
    struct wire_head word;
    ssize_t n = sock_recv(g->fd[FD_HOST], &word, sizeof word, NULL, 0, MSG_DONTWAIT);
    g->over |= n == 0 || (n < 0 && n != -EAGAIN && n != -EMSGSIZE);
}

/* What does not stand here is waited for to its end only. */
static const struct {
    short events;
    void (*wakes)(struct gatekeeper *g);
} gate_descriptors[FD_COUNT] = {
    [FD_HOST] = {POLLIN, on_library},  [FD_LINE] = {0, on_end},
    [FD_OWNER] = {POLLIN, on_end},     [FD_CHILDREN] = {POLLIN, on_children},
    [FD_LISTEN] = {POLLIN, on_client},
};

static int wait_for_all(struct gatekeeper *g, struct pollfd polled[FD_COUNT])
{
    bool resting = g->rest_until_ns > clock_mono_ns();
    for (int i = 0; i < FD_COUNT; i++)
        polled[i] = (struct pollfd){.fd = g->fd[i], .events = gate_descriptors[i].events};
    if (resting || !find_free(g))
        polled[FD_LISTEN].fd = -1;
    return RETRY(poll(polled, FD_COUNT, resting ? clock_left_ms(g->rest_until_ns) : -1));
}

static void run(struct gatekeeper *g)
{
    struct pollfd polled[FD_COUNT];
    while (!g->over) {
        if (wait_for_all(g, polled) < 0)
            return;
        for (int i = 0; i < FD_COUNT && !g->over; i++)
            if (polled[i].revents)
                gate_descriptors[i].wakes(g);
    }
}

/* -- The beginning
 * ------------------------------------------------------------------------------------ */

static int check_hello(struct gatekeeper *g, ssize_t size)
{
    const struct wire_gate_hello *hello = &g->hello;
    const char *rule;
    size_t rule_size;
    int listening = 0;
    socklen_t length = sizeof listening;
    if (size < (ssize_t)offsetof(struct wire_gate_hello, rules) ||
        hello->head.type != WIRE_GATE_HELLO || hello->head.format != RUN_FORMAT ||
        hello->size > sizeof hello->rules || hello->patience_ms > INT32_MAX ||
        (size_t)size != offsetof(struct wire_gate_hello, rules) + hello->size)
        return -EPROTO;
    memcpy(g->rules, hello->rules, hello->size);
    if (strlen(g->rules) != hello->size || hosts_find_fault(g->rules, &rule, &rule_size))
        return -EINVAL;
    if (getsockopt(g->fd[FD_LISTEN], SOL_SOCKET, SO_ACCEPTCONN, &listening, &length) < 0)
        return -errno;
    return listening ? fd_set_nonblock(g->fd[FD_LISTEN]) : -EINVAL;
}

static int hear_hello(struct gatekeeper *g)
{
    int fds[3];
    ssize_t n = sock_recv(g->fd[FD_HOST], &g->hello, sizeof g->hello, fds, ARRAY_SIZE(fds), 0);
    if (n < 0)
        return (int)n;
    g->fd[FD_LISTEN] = fds[0];
    g->fd[FD_LINE] = fds[1];
    g->fd[FD_OWNER] = fds[2];
    if (fds[0] < 0 || fds[1] < 0 || (g->hello.fds & WIRE_FD_OWNER && fds[2] < 0))
        return n == 0 ? -EPIPE : -EPROTO;
    return check_hello(g, n);
}

static int watch_children(struct gatekeeper *g)
{
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    int fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    g->fd[FD_CHILDREN] = fd < 0 ? -errno : fd;
    return MIN(g->fd[FD_CHILDREN], 0);
}

static int say_ready(struct gatekeeper *g, int error)
{
    struct wire_gate_ready ready = {
        .head = {.type = WIRE_GATE_READY, .format = RUN_FORMAT},
        .error = -error,
        .pid = getpid(),
        .child_of_host = getppid() == g->hello.host_pid,
        .version = WIRE_VERSION,
    };
    int r = sock_send(g->fd[FD_HOST], &ready, sizeof ready, NULL, 0, 0);
    return error < 0 ? error : r;
}

#if SANITIZED
/* What a visit has when it ends goes with its process. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}
#endif

int main(void)
{
    struct gatekeeper *g = &the_gate;
    struct stat st;
    if (fstat(APART_FD, &st) < 0 || !S_ISSOCK(st.st_mode)) {
        fputs("nacre-gate is started by nacre, not by hand; see nacre(1).\n", stderr);
        return 2;
    }
    apart_detach("nacre-gate");
    apart_shield();
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    for (int i = 0; i < FD_COUNT; i++)
        g->fd[i] = -EBADF;
    g->fd[FD_HOST] = APART_FD;
    int r = hear_hello(g);
    if (r == 0)
        r = watch_children(g);
    if (say_ready(g, r) < 0)
        return 1;
    run(g);
    return 0;
}
