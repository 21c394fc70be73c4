/*
 * Hosts of every kind: whatever a process does with its signals, children, descriptors, threads
 * and namespaces, its shells work, nothing leaks, and nothing of the host is changed.
 */
#include "harness/harness.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

/* What any host expects of its shells: runs, leftovers, floods, timeouts, kills, input. */
static void use_everything(void)
{
    nacre_session *s = open_session();
    nacre_command command = NACRE_COMMAND_INIT;
    const char *m = marker();

    for (int i = 0; i < 3; i++) {
        struct run run = run_text(s, "echo out; echo err >&2; exit 3");
        CHECK_TEXT(run.out, "out\n");
        CHECK_TEXT(run.err, "err\n");
        CHECK_EQ_INT(NACRE_EXITED, run.record.outcome);
        CHECK_EQ_INT(3, run.record.exit_code);
        run_done(&run);
    }
    struct run lingering = run_text(s, format("%s sleep 300.%s & echo hi", own_session(), m));
    CHECK_EQ_INT(NACRE_TREE_ALIVE, lingering.record.tree);
    kill_shell(s, &lingering.record.id, -1);
    run_done(&lingering);
    const char *stubborn = group_tier() ? format("(trap '' TERM; exec sleep 305.%s) &", m)
                                        : format("%s -i %s;", program("daemonize"), m);
    nacre_id id =
        start_text(s, format("(sleep 301.%s &); %s echo up; sleep 302.%s", m, stubborn, m));
    CHECK(AWAIT(output_has(s, &id, NACRE_OUT, "up"), 5000));
    await_marked(m, 3);
    nacre_kill_result result = kill_shell(s, &id, MS(400)); /* time for those who obey */
    CHECK_EQ_INT(1, result.force_killed);
    CHECK_EQ_INT(0, count_marked(m));
    command.text = "echo BEFORE; sleep 999";
    command.timeout_ms = MS(400);
    struct run timed = run_command(s, &command);
    CHECK_EQ_INT(NACRE_TIMED_OUT, timed.record.outcome);
    CHECK_TEXT(timed.out, "BEFORE\n");
    run_done(&timed);
    command = (nacre_command)NACRE_COMMAND_INIT;
    command.text = "cat";
    command.input = NACRE_STDIN_PIPE;
    id = start_command(s, &command);
    CHECK_EQ_INT(3, nacre_input(s, &id, "abc", 3, 1, MS(2000), ERR));
    wait_outcome(s, &id, 3000);
    CHECK(output_has(s, &id, NACRE_OUT, "abc"));
    struct run fds = run_text(s, program("fd-list"));
    CHECK_TEXT(fds.out, "0 1 2\n");
    run_done(&fds);
    id = start_background(s, "true");
    CHECK(AWAIT(counts_of(s).completions == 1, 3000));
    CHECK_OK(nacre_mark_read(s, &id, 0, 1, ERR));
    id = start_text(s, format("%s sleep 303.%s & sleep 304.%s", own_session(), m, m));
    await_marked(m, 2);
    close_session(s);
    CHECK_EQ_INT(0, count_marked(m));
}

static bool sees_no_child(void)
{
    return waitpid(-1, NULL, WNOHANG | __WALL) < 0 && errno == ECHILD;
}

TEST(plain_host)
{
    int before = fd_count();

    use_everything();
    CHECK(sees_no_child());
    CHECK_EQ_INT(0, count_children(getpid()));
    CHECK_EQ_INT(before, fd_count());
}

/* -- Signals and children -------------------------------------------------------------------- */

TEST(host_that_ignores_sigchld)
{
    signal(SIGCHLD, SIG_IGN);
    use_everything();
    struct sigaction now;
    sigaction(SIGCHLD, NULL, &now);
    CHECK(now.sa_handler == SIG_IGN);
}

static atomic_int sigchld_count, reaped_count;

static void on_sigchld(int sig)
{
    int saved = errno;

    (void)sig;
    atomic_fetch_add(&sigchld_count, 1);
    while (waitpid(-1, NULL, WNOHANG) > 0)
        atomic_fetch_add(&reaped_count, 1);
    errno = saved;
}

