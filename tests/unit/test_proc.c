/*
 * What /proc says of processes: odd names, zombies, reused pids, trees and their environments.
 * With UNIT_ROLE in its environment this program is one of the processes that are looked at.
 */
#include "unit.h"

#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/defs.h"
#include "sys/fd.h"
#include "sys/ports.h"
#include "sys/proc.h"

#define WORDS 64

/* -- Processes to look at ---------------------------------------------------------------------- */

static int role_main(void)
{
    if (write(3, "x", 1) != 1)
        _exit(1);
    for (;;)
        pause();
}

static void await_byte(int fd)
{
    char c;
    assert_int_equal(RETRY(read(fd, &c, 1)), 1);
}

/* This program with other arguments and another environment, once it is there. */
static pid_t start_role(char *const *argv, char *const *env)
{
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (fds[1] == 3)
            fcntl(3, F_SETFD, 0);
        else
            dup2(fds[1], 3);
        execve("/proc/self/exe", argv, env);
        _exit(127);
    }
    close(fds[1]);
    await_byte(fds[0]);
    close(fds[0]);
    return pid;
}

static void end(pid_t pid)
{
    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

static void sleep_for_ever(void *data)
{
    const int *ready = data;
    EXPECT(write(*ready, "x", 1) == 1);
    for (;;)
        pause();
}

/* A child in fn that has told that it is ready. */
static pid_t start(void (*fn)(void *data))
{
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    pid_t pid = unit_fork(fn, &fds[1]);
    close(fds[1]);
    await_byte(fds[0]);
    close(fds[0]);
    return pid;
}

/* -- stat -------------------------------------------------------------------------------------- */

static void named(void *data)
{
    prctl(PR_SET_NAME, ") R 1 (a b) 9");
    sleep_for_ever(data);
}

static void odd_names_do_not_confuse(void **state)
{
    (void)state;
    pid_t pid = start(named);
    struct proc_stat plain, stat;
    assert_int_equal(proc_stat(getpid(), &plain), 0);
    assert_int_equal(plain.ref.pid, getpid());
    assert_int_equal(plain.parent, getppid());
    assert_int_equal(plain.state, 'R');
    assert_int_equal(proc_stat(pid, &stat), 0);
    assert_int_equal(stat.ref.pid, pid);
    assert_int_equal(stat.parent, getpid());
    assert_true(stat.state == 'S' || stat.state == 'R');
    assert_true(stat.ref.start >= plain.ref.start);
    /* Within a second of ours, not some other number of the line. */
    assert_true(stat.ref.start - plain.ref.start < 100 * (uint64_t)sysconf(_SC_CLK_TCK));
    end(pid);
}

static void alive_zombie_gone(void **state)
{
    (void)state;
    pid_t pid = start(sleep_for_ever);
    struct proc_ref ref, later;
    struct proc_stat stat;
    assert_int_equal(proc_ref(pid, &ref), 0);
    assert_true(proc_alive(&ref));
    later = ref;
    later.start++;
    assert_false(proc_alive(&later));
    later.start -= 2;
    assert_false(proc_alive(&later));
    kill(pid, SIGSTOP);
    assert_true(proc_alive(&ref));
    assert_false(proc_is_ending(&ref));
    siginfo_t info;
    kill(pid, SIGKILL);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(proc_stat(pid, &stat), 0);
    assert_int_equal(stat.state, 'Z');
    assert_true(stat.exits);
    assert_false(proc_alive(&ref));
    assert_true(proc_is_ending(&ref));
    assert_int_equal(proc_kill(&ref, SIGTERM), -ESRCH);
    end(pid);
    assert_int_equal(proc_stat(pid, &stat), -ESRCH);
    assert_int_equal(proc_ref(pid, &later), -ESRCH);
    assert_false(proc_alive(&ref));
    assert_int_equal(proc_kill(&ref, SIGTERM), -ESRCH);
}

static int outlive_ready;

static void *outlive(void *data)
{
    (void)data;
    /* The first thread is gone only some time after it said goodbye. */
    char path[64], text[256];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", getpid());
    do {
        unit_pause(1);
        if (fd_slurp_at(AT_FDCWD, path, text, sizeof text) < 0)
            break;
    } while (!strstr(text, ") Z "));
    if (write(outlive_ready, "x", 1) != 1)
        _exit(1);
    for (;;)
        pause();
}

static void leave_it_to_a_thread(void *data)
{
    pthread_t thread;
    outlive_ready = *(const int *)data;
    EXPECT(pthread_create(&thread, NULL, outlive, NULL) == 0);
    pthread_exit(NULL);
}

/* The kernel shows a process whose first thread has ended as a zombie, but the others go on. */
static void a_process_may_lose_its_first_thread(void **state)
{
    (void)state;
    pid_t pid = start(leave_it_to_a_thread);
    struct proc_ref ref, found[16];
    assert_int_equal(proc_ref(pid, &ref), 0);
    bool alive = proc_alive(&ref) && !proc_is_ending(&ref);
    size_t count = proc_tree(getpid(), found, ARRAY_SIZE(found), NULL, NULL);
    bool killed = proc_kill(&ref, SIGKILL) == 0;
    end(pid);
    assert_true(alive);
    assert_int_equal(count, 1);
    assert_true(killed);
}

/* -- kill -------------------------------------------------------------------------------------- */

static void kill_refuses_what_is_not_meant(void **state)
{
    (void)state;
    static const pid_t never[] = {1, 0, -1, -2, INT_MIN};
    for (size_t i = 0; i < ARRAY_SIZE(never); i++) {
        struct proc_ref ref = {.pid = never[i]};
        proc_ref(1, &ref);
        ref.pid = never[i];
        assert_int_equal(proc_kill(&ref, 0), -EINVAL);
    }
    pid_t pid = start(sleep_for_ever);
    struct proc_ref ref, other;
    assert_int_equal(proc_ref(pid, &ref), 0);
    other = ref;
    other.start ^= 1;
    assert_int_equal(proc_kill(&other, SIGKILL), -ESRCH);
    other.start = 0;
    assert_int_equal(proc_kill(&other, SIGKILL), -ESRCH);
    unit_pause(5);
    assert_true(proc_alive(&ref));
    assert_int_equal(proc_kill(&ref, NSIG + 1), -EINVAL);
    assert_int_equal(proc_kill(&ref, SIGUSR1), 0);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WTERMSIG(status), SIGUSR1);
}

