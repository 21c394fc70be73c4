/*
 * Many runs, one after another and at once: descriptors, processes, zombies, cgroups and memory
 * are afterwards where they were before.
 */
#include "harness/harness.h"

#include <dirent.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct footprint {
    int fds;
    int children;
    size_t heap;  /* bytes handed out by malloc */
    long anon_kb; /* pages of the program's file come in as its paths are walked: not counted */
};

static struct footprint footprint_now(void)
{
    return (struct footprint){fd_count(), count_children(getpid()), mallinfo2().uordblks,
                              process_anon_kb(getpid())};
}

/* The footprint of a host that has already done once all that it will do again. */
static struct footprint footprint_warm(void)
{
    CHECK(count_keepers() >= 0);
    footprint_now();
    return footprint_now();
}

/* What happened in between happened 66 times or more, 13 under a sanitizer: one block or one
 * descriptor kept of each would be seen. */
static void check_footprint(struct footprint before)
{
    struct footprint now = footprint_now();

    CHECK_RANGE(0, now.fds, before.fds + 2); /* a warm keeper's socket comes and goes */
    CHECK_EQ_INT(before.children, now.children);
    if (sanitized())
        return;
    CHECK_RANGE(0, now.heap, before.heap + 2000);
    CHECK_RANGE(0, now.anon_kb, before.anon_kb + 32); /* a deeper stack, a list of free blocks */
}

/* On a busy machine a look at a shell may still be under way; each call goes on with it. */
static void await_looks(nacre_session *s, struct footprint before)
{
    CHECK(AWAIT(counts_of(s).running == 0 &&
                    (sanitized() || mallinfo2().uordblks <= before.heap + 2000),
                2000));
}

/* -- One after another ----------------------------------------------------------------------- */

static void run_many(nacre_session *s, int count, const char *text)
{
    for (int i = 0; i < count; i++) {
        nacre_command command = NACRE_COMMAND_INIT;
        nacre_record record = NACRE_RECORD_INIT;
        command.text = text;
        CHECK_OK(nacre_run(s, &command, -1, &record, ERR));
        CHECK_EQ_INT(NACRE_EXITED, record.outcome);
        CHECK_EQ_INT(0, record.exit_code);
        if (i % 2 && record.tree == NACRE_TREE_EMPTY)
            CHECK_OK(nacre_remove(s, &record.id, ERR));
        nacre_record_done(&record);
    }
}

TEST_LIMIT(one_after_another, 600)
{
    nacre_session *s = open_session();

    run_many(s, 100, "true");
    struct footprint before = footprint_warm();
    run_many(s, rounds(long_tests() ? 10000 : 500), "true");
    CHECK(AWAIT(count_keepers() <= 1, 500));
    check_footprint(before);
    close_session(s);
    CHECK(AWAIT(count_keepers() == 0, 300));
}

static void run_leftovers(int index, void *arg)
{
    (void)index;
    run_many(arg, rounds(long_tests() ? 1000 : 200) / 8, "(sleep 0.01 &) ; :");
}

TEST_LIMIT(many_with_a_leftover, 60)
{
    nacre_session *s = open_session();

    run_threads(8, run_leftovers, s);
    CHECK(AWAIT(count_keepers() <= 1, 1000));
    int before = fd_count();
    run_many(s, 20, "(sleep 0.001 &) ; :");
    CHECK_RANGE(0, fd_count(), before + 2);
    close_session(s);
    CHECK(AWAIT(count_keepers() == 0, 300));
}

/* Sessions, too: opened, used, closed. */
HOST(sessions)
{
    struct footprint before = {0};

    for (int i = 0; i < rounds(120); i++) {
        nacre_session *s = open_session();
        if (i % 3 != 0) {
            struct run run = run_text(s, "echo hi");
            start_text(s, "sleep 300");
            run_done(&run);
        }
        close_session(s);
        if (i == rounds(20))
            before = footprint_warm();
    }
    check_footprint(before);
    CHECK(AWAIT(count_keepers() == 0, 300));
}