TEST(host_that_reaps_in_a_handler)
{
    struct sigaction action = {.sa_handler = on_sigchld, .sa_flags = SA_RESTART};

    sigaction(SIGCHLD, &action, NULL);
    use_everything();
    CHECK_EQ_INT(0, atomic_load(&reaped_count));
    CHECK_EQ_INT(0, atomic_load(&sigchld_count));
    pid_t own = fork();
    if (own == 0)
        _exit(0);
    CHECK(AWAIT(atomic_load(&reaped_count) == 1, 1000));
}

static atomic_int stop_reaping;

static void *reaper_thread(void *arg)
{
    (void)arg;
    while (!atomic_load(&stop_reaping)) {
        if (waitpid(-1, NULL, 0) > 0)
            atomic_fetch_add(&reaped_count, 1);
        else
            sched_yield();
    }
    return NULL;
}

/* A thread that takes every child it can get, all the time. */
TEST(host_that_reaps_in_a_thread)
{
    pthread_t thread;

    CHECK_EQ_INT(0, pthread_create(&thread, NULL, reaper_thread, NULL));
    use_everything();
    CHECK_EQ_INT(0, atomic_load(&reaped_count));
    atomic_store(&stop_reaping, 1);
    pthread_join(thread, NULL);
}

static volatile sig_atomic_t alarms;

static void on_alarm(int sig)
{
    (void)sig;
    alarms++;
}

/* Every system call of the host is interrupted again and again. */
TEST(host_with_a_storm_of_signals)
{
    struct sigaction action = {.sa_handler = on_alarm};
    struct itimerval storm = {{0, 700}, {0, 700}}, calm = {{0, 0}, {0, 0}};

    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &storm, NULL);
    use_everything();
    setitimer(ITIMER_REAL, &calm, NULL);
    CHECK(alarms > 20);
}

TEST(host_that_blocks_all_signals)
{
    sigset_t all, now;

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    use_everything();
    sigprocmask(SIG_SETMASK, NULL, &now);
    for (int sig = 1; sig < 32; sig++) {
        if (sig != SIGKILL && sig != SIGSTOP)
            CHECK_EQ_INT(1, sigismember(&now, sig));
    }
}

/* Orphans come to it only where no keeper takes them. */
static void need_keepers_that_adopt(void)
{
    if (group_tier())
        SKIP("the group tier leaves a command's orphans to a host that is a subreaper");
}

TEST(host_that_is_a_subreaper)
{
    need_keepers_that_adopt();
    CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
    use_everything();
    if (!AWAIT(count_children(getpid()) == 0, 500))
        FAIL("%d children or zombies are left to the host", count_children(getpid()));
}

/* A subreaper with a child of its own: the library reaps its keepers and nothing else. */
TEST(host_that_is_a_subreaper_with_children)
{
    int status = 0;

    need_keepers_that_adopt();
    CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
    pid_t own = fork();
    if (own == 0)
        _exit(9);
    use_everything();
    CHECK_EQ_INT(own, waitpid(own, &status, 0));
    CHECK_EQ_INT(9, WEXITSTATUS(status));
    CHECK(AWAIT(count_children(getpid()) == 0, 500));
}

/* -- Fork ------------------------------------------------------------------------------------ */

struct forked {
    nacre_session *session;
    nacre_watch *watch;
    nacre_id id;
    int fds;
};

static int never(const nacre_listed *listed, void *arg)
{
    (void)listed;
    (void)arg;
    return 1;
}

static int never_piece(const nacre_piece *piece, const void *bytes, void *arg)
{
    (void)piece;
    (void)bytes;
    (void)arg;
    return 1;
}