static void kill_by_hand(void *data)
{
    const int *denied = data;
    struct proc_ref ref, other;
    int status;
    pid_t pid = fork();
    EXPECT(pid >= 0);
    if (pid == 0)
        for (;;)
            pause();
    EXPECT(unit_deny(denied[0], denied[1]));
    EXPECT(proc_ref(pid, &ref) == 0);
    other = ref;
    other.start++;
    EXPECT(proc_kill(&other, SIGKILL) == -ESRCH);
    EXPECT(proc_alive(&ref));
    EXPECT(proc_kill(&ref, SIGTERM) == 0);
    EXPECT(waitpid(pid, &status, 0) == pid && WTERMSIG(status) == SIGTERM);
    EXPECT(proc_kill(&ref, SIGTERM) == -ESRCH);
}

static void kill_without_pidfds(void **state)
{
    (void)state;
    int denied[][2] = {{SYS_pidfd_open, ENOSYS},
                       {SYS_pidfd_open, EPERM},
                       {SYS_pidfd_send_signal, ENOSYS},
                       {SYS_pidfd_send_signal, EPERM}};
    for (size_t i = 0; i < ARRAY_SIZE(denied); i++)
        unit_in_child(kill_by_hand, denied[i]);
}

/* -- Trees ------------------------------------------------------------------------------------- */

static int tell_fd;

static void fork_sleeper(int below)
{
    if (fork() > 0)
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (below > 0)
        fork_sleeper(below - 1);
    EXPECT(write(tell_fd, "x", 1) == 1);
    for (;;)
        pause();
}

