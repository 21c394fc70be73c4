/*
 * Nothing hangs: the answer follows the exit, never the pipes; there is nothing to ask on; and a
 * deadline is a deadline.
 */
#include "harness/harness.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

/* -- Leftovers do not hold the answer -------------------------------------------------------- */

/* Before its exec a child is called what the shell is called. */
#define UNTIL_IT_SLEEPS "until grep -q sleep /proc/$!/comm; do :; done; echo hi"

static void check_answer(const char *text, const char *mark)
{
    nacre_session *s = open_session();
    struct run warm = run_text(s, "true");
    int64_t begin = now_ms();
    struct run run = run_text(s, text);

    CHECK_RANGE(0, now_ms() - begin, soon(300));
    CHECK_STR(run.out, "hi\n");
    CHECK_EQ_INT(NACRE_EXITED, run.record.outcome);
    CHECK_EQ_INT(0, run.record.exit_code);
    CHECK_EQ_INT(NACRE_TREE_ALIVE, run.record.tree);
    CHECK_EQ_INT(1, run.record.leftover_count);
    CHECK(run.record.leftover[0].pid > 0);
    CHECK_STR(run.record.leftover[0].command, mark);
    CHECK_TEXT(status_of(s, &run.record.id), "exited(0), lingering");
    run_done(&warm);
    run_done(&run);
    close_session(s);
    CHECK_EQ_INT(0, count_marked(mark));
}

TEST(background_child)
{
    const char *m = marker();

    check_answer(format("sleep 1000.%s & " UNTIL_IT_SLEEPS, m), m);
}

TEST(background_child_in_its_own_session)
{
    need_tree();
    const char *m = marker();

    check_answer(format("setsid sleep 1000.%s & " UNTIL_IT_SLEEPS, m), m);
}

TEST(background_child_through_nohup)
{
    const char *m = marker();

    check_answer(format("nohup sleep 1000.%s & " UNTIL_IT_SLEEPS, m), m);
}

TEST(background_child_that_holds_stderr_only)
{
    const char *m = marker();

    check_answer(format("sleep 1000.%s >/dev/null & " UNTIL_IT_SLEEPS, m), m);
}

TEST(background_daemon)
{
    need_tree();
    const char *m = marker();

    check_answer(format("%s %s; echo hi", program("daemonize"), m), m);
}

static bool leftover_listens(nacre_session *s, const nacre_id *id, const char *ports, int count)
{
    nacre_record record = record_of(s, id);
    int found = 0;

    for (int i = 0; i < record.leftover_count; i++) {
        for (int k = 0; k < NACRE_PORTS_MAX && record.leftover[i].ports[k]; k++)
            found += !ports || strstr(ports, format("%d", record.leftover[i].ports[k])) != NULL;
    }
    nacre_record_done(&record);
    return found == count;
}

TEST(server_left_behind_is_named_with_its_ports)
{
    nacre_session *s = open_session();
    const char *m = marker();
    struct run run = run_text(s, format("%s 2 %s & echo hi; sleep 0.1", program("listener"), m));

    CHECK_EQ_INT(NACRE_TREE_ALIVE, run.record.tree);
    CHECK(AWAIT(leftover_listens(s, &run.record.id, run.out, 2), 2000));
    run_done(&run);
    close_session(s);
}

TEST(python_server_left_behind)
{
    if (!have_program("python3"))
        SKIP("there is no python3");
    nacre_session *s = open_session();
    struct run warm = run_text(s, "true");
    int64_t begin = now_ms();
    struct run run = run_text(s, "python3 -m http.server 0 & echo hi");

    CHECK_RANGE(0, now_ms() - begin, soon(300));
    CHECK_STR(run.out, "hi\n");
    CHECK_EQ_INT(NACRE_TREE_ALIVE, run.record.tree);
    CHECK(AWAIT(leftover_listens(s, &run.record.id, NULL, 1), 8000));
    run_done(&warm);
    run_done(&run);
    close_session(s);
}

/* What a leftover prints after the answer is still captured, and writing does not kill it. */
TEST(leftover_prints_later)
{
    nacre_session *s = open_session();
    struct run run = run_text(s, "(until [ -e go ]; do sleep 0.01; done; echo late; echo later >&2;"
                                 " sleep 0.05; echo last; echo $? > status) & echo early");

    CHECK_TEXT(run.out, "early\n");
    CHECK_EQ_INT(NACRE_TREE_ALIVE, run.record.tree);
    spit("go", "", 0);
    CHECK(AWAIT(tree_empty(s, &run.record.id), 3000));
    char *out = output_of(s, &run.record.id, NACRE_OUT, NULL);
    char *err = output_of(s, &run.record.id, NACRE_ERR, NULL);
    char *status = slurp("status", NULL);
    CHECK_TEXT(out, "early\nlate\nlast\n");
    CHECK_TEXT(err, "later\n");
    CHECK_TEXT(status, "0\n");
    nacre_record record = record_of(s, &run.record.id);
    CHECK_EQ_INT(16, record.bytes[0]);
    CHECK_EQ_INT(3, record.lines[0]);
    CHECK_EQ_INT(6, record.bytes[1]);
    CHECK_EQ_INT(NACRE_EXITED, record.outcome);
    nacre_record_done(&record);
    free(out);
    free(err);
    free(status);
    run_done(&run);
    close_session(s);
}

