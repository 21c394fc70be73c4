/* What a command may do against its keeper, its limits, and the proof that it is gone. */
#include "harness/harness.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* -- Files of the run that are something else -------------------------------------------------- */

/* What a shell does to put something else in the place of $F. */
static const char *const obstacles[] = {
    "mkfifo $F",         "mkdir -p $F/x", "ln -s /dev/zero $F",
    "ln -s /dev/tty $F", "ln -s $F $F",   "head -c 100000 /dev/zero > $F",
    "echo 1 2 3 > $F",
};

static const char *with_obstacle(const char *obstacle, const char *file, const char *rest)
{
    return format("F=%s/runs/$NACRE_ID/%s; rm -f $F; %s; %s", test_home(), file, obstacle, rest);
}

/* The answer comes, and what was left behind ends with the session. */
TEST_LIMIT(something_else_as_pipestatus, 60)
{
    for (size_t i = 0; i < sizeof obstacles / sizeof obstacles[0]; i++) {
        nacre_session *s = open_session();
        const char *m = marker();
        const char *text =
            with_obstacle(obstacles[i], "pipestatus",
                          format("(%s sleep 300.%s &); echo hi | cat", own_session(), m));
        int64_t began = now_ms();
        struct run run = run_text(s, text);
        CHECK_RANGE(0, now_ms() - began, soon(3000));
        CHECK_STR(run.out, "hi\n");
        CHECK_EQ_INT(0, run.record.exit_code);
        run_done(&run);
        close_session(s);
        CHECK_EQ_INT(0, count_marked(m));
    }
}

/* The tail is made when the head is full. */
TEST_LIMIT(something_else_as_tail, 60)
{
    for (size_t i = 0; i < sizeof obstacles / sizeof obstacles[0]; i++) {
        nacre_session *s = open_session();
        nacre_command command = NACRE_COMMAND_INIT;
        command.text = with_obstacle(obstacles[i], "tail", "head -c 3000000 /dev/zero; echo end");
        command.quota = 1024L * 1024;
        struct run run = run_command(s, &command);
        CHECK_EQ_INT(0, run.record.exit_code);
        CHECK_EQ_INT(3000004, run.record.bytes[0]);
        run_done(&run);
        close_session(s);
    }
}

/* -- Strays ------------------------------------------------------------------------------------ */

static void be_init(int told)
{
    pid_t init;
    if (unshare(CLONE_NEWPID | (geteuid() == 0 ? 0 : CLONE_NEWUSER)) < 0 || (init = fork()) < 0)
        _exit(1);
    if (init == 0)
        for (;;)
            pause();
    if (write(told, &init, sizeof init) != sizeof init)
        _exit(1);
    waitpid(init, NULL, 0);
    _exit(0);
}

/* The init of a pid namespace that is outside of every tree; 0 if none can be made. */
static pid_t foreign_init(pid_t *ret_parent)
{
    int fds[2];
    pid_t init = 0;
    CHECK(pipe(fds) == 0);
    *ret_parent = fork();
    CHECK(*ret_parent >= 0);
    if (*ret_parent == 0)
        be_init(fds[1]);
    close(fds[1]);
    if (read(fds[0], &init, sizeof init) != sizeof init)
        init = 0;
    close(fds[0]);
    return init;
}

static bool names_leftover(nacre_session *s, const nacre_id *id, const char *mark)
{
    nacre_record record = record_of(s, id);
    bool named = record.leftover_count == 1 && strstr(record.leftover[0].command, mark);
    nacre_record_done(&record);
    return named;
}

/* It is no descendant of its keeper any more: it is named, and killed, all the same. */
TEST_LIMIT(stray, 40)
{
    need_tree();
    pid_t parent, init = foreign_init(&parent);
    if (init == 0) {
        waitpid(parent, NULL, 0);
        SKIP("no pid namespace can be made");
    }
    nacre_session *s = open_session();
    const char *m = marker();
    nacre_id id = start_background(
        s, format("%s %d sleep 300.%s && echo away", program("stray"), (int)init, m));
    wait_outcome(s, &id, 5000);
    await_marked(m, 1);
    CHECK_TEXT(status_of(s, &id), "exited(0), lingering");
    CHECK(AWAIT(names_leftover(s, &id, m), 2000));
    nacre_kill_result result = kill_shell(s, &id, 5000);
    CHECK_EQ_INT(1, result.signalled);
    CHECK_EQ_INT(0, result.survivors);
    CHECK_EQ_INT(0, count_marked(m));
    close_session(s);
    kill(init, SIGKILL);
    waitpid(parent, NULL, 0);
}