static void *fork_in_thread(void *data)
{
    (void)data;
    fork_sleeper(2);
    /* Its children would be signalled if this thread ended. */
    pause();
    return NULL;
}

/* Itself, three in a row below its first thread, three in a row below another one, a zombie. */
static void family(void *data)
{
    const int *ready = data;
    int fds[2];
    char c;
    pthread_t thread;
    EXPECT(pipe2(fds, O_CLOEXEC) == 0);
    tell_fd = fds[1];
    fork_sleeper(2);
    EXPECT(pthread_create(&thread, NULL, fork_in_thread, NULL) == 0);
    for (int i = 0; i < 6; i++)
        EXPECT(read(fds[0], &c, 1) == 1);
    pid_t zombie = fork();
    if (zombie == 0)
        _exit(0);
    siginfo_t info;
    EXPECT(waitid(P_PID, (id_t)zombie, &info, WEXITED | WNOWAIT) == 0);
    sleep_for_ever((void *)ready);
}

static void end_tree(pid_t pid)
{
    struct proc_ref refs[1024];
    size_t count = proc_tree(pid, refs, ARRAY_SIZE(refs), NULL, NULL);
    end(pid);
    for (size_t i = 0; i < count; i++)
        proc_kill(&refs[i], SIGKILL);
}

static void tree_finds_all_generations(void **state)
{
    (void)state;
    pid_t pid = start(family);
    struct proc_ref refs[32];
    size_t count = proc_tree(getpid(), refs, ARRAY_SIZE(refs), NULL, NULL);
    assert_int_equal(count, 7);
    assert_int_equal(refs[0].pid, pid);
    for (size_t i = 0; i < count; i++) {
        struct proc_stat stat;
        assert_true(proc_alive(&refs[i]));
        assert_int_equal(proc_stat(refs[i].pid, &stat), 0);
        bool parent_before = stat.parent == getpid();
        for (size_t j = 0; j < i; j++) {
            assert_int_not_equal(refs[i].pid, refs[j].pid);
            parent_before = parent_before || refs[j].pid == stat.parent;
        }
        assert_true(parent_before);
    }
    assert_int_equal(proc_tree(pid, refs, ARRAY_SIZE(refs), NULL, NULL), 6);
    /* Never more than there is room for. */
    for (size_t max = 0; max < 7; max++) {
        struct proc_ref few[8];
        memset(few, 0x5a, sizeof few);
        assert_int_equal(proc_tree(getpid(), few, max, NULL, NULL), max);
        assert_int_equal(few[max].pid, 0x5a5a5a5a);
    }
    end_tree(pid);
    assert_int_equal(proc_tree(pid, refs, ARRAY_SIZE(refs), NULL, NULL), 0);
}

static void on_usr1(int signal)
{
    (void)signal;
    fork_sleeper(0);
}

static void fork_when_told(void *data)
{
    struct sigaction action = {.sa_handler = on_usr1};
    tell_fd = *(const int *)data;
    sigaction(SIGUSR1, &action, NULL);
    sleep_for_ever(data);
}

struct visits {
    size_t count;
    struct proc_ref refs[16];
    int told; /* where a new child says that it is there */
};

static int note_visit(const struct proc_ref *ref, void *userdata)
{
    struct visits *visits = userdata;
    char c;
    visits->refs[visits->count++] = *ref;
    if (visits->count > 1)
        return 0;
    kill(ref->pid, SIGUSR1);
    EXPECT(RETRY(read(visits->told, &c, 1)) == 1);
    return 0;
}

static int end_walk(const struct proc_ref *ref, void *userdata)
{
    (void)ref;
    return --*(int *)userdata == 0;
}