/* -- Deadlines ------------------------------------------------------------------------------- */

TEST(no_output_and_a_timeout)
{
    nacre_session *s = open_session();
    nacre_command command = NACRE_COMMAND_INIT;
    const char *m = marker();

    command.text = format("exec >/dev/null 2>&1; sleep 300.%s", m);
    command.timeout_ms = MS(300);
    int64_t begin = now_ms();
    struct run run = run_command(s, &command);
    CHECK_RANGE(MS(290), now_ms() - begin, MS(300) + soon(400));
    CHECK_EQ_INT(NACRE_TIMED_OUT, run.record.outcome);
    CHECK_EQ_INT(MS(300), run.record.timeout_ms);
    CHECK_EQ_INT(0, count_marked(m));
    run_done(&run);
    close_session(s);
}

TEST(no_output_and_a_kill)
{
    nacre_session *s = open_session();
    const char *m = marker();
    nacre_id id = start_text(s, format("exec >/dev/null 2>&1; sleep 300.%s", m));

    await_marked(m, 1);
    int64_t begin = now_ms();
    kill_shell(s, &id, -1);
    CHECK_RANGE(0, now_ms() - begin, soon(500));
    CHECK_EQ_INT(0, count_marked(m));
    close_session(s);
}

TEST(closed_output)
{
    nacre_session *s = open_session();
    int64_t begin = now_ms();
    struct run run = run_text(s, "echo one; exec >&- 2>&- <&-; sleep 0.1; exit 3");

    CHECK_RANGE(90, now_ms() - begin, MS(100) + soon(300));
    CHECK_TEXT(run.out, "one\n");
    CHECK_EQ_INT(3, run.record.exit_code);
    run_done(&run);
    close_session(s);
}

TEST(output_before_a_timeout)
{
    nacre_session *s = open_session();
    nacre_command command = NACRE_COMMAND_INIT;

    command.text = "echo BEFORE; echo ERR >&2; sleep 999";
    command.timeout_ms = MS(300);
    int64_t begin = now_ms();
    struct run run = run_command(s, &command);
    CHECK_RANGE(MS(290), now_ms() - begin, MS(300) + soon(400));
    CHECK_TEXT(run.out, "BEFORE\n");
    CHECK_TEXT(run.err, "ERR\n");
    CHECK_EQ_INT(NACRE_TIMED_OUT, run.record.outcome);
    CHECK_EQ_INT(NACRE_REASON_DEADLINE, run.record.reason);
    run_done(&run);
    close_session(s);
}

/* Timeout, grace and not much more. */
TEST(timeout_of_the_stubborn)
{
    nacre_session *s = open_session();
    nacre_command command = NACRE_COMMAND_INIT;

    command.text = "trap 'echo no' TERM; echo BEFORE; while :; do sleep 0.05; done";
    command.timeout_ms = MS(200);
    command.grace_ms = MS(200);
    int64_t begin = now_ms();
    struct run run = run_command(s, &command);
    CHECK_RANGE(MS(390), now_ms() - begin, MS(400) + soon(300));
    CHECK_STR(run.out, "BEFORE\nno\n");
    CHECK_EQ_INT(NACRE_TIMED_OUT, run.record.outcome);
    CHECK_EQ_INT(SIGKILL, run.record.signal);
    CHECK(run.record.force_killed >= 1);
    run_done(&run);
    close_session(s);
}

TEST(timeout_handled_with_an_exit_code)
{
    nacre_session *s = open_session();
    nacre_command command = NACRE_COMMAND_INIT;

    command.text = "trap 'exit 0' TERM; while :; do sleep 0.02; done";
    command.timeout_ms = MS(150);
    struct run run = run_command(s, &command);
    CHECK_EQ_INT(NACRE_TIMED_OUT, run.record.outcome);
    CHECK_EQ_INT(0, run.record.exit_code);
    CHECK_EQ_INT(0, run.record.force_killed);
    run_done(&run);
    close_session(s);
}

TEST(timeout_not_reached)
{
    nacre_session *s = open_session();
    nacre_command command = NACRE_COMMAND_INIT;

    command.text = "exit 6";
    command.timeout_ms = 60000;
    struct run run = run_command(s, &command);
    CHECK_EQ_INT(NACRE_EXITED, run.record.outcome);
    CHECK_EQ_INT(6, run.record.exit_code);
    CHECK_EQ_INT(NACRE_REASON_NONE, run.record.reason);
    run_done(&run);
    close_session(s);
}