static int looks_that_find(const char *mark, int looks)
{
    int found = 0;
    for (int i = 0; i < looks; i++)
        found += count_marked(mark) > 0;
    return found;
}

/* Each time somebody looks, it has forked and is gone: nobody may take that for an empty tree. */
TEST_LIMIT(stray_that_never_stays, 60)
{
    need_tree();
    pid_t parent, init = foreign_init(&parent);
    if (init == 0) {
        waitpid(parent, NULL, 0);
        SKIP("no pid namespace can be made");
    }
    nacre_session *s = open_session();
    const char *m = marker();
    nacre_id id = start_text(
        s, format("%s %d %s -f 1 300 %s", program("stray"), (int)init, program("rabbit"), m));
    for (int64_t until = now_ms() + 1000; now_ms() < until;)
        CHECK(!tree_empty(s, &id) || looks_that_find(m, 20) == 0);
    kill_shell(s, &id, 0);
    CHECK_EQ_INT(0, looks_that_find(m, 20));
    close_session(s);
    kill(init, SIGKILL);
    waitpid(parent, NULL, 0);
}

/* -- Memory ------------------------------------------------------------------------------------ */

static int oom_score(pid_t pid)
{
    char *text = slurp(format("/proc/%d/oom_score_adj", (int)pid), NULL);
    int score = text ? atoi(text) : -2000;
    free(text);
    return score;
}

static bool all_yield(const char *mark, int count, int score)
{
    struct process found[8];
    size_t n = find_marked(mark, found, 8);
    bool all = n == (size_t)count;
    for (size_t i = 0; i < n && i < 8; i++)
        all = all && oom_score(found[i].pid) == score;
    return all;
}

/* When memory runs out, commands end before keepers and hosts; what they leave behind, too. */
TEST(commands_yield_memory)
{
    need_tree();
    nacre_session *s = open_session();
    const char *m = marker();
    int own = oom_score(getpid());
    nacre_id id = start_text(
        s, format("%s sleep 300.%s & (sleep 301.%s &); exec sleep 302.%s", own_session(), m, m, m));
    start_text(s, format("%s sleep 303.%s & :", own_session(), m));
    CHECK(AWAIT(all_yield(m, 4, own + 500 < 1000 ? own + 500 : 1000), 3000));
    CHECK_EQ_INT(own, oom_score(keeper_of(s, &id).pid));
    CHECK_EQ_INT(own, oom_score(getpid()));
    close_session(s);
}

/* -- Descriptors ------------------------------------------------------------------------------- */

static void run_with_few(void *arg)
{
    int limit = *(int *)arg;
    struct rlimit few = {.rlim_cur = (rlim_t)limit, .rlim_max = (rlim_t)limit};
    nacre_session *s = open_session();
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_record record = NACRE_RECORD_INIT;
    command.text = "true";
    CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
    if (nacre_run(s, &command, -1, &record, ERR) == 0)
        CHECK_EQ_INT(0, record.exit_code);
    nacre_record_done(&record);
    nacre_close(s, NULL);
}

static bool is_empty_but_for_runs(void)
{
    const char *home = format("%s/runs", test_home());
    return access(home, F_OK) < 0 || system(format("test -z \"$(find %s -name ctl)\"", home)) == 0;
}

/* Whoever has too few descriptors to begin leaves nothing: no directory, no cgroup. */
TEST_LIMIT(too_few_descriptors, 60)
{
    for (int limit = 8; limit <= 40; limit++) {
        host_join(host_fork(run_with_few, &limit));
        CHECK(AWAIT(is_empty_but_for_runs(), 2000));
    }
}

/* The host's soft limit is not its keepers'. */
static void run_with_soft_limit(void *arg)
{
    struct rlimit soft;
    (void)arg;
    CHECK(getrlimit(RLIMIT_NOFILE, &soft) == 0);
    soft.rlim_cur = 24;
    nacre_session *s = open_session();
    CHECK(setrlimit(RLIMIT_NOFILE, &soft) == 0);
    struct run run = run_text(s, "ulimit -Sn");
    CHECK_TEXT(run.out, "24\n");
    run_done(&run);
    close_session(s);
}

TEST(soft_limits_are_the_commands)
{
    host_join(host_fork(run_with_soft_limit, NULL));
}