static void visit_comes_before_the_children(void **state)
{
    (void)state;
    struct visits visits = {0};
    struct proc_ref refs[16];
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    visits.told = fds[0];
    pid_t pid = unit_fork(fork_when_told, &fds[1]);
    await_byte(fds[0]);
    assert_int_equal(proc_tree(getpid(), refs, ARRAY_SIZE(refs), NULL, NULL), 1);
    /* The child that the visit makes is listed: its parent's children are read after it. */
    size_t count = proc_tree(getpid(), refs, ARRAY_SIZE(refs), note_visit, &visits);
    assert_int_equal(count, 2);
    assert_int_equal(visits.count, 2);
    assert_memory_equal(visits.refs, refs, 2 * sizeof refs[0]);
    assert_int_equal(refs[0].pid, pid);
    end_tree(pid);
    close(fds[0]);
    close(fds[1]);
}

#define MANY 600

static void many_children(void *data)
{
    int fds[2];
    char c;
    EXPECT(pipe2(fds, O_CLOEXEC) == 0);
    tell_fd = fds[1];
    for (int i = 0; i < MANY; i++)
        fork_sleeper(0);
    for (int i = 0; i < MANY; i++)
        EXPECT(read(fds[0], &c, 1) == 1);
    sleep_for_ever(data);
}

/* Their list is longer than one read of it. */
static void tree_finds_many_children(void **state)
{
    (void)state;
    static struct proc_ref refs[MANY + 100];
    pid_t pid = start(many_children);
    size_t count = proc_tree(pid, refs, ARRAY_SIZE(refs), NULL, NULL);
    int visits = 3;
    size_t few = proc_tree(pid, refs, ARRAY_SIZE(refs), end_walk, &visits);
    end_tree(pid);
    assert_int_equal(count, MANY);
    assert_int_equal(few, 3);
}

/* -- Groups ------------------------------------------------------------------------------------ */

/* Its leader, two below it, one that left, and a zombie. */
static void group(void *data)
{
    int fds[2];
    char c;
    EXPECT(setpgid(0, 0) == 0 && pipe2(fds, O_CLOEXEC) == 0);
    tell_fd = fds[1];
    fork_sleeper(1);
    for (int i = 0; i < 2; i++)
        EXPECT(read(fds[0], &c, 1) == 1);
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        setpgid(0, 0);
        sleep_for_ever(&tell_fd);
    }
    EXPECT(read(fds[0], &c, 1) == 1);
    pid_t zombie = fork();
    if (zombie == 0)
        _exit(0);
    siginfo_t info;
    EXPECT(waitid(P_PID, (id_t)zombie, &info, WEXITED | WNOWAIT) == 0);
    sleep_for_ever(data);
}

static void groups_have_members(void **state)
{
    (void)state;
    pid_t pid = start(group);
    struct proc_ref refs[8];
    struct proc_stat stat;
    size_t count = proc_group(pid, refs, ARRAY_SIZE(refs));
    bool members = true, leader = false;
    for (size_t i = 0; i < count; i++) {
        members = members && getpgid(refs[i].pid) == pid && proc_alive(&refs[i]);
        leader = leader || refs[i].pid == pid;
    }
    assert_int_equal(proc_stat(pid, &stat), 0);
    size_t one = proc_group(pid, refs, 1);
    end_tree(pid);
    assert_int_equal(stat.group, pid);
    assert_int_equal(count, 3);
    assert_true(members && leader);
    assert_int_equal(one, 1);
    /* Those below the leader are killed by its death, which is not at the same moment. */
    for (int i = 0; i < 1000 && proc_group(pid, refs, ARRAY_SIZE(refs)) > 0; i++)
        unit_pause(5);
    assert_int_equal(proc_group(pid, refs, ARRAY_SIZE(refs)), 0);
}

static int stop_at(pid_t pid, void *userdata)
{
    return pid == *(const pid_t *)userdata ? 42 : 0;
}

static void each_meets_all_until_it_is_stopped(void **state)
{
    (void)state;
    pid_t self = getpid(), parent = getppid(), nobody = -1;
    assert_int_equal(proc_each(stop_at, &self), 42);
    assert_int_equal(proc_each(stop_at, &parent), 42);
    assert_int_equal(proc_each(stop_at, &nobody), 0);
}

