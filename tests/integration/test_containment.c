/*
 * Nothing outlives its shell: every way to end one, against every way to hide from it. What
 * happens when its owner or its keeper dies is in test_owner.c and test_lost.c.
 */
#include "harness/harness.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* -- Ways to end a scattered tree ------------------------------------------------------------ */

TEST(kill_ends_the_child_of_a_shell)
{
    nacre_session *s = open_session();
    const char *m = marker();
    nacre_id id = start_text(s, format("sh -c 'sleep 300.%s; true'", m));

    await_marked(m, 2); /* the inner sh has the text in its argv: it is the command's own */
    nacre_kill_result result = kill_shell(s, &id, -1);
    CHECK_EQ_INT(0, count_marked(m));
    CHECK_EQ_INT(1, result.was_alive);
    CHECK_EQ_INT(0, result.force_killed);
    CHECK_EQ_INT(0, result.keeper_killed);
    CHECK(result.signalled >= (group_tier() ? 1 : 2)); /* the group counts as one */
    check_ended(s, &id, NACRE_KILLED, NACRE_REASON_KILL);
    CHECK_TEXT(status_of(s, &id), "killed");
    close_session(s);
}

TEST(scattered_kill)
{
    nacre_session *s = open_session();
    const char *m = marker();
    nacre_id id = start_text(s, scattered(m));

    await_marked(m, 4);
    kill_shell(s, &id, -1);
    CHECK_EQ_INT(0, count_marked(m));
    check_ended(s, &id, NACRE_KILLED, NACRE_REASON_KILL);
    close_session(s);
}

TEST(scattered_timeout)
{
    nacre_session *s = open_session();
    nacre_command command = NACRE_COMMAND_INIT;
    const char *m = marker();

    command.text = scattered(m);
    command.timeout_ms = MS(1000);
    int64_t begin = now_ms();
    nacre_id id = start_command(s, &command);
    await_marked(m, 4);
    wait_outcome(s, &id, 5000);
    CHECK_RANGE(MS(990), now_ms() - begin, MS(1000) + soon(700));
    CHECK(AWAIT(tree_empty(s, &id), 3000));
    CHECK_EQ_INT(0, count_marked(m));
    check_ended(s, &id, NACRE_TIMED_OUT, NACRE_REASON_DEADLINE);
    CHECK_TEXT(status_of(s, &id), "timed_out");
    close_session(s);
}

TEST(scattered_cancel)
{
    nacre_session *s = open_session();
    nacre_kill_options options = NACRE_KILL_OPTIONS_INIT;
    const char *m = marker();
    nacre_id id = start_text(s, scattered(m));

    options.cancel = 1;
    await_marked(m, 4);
    CHECK_OK(nacre_kill(s, &id, &options, NULL, ERR));
    CHECK_EQ_INT(0, count_marked(m));
    check_ended(s, &id, NACRE_CANCELLED, NACRE_REASON_CANCEL);
    CHECK_TEXT(status_of(s, &id), "cancelled");
    close_session(s);
}

TEST(scattered_session_close)
{
    nacre_session *s = open_session();
    const char *m = marker();
    nacre_id id = start_text(s, scattered(m));

    await_marked(m, 4);
    close_session(s);
    CHECK_EQ_INT(0, count_marked(m));
    s = open_session();
    check_ended(s, &id, NACRE_KILLED, NACRE_REASON_OWNER);
    close_session(s);
}

TEST(scattered_release)
{
    nacre_session *s = open_session();
    const char *m = marker();
    nacre_id id = start_text(s, scattered(m));

    await_marked(m, 4);
    CHECK_CODE(NACRE_EBUSY, nacre_remove(s, &id, ERR));
    CHECK_OK(nacre_release(s, &id, ERR));
    CHECK_EQ_INT(0, count_marked(m));
    CHECK_OK(nacre_release(s, &id, ERR));
    check_ended(s, &id, NACRE_KILLED, NACRE_REASON_KILL);
    CHECK_OK(nacre_remove(s, &id, ERR));
    CHECK(access(run_path(&id, ""), F_OK) < 0);
    CHECK_CODE(NACRE_ENOTFOUND, nacre_remove(s, &id, ERR));
    close_session(s);
}