/* The call's time ends; the command goes on. */
TEST(wait_of_a_run_ends_before_the_command)
{
    nacre_session *s = open_session();
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_record record = NACRE_RECORD_INIT;

    command.text = "echo first; until [ -e go ]; do sleep 0.01; done; echo second; exit 8";
    int64_t begin = now_ms();
    CHECK_CODE(NACRE_ETIMEOUT, nacre_run(s, &command, MS(100), &record, ERR));
    CHECK_RANGE(MS(95), now_ms() - begin, MS(100) + soon(300));
    CHECK_EQ_INT(NACRE_RUNNING, record.outcome);
    CHECK_EQ_INT(0, record.exited_ms);
    nacre_id id = record.id;
    CHECK(AWAIT(output_has(s, &id, NACRE_OUT, "first\n"), 2000));
    spit("go", "", 0);
    wait_outcome(s, &id, 3000);
    CHECK_OK(nacre_get(s, &id, &record, ERR));
    CHECK_EQ_INT(NACRE_EXITED, record.outcome);
    CHECK_EQ_INT(8, record.exit_code);
    CHECK(output_has(s, &id, NACRE_OUT, "second\n"));
    nacre_record_done(&record);
    close_session(s);
}

/* -- Nothing to ask on ----------------------------------------------------------------------- */

static void check_fails_at_once(const char *text)
{
    nacre_session *s = open_session();
    int64_t begin = now_ms();
    struct run run = run_text(s, text);

    CHECK_RANGE(0, now_ms() - begin, soon(3000));
    CHECK_EQ_INT(NACRE_EXITED, run.record.outcome);
    CHECK(run.record.exit_code != 0);
    run_done(&run);
    close_session(s);
}

TEST(read_from_stdin)
{
    check_fails_at_once("read x");
}

TEST(read_from_the_terminal)
{
    check_fails_at_once("read x </dev/tty");
}

TEST(python_input)
{
    if (!have_program("python3"))
        SKIP("there is no python3");
    check_fails_at_once("python3 -c 'input()'");
}

TEST(cat_ends)
{
    nacre_session *s = open_session();
    struct run run = run_text(s, "cat; echo $?");

    CHECK_TEXT(run.out, "0\n");
    run_done(&run);
    close_session(s);
}

static void check_no_terminal(void *arg)
{
    nacre_session *s = open_session();
    struct run run = run_text(s, program("tty-probe"));

    (void)arg;
    CHECK_TEXT(run.out, "no terminal\n");
    CHECK_EQ_INT(0, run.record.exit_code);
    run_done(&run);
    run = run_text(s, "ps -o sid= -o pid= $$ | { read sid pid; [ $sid = $pid ] && echo own; }");
    CHECK_TEXT(run.out, "own\n");
    run_done(&run);
    close_session(s);
}

TEST(no_terminal)
{
    check_no_terminal(NULL);
}

/* A host at a terminal of its own; the command must not get at it. */
static void host_at_a_terminal(void *arg)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY);

    CHECK(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    const char *name = format("%s", ptsname(master));
    CHECK(setsid() > 0);
    int tty = open(name, O_RDWR);
    CHECK(tty >= 0);
    ioctl(tty, TIOCSCTTY, 0);
    for (int fd = 0; fd < 3; fd++)
        CHECK(dup2(tty, fd) == fd);
    int again = open("/dev/tty", O_RDWR);
    CHECK(again >= 0);
    check_no_terminal(arg);
    _exit(0);
}

TEST(no_terminal_from_a_host_at_one)
{
    host_join(host_fork(host_at_a_terminal, NULL));
}

/* -- Git would open an editor ---------------------------------------------------------------- */

static void make_repository(nacre_session *s)
{
    setenv("GIT_CONFIG_GLOBAL", "/dev/null", 1);
    setenv("HOME", test_base(), 1);
    struct run run = run_text(
        s, "git init -q repo && cd repo && git config user.email a@b && git config user.name n &&"
           "for i in 1 2 3; do echo $i > f && git add f && git commit -qm c$i || exit 1; done");
    CHECK_TEXT(run.err, "");
    CHECK_EQ_INT(0, run.record.exit_code);
    run_done(&run);
}

static char *head_of(nacre_session *s)
{
    struct run run = run_text(s, "cd repo && git rev-parse HEAD && git log --format=%s");
    char *text = strdup(run.out);

    CHECK_EQ_INT(0, run.record.exit_code);
    run_done(&run);
    return text;
}

TEST(git_commit_and_rebase)
{
    if (!have_program("git"))
        SKIP("there is no git");
    nacre_session *s = open_session();
    make_repository(s);
    char *before = head_of(s);

    struct run run = run_text(s, "cd repo && echo changed > f && git commit -a");
    CHECK(run.record.exit_code > 0);
    CHECK_EQ_INT(NACRE_EXITED, run.record.outcome);
    run_done(&run);
    run = run_text(s, "cd repo && git checkout -q -- f && git rebase -i HEAD~1");
    CHECK(run.record.exit_code > 0);
    run_done(&run);
    run = run_text(s, "cd repo && git log");
    CHECK_EQ_INT(0, run.record.exit_code);
    CHECK_STR(run.out, "c3");
    run_done(&run);
    char *after = head_of(s);
    CHECK_TEXT(after, before);
    run = run_text(s, "cd repo && test ! -d .git/rebase-merge");
    CHECK_EQ_INT(0, run.record.exit_code);
    run_done(&run);
    free(before);
    free(after);
    close_session(s);
}
