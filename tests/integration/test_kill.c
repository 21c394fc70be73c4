/* The kill ladder: one first signal to each, a grace that ends early, SIGKILL, and the proof. */
#include "harness/harness.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* -- The ladder ------------------------------------------------------------------------------ */

TEST(term_ignored)
{
    nacre_session *s = open_session();
    const char *m = marker();
    nacre_id id = start_text(s, format("trap '' TERM; echo up; while :; do sleep 0.1%s; done", m));

    CHECK(AWAIT(output_has(s, &id, NACRE_OUT, "up"), 5000));
    int64_t begin = now_ms();
    nacre_kill_result result = kill_shell(s, &id, MS(250));
    CHECK_RANGE(MS(240), now_ms() - begin, MS(250) + soon(500));
    CHECK(result.force_killed >= 1);
    CHECK_EQ_INT(0, count_marked(m));
    nacre_record record = record_of(s, &id);
    CHECK_EQ_INT(NACRE_KILLED, record.outcome);
    CHECK_EQ_INT(SIGKILL, record.signal);
    CHECK_EQ_INT(result.force_killed, record.force_killed);
    CHECK_EQ_INT(result.signalled, record.signalled);
    nacre_record_done(&record);
    close_session(s);
}

TEST(term_handled)
{
    nacre_session *s = open_session();
    const char *m = marker();
    nacre_id id =
        start_text(s, format("trap 'echo cleaned; exit 0' TERM; sleep 300.%s & echo up; wait", m));

    CHECK(AWAIT(output_has(s, &id, NACRE_OUT, "up"), 5000));
    await_marked(m, 1);
    int64_t begin = now_ms();
    nacre_kill_result result = kill_shell(s, &id, MS(2000));
    CHECK_RANGE(0, now_ms() - begin, soon(700));
    CHECK_EQ_INT(0, result.force_killed);
    CHECK_EQ_INT(0, count_marked(m));
    CHECK(output_has(s, &id, NACRE_OUT, "cleaned"));
    nacre_record record = record_of(s, &id);
    CHECK_EQ_INT(NACRE_KILLED, record.outcome);
    CHECK_EQ_INT(0, record.exit_code);
    CHECK_EQ_INT(0, record.signal);
    nacre_record_done(&record);
    close_session(s);
}

/* The grace ends early when a slow cleanup is done, and all it prints is kept. */
TEST(term_handled_slowly)
{
    nacre_session *s = open_session();
    nacre_id id = start_text(s, "trap 'echo one; sleep 0.2; echo two; exit 9' TERM; echo up; "
                                "while :; do sleep 0.01; done");

    CHECK(AWAIT(output_has(s, &id, NACRE_OUT, "up"), 5000));
    int64_t begin = now_ms();
    nacre_kill_result result = kill_shell(s, &id, MS(3000));
    CHECK_RANGE(190, now_ms() - begin, soon(1500));
    CHECK_EQ_INT(0, result.force_killed);
    CHECK(output_has(s, &id, NACRE_OUT, "one\ntwo\n"));
    nacre_record record = record_of(s, &id);
    CHECK_EQ_INT(9, record.exit_code);
    nacre_record_done(&record);
    close_session(s);
}

TEST(sigkill_skips_the_grace)
{
    nacre_session *s = open_session();
    nacre_kill_options options = NACRE_KILL_OPTIONS_INIT;
    nacre_kill_result result;
    const char *m = marker();
    nacre_id id =
        start_text(s, format("trap '' TERM; trap 'echo no' EXIT; echo up; sleep 300.%s", m));

    CHECK(AWAIT(output_has(s, &id, NACRE_OUT, "up"), 5000));
    await_marked(m, 1);
    options.signal = SIGKILL;
    int64_t begin = now_ms();
    CHECK_OK(nacre_kill(s, &id, &options, &result, ERR));
    CHECK_RANGE(0, now_ms() - begin, soon(500));
    CHECK_EQ_INT(0, result.survivors);
    CHECK_EQ_INT(0, count_marked(m));
    CHECK(!output_has(s, &id, NACRE_OUT, "no"));
    close_session(s);
}

TEST(another_first_signal)
{
    nacre_session *s = open_session();
    nacre_kill_options options = NACRE_KILL_OPTIONS_INIT;
    nacre_kill_result result;
    nacre_id id = start_text(s, "trap 'echo got INT; exit 4' INT; trap 'echo got TERM' TERM; "
                                "echo up; while :; do sleep 0.01; done");

    CHECK(AWAIT(output_has(s, &id, NACRE_OUT, "up"), 5000));
    options.signal = SIGINT;
    CHECK_OK(nacre_kill(s, &id, &options, &result, ERR));
    CHECK_EQ_INT(0, result.force_killed);
    CHECK(output_has(s, &id, NACRE_OUT, "got INT"));
    CHECK(!output_has(s, &id, NACRE_OUT, "got TERM"));
    options.signal = 4711;
    CHECK_CODE(NACRE_EINVAL, nacre_kill(s, &id, &options, &result, ERR));
    close_session(s);
}