TEST(many_close_within_one_grace)
{
    enum { COUNT = 10 };
    nacre_options options = NACRE_OPTIONS_INIT;
    const char *m = marker();

    options.grace_ms = MS(400);
    nacre_session *s = open_options(&options);
    for (int i = 0; i < COUNT; i++)
        start_text(s, format("trap '' TERM; sleep 300.%s; sleep 301.%s", m, m));
    await_marked(m, COUNT);
    int64_t begin = now_ms();
    close_session(s);
    CHECK_RANGE(MS(390), now_ms() - begin, soon(1500));
    CHECK_EQ_INT(0, count_marked(m));
}

/* -- Hiding places --------------------------------------------------------------------------- */

static bool is_leftover(const nacre_record *record, pid_t pid, const char *mark)
{
    for (int i = 0; i < record->leftover_count; i++) {
        if (record->leftover[i].pid == pid && strstr(record->leftover[i].command, mark))
            return true;
    }
    return false;
}

static void hunt_daemons(const char *flags, int count, int64_t grace_ms, bool forced)
{
    need_tree();
    nacre_session *s = open_session();
    const char *m = marker();
    struct process daemons[64];

    nacre_id id = start_text(s, format("%s %s -n %d %s; echo up; exec sleep 300.%s",
                                       program("daemonize"), flags, count, m, m));
    CHECK(AWAIT(output_has(s, &id, NACRE_OUT, "up"), 5000));
    await_marked(m, count + 1);
    CHECK(find_marked(m, daemons, 64) == (size_t)count + 1);

    nacre_record record = record_of(s, &id);
    int listed = 0;
    for (int i = 0; i < count + 1; i++) {
        if (daemons[i].pid == record.pid)
            continue;
        listed += is_leftover(&record, daemons[i].pid, m);
        CHECK(process_parent(daemons[i].pid) == process_parent(record.pid));
    }
    CHECK_EQ_INT(count < NACRE_LEFTOVER_MAX ? count : NACRE_LEFTOVER_MAX, listed);
    CHECK_EQ_INT(listed, record.leftover_count);
    nacre_record_done(&record);

    nacre_kill_result result = kill_shell(s, &id, grace_ms);
    CHECK_EQ_INT(0, count_marked(m));
    CHECK_EQ_INT(forced ? count : 0, result.force_killed);
    CHECK(result.signalled >= count + 1);
    check_ended(s, &id, NACRE_KILLED, NACRE_REASON_KILL);
    close_session(s);
}

TEST(daemon)
{
    hunt_daemons("", 1, -1, false);
}

TEST(daemon_that_wiped_its_environment)
{
    hunt_daemons("-e", 2, -1, false);
}

TEST(daemon_that_ignores_signals)
{
    hunt_daemons("-i", 3, MS(150), true);
}

TEST(daemon_that_is_stopped)
{
    hunt_daemons("-s", 2, -1, false);
}

TEST(daemon_that_does_all_of_it)
{
    hunt_daemons("-i -e -s", 20, MS(150), true);
}

TEST_LIMIT(three_hundred_daemons, 30)
{
    need_tree();
    nacre_session *s = open_session();
    const char *m = marker();
    nacre_id id = start_text(s, format("%s -i -n 300 %s", program("daemonize"), m));

    wait_outcome(s, &id, 10000);
    await_marked(m, 300);
    CHECK_TEXT(status_of(s, &id), "exited(0), lingering");
    int64_t begin = now_ms();
    nacre_kill_result result = kill_shell(s, &id, MS(100));
    CHECK_RANGE(0, now_ms() - begin, MS(100) + soon(1500));
    CHECK_EQ_INT(0, count_marked(m));
    CHECK_EQ_INT(300, result.signalled);
    CHECK_EQ_INT(300, result.force_killed);
    CHECK_TEXT(status_of(s, &id), "exited(0)");
    close_session(s);
}

