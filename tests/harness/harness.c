/*
 * The runner: forks a process per case, keeps its time limit, reaps whatever is re-parented to
 * it, and lets the leak check have the last word. A failed check leaves its text in memory that
 * all processes of the case share, so that it works without a single open descriptor.
 */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "internal.h"

enum { EXIT_SKIPPED = 77, DEFAULT_HOST_LIMIT_S = 60 };

struct report {
    atomic_int taken;
    char text[4096];
};

static struct test_case *first_case;
static struct test_case **last_case = &first_case;
static struct report *report;
static bool direct; /* running one case in this very process: report to stderr */

_Thread_local nacre_error harness_error;

void harness_register(struct test_case *self)
{
    *last_case = self;
    last_case = &self->next;
}

/* -- The case's side ------------------------------------------------------------------------- */

static void leave_report(const char *text)
{
    if (direct)
        dprintf(STDERR_FILENO, "%s\n", text);
    if (report && atomic_exchange(&report->taken, 1) == 0)
        snprintf(report->text, sizeof(report->text), "%s", text);
}

void harness_fail(const char *file, int line, const char *fmt, ...)
{
    char text[3600];
    const char *slash = strrchr(file, '/');
    int n = snprintf(text, sizeof(text), "%s:%d: ", slash ? slash + 1 : file, line);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text + n, sizeof(text) - (size_t)n, fmt, ap);
    va_end(ap);
    leave_report(text);
    _exit(1);
}

void harness_skip(const char *why)
{
    leave_report(why);
    _exit(EXIT_SKIPPED);
}

void harness_check_ok(const char *file, int line, const char *call, int64_t got)
{
    if (got < 0)
        harness_fail(file, line, "%s: %s: %s (stage \"%s\", errno %d)", call,
                     nacre_code_name((int)got), harness_error.msg, harness_error.stage,
                     harness_error.sys_errno);
}

void harness_check_code(const char *file, int line, const char *call, int64_t got, int want)
{
    if (got != want)
        harness_fail(file, line, "%s is %lld (%s), wanted \"%s\"; message: %s", call,
                     (long long)got, got < 0 ? nacre_code_name((int)got) : "success",
                     nacre_code_name(want), got < 0 ? harness_error.msg : "");
    if (want < 0 && harness_error.code != want)
        harness_fail(file, line, "%s: the error's code is %d, wanted %d", call, harness_error.code,
                     want);
    if (want < 0 && harness_error.msg[0] == 0)
        harness_fail(file, line, "%s: the error has no message", call);
}

void harness_check_str(const char *file, int line, const char *expr, const char *hay,
                       const char *needle, bool whole)
{
    bool good = whole ? strcmp(hay, needle) == 0 : strstr(hay, needle) != NULL;

    if (!good)
        harness_fail(file, line, "%s is \"%.1200s\", wanted %s\"%.1200s\"", expr, hay,
                     whole ? "" : "it to have ", needle);
}

/* -- Hosts: processes of the case's own ------------------------------------------------------ */

pid_t host_fork(void (*fn)(void *arg), void *arg)
{
    pid_t pid = fork();

    CHECK(pid >= 0);
    if (pid > 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    fn(arg);
    _exit(0);
}

pid_t host_exec(const char *const *prefix, const char *name)
{
    const char *argv[16];
    char self[4096];
    size_t n = 0;
    pid_t pid;

    for (; prefix && *prefix; prefix++)
        argv[n++] = *prefix;
    ssize_t got = readlink("/proc/self/exe", self, sizeof(self) - 1);
    CHECK(got > 0);
    self[got] = 0;
    argv[n++] = self;
    argv[n++] = "-x";
    argv[n++] = name;
    argv[n] = NULL;
    pid = fork();
    CHECK(pid >= 0);
    if (pid > 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    execvp(argv[0], (char *const *)argv);
    FAIL("cannot exec %s: %s", argv[0], strerror(errno));
}

void host_join(pid_t host)
{
    int status = 0;
    pid_t got;

    while ((got = waitpid(host, &status, 0)) < 0 && errno == EINTR)
        ;
    if (got != host)
        FAIL("waiting for host %d: %s", (int)host, strerror(errno));
    if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SKIPPED)
        _exit(EXIT_SKIPPED);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 1)
        FAIL("a check failed in a host that was exec'ed; its text is above");
    if (status != 0)
        FAIL("host %d ended with status 0x%x", (int)host, (unsigned)status);
}

void host_kill(pid_t host)
{
    kill(host, SIGKILL);
    while (waitpid(host, NULL, 0) < 0 && errno == EINTR)
        ;
}

/* -- The runner's side ----------------------------------------------------------------------- */

static sigset_t child_signal(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    return set;
}

static void start_case(const struct test_case *self)
{
    sigset_t set = child_signal();

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    self->run();
    exit(0);
}