/* -- Exactly one SIGTERM --------------------------------------------------------------------- */

struct counts {
    int files;
    int most;
    int least;
};

static struct counts read_counts(const char *directory)
{
    struct counts counts = {0, 0, 1 << 20};
    DIR *dir = opendir(directory);
    struct stat st;

    CHECK(dir);
    for (struct dirent *e; (e = readdir(dir));) {
        if (e->d_name[0] == '.')
            continue;
        CHECK(stat(format("%s/%s", directory, e->d_name), &st) == 0);
        counts.files++;
        counts.most = st.st_size > counts.most ? (int)st.st_size : counts.most;
        counts.least = st.st_size < counts.least ? (int)st.st_size : counts.least;
    }
    closedir(dir);
    return counts;
}

/* One of the four becomes a daemon, where it can be reached as one. */
static nacre_id start_counters(nacre_session *s, const char *dir, const char *flags,
                               int64_t timeout_ms)
{
    nacre_command command = NACRE_COMMAND_INIT;
    const char *counter = program("term-counter"), *m = marker();
    const char *daemon = group_tier() ? "" : "-d";

    CHECK(mkdir(dir, 0700) == 0);
    command.text = format("%s %s %s %s & %s %s %s %s %s & (%s %s %s %s &) ; exec %s %s %s %s",
                          counter, flags, dir, m, counter, flags, daemon, dir, m, counter, flags,
                          dir, m, counter, flags, dir, m);
    command.timeout_ms = timeout_ms;
    nacre_id id = start_command(s, &command);
    CHECK(AWAIT(read_counts(dir).files == 4, 5000));
    return id;
}

/* The group tier signals the group, and counts it as one. */
static int signalled_of(int count)
{
    return group_tier() ? 1 : count;
}

static void check_once(const char *dir)
{
    struct counts counts = read_counts(dir);

    CHECK_EQ_INT(4, counts.files);
    CHECK_EQ_INT(1, counts.least);
    CHECK_EQ_INT(1, counts.most);
}

TEST(one_term_each)
{
    nacre_session *s = open_session();
    nacre_id id = start_counters(s, "counts", "", 0);
    nacre_kill_result result = kill_shell(s, &id, MS(200));

    check_once("counts");
    CHECK_EQ_INT(signalled_of(4), result.signalled);
    CHECK_EQ_INT(4, result.force_killed);
    close_session(s);
}

TEST(one_term_each_when_they_obey)
{
    nacre_session *s = open_session();
    nacre_id id = start_counters(s, "counts", "-q 100", 0);
    nacre_kill_result result = kill_shell(s, &id, MS(3000));

    check_once("counts");
    CHECK_EQ_INT(signalled_of(4), result.signalled);
    CHECK_EQ_INT(0, result.force_killed);
    close_session(s);
}

TEST(one_term_each_at_a_timeout_and_a_kill)
{
    nacre_options options = NACRE_OPTIONS_INIT;

    options.grace_ms = MS(400);
    nacre_session *s = open_options(&options);
    nacre_id id = start_counters(s, "counts", "", MS(500));
    CHECK(AWAIT(read_counts("counts").least == 1, 3000));
    kill_shell(s, &id, -1);
    check_once("counts");
    check_ended(s, &id, NACRE_TIMED_OUT, NACRE_REASON_DEADLINE);
    close_session(s);
}

TEST(one_term_each_at_a_close)
{
    nacre_options options = NACRE_OPTIONS_INIT;

    options.grace_ms = MS(200);
    nacre_session *s = open_options(&options);
    start_counters(s, "counts", "", 0);
    close_session(s);
    check_once("counts");
}

/* Those born of a SIGTERM may get one of their own, not two. */
TEST(one_term_each_for_the_newly_born)
{
    nacre_session *s = open_session();
    nacre_id id = start_counters(s, "counts", "-f", 0);

    kill_shell(s, &id, MS(300));
    struct counts counts = read_counts("counts");
    CHECK_EQ_INT(8, counts.files);
    CHECK_EQ_INT(1, counts.most);
    close_session(s);
}

/* -- Killing twice, killing nothing ------------------------------------------------- */

