/*
 * Orphans: programs that a host starts and never meets again. This program is its own orphan: with
 * UNIT_ROLE in its environment it reports on descriptor 3 what it finds.
 */
#include "unit.h"

#include <pthread.h>
#include <sys/socket.h>

#include "base/defs.h"
#include "sys/fd.h"
#include "sys/spawn.h"

struct report {
    pid_t pid;
    pid_t parent;
    int blocked;   /* signals */
    int handled;   /* whether the host's handler of SIGUSR1 is left */
    int low_fds;   /* a bit for each of 0-2 that is open */
    int other_fds; /* above 3 */
    int pass_cloexec;
    int argc;
    int envc;
    char name[32];
};

static int orphan_main(int argc, char **argv)
{
    char go;
    if (strcmp(getenv("UNIT_ROLE"), "waiting") == 0 && read(3, &go, 1) != 1)
        _exit(1);
    struct report report = {.pid = getpid(), .parent = getppid(), .argc = argc};
    sigset_t mask;
    sigprocmask(SIG_BLOCK, NULL, &mask);
    struct sigaction action;
    for (int i = 1; i < NSIG; i++)
        report.blocked += sigismember(&mask, i) == 1;
    report.handled = sigaction(SIGUSR1, NULL, &action) < 0 || action.sa_handler != SIG_DFL;
    for (int fd = 0; fd <= 2; fd++)
        report.low_fds |= unit_is_open(fd) << fd;
    for (int fd = 4; fd < 1024; fd++)
        report.other_fds += unit_is_open(fd);
    report.pass_cloexec = fcntl(3, F_GETFD);
    for (char **entry = environ; *entry; entry++)
        report.envc++;
    snprintf(report.name, sizeof report.name, "%s", argv[0]);
    ssize_t n = write(3, &report, sizeof report);
    _exit(n == sizeof report ? 0 : 1);
}

static char *const orphan_argv[] = {(char *)"an-orphan", NULL};
static char *const orphan_env[] = {(char *)"UNIT_ROLE=orphan", (char *)"SECOND=2", NULL};