static void check_every_call_fails(void *arg)
{
    struct forked *f = arg;
    nacre_session *s = f->session;
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_record record = NACRE_RECORD_INIT;
    nacre_snapshot snapshot;
    nacre_watch *watch;
    const char *path;
    uint64_t cursor = 0;
    char buf[8];
    nacre_id id;

    command.text = "true";
    CHECK_CODE(NACRE_EFORKED, nacre_start(s, &command, &id, NULL, ERR));
    CHECK_CODE(NACRE_EFORKED, nacre_run(s, &command, -1, &record, ERR));
    CHECK_CODE(NACRE_EFORKED, nacre_get(s, &f->id, &record, ERR));
    CHECK_CODE(NACRE_EFORKED, nacre_kill(s, &f->id, NULL, NULL, ERR));
    CHECK_CODE(NACRE_EFORKED, nacre_release(s, &f->id, ERR));
    CHECK_CODE(NACRE_EFORKED, nacre_remove(s, &f->id, ERR));
    CHECK_CODE(NACRE_EFORKED, nacre_input(s, &f->id, "x", 1, 0, 10, ERR));
    CHECK_CODE(NACRE_EFORKED, nacre_wait(s, &f->id, 1, NACRE_WAIT_ANY, 10, NULL, ERR));
    CHECK_CODE(NACRE_EFORKED, nacre_read(s, &f->id, &cursor, NACRE_BOTH, buf, 8, NULL, ERR));
    CHECK_CODE(NACRE_EFORKED, nacre_output(s, &f->id, NACRE_BOTH, 0, &snapshot, ERR));
    CHECK_CODE(NACRE_EFORKED, nacre_find(s, "abcd", &id, ERR));
    CHECK_CODE(NACRE_EFORKED, list_home(s, false, never, NULL));
    CHECK_CODE(NACRE_EFORKED, nacre_follow(s, &f->id, 0, never_piece, NULL, ERR));
    CHECK_CODE(NACRE_EFORKED, nacre_watch_open(s, &f->id, 0, &watch, ERR));
    CHECK_CODE(NACRE_EFORKED, nacre_session_home(s, &path, NULL, ERR));
    CHECK_EQ_INT(0, nacre_close(s, ERR));
    nacre_record_done(&record);
    use_everything();
}

TEST(host_that_forked)
{
    struct forked f = {.session = open_session()};
    const char *m = marker();

    f.id = start_text(f.session, format("echo up; exec sleep 300.%s", m));
    CHECK(AWAIT(output_has(f.session, &f.id, NACRE_OUT, "up"), 3000));
    struct run warm = run_text(f.session, "true");
    host_join(host_fork(check_every_call_fails, &f));
    CHECK_EQ_INT(1, count_marked(m));
    CHECK_TEXT(status_of(f.session, &f.id), "running");
    struct run run = run_text(f.session, "echo still here");
    CHECK_TEXT(run.out, "still here\n");
    run_done(&warm);
    run_done(&run);
    close_session(f.session);
    CHECK_EQ_INT(0, count_marked(m));
}

/* The child ends, by exit() or by a crash: the shells of the parent go on. */
TEST(host_whose_child_ended)
{
    nacre_session *s = open_session();
    nacre_id id = start_text(s, "sleep 300");

    for (int i = 0; i < 3; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            if (i == 1)
                raise(SIGKILL);
            _exit(0);
        }
        waitpid(pid, NULL, 0);
    }
    pause_ms(50);
    CHECK_TEXT(status_of(s, &id), "running");
    close_session(s);
}

static void *start_in_a_thread(void *arg)
{
    struct forked *f = arg;

    f->session = open_session();
    f->id = start_text(f->session, "read x; echo \"got $x\"; exec sleep 300");
    return NULL;
}

/* Parent-death signals follow threads: the one that started it may end, the shell must not. */
TEST(host_whose_starting_thread_ended)
{
    struct forked f = {NULL, NULL, {{0}}, 0};
    pthread_t thread;

    CHECK_EQ_INT(0, pthread_create(&thread, NULL, start_in_a_thread, &f));
    pthread_join(thread, NULL);
    CHECK(AWAIT(output_has(f.session, &f.id, NACRE_OUT, "got"), 3000));
    pause_ms(50);
    CHECK_TEXT(status_of(f.session, &f.id), "running");
    struct run run = run_text(f.session, "echo hi");
    CHECK_TEXT(run.out, "hi\n");
    run_done(&run);
    close_session(f.session);
}

/* -- Descriptors ----------------------------------------------------------------------------- */

static void host_without_stdio(void *arg)
{
    unsigned mask = *(unsigned *)arg;

    for (int fd = 0; fd < 3; fd++) {
        if (mask & 1u << fd)
            close(fd);
    }
    use_everything();
    for (int fd = 0; fd < 3; fd++) {
        if ((mask & 1u << fd) && fcntl(fd, F_GETFD) >= 0)
            FAIL("descriptor %d was closed and is open now", fd);
    }
}