TEST(kill_of_what_ended)
{
    nacre_session *s = open_session();
    nacre_kill_result result;
    struct run run = run_text(s, "exit 5");

    for (int i = 0; i < 3; i++) {
        memset(&result, 0xff, sizeof(result));
        CHECK_OK(nacre_kill(s, &run.record.id, NULL, &result, ERR));
        CHECK_EQ_INT(0, result.was_alive);
        CHECK_EQ_INT(0, result.signalled);
        CHECK_EQ_INT(0, result.force_killed);
        CHECK_EQ_INT(0, result.survivors);
        CHECK_EQ_INT(0, result.keeper_killed);
    }
    CHECK_TEXT(status_of(s, &run.record.id), "exited(5)");
    run_done(&run);
    close_session(s);
}

TEST(kill_of_the_unknown)
{
    nacre_session *s = open_session();
    nacre_id id;

    memset(&id, 0x5a, sizeof(id));
    CHECK_CODE(NACRE_ENOTFOUND, nacre_kill(s, &id, NULL, NULL, ERR));
    CHECK_CODE(NACRE_ENOTFOUND, nacre_remove(s, &id, ERR));
    CHECK_OK(nacre_release(s, &id, ERR));
    struct run run = run_text(s, "true");
    CHECK_CODE(NACRE_ENOTFOUND, nacre_kill(s, &id, NULL, NULL, ERR));
    run_done(&run);
    close_session(s);
}

TEST(kill_of_the_lingering)
{
    nacre_session *s = open_session();
    const char *m = marker();
    struct run run = run_text(s, format("sleep 300.%s & exit 7", m));

    CHECK_TEXT(status_of(s, &run.record.id), "exited(7), lingering");
    CHECK_CODE(NACRE_EBUSY, nacre_remove(s, &run.record.id, ERR));
    nacre_kill_result result = kill_shell(s, &run.record.id, -1);
    CHECK_EQ_INT(1, result.was_alive);
    CHECK_EQ_INT(1, result.signalled);
    CHECK_EQ_INT(0, count_marked(m));
    CHECK_TEXT(status_of(s, &run.record.id), "exited(7)");
    CHECK_OK(nacre_kill(s, &run.record.id, NULL, &result, ERR));
    CHECK_EQ_INT(0, result.was_alive);
    run_done(&run);
    close_session(s);
}

TEST(lingering_dies_with_its_session)
{
    nacre_session *s = open_session();
    const char *m = marker();
    struct run run = run_text(s, format("%s sleep 300.%s & exit 7", own_session(), m));

    close_session(s);
    CHECK_EQ_INT(0, count_marked(m));
    s = open_session();
    CHECK_TEXT(status_of(s, &run.record.id), "exited(7)");
    run_done(&run);
    close_session(s);
}

/* The deadline is the command's; what it left lives on until somebody ends it. */
TEST(lingering_outlives_the_deadline)
{
    nacre_session *s = open_session();
    nacre_command command = NACRE_COMMAND_INIT;
    const char *m = marker();
    const int64_t deadline = soon(300);

    command.text = format("sleep 300.%s & exit 0", m);
    command.timeout_ms = deadline;
    nacre_id id = start_command(s, &command);
    wait_outcome(s, &id, 3000);
    pause_ms(deadline + 100);
    CHECK_EQ_INT(1, count_marked(m));
    CHECK_TEXT(status_of(s, &id), "exited(0), lingering");
    close_session(s);
    CHECK_EQ_INT(0, count_marked(m));
}

/* First outcome wins: a kill that races a natural end never mixes the two. */
TEST(kill_racing_the_exit)
{
    nacre_session *s = open_session();

    for (int i = 0; i < 60; i++) {
        nacre_id id = start_text(s, format("sleep 0.00%d; exit 42", i % 8));
        if (i % 3)
            pause_ms(i % 8);
        nacre_kill_result result;
        CHECK_OK(nacre_kill(s, &id, NULL, &result, ERR));
        nacre_record record = record_of(s, &id);
        CHECK_EQ_INT(NACRE_TREE_EMPTY, record.tree);
        if (record.outcome == NACRE_EXITED) {
            CHECK_EQ_INT(42, record.exit_code);
            CHECK_EQ_INT(0, record.signal);
            CHECK_EQ_INT(NACRE_REASON_NONE, record.reason);
        } else {
            CHECK_EQ_INT(NACRE_KILLED, record.outcome);
            CHECK_EQ_INT(1, result.was_alive);
            CHECK_EQ_INT(NACRE_REASON_KILL, record.reason);
            CHECK(record.signal == SIGTERM || record.exit_code >= 0);
        }
        nacre_record_done(&record);
    }
    close_session(s);
}