static int open_self(void)
{
    int fd = open("/proc/self/exe", O_PATH | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static void take_report(int fd, struct report *ret_report)
{
    ssize_t n = fd_read_all(fd, ret_report, sizeof *ret_report);
    EXPECT(n == sizeof *ret_report);
}

static volatile sig_atomic_t sigchld_count;

static void on_sigchld(int signal)
{
    (void)signal;
    sigchld_count++;
}

static void host_meets_nothing(void *data)
{
    (void)data;
    struct sigaction action = {.sa_handler = on_sigchld};
    struct report report;
    int fds[2];
    sigaction(SIGCHLD, &action, NULL);
    int exe = open("/proc/self/exe", O_PATH | O_CLOEXEC);
    EXPECT(fd_pipe(fds) == 0);
    sigset_t before, after;
    sigprocmask(SIG_BLOCK, NULL, &before);
    for (int i = 0; i < 10; i++) {
        EXPECT(spawn_orphan(exe, fds[1], orphan_argv, orphan_env) > 0);
        EXPECT(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
        EXPECT(waitpid(-1, NULL, WNOHANG | __WALL) < 0 && errno == ECHILD);
        take_report(fds[0], &report);
        EXPECT(report.pid != getpid() && report.parent != getpid());
        EXPECT(strcmp(report.name, "an-orphan") == 0 && report.argc == 1 && report.envc == 2);
        EXPECT(report.pass_cloexec == 0);
        EXPECT(waitpid(-1, NULL, __WALL) < 0 && errno == ECHILD);
    }
    unit_pause(20);
    EXPECT(sigchld_count == 0);
    sigprocmask(SIG_BLOCK, NULL, &after);
    for (int i = 1; i < NSIG; i++)
        EXPECT(sigismember(&before, i) == sigismember(&after, i));
}

static void nothing_for_the_host(void **state)
{
    (void)state;
    unit_in_child(host_meets_nothing, NULL);
}

static void signals_are_blocked_and_default(void **state)
{
    (void)state;
    struct sigaction action = {.sa_handler = on_sigchld}, old;
    struct report report;
    int fds[2];
    int exe = open_self();
    assert_int_equal(fd_pipe(fds), 0);
    sigaction(SIGUSR1, &action, &old);
    assert_true(spawn_orphan(exe, fds[1], orphan_argv, orphan_env) > 0);
    take_report(fds[0], &report);
    sigaction(SIGUSR1, &old, NULL);
    /* All but SIGKILL, SIGSTOP, and the two that libc keeps for its threads. */
    assert_true(report.blocked >= NSIG - 1 - 4);
    assert_int_equal(report.handled, 0);
    close(fds[0]);
    close(fds[1]);
    close(exe);
}

/* Descriptors that are close-on-exec do not reach it; the one that is passed does. */
static void only_what_is_passed(void **state)
{
    (void)state;
    struct report report;
    int fds[2];
    int exe = open_self();
    assert_int_equal(fd_pipe(fds), 0);
    int marked = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 100);
    assert_true(spawn_orphan(exe, fds[1], orphan_argv, orphan_env) > 0);
    take_report(fds[0], &report);
    int leaked = report.other_fds;
    int open = fcntl(STDERR_FILENO, F_DUPFD, 100);
    assert_true(spawn_orphan(exe, fds[1], orphan_argv, orphan_env) > 0);
    take_report(fds[0], &report);
    assert_int_equal(report.other_fds, leaked + 1);
    close(open);
    close(marked);
    close(fds[0]);
    close(fds[1]);
    close(exe);
}

static int open_file(int dir, const char *name, mode_t mode, const char *text)
{
    int fd = openat(dir, name, O_RDWR | O_CREAT | O_CLOEXEC, mode);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
    close(fd);
    fd = openat(dir, name, O_PATH | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

struct failing {
    int plain;
    int garbage;
    int directory;
};

static void failing_execs(void *data)
{
    const struct failing *f = data;
    struct sigaction action = {.sa_handler = on_sigchld};
    int fds[2];
    sigaction(SIGCHLD, &action, NULL);
    EXPECT(fd_pipe(fds) == 0);
    EXPECT(spawn_orphan(f->plain, fds[1], orphan_argv, orphan_env) == -EACCES);
    EXPECT(spawn_orphan(f->garbage, fds[1], orphan_argv, orphan_env) == -ENOEXEC);
    EXPECT(spawn_orphan(f->directory, fds[1], orphan_argv, orphan_env) == -EACCES);
    EXPECT(spawn_orphan(999, fds[1], orphan_argv, orphan_env) == -EBADF);
    int exe = open("/proc/self/exe", O_PATH | O_CLOEXEC);
    EXPECT(spawn_orphan(exe, 999, orphan_argv, orphan_env) == -EBADF);
    EXPECT(waitpid(-1, NULL, WNOHANG | __WALL) < 0 && errno == ECHILD);
    /* Whoever adopts orphans finds none of these. */
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    for (int i = 0; i < 20; i++)
        EXPECT(spawn_orphan(f->garbage, fds[1], orphan_argv, orphan_env) == -ENOEXEC);
    unit_pause(5);
    EXPECT(waitpid(-1, NULL, WNOHANG | __WALL) < 0 && errno == ECHILD);
    EXPECT(sigchld_count == 0);
    /* Nobody else holds the pipe. */
    close(fds[1]);
    char c;
    EXPECT(read(fds[0], &c, 1) == 0);
}

static void failed_exec_is_told(void **state)
{
    (void)state;
    int dir = unit_dir(NULL);
    struct failing f = {.plain = open_file(dir, "plain", 0600, "text"),
                        .garbage = open_file(dir, "garbage", 0700, "no program\n"),
                        .directory = dir};
    unit_in_child(failing_execs, &f);
    close(f.plain);
    close(f.garbage);
    close(dir);
}

static void under_a_subreaper(void *data)
{
    (void)data;
    static char *const env[] = {(char *)"UNIT_ROLE=waiting", NULL};
    struct report report;
    int pair[2], status;
    EXPECT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
    int exe = open("/proc/self/exe", O_PATH | O_CLOEXEC);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    EXPECT(spawn_orphan(exe, pair[1], orphan_argv, env) > 0);
    EXPECT(write(pair[0], "x", 1) == 1);
    take_report(pair[0], &report);
    EXPECT(report.parent == getpid());
    EXPECT(waitpid(report.pid, &status, 0) == report.pid && status == 0);
    EXPECT(waitpid(-1, NULL, WNOHANG | __WALL) < 0 && errno == ECHILD);
}

static void a_subreaper_adopts_it(void **state)
{
    (void)state;
    unit_in_child(under_a_subreaper, NULL);
}

static void no_standard_streams(void *data)
{
    (void)data;
    struct report report = {0};
    int fds[2];
    int spare = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 20);
    EXPECT(fd_pipe(fds) == 0);
    int exe = fd_lift_consume(open("/proc/self/exe", O_PATH | O_CLOEXEC));
    close(0);
    close(1);
    close(2);
    int r = spawn_orphan(exe, fds[1], orphan_argv, orphan_env);
    ssize_t n = r > 0 ? fd_read_all(fds[0], &report, sizeof report) : -1;
    dup2(spare, 2);
    EXPECT(r > 0);
    EXPECT(n == sizeof report);
    EXPECT(report.low_fds == 0);
}

static void without_standard_streams(void **state)
{
    (void)state;
    unit_in_child(no_standard_streams, NULL);
}

/* The program, or what is passed, may lie on the very number that it is passed as. */
static void on_number_three(void *data)
{
    (void)data;
    struct report report;
    int fds[2];
    fd_close_from(3);
    EXPECT(fd_pipe(fds) == 0);
    int reader = fcntl(fds[0], F_DUPFD_CLOEXEC, 10), writer = fcntl(fds[1], F_DUPFD_CLOEXEC, 10);
    close(fds[0]);
    close(fds[1]);
    int exe = open("/proc/self/exe", O_PATH | O_CLOEXEC);
    EXPECT(exe == 3);
    int before = unit_count_fds();
    EXPECT(spawn_orphan(exe, writer, orphan_argv, orphan_env) > 0);
    take_report(reader, &report);
    EXPECT(report.pass_cloexec == 0);
    EXPECT(unit_count_fds() == before);
    EXPECT(fcntl(3, F_GETFD) == FD_CLOEXEC);
    int program = fcntl(exe, F_DUPFD_CLOEXEC, 20);
    EXPECT(dup3(writer, 3, O_CLOEXEC) == 3);
    EXPECT(spawn_orphan(program, 3, orphan_argv, orphan_env) > 0);
    take_report(reader, &report);
    EXPECT(report.pass_cloexec == 0);
    /* The host's own copy stays as it was. */
    EXPECT(fcntl(3, F_GETFD) == FD_CLOEXEC);
}

static void descriptor_three(void **state)
{
    (void)state;
    unit_in_child(on_number_three, NULL);
}

static void without_execveat(void *data)
{
    const int *error = data;
    struct report report;
    int fds[2];
    int exe = open("/proc/self/exe", O_PATH | O_CLOEXEC);
    EXPECT(fd_pipe(fds) == 0);
    EXPECT(unit_deny(SYS_execveat, *error));
    EXPECT(spawn_orphan(exe, fds[1], orphan_argv, orphan_env) > 0);
    take_report(fds[0], &report);
    EXPECT(report.argc == 1);
}

static void execveat_refused(void **state)
{
    (void)state;
    int errors[] = {ENOSYS, EPERM};
    for (size_t i = 0; i < ARRAY_SIZE(errors); i++)
        unit_in_child(without_execveat, &errors[i]);
}

static void *spawn_some(void *data)
{
    const int *exe = data;
    for (int i = 0; i < 10; i++) {
        struct report report;
        int fds[2];
        EXPECT(fd_pipe(fds) == 0);
        EXPECT(spawn_orphan(*exe, fds[1], orphan_argv, orphan_env) > 0);
        take_report(fds[0], &report);
        close(fds[0]);
        close(fds[1]);
    }
    return NULL;
}

static void from_many_threads(void **state)
{
    (void)state;
    pthread_t threads[4];
    int exe = open_self();
    for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, spawn_some, &exe), 0);
    for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    close(exe);
}

int main(int argc, char **argv)
{
    if (getenv("UNIT_ROLE"))
        return orphan_main(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_for_the_host),  cmocka_unit_test(signals_are_blocked_and_default),
        cmocka_unit_test(only_what_is_passed),   cmocka_unit_test(failed_exec_is_told),
        cmocka_unit_test(a_subreaper_adopts_it), cmocka_unit_test(without_standard_streams),
        cmocka_unit_test(descriptor_three),      cmocka_unit_test(execveat_refused),
        cmocka_unit_test(from_many_threads),
    };
    return cmocka_run_group_tests(tests, unit_setup, unit_teardown);
}