TEST(own_pid_namespace)
{
    nacre_session *s = open_session();
    const char *unshare = geteuid() == 0 ? "unshare --pid --fork" : "unshare -r --pid --fork";
    const char *m = marker();
    struct run probe = run_text(s, format("%s true", unshare));
    int code = probe.record.exit_code;

    run_done(&probe);
    if (code != 0) {
        close_session(s);
        SKIP("unshare --pid is not permitted here");
    }
    nacre_id id =
        start_text(s, format("%s sh -c 'setsid sleep 300.%s & sleep 301.%s; true'", unshare, m, m));
    CHECK(AWAIT(count_marked(format("300.%s", m)) >= 3, 5000));
    CHECK(AWAIT(count_marked(format("301.%s", m)) >= 3, 5000));
    kill_shell(s, &id, MS(300));
    CHECK_EQ_INT(0, count_marked(m));
    close_session(s);
}

/* A member that moves itself into another cgroup is still the keeper's descendant. */
TEST(escape_into_another_cgroup)
{
    const char *dir = cgroup_dir(), *m = marker();

    if (geteuid() != 0 || !dir)
        SKIP("needs root and a cgroup v2 tree");
    const char *alien = format("%s/alien-%s", dir, m);
    if (mkdir(alien, 0755) < 0)
        SKIP("no cgroup can be made here");
    nacre_session *s = open_session();
    nacre_id id = start_text(s, format("(echo $BASHPID > %s/cgroup.procs; exec %s sleep 300.%s)"
                                       " & sleep 301.%s",
                                       alien, own_session(), m, m));
    await_marked(m, 2);
    size_t size = 0;
    char *procs = slurp(format("%s/cgroup.procs", alien), &size);
    CHECK(procs && size > 1);
    free(procs);
    kill_shell(s, &id, -1);
    CHECK_EQ_INT(0, count_marked(m));
    CHECK_EQ_INT(0, rmdir(alien));
    close_session(s);
}

/* A command that builds cgroups inside its own leaf must not keep the leaf from being removed. */
TEST(cgroups_inside_the_leaf)
{
    if (geteuid() != 0 || !cgroup_dir() || tier_in_force() != NACRE_TIER_CGROUP)
        SKIP("needs root and the cgroup tier");
    nacre_session *s = open_session();
    const char *m = marker();
    nacre_id id =
        start_text(s, format("leaf=%s$(sed -n 's/^0:://p' /proc/self/cgroup); mkdir -p $leaf/a/b;"
                             "(echo $BASHPID > $leaf/a/b/cgroup.procs; exec sleep 300.%s) & "
                             "echo up; exec sleep 301.%s",
                             cgroup_mount(), m, m));

    CHECK(AWAIT(output_has(s, &id, NACRE_OUT, "up"), 5000));
    await_marked(m, 2);
    kill_shell(s, &id, -1);
    CHECK_EQ_INT(0, count_marked(m));
    close_session(s);
}

/* -- Moving targets -------------------------------------------------------------------------- */

TEST(loop_that_starts_children)
{
    nacre_session *s = open_session();
    const char *m = marker();
    nacre_id id = start_text(s, format("while :; do sleep 300.%s & sleep 0.05; done", m));

    CHECK(AWAIT(count_marked(m) >= 3, 5000));
    kill_shell(s, &id, -1);
    CHECK_EQ_INT(0, count_marked(m));
    pause_ms(120);
    CHECK_EQ_INT(0, count_marked(m));
    close_session(s);
}

TEST(loop_that_ignores_and_starts_children)
{
    need_tree();
    nacre_session *s = open_session();
    const char *m = marker();
    nacre_id id = start_text(
        s, format("trap '' TERM; while :; do setsid sleep 300.%s & sleep 0.01; done", m));

    CHECK(AWAIT(count_marked(m) >= 5, 5000));
    kill_shell(s, &id, MS(100));
    CHECK_EQ_INT(0, count_marked(m));
    pause_ms(60);
    CHECK_EQ_INT(0, count_marked(m));
    close_session(s);
}

static void hunt_rabbits(const char *flags, int chains, int pause_us)
{
    need_tree();
    nacre_session *s = open_session();
    const char *m = marker();
    nacre_id id = start_text(s, format("%s %s %d %d %s; echo off; sleep 300.%s", program("rabbit"),
                                       flags, chains, pause_us, m, m));

    CHECK(AWAIT(output_has(s, &id, NACRE_OUT, "off\n"), 5000));
    pause_ms(30);
    kill_shell(s, &id, MS(100));
    CHECK_EQ_INT(0, count_marked(m));
    pause_ms(50);
    CHECK_EQ_INT(0, count_marked(m));
    close_session(s);
}