/* Each session finds more runs and asks malloc for other sizes. What was freed and is kept by
 * malloc for its thread would count as in use. */
TEST(sessions_one_after_another)
{
    static const char *const exact[] = {"env", "GLIBC_TUNABLES=glibc.malloc.tcache_count=0", NULL};

    host_join(host_exec(exact, "sessions"));
}

/* Failed starts leave nothing either. */
TEST(failures_one_after_another)
{
    nacre_session *s = open_session();
    nacre_command bad = NACRE_COMMAND_INIT, good = NACRE_COMMAND_INIT;
    struct footprint before = {0};
    nacre_id id;

    bad.text = "true";
    bad.cwd = "/no/such/directory";
    good.text = "true";
    for (int i = 0; i < rounds(200); i++) {
        CHECK_CODE(NACRE_ESTART, nacre_start(s, &bad, &id, NULL, ERR));
        if (i % 10 == 0) {
            /* Seen to be over, so that the session forgets it. */
            id = start_command(s, &good);
            CHECK(AWAIT(tree_empty(s, &id), 3000));
        }
        if (i == rounds(50))
            before = footprint_warm();
    }
    CHECK(AWAIT(count_keepers() <= 1, 500));
    await_looks(s, before);
    check_footprint(before);
    close_session(s);
}

/* Everything else that opens something. */
TEST(looking_one_after_another)
{
    nacre_session *s = open_session();
    nacre_id id = start_text(s, "echo hi; sleep 300");
    struct footprint before = {0};

    for (int i = 0; i < 300; i++) {
        nacre_snapshot snapshot;
        nacre_watch *watch;
        nacre_event event;
        char buf[16];
        CHECK_OK(nacre_watch_open(s, &id, 0, &watch, ERR));
        CHECK_OK(nacre_watch_next(watch, buf, sizeof(buf), &event, ERR));
        nacre_watch_close(watch);
        CHECK_OK(nacre_output(s, &id, NACRE_BOTH, 0, &snapshot, ERR));
        free(snapshot.data);
        CHECK(nacre_wait(s, &id, 1, NACRE_WAIT_ANY, 0, NULL, NULL) == NACRE_ETIMEOUT);
        CHECK(nacre_input(s, &id, "x", 1, 0, 5000, NULL) == NACRE_ECLOSED);
        nacre_record record = record_of(s, &id);
        CHECK_EQ_INT(NACRE_RUNNING, record.outcome);
        nacre_record_done(&record);
        if (i == 100)
            before = footprint_warm();
    }
    check_footprint(before);
    close_session(s);
}

/* -- At once --------------------------------------------------------------------------------- */

TEST_LIMIT(two_hundred_at_once, 60)
{
    enum { COUNT = 200 };
    nacre_session *s = open_session();
    const char *m = marker();
    nacre_id ids[COUNT];
    struct rlimit limit;

    struct run run = run_text(s, "true");
    run_done(&run);
    struct footprint before = footprint_warm();
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_cur = 64;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    for (int i = 0; i < COUNT; i++)
        ids[i] = start_text(s, format("echo %d; exec sleep 300.%s", i, m));
    await_marked(m, COUNT);
    CHECK_RANGE(before.fds, fd_count(), before.fds + 4);
    CHECK(count_keepers() >= COUNT);
    for (int i = 0; i < COUNT; i++)
        CHECK(AWAIT(output_has(s, &ids[i], NACRE_OUT, format("%d\n", i)), 3000));
    for (int i = 0; i < COUNT / 2; i++)
        kill_shell(s, &ids[i], -1);
    CHECK_OK(nacre_wait(s, ids, COUNT / 2, NACRE_WAIT_ALL, MS(1000), NULL, ERR));
    CHECK_EQ_INT(COUNT / 2, count_marked(m));
    CHECK_RANGE(0, fd_count(), before.fds + 4);
    close_session(s);
    CHECK_EQ_INT(0, count_marked(m));
    CHECK(AWAIT(count_keepers() == 0, 500));
    CHECK_EQ_INT(0, count_children(getpid()));
}