/* -- Command lines and environments ------------------------------------------------------------ */

static void command_lines(void **state)
{
    (void)state;
    char *argv[] = {(char *)"prog", (char *)"two words", (char *)"new\nline", (char *)"", NULL};
    char *env[] = {(char *)"UNIT_ROLE=sleeper", NULL};
    char buf[256];
    pid_t pid = start_role(argv, env);
    assert_int_equal(proc_cmdline(pid, buf, sizeof buf), 0);
    assert_string_equal(buf, "prog two words new line");
    assert_int_equal(proc_cmdline(pid, buf, 8), 0);
    assert_string_equal(buf, "prog tw");
    siginfo_t info;
    kill(pid, SIGKILL);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(proc_cmdline(pid, buf, sizeof buf), 0);
    assert_int_equal(buf[0], '[');
    assert_int_equal(buf[strlen(buf) - 1], ']');
    end(pid);
    assert_true(proc_cmdline(pid, buf, sizeof buf) < 0);
}

/* The length of the longest beginning of s that fits and ends between characters. */
static size_t fitting_characters(const char *s, size_t fits)
{
    size_t n = strlen(s) < fits ? strlen(s) : fits;
    while (n > 0 && ((unsigned char)s[n] & 0xc0) == 0x80)
        n--;
    return n;
}

static void command_lines_are_cut_between_characters(void **state)
{
    (void)state;
    static const char text[] = "p a\xc3\xa9\xc3\xa9 \xe2\x82\xac\xe2\x82\xac\xf0\x9f\x98\x80"
                               "\xf0\x9f\x98\x80z\xf0\x9f\x98\x80 \xc3\xa9";
    char first[] = "p", rest[sizeof text], buf[sizeof text + 8];
    memcpy(rest, text + 2, sizeof text - 2);
    char *argv[] = {first, rest, NULL};
    char *env[] = {(char *)"UNIT_ROLE=sleeper", NULL};
    pid_t pid = start_role(argv, env);
    int wrong = 0;
    for (size_t size = 2; size < sizeof buf; size++) {
        memset(buf, 'x', sizeof buf);
        int r = proc_cmdline(pid, buf, size);
        size_t want = fitting_characters(text, size - 1);
        want -= want == 2; /* nothing follows the blank between the arguments */
        if (r != 0 || strlen(buf) != want || memcmp(buf, text, want) != 0) {
            printf("in %zu bytes: %zu of them \"%s\", wanted %zu\n", size, strlen(buf), buf, want);
            wrong++;
        }
    }
    end(pid);
    assert_int_equal(wrong, 0);
}

/* One mark before and one across each border of the reader's buffer, at a new place each time. */
static void environment_entries_across_borders(void **state)
{
    (void)state;
    static char space[WORDS * 4096 + 8192];
    char *env[3 * WORDS + 4], *argv[] = {(char *)"x", NULL};
    size_t at = 0, count = 0;
    env[count++] = strcpy(space, "UNIT_ROLE=sleeper");
    at = strlen(space) + 1;
    for (int i = 1; i < WORDS; i++) {
        /* Padding up to somewhere around the border, and the mark from there on. */
        size_t mark = (size_t)i * 4096 + 3 - (size_t)i / 2;
        env[count++] = space + at;
        memset(space + at, 'P', mark - at - 1);
        at = mark;
        env[count++] = space + at;
        at += (size_t)snprintf(space + at, 64, "MARK%03d=value-of-mark-number-%03d", i, i) + 1;
    }
    env[count++] = strcpy(space + at, "LAST=1");
    env[count] = NULL;
    pid_t pid = start_role(argv, env);
    int missing = 0, false_finds = 0;
    for (int i = 1; i < WORDS; i++) {
        char entry[64];
        int n = snprintf(entry, sizeof entry, "MARK%03d=value-of-mark-number-%03d", i, i);
        missing += !proc_has_env(pid, entry);
        false_finds += proc_has_env(pid, entry + 1);
        entry[n] = 'x';
        entry[n + 1] = '\0';
        false_finds += proc_has_env(pid, entry);
        entry[n - 1] = '\0';
        false_finds += proc_has_env(pid, entry);
    }
    missing += !proc_has_env(pid, "LAST=1") + !proc_has_env(pid, "UNIT_ROLE=sleeper");
    end(pid);
    assert_int_equal(missing, 0);
    assert_int_equal(false_finds, 0);
}