TEST(rabbits)
{
    hunt_rabbits("", 4, 2000);
}

TEST(rabbits_that_ignore_signals)
{
    hunt_rabbits("-i", 6, 500);
}

TEST(stopped_tree)
{
    nacre_session *s = open_session();
    const char *m = marker();
    struct process found[2];
    nacre_id id = start_text(s, format("sleep 300.%s & until grep -q sleep /proc/$!/comm; do :; "
                                       "done; kill -STOP $!; kill -STOP $$",
                                       m));
    nacre_record record = record_of(s, &id);

    await_marked(m, 1);
    find_marked(m, found, 1);
    CHECK(AWAIT(process_state(found[0].pid) == 'T' && process_state(record.pid) == 'T', 3000));
    int64_t begin = now_ms();
    nacre_kill_result result = kill_shell(s, &id, MS(2000));
    CHECK_RANGE(0, now_ms() - begin, soon(700));
    CHECK_EQ_INT(0, result.force_killed);
    CHECK_EQ_INT(0, count_marked(m));
    check_ended(s, &id, NACRE_KILLED, NACRE_REASON_KILL);
    nacre_record_done(&record);
    close_session(s);
}

TEST(stopped_tree_timeout)
{
    nacre_session *s = open_session();
    nacre_command command = NACRE_COMMAND_INIT;
    const char *m = marker();

    command.text = format("trap '' TERM; sleep 300.%s & kill -STOP $!; kill -STOP $$", m);
    command.timeout_ms = MS(200);
    command.grace_ms = MS(150);
    nacre_id id = start_command(s, &command);
    wait_outcome(s, &id, 3000);
    CHECK(AWAIT(tree_empty(s, &id), 2000));
    CHECK_EQ_INT(0, count_marked(m));
    check_ended(s, &id, NACRE_TIMED_OUT, NACRE_REASON_DEADLINE);
    close_session(s);
}

/* -- A kernel that does not list children
 * ---------------------------------------------------------- */

static void use_keeper_without_children(void)
{
    need_tree();
    CHECK(setenv("NACRE_KEEPER", program("keeper-without-children"), 1) == 0);
    if (tier_in_force() == NACRE_TIER_CGROUP)
        CHECK(setenv("NACRE_TIER", "subreaper", 1) == 0);
}

TEST(scattered_kill_without_lists_of_children)
{
    use_keeper_without_children();
    test_scattered_kill();
}

TEST(daemons_without_lists_of_children)
{
    use_keeper_without_children();
    hunt_daemons("-i -e -s", 20, MS(400), true);
}

TEST_LIMIT(three_hundred_daemons_without_lists_of_children, 30)
{
    use_keeper_without_children();
    test_three_hundred_daemons();
}

TEST(rabbits_without_lists_of_children)
{
    use_keeper_without_children();
    hunt_rabbits("-i", 4, 1000);
}

/* -- The command turns against its surroundings ---------------------------------------------- */

TEST(pkill_by_a_word_of_its_own)
{
    if (!have_program("pkill"))
        SKIP("there is no pkill");
    nacre_session *s = open_session();
    const char *word = format("zz-unique-%s", marker());
    nacre_id sibling = start_text(s, "sleep 300");
    struct run run = run_text(s, format("pkill -f %s; echo after", word));

    CHECK_TEXT(run.out, "after\n");
    CHECK_EQ_INT(0, run.record.exit_code);
    CHECK_EQ_INT(NACRE_EXITED, run.record.outcome);
    CHECK_TEXT(status_of(s, &sibling), "running");
    run_done(&run);
    close_session(s);
}

TEST(kill_its_parent)
{
    nacre_session *s = open_session();
    nacre_id sibling = start_text(s, "sleep 300");
    struct run run = run_text(s, "kill $PPID; sleep 0.05; kill $PPID; echo after");

    CHECK_TEXT(run.out, "after\n");
    CHECK_TEXT(run.err, "");
    CHECK_EQ_INT(NACRE_EXITED, run.record.outcome);
    CHECK_EQ_INT(0, run.record.exit_code);
    CHECK_TEXT(status_of(s, &sibling), "running");
    run_done(&run);
    close_session(s);
}