/* -- Who cannot be killed -------------------------------------------------------------------- */

static bool freeze(const char *group, const char *state)
{
    const char *path = format("%s/freezer.state", group);

    spit(path, state, strlen(state));
    return AWAIT(({
                     char *now = slurp(path, NULL);
                     bool done = now && strncmp(now, state, strlen(state)) == 0;
                     free(now);
                     done;
                 }),
                 2000);
}

/* The one that is marked, once it is the sleep itself and not who is about to become it. */
static bool find_sleep(const char *mark, struct process *ret)
{
    char name[16] = "";
    if (find_marked(mark, ret, 1) != 1)
        return false;
    int fd = open(format("/proc/%d/comm", (int)ret->pid), O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, name, sizeof name - 1);
    close(fd);
    return n > 0 && strcmp(name, "sleep\n") == 0;
}

/* In a frozen (v1) cgroup not even SIGKILL arrives: the kill comes back and names who is left. */
TEST_LIMIT(survivor, 40)
{
    const char *m = marker(), *group = format("/sys/fs/cgroup/freezer/frozen-%s", m);
    nacre_kill_options options = NACRE_KILL_OPTIONS_INIT;
    nacre_kill_result result;
    struct process frozen;

    if (geteuid() != 0 || mkdir(group, 0755) < 0)
        SKIP("needs root and the freezer of cgroup v1");
    nacre_session *s = open_session();
    nacre_id id = start_text(s, format("%s sleep 300.%s & sleep 301.%s", own_session(), m, m));
    CHECK(AWAIT(find_sleep(format("300.%s", m), &frozen), 5000));
    const char *pid = format("%d", (int)frozen.pid);
    spit(format("%s/cgroup.procs", group), pid, strlen(pid));
    CHECK(freeze(group, "FROZEN"));

    options.grace_ms = MS(100);
    int64_t begin = now_ms();
    CHECK_OK(nacre_kill(s, &id, &options, &result, ERR));
    CHECK_RANGE(MS(100), now_ms() - begin, soon(10000));
    CHECK_EQ_INT(1, result.survivors);
    CHECK_EQ_INT(frozen.pid, result.survivor_pids[0]);
    CHECK_TEXT(status_of(s, &id), "killed, lingering");
    nacre_record record = record_of(s, &id);
    CHECK_EQ_INT(1, record.survivors);
    CHECK_EQ_INT(1, record.leftover_count);
    nacre_record_done(&record);
    CHECK(freeze(group, "THAWED"));
    CHECK(AWAIT(tree_empty(s, &id), 8000));
    CHECK_EQ_INT(0, count_marked(m));
    CHECK_TEXT(status_of(s, &id), "killed");
    CHECK(AWAIT(rmdir(group) == 0, 1000));
    close_session(s);
}

/* -- Without waiting -------------------------------------------------------------------------- */

TEST(no_wait_comes_back_before_the_grace_is_over)
{
    nacre_session *s = open_session();
    const char *mark = marker();
    nacre_id id = start_text(
        s, format("trap '' TERM; echo up; while :; do sleep 0.05; done; : 300.%s", mark));
    nacre_kill_options options = NACRE_KILL_OPTIONS_INIT;
    nacre_kill_result result;
    nacre_watch *watch;
    nacre_event event = {0};
    char buf[256];

    CHECK(AWAIT(output_has(s, &id, NACRE_OUT, "up"), 5000));
    options.no_wait = 1;
    options.grace_ms = 1000;
    int64_t begin = now_ms();
    CHECK_OK(nacre_kill(s, &id, &options, &result, ERR));
    CHECK_EQ_INT(1, result.was_alive);
    CHECK_RANGE(0, now_ms() - begin, soon(500));
    CHECK_OK(nacre_watch_open(s, &id, UINT64_MAX, &watch, ERR));
    while (event.kind != NACRE_EVENT_END)
        CHECK_OK(nacre_watch_wait(watch, -1, buf, sizeof buf, &event, ERR));
    CHECK_RANGE(900, now_ms() - begin, soon(3000));
    nacre_watch_close(watch);
    check_ended(s, &id, NACRE_KILLED, NACRE_REASON_KILL);
    nacre_record record = record_of(s, &id);
    CHECK(record.signalled > 0);
    CHECK(record.force_killed > 0);
    nacre_record_done(&record);
    CHECK_OK(nacre_kill(s, &id, &options, &result, ERR));
    CHECK_EQ_INT(0, result.was_alive);
    close_session(s);
}