static void environment_entries_match_exactly(void **state)
{
    (void)state;
    char *argv[] = {(char *)"x", (char *)"ARG=1", NULL};
    char *env[] = {(char *)"UNIT_ROLE=sleeper",
                   (char *)"A=B=C",
                   (char *)"AA=1",
                   (char *)"X=A=1",
                   (char *)"EMPTY=",
                   (char *)"AAB=1",
                   (char *)"AAAC",
                   NULL};
    pid_t pid = start_role(argv, env);
    static const char *const there[] = {"A=B=C", "AA=1", "X=A=1", "EMPTY=", "AAB=1", "AAAC"};
    static const char *const not_there[] = {"A=1",   "A",   "A=B", "A=B=CD", "B=C", "ARG=1",
                                            "EMPTY", "AA=", "=1",  "C",      "NONE"};
    bool fine = true;
    for (size_t i = 0; i < ARRAY_SIZE(there); i++)
        fine = fine && proc_has_env(pid, there[i]);
    for (size_t i = 0; i < ARRAY_SIZE(not_there); i++)
        fine = fine && !proc_has_env(pid, not_there[i]);
    end(pid);
    assert_true(fine);
    assert_false(proc_has_env(pid, "A=B=C"));
}

/* -- Ports ------------------------------------------------------------------------------------- */

static int listen_on(int family, uint16_t *ret_port)
{
    union {
        struct sockaddr any;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
    } addr;
    memset(&addr, 0, sizeof addr);
    addr.any.sa_family = (sa_family_t)family;
    socklen_t len = family == AF_INET ? sizeof addr.in : sizeof addr.in6;
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, &addr.any, len) < 0 || listen(fd, 1) < 0 ||
        getsockname(fd, &addr.any, &len) < 0) {
        close_fd(&fd);
        return fd;
    }
    *ret_port = ntohs(family == AF_INET ? addr.in.sin_port : addr.in6.sin6_port);
    return fd;
}

static bool has_port(const uint16_t *ports, size_t count, uint16_t port)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        found += ports[i] == port;
    return found == 1;
}

static void listening_ports(void **state)
{
    (void)state;
    uint16_t ports[8], first, second, sixth = 0, bound;
    int a = listen_on(AF_INET, &first), b = listen_on(AF_INET, &second);
    int six = listen_on(AF_INET6, &sixth);
    assert_true(a >= 0 && b >= 0);
    int copy = dup(a);
    /* Bound but not listening. */
    int c = listen_on(AF_INET, &bound);
    assert_int_equal(shutdown(c, SHUT_RD), 0);
    size_t count = ports_of(getpid(), ports, ARRAY_SIZE(ports));
    assert_int_equal(count, six >= 0 ? 3 : 2);
    assert_true(has_port(ports, count, first));
    assert_true(has_port(ports, count, second));
    assert_true(six < 0 || has_port(ports, count, sixth));
    assert_int_equal(ports_of(getpid(), ports, 1), 1);
    assert_int_equal(ports_of(getpid(), ports, 0), 0);
    pid_t pid = start(sleep_for_ever);
    count = ports_of(pid, ports, ARRAY_SIZE(ports));
    assert_int_equal(count, six >= 0 ? 3 : 2);
    end(pid);
    assert_int_equal(ports_of(pid, ports, ARRAY_SIZE(ports)), 0);
    close(a);
    close(b);
    close(c);
    close(copy);
    close_fd(&six);
    assert_int_equal(ports_of(getpid(), ports, ARRAY_SIZE(ports)), 0);
}

#define LISTENERS 700