/* Waits for the case and reaps all else. False: its time was over, and it was killed. */
static bool wait_case(pid_t pid, int64_t limit_ms, int *ret_status)
{
    sigset_t set = child_signal();
    int64_t until = now_ms() + limit_ms;
    bool in_time = true;

    for (;;) {
        pid_t got = waitpid(-1, ret_status, WNOHANG);
        if (got == pid)
            return in_time;
        if (got > 0)
            continue;
        int64_t left = until - now_ms();
        if (left <= 0 && in_time) {
            kill(pid, SIGKILL);
            in_time = false;
        }
        left = left > 0 ? left : 100;
        struct timespec wait = {left / 1000, left % 1000 * 1000000};
        sigtimedwait(&set, NULL, &wait);
    }
}

static void describe_end(char *buf, size_t size, const struct test_case *self, bool in_time,
                         int status)
{
    size_t n = 0;

    if (!in_time)
        n = (size_t)snprintf(buf, size, "over its limit of %d s", self->limit_s);
    else if (WIFSIGNALED(status))
        n = (size_t)snprintf(buf, size, "ended by signal %d", WTERMSIG(status));
    else if (!atomic_load(&report->taken))
        n = (size_t)snprintf(buf, size, "exit code %d", WEXITSTATUS(status));
    if (atomic_load(&report->taken))
        snprintf(buf + n, size - n, "%s%s", n ? "; " : "", report->text);
}

enum verdict { PASSED, FAILED, SKIPPED };

static enum verdict run_case(const struct test_case *self, bool verbose)
{
    char what[8192] = "", left[2048] = "";
    int64_t begin = now_ms();
    enum verdict verdict = FAILED;
    int status = 0;

    memset(report, 0, sizeof(*report));
    surroundings_make();
    pid_t pid = fork();
    if (pid < 0) {
        perror("fork");
        exit(1);
    }
    if (pid == 0)
        start_case(self);
    bool in_time = wait_case(pid, soon(self->limit_s * 1000), &status);
    bool leaked = leaks_find(left, sizeof(left));
    surroundings_remove();

    if (in_time && WIFEXITED(status) && WEXITSTATUS(status) == 0 && !leaked)
        verdict = PASSED;
    else if (in_time && WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SKIPPED && !leaked)
        verdict = SKIPPED;
    if (verdict == FAILED && (status != 0 || !in_time))
        describe_end(what, sizeof(what), self, in_time, status);
    if (verdict == FAILED)
        printf("FAIL %s: %s%s%s\n", self->name, what, what[0] && leaked ? "; " : "", left);
    else if (verdict == SKIPPED)
        printf("skipped: %s: %s\n", self->name, report->text);
    else if (verbose)
        printf("ok %s (%lld ms)\n", self->name, (long long)(now_ms() - begin));
    fflush(stdout);
    return verdict;
}

static bool is_wanted(const struct test_case *self, char **names, int count)
{
    if (self->limit_s == 0)
        return false;
    for (int i = 0; i < count; i++) {
        if (strstr(self->name, names[i]))
            return true;
    }
    return count == 0;
}

/* One case in this very process: inside the surroundings that another case has made, or, for who
 * looks at it with a debugger, in its own and without a limit. */
static int run_direct(const char *name)
{
    const char *made = getenv("NACRE_TEST_BASE");
    struct test_case *c = first_case;

    while (c && strcmp(c->name, name) != 0)
        c = c->next;
    if (!c) {
        fprintf(stderr, "there is no case %s\n", name);
        return 1;
    }
    direct = true;
    if (made) {
        surroundings_adopt(made);
        alarm((unsigned)(soon(DEFAULT_HOST_LIMIT_S * 1000) / 1000));
    } else {
        surroundings_find_keeper();
        surroundings_make();
    }
    c->run();
    if (!made)
        surroundings_remove();
    return 0;
}

static void prepare_runner(void)
{
    sigset_t set = child_signal();

    report = mmap(NULL, sizeof(*report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (report == MAP_FAILED || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 ||
        sigprocmask(SIG_BLOCK, &set, NULL) < 0) {
        perror("harness");
        exit(1);
    }
    signal(SIGCHLD, SIG_DFL);
    unsetenv("NACRE_ID");
    surroundings_find_keeper();
}

int main(int argc, char **argv)
{
    int opt, counts[3] = {0, 0, 0};
    bool verbose = false, list = false;

    while ((opt = getopt(argc, argv, "vlx:")) != -1) {
        switch (opt) {
        case 'v':
            verbose = true;
            break;
        case 'l':
            list = true;
            break;
        case 'x':
            return run_direct(optarg);
        default:
            fprintf(stderr, "usage: %s [-v] [-l] [NAME]...\n", argv[0]);
            return 2;
        }
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    prepare_runner();
    for (struct test_case *c = first_case; c; c = c->next) {
        if (!is_wanted(c, argv + optind, argc - optind))
            continue;
        if (list)
            printf("%s\n", c->name);
        else
            counts[run_case(c, verbose)]++;
    }
    if (!list)
        printf("%d passed, %d failed\n", counts[PASSED], counts[FAILED]);
    return counts[FAILED] ? 1 : 0;
}