TEST_LIMIT(two_hundred_that_end_at_once, 60)
{
    enum { COUNT = 200 };
    nacre_session *s = open_session();
    nacre_id ids[COUNT];

    char newlines[COUNT];

    CHECK(mkfifo("go", 0600) == 0);
    for (int i = 0; i < COUNT; i++)
        ids[i] = start_text(s, format("read x < go; exit %d", i));
    int go = open("go", O_RDWR | O_CLOEXEC);
    CHECK(go >= 0);
    memset(newlines, '\n', COUNT);
    CHECK_EQ_INT(COUNT, write(go, newlines, COUNT)); /* each read takes one */
    CHECK_OK(nacre_wait(s, ids, COUNT, NACRE_WAIT_ALL, MS(20000), NULL, ERR));
    for (int i = 0; i < COUNT; i++)
        CHECK_TEXT(status_of(s, &ids[i]), format("exited(%d)", i));
    close(go);
    close_session(s);
    CHECK(AWAIT(count_keepers() == 0, 500));
}

/* -- Warm keepers and their directories ------------------------------------------------------ */

static int run_directories(void)
{
    DIR *dir = opendir(format("%s/runs", test_home()));
    int count = 0;

    for (struct dirent *e; dir && (e = readdir(dir));)
        count += e->d_name[0] != '.';
    if (dir)
        closedir(dir);
    return count;
}

/* Every directory that was ever made, also those of keepers that were never used. */
static void check_cgroups_of(int watch)
{
    char buf[65536] __attribute__((aligned(8)));
    ssize_t size = read(watch, buf, sizeof(buf));
    const char *cgroup = cgroup_dir();
    int seen = 0;

    for (char *p = buf; size > 0 && p < buf + size;) {
        struct inotify_event *event = (struct inotify_event *)(void *)p;
        if (cgroup && access(format("%s/nacre-%s", cgroup, event->name), F_OK) == 0)
            FAIL("the cgroup of run %s is left", event->name);
        seen++;
        p += sizeof(*event) + event->len;
    }
    CHECK(seen >= 1);
}

TEST(unused_keepers_leave_nothing)
{
    const char *runs = format("%s/runs", test_home());
    int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

    CHECK(mkdir(test_home(), 0700) == 0 && mkdir(runs, 0700) == 0);
    CHECK(inotify_add_watch(watch, runs, IN_CREATE) >= 0);
    nacre_session *s = open_session();
    for (int i = 0; i < 5; i++) {
        struct run run = run_text(s, "true");
        run_done(&run);
    }
    CHECK(count_children(getpid()) == 0);
    close_session(s);
    CHECK_EQ_INT(5, run_directories());
    CHECK(AWAIT(count_keepers() == 0, 300));
    check_cgroups_of(watch);
    close(watch);
}

static void die_with_a_warm_keeper(void *arg)
{
    nacre_session *s = open_session();
    struct run run = run_text(s, "true");

    (void)arg;
    run_done(&run);
    raise(SIGKILL);
}

TEST(unused_keepers_leave_with_a_killed_owner)
{
    const char *runs = format("%s/runs", test_home());
    int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

    CHECK(mkdir(test_home(), 0700) == 0 && mkdir(runs, 0700) == 0);
    CHECK(inotify_add_watch(watch, runs, IN_CREATE) >= 0);
    for (int i = 0; i < 10; i++)
        waitpid(host_fork(die_with_a_warm_keeper, NULL), NULL, 0);
    CHECK(AWAIT(count_keepers() == 0, 1000));
    CHECK(run_directories() <= 10);
    check_cgroups_of(watch);
    close(watch);
}