/* Their table is longer than any buffer for it, in both families. */
static void listen_on_many(void *data)
{
    static uint16_t want[LISTENERS], ports[LISTENERS + 8];
    struct rlimit limit;
    (void)data;
    EXPECT(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_cur = limit.rlim_max;
    EXPECT(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    bool six = access("/proc/net/tcp6", R_OK) == 0;
    for (int i = 0; i < LISTENERS; i++)
        EXPECT(listen_on(six && i % 2 ? AF_INET6 : AF_INET, &want[i]) >= 0);
    size_t count = ports_of(getpid(), ports, ARRAY_SIZE(ports));
    EXPECT(count == LISTENERS);
    for (int i = 0; i < LISTENERS; i++)
        EXPECT(has_port(ports, count, want[i]));
}

static void listening_ports_of_any_number(void **state)
{
    (void)state;
    unit_in_child(listen_on_many, NULL);
}

static void look_from_another_namespace(void *data)
{
    (void)data;
    int status;
    if (unshare(CLONE_NEWPID) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWPID) < 0)
        _exit(77);
    pid_t pid = fork();
    EXPECT(pid >= 0);
    if (pid == 0)
        _exit(proc_is_ours() ? 1 : 0);
    EXPECT(waitpid(pid, &status, 0) == pid && status == 0);
}

static void proc_of_another_namespace(void **state)
{
    (void)state;
    assert_true(proc_is_ours());
    int status = unit_join(unit_fork(look_from_another_namespace, NULL));
    if (status == 77 << 8)
        SKIP("pid namespaces: the kernel does not let us make one");
    assert_int_equal(status, 0);
}

static uint64_t rusage_ms(int who)
{
    struct rusage usage;
    assert_int_equal(getrusage(who, &usage), 0);
    return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
           (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000;
}

static void compute(void *data)
{
    (void)data;
    while (rusage_ms(RUSAGE_SELF) < 200)
        ;
    _exit(0);
}

/* The kernel counts both in ticks that it scales, so they agree but for a few. */
static void times_and_memory(void **state)
{
    (void)state;
    struct proc_stat before, stat;
    size_t size = (size_t)32 << 20;
    assert_int_equal(proc_stat(getpid(), &before), 0);
    unit_join(unit_fork(compute, NULL));
    while (rusage_ms(RUSAGE_SELF) < 100)
        ;
    char *memory = malloc(size);
    assert_non_null(memory);
    memset(memory, 1, size);
    uint64_t own = rusage_ms(RUSAGE_SELF), waited = rusage_ms(RUSAGE_CHILDREN);
    assert_int_equal(proc_stat(getpid(), &stat), 0);
    assert_in_range(stat.cpu_ms + 30, own, own + 100);
    assert_in_range(stat.waited_ms + 30, waited, waited + 60);
    assert_in_range(stat.memory_bytes - before.memory_bytes, size / 2, size * 4);
    free(memory);
}

int main(void)
{
    if (getenv("UNIT_ROLE"))
        return role_main();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(odd_names_do_not_confuse),
        cmocka_unit_test(alive_zombie_gone),
        cmocka_unit_test(a_process_may_lose_its_first_thread),
        cmocka_unit_test(kill_refuses_what_is_not_meant),
        cmocka_unit_test(kill_without_pidfds),
        cmocka_unit_test(tree_finds_all_generations),
        cmocka_unit_test(visit_comes_before_the_children),
        cmocka_unit_test(tree_finds_many_children),
        cmocka_unit_test(groups_have_members),
        cmocka_unit_test(each_meets_all_until_it_is_stopped),
        cmocka_unit_test(command_lines),
        cmocka_unit_test(command_lines_are_cut_between_characters),
        cmocka_unit_test(environment_entries_across_borders),
        cmocka_unit_test(environment_entries_match_exactly),
        cmocka_unit_test(listening_ports),
        cmocka_unit_test(listening_ports_of_any_number),
        cmocka_unit_test(proc_of_another_namespace),
        cmocka_unit_test(times_and_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