TEST(host_with_closed_stdio)
{
    unsigned masks[] = {7, 1, 2, 4};

    for (int i = 0; i < 4; i++)
        host_join(host_fork(host_without_stdio, &masks[i]));
}

static void many_descriptors(void *arg)
{
    struct rlimit limit;

    (void)arg;
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    if (limit.rlim_max < 5100)
        SKIP("the hard limit of descriptors is below 5100");
    limit.rlim_cur = limit.rlim_max;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    for (int i = 0; i < 5000; i++)
        CHECK(open("/dev/null", O_RDONLY) >= 0);
    use_everything();
    CHECK(fd_count() >= 5000);
}

TEST(host_with_5000_descriptors)
{
    host_join(host_fork(many_descriptors, NULL));
}

/* Takes every descriptor there is below a limit, but for a few. */
static int take_descriptors(int spare)
{
    int fd, last[16] = {0}, count = 0;

    while ((fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
        last[count++ % 16] = fd;
    CHECK(count >= 16 && errno == EMFILE);
    for (int i = 0; i < spare; i++)
        close(last[i]);
    return count;
}

/* No descriptor to be had: a clear error, nothing left, and it works again afterwards. */
static void start_without_descriptors(void *arg)
{
    struct rlimit limit;
    nacre_session *s = open_session();
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_id id;
    int spare = *(int *)arg;

    struct run run = run_text(s, "true");
    run_done(&run);
    command.text = "true";
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_cur = 300;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    take_descriptors(spare);
    int result = nacre_start(s, &command, &id, NULL, ERR);
    if (result < 0)
        CHECK_EQ_INT(EMFILE, harness_error.sys_errno);
    CHECK(result >= 0 || harness_error.msg[0]);
    limit.rlim_cur = 400;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    if (result >= 0)
        wait_outcome(s, &id, 3000);
    run = run_text(s, "echo again");
    CHECK_TEXT(run.out, "again\n");
    run_done(&run);
    close_session(s);
}

TEST(host_without_a_free_descriptor)
{
    for (int spare = 0; spare < 12; spare++)
        host_join(host_fork(start_without_descriptors, &spare));
}

/* -- Namespaces and filters ------------------------------------------------------------------ */

static void be_pid_one(void *arg)
{
    (void)arg;
    CHECK_EQ_INT(1, getpid());
    CHECK(mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) == 0);
    use_everything();
    if (!AWAIT(count_children(1) == 0, 500))
        FAIL("%d children or zombies are left to PID 1", count_children(1));
}

static void enter_pid_namespace(void *arg)
{
    if (unshare(CLONE_NEWPID | CLONE_NEWNS) < 0)
        SKIP("a pid namespace needs root");
    CHECK(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
    host_join(host_fork(be_pid_one, arg));
}

TEST(host_that_is_pid_one)
{
    need_keepers_that_adopt();
    host_join(host_fork(enter_pid_namespace, NULL));
}

HOST(everything)
{
    use_everything();
    CHECK(sees_no_child());
}

static void run_denied(const char *what)
{
    const char *prefix[] = {program("deny-syscall"), what, "--", NULL};

    host_join(host_exec(prefix, "everything"));
}

TEST(host_without_clone3)
{
    run_denied("clone3");
    run_denied("clone3=EPERM");
}

TEST(host_without_pidfd_open)
{
    run_denied("pidfd_open");
    run_denied("pidfd_open=EPERM");
}

TEST(host_without_close_range)
{
    run_denied("close_range");
    run_denied("close_range=EPERM");
}

TEST(host_without_other_calls)
{
    run_denied("pidfd_send_signal");
    run_denied("memfd_create");
    run_denied("execveat");
    run_denied("statx");
}

TEST(host_without_any_of_them)
{
    run_denied("clone3,pidfd_open,close_range,pidfd_send_signal,execveat,memfd_create");
}

static void lose_the_cgroup(void *arg)
{
    (void)arg;
    CHECK_EQ_INT(NACRE_TIER_SUBREAPER, tier_in_force());
    use_everything();
}

HOST(everything_without_a_cgroup)
{
    lose_the_cgroup(NULL);
}

TEST(host_whose_cgroups_are_read_only)
{
    if (geteuid() != 0 || !cgroup_dir())
        SKIP("needs root and a cgroup v2 tree");
    if (getenv("NACRE_TIER"))
        SKIP("NACRE_TIER is set");
    const char *prefix[] = {program("deny-syscall"), "cgroup", "--", NULL};
    host_join(host_exec(prefix, "everything_without_a_cgroup"));
}

/* Every lower tier on purpose, by option and by environment. */
TEST(lower_tiers_on_purpose)
{
    static const nacre_tier tiers[] = {NACRE_TIER_SUBREAPER, NACRE_TIER_GROUP};
    nacre_tier best = tier_in_force();

    for (int i = 0; i < 2; i++) {
        nacre_options options = NACRE_OPTIONS_INIT;
        nacre_tier want = tiers[i] > best ? tiers[i] : best;
        const char *before = getenv("NACRE_TIER") ? format("%s", getenv("NACRE_TIER")) : NULL;
        options.tier = tiers[i];
        nacre_session *s = open_options(&options);
        struct run run = run_text(s, "true");
        CHECK_EQ_INT(want, run.record.tier);
        run_done(&run);
        close_session(s);
        setenv("NACRE_TIER", nacre_tier_name(tiers[i]), 1);
        CHECK_EQ_INT(tiers[i], tier_in_force());
        if (tiers[i] != NACRE_TIER_GROUP)
            use_everything();
        unsetenv("NACRE_TIER");
        if (before)
            setenv("NACRE_TIER", before, 1);
    }
}

/* -- Credentials ----------------------------------------------------------------------------- */

static void run_as_nobody(void *arg)
{
    (void)arg;
    setenv("NACRE_HOME", format("%s/nobody-home", test_base()), 1);
    CHECK(setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0);
    use_everything();
}

TEST(ordinary_user)
{
    if (geteuid() != 0)
        SKIP("is one already");
    CHECK(chmod(test_base(), 0755) == 0);
    CHECK(chmod(format("%s/work", test_base()), 0777) == 0);
    CHECK(mkdir(format("%s/nobody-home", test_base()), 0700) == 0);
    CHECK(chown(format("%s/nobody-home", test_base()), 65534, 65534) == 0);
    pid_t probe = fork();
    if (probe == 0)
        _exit(setresuid(65534, 65534, 65534) < 0 || access(program("fd-list"), X_OK) < 0 ||
              access(test_base(), X_OK) < 0);
    int status = 0;
    waitpid(probe, &status, 0);
    if (status != 0)
        SKIP("an ordinary user cannot reach the build folder or the temporary directory");
    host_join(host_fork(run_as_nobody, NULL));
}

/* What the host has become since a keeper was made ahead of time holds for the next command. */
static void change_and_run(void *arg)
{
    nacre_session *s = open_session();
    const gid_t groups[] = {4711, 4712};
    char net[64] = "";

    (void)arg;
    struct run run = run_text(s, "true");
    run_done(&run);
    CHECK(setgroups(2, groups) == 0);
    run = run_text(s, "id -G");
    CHECK_STR(run.out, "4711 4712");
    run_done(&run);
    if (unshare(CLONE_NEWNET) < 0)
        SKIP("a network namespace needs root");
    CHECK(readlink("/proc/self/ns/net", net, sizeof(net) - 1) > 0);
    run = run_text(s, "readlink /proc/self/ns/net");
    CHECK_TEXT(run.out, format("%s\n", net));
    run_done(&run);
    CHECK(setresgid(65534, 65534, 65534) == 0);
    run = run_text(s, "id -g");
    CHECK_TEXT(run.out, "65534\n");
    run_done(&run);
    close_session(s);
}

TEST(host_that_changed_its_credentials)
{
    if (geteuid() != 0)
        SKIP("needs root to change them");
    host_join(host_fork(change_and_run, NULL));
}

TEST(host_that_changed_its_directory)
{
    nacre_session *s = open_session();
    struct run run = run_text(s, "true");

    run_done(&run);
    for (int i = 0; i < 3; i++) {
        CHECK(mkdir("inner", 0700) == 0 && chdir("inner") == 0);
        run = run_text(s, "pwd");
        CHECK_STR(run.out, "/inner\n");
        run_done(&run);
    }
    close_session(s);
}