TEST(kill_its_parent_with_anything)
{
    nacre_session *s = open_session();
    struct run run = run_text(
        s, "for n in HUP INT QUIT USR1 USR2 PIPE ALRM TERM CHLD CONT TSTP TTIN TTOU URG XCPU XFSZ "
           "VTALRM PROF WINCH IO PWR 34 50 64; do kill -$n $PPID || echo no $n; done; "
           "sleep 0.05; echo after; exit 3");

    CHECK_TEXT(run.out, "after\n");
    CHECK_EQ_INT(3, run.record.exit_code);
    CHECK_EQ_INT(NACRE_EXITED, run.record.outcome);
    run_done(&run);
    close_session(s);
}

TEST(kill_its_process_group)
{
    nacre_session *s = open_session();
    nacre_id sibling = start_text(s, "sleep 300");
    struct run run = run_text(s, "echo before; kill -TERM 0; sleep 5; echo after");

    CHECK_TEXT(run.out, "before\n");
    CHECK_EQ_INT(NACRE_SIGNALED, run.record.outcome);
    CHECK_EQ_INT(SIGTERM, run.record.signal);
    CHECK_EQ_INT(NACRE_REASON_NONE, run.record.reason);
    CHECK_TEXT(status_of(s, &sibling), "running");
    run_done(&run);
    close_session(s);
}

/* -- Keeping and nesting ----------------------------------------------------------------------- */

TEST(kept_shell_survives_its_session)
{
    nacre_session *s = open_session();
    nacre_command command = NACRE_COMMAND_INIT;
    const char *m = marker();

    command.text = format("i=0; while :; do echo tick $((i+=1)); sleep 0.01%s; done", m);
    command.lifetime = NACRE_LIFE_KEEP;
    nacre_id id = start_command(s, &command);
    close_session(s);
    s = open_session();
    CHECK_TEXT(status_of(s, &id), "running");
    CHECK(AWAIT(output_has(s, &id, NACRE_OUT, "tick 5\n"), 5000));
    nacre_record record = record_of(s, &id);
    CHECK_EQ_INT(NACRE_LIFE_KEEP, record.lifetime);
    nacre_record_done(&record);
    kill_shell(s, &id, -1);
    check_ended(s, &id, NACRE_KILLED, NACRE_REASON_KILL);
    close_session(s);
}

/* A shell started inside a shell is part of it, even one that is to be kept. */
HOST(inner_host)
{
    nacre_session *s = open_session();
    nacre_command command = NACRE_COMMAND_INIT;

    command.text = format("sleep 300.%s", getenv("TEST_MARK"));
    command.lifetime = NACRE_LIFE_KEEP;
    start_command(s, &command);
    close_session(s);
}

static nacre_id start_with_inner(nacre_session *s, const char *m)
{
    char self[4096];

    setenv("TEST_MARK", m, 1);
    ssize_t size = readlink("/proc/self/exe", self, sizeof(self) - 1);
    CHECK(size > 0);
    self[size] = 0;
    nacre_id id = start_text(s, format("%s -x inner_host && echo up; exec sleep 301", self));
    CHECK(AWAIT(output_has(s, &id, NACRE_OUT, "up"), 10000));
    await_marked(m, 1);
    return id;
}

TEST(shell_inside_a_shell)
{
    need_tree();
    nacre_session *s = open_session();
    const char *m = marker();
    nacre_id id = start_with_inner(s, m);

    kill_shell(s, &id, -1);
    CHECK_EQ_INT(0, count_marked(m));
    close_session(s);
}

/* Its keeper carries the mark of the outer one, which finds it when nothing else does. */
TEST(shell_inside_a_shell_that_lost_its_keeper)
{
    need_tree();
    nacre_session *s = open_session();
    const char *m = marker();
    nacre_id id = start_with_inner(s, m);

    kill(keeper_of(s, &id).pid, SIGKILL);
    CHECK(AWAIT(strcmp(status_of(s, &id), "lost") == 0, 5000));
    await_marked(m, 0);
    close_session(s);
}
