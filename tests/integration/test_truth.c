/*
 * Nothing lies: how a command ended, what could not be started and why, and what it found around
 * itself when it ran.
 */
#include "harness/harness.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* -- Outcomes -------------------------------------------------------------------------------- */

TEST(outcomes)
{
    static const struct {
        const char *text;
        nacre_outcome outcome;
        int code, signal;
        const char *status;
    } table[] = {
        {"true", NACRE_EXITED, 0, 0, "exited(0)"},
        {"exit 7", NACRE_EXITED, 7, 0, "exited(7)"},
        {"exit 143", NACRE_EXITED, 143, 0, "exited(143)"},
        {"exit 255", NACRE_EXITED, 255, 0, "exited(255)"},
        {"exit 256", NACRE_EXITED, 0, 0, "exited(0)"},
        {"ulimit -c 0; kill -SEGV $$", NACRE_SIGNALED, -1, SIGSEGV, "signaled(SIGSEGV)"},
        {"kill -KILL $$", NACRE_SIGNALED, -1, SIGKILL, "signaled(SIGKILL)"},
        {"kill -TERM $$", NACRE_SIGNALED, -1, SIGTERM, "signaled(SIGTERM)"},
        {"kill -PIPE $$", NACRE_SIGNALED, -1, SIGPIPE, "signaled(SIGPIPE)"},
        {"kill -34 $$", NACRE_SIGNALED, -1, 34, NULL},
        {"sh -c 'kill -TERM $$'; exit $?", NACRE_EXITED, 143, 0, "exited(143)"},
        {"echo '[error] FAILED'; true", NACRE_EXITED, 0, 0, "exited(0)"},
        {"echo all is well; false", NACRE_EXITED, 1, 0, "exited(1)"},
        {"no-such-command-here", NACRE_EXITED, 127, 0, "exited(127)"},
        {"/", NACRE_EXITED, 126, 0, "exited(126)"},
        {"", NACRE_EXITED, 0, 0, "exited(0)"},
        {"# nothing", NACRE_EXITED, 0, 0, "exited(0)"},
        {"exec sh -c 'exit 9'", NACRE_EXITED, 9, 0, "exited(9)"},
        {"(exit 3)", NACRE_EXITED, 3, 0, "exited(3)"},
    };
    nacre_session *s = open_session();
    char status[64];

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct run run = run_text(s, table[i].text);
        nacre_status(&run.record, status, sizeof(status));
        if (run.record.outcome != table[i].outcome || run.record.exit_code != table[i].code ||
            run.record.signal != table[i].signal || run.record.core_dumped != 0 ||
            run.record.reason != NACRE_REASON_NONE ||
            (table[i].status && strcmp(status, table[i].status) != 0))
            FAIL("%s: outcome %d, code %d, signal %d, %s", table[i].text, run.record.outcome,
                 run.record.exit_code, run.record.signal, status);
        CHECK_EQ_INT(NACRE_TREE_EMPTY, run.record.tree);
        run_done(&run);
    }
    close_session(s);
}

TEST(make_that_fails_in_the_background)
{
    if (!have_program("make"))
        SKIP("there is no make");
    nacre_session *s = open_session();

    spit("Makefile", "all:\n\t@echo fine; exit 3\n", 25);
    nacre_id good = start_text(s, "echo '[error]'"), bad = start_text(s, "make -s");
    wait_outcome(s, &good, 3000);
    wait_outcome(s, &bad, 3000);
    CHECK_TEXT(status_of(s, &good), "exited(0)");
    CHECK_TEXT(status_of(s, &bad), "exited(2)");
    close_session(s);
}

/* -- Pipestatus ------------------------------------------------------------------------------ */

static void check_pipestatus(nacre_session *s, const char *text, int code, const char *want,
                             bool must_know)
{
    struct run run = run_text(s, text);
    char got[256] = "";

    for (int i = 0; i < run.record.pipestatus_count; i++)
        snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%d", i ? " " : "",
                 run.record.pipestatus[i]);
    if (run.record.exit_code != code)
        FAIL("%s: exit code %d, wanted %d", text, run.record.exit_code, code);
    if (run.record.pipestatus_count < 0 ? must_know : strcmp(got, want) != 0)
        FAIL("%s: pipestatus [%s] (%d), wanted [%s]", text, got, run.record.pipestatus_count, want);
    run_done(&run);
}

TEST(pipestatus)
{
    nacre_session *s = open_session();

    if (!have_program("bash")) {
        close_session(s);
        SKIP("there is no bash");
    }
    check_pipestatus(s, "sh -c 'exit 3' | tail -1", 0, "3 0", true);
    check_pipestatus(s, "true | false | sh -c 'exit 5'", 5, "0 1 5", true);
    check_pipestatus(s, "echo one; exit 2 | exit 3 | exit 0", 0, "2 3 0", true);
    check_pipestatus(s, "set -o pipefail; sh -c 'exit 3' | cat", 3, "3 0", true);
    check_pipestatus(s, "set -e; sh -c 'exit 3' | cat", 0, "3 0", true);
    check_pipestatus(s, "sh -c 'kill -TERM $$' | cat", 0, "143 0", true);
    /* In these it may not be known, but if it is said it must be right. */
    check_pipestatus(s, "trap 'echo bye' EXIT; sh -c 'exit 3' | tail -1", 0, "3 0", false);
    check_pipestatus(s, "sh -c 'exit 3' | tail -1 <<EOF\nx\nEOF", 0, "3 0", false);
    check_pipestatus(s, "sh -c 'exit 3' | tail -1 \\", 1, "3 1", false);
    check_pipestatus(s, "exec sh -c 'exit 4'", 4, "4", false);
    check_pipestatus(s, "exec cat < /dev/null", 0, "0", false);
    check_pipestatus(s, "false", 1, "1", false);
    check_pipestatus(s, "exit 3", 3, "3", false);
    close_session(s);
}

TEST(pipestatus_is_unknown_for_others)
{
    nacre_session *s = open_session();
    nacre_command command = NACRE_COMMAND_INIT;
    const char *argv[] = {"true", NULL};

    command.text = "sh -c 'exit 3' | tail -1";
    command.shell = "sh";
    struct run run = run_command(s, &command);
    CHECK_EQ_INT(0, run.record.exit_code);
    CHECK_EQ_INT(-1, run.record.pipestatus_count);
    run_done(&run);
    command.text = NULL;
    command.shell = NULL;
    command.argv = argv;
    run = run_command(s, &command);
    CHECK_EQ_INT(-1, run.record.pipestatus_count);
    run_done(&run);
    run = run_text(s, "kill -TERM $$");
    CHECK_EQ_INT(-1, run.record.pipestatus_count);
    run_done(&run);
    close_session(s);
}

/* -- What cannot be started ------------------------------------------------------------------ */

static int count_runs(const nacre_listed *listed, void *arg)
{
    (void)listed;
    (*(int *)arg)++;
    return 0;
}

static void check_not_started(nacre_session *s, const nacre_command *command, const char *stage,
                              int error, const char *named)
{
    nacre_record record = NACRE_RECORD_INIT;
    int before = 0, after = 0;
    nacre_id id;

    CHECK_OK(list_home(s, false, count_runs, &before));
    CHECK_CODE(NACRE_ESTART, nacre_start(s, command, &id, NULL, ERR));
    CHECK_TEXT(harness_error.stage, stage);
    CHECK_EQ_INT(error, harness_error.sys_errno);
    CHECK_STR(harness_error.msg, named);
    memset(ERR, 0, sizeof(*ERR));
    CHECK_CODE(NACRE_ESTART, nacre_run(s, command, -1, &record, ERR));
    CHECK_TEXT(harness_error.stage, stage);
    nacre_record_done(&record);
    CHECK_OK(list_home(s, false, count_runs, &after));
    CHECK_EQ_INT(before, after);
}

TEST(not_started)
{
    nacre_session *s = open_session();
    nacre_command command = NACRE_COMMAND_INIT;
    const char *missing[] = {"./no-such-program", "x", NULL};
    const char *plain[] = {"./plain-file", NULL};
    const char *unfound[] = {"no-such-program-anywhere", NULL};

    spit("plain-file", "#!/bin/sh\n", 10);
    command.argv = missing;
    check_not_started(s, &command, "exec", ENOENT, "no-such-program");
    command.argv = plain;
    check_not_started(s, &command, "exec", EACCES, "plain-file");
    command.argv = unfound;
    check_not_started(s, &command, "exec", ENOENT, "no-such-program-anywhere");
    command.argv = NULL;
    command.text = "echo hi";
    command.cwd = "/no/such/directory";
    check_not_started(s, &command, "chdir", ENOENT, "/no/such/directory");
    command.cwd = "plain-file";
    check_not_started(s, &command, "chdir", ENOTDIR, "plain-file");
    command.cwd = NULL;
    command.shell = "/no/such/shell";
    check_not_started(s, &command, "exec", ENOENT, "/no/such/shell");

    command.shell = NULL;
    struct run run = run_command(s, &command);
    CHECK_TEXT(run.out, "hi\n");
    run_done(&run);
    close_session(s);
}

TEST(not_started_in_a_forbidden_directory)
{
    if (geteuid() == 0)
        SKIP("root may enter any directory");
    nacre_session *s = open_session();
    nacre_command command = NACRE_COMMAND_INIT;

    CHECK(mkdir("closed", 0) == 0);
    command.text = "true";
    command.cwd = "closed";
    check_not_started(s, &command, "chdir", EACCES, "closed");
    close_session(s);
}

/* The host's own directory is gone: that is a clear error too, or it runs where it was. */
TEST(started_in_a_removed_directory)
{
    nacre_session *s = open_session();
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_id id;

    CHECK(mkdir("gone", 0700) == 0 && chdir("gone") == 0 && rmdir("../gone") == 0);
    command.text = "echo hi";
    int result = nacre_start(s, &command, &id, NULL, ERR);
    if (result < 0)
        CHECK_CODE(NACRE_ESTART, result);
    else
        wait_outcome(s, &id, 3000);
    command.cwd = "/";
    struct run run = run_command(s, &command);
    CHECK_TEXT(run.out, "hi\n");
    run_done(&run);
    close_session(s);
}

TEST(wrong_arguments)
{
    nacre_session *s = open_session();
    const char *argv[] = {"true", NULL}, *none[] = {NULL};
    nacre_command good = NACRE_COMMAND_INIT, command;
    nacre_id id;

    good.text = "true";
    command = good;
    command.text = NULL;
    CHECK_CODE(NACRE_EINVAL, nacre_start(s, &command, &id, NULL, ERR));
    command.argv = none;
    CHECK_CODE(NACRE_EINVAL, nacre_start(s, &command, &id, NULL, ERR));
    command.text = "true";
    command.argv = argv;
    CHECK_CODE(NACRE_EINVAL, nacre_start(s, &command, &id, NULL, ERR));
    command = good;
    command.timeout_ms = -1;
    CHECK_CODE(NACRE_EINVAL, nacre_start(s, &command, &id, NULL, ERR));
    command = good;
    command.input = (nacre_stdin)17;
    CHECK_CODE(NACRE_EINVAL, nacre_start(s, &command, &id, NULL, ERR));
    command = good;
    command.lifetime = (nacre_lifetime)17;
    CHECK_CODE(NACRE_EINVAL, nacre_start(s, &command, &id, NULL, ERR));
    command = good;
    command.size = 3;
    CHECK_CODE(NACRE_EINVAL, nacre_start(s, &command, &id, NULL, ERR));
    CHECK_CODE(NACRE_EINVAL, nacre_start(s, NULL, &id, NULL, ERR));
    CHECK(nacre_start(s, NULL, &id, NULL, NULL) < 0);
    close_session(s);
}

/* -- The record ------------------------------------------------------------------------------ */

TEST(record_of_a_run)
{
    nacre_options options = NACRE_OPTIONS_INIT;
    nacre_command command = NACRE_COMMAND_INIT;
    struct timespec now;

    CHECK(mkdir("here", 0700) == 0);
    const char *here = format("%s/work/here", test_base());
    options.cwd = here;
    nacre_session *s = open_options(&options);
    nacre_id session = nacre_session_id(s);
    clock_gettime(CLOCK_REALTIME, &now);
    command.text = "pwd; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; sleep 0.05";
    command.name = "the name";
    command.description = "what it is for";
    struct run run = run_command(s, &command);
    const nacre_record *r = &run.record;

    CHECK_TEXT(r->command, command.text);
    CHECK_TEXT(r->name, "the name");
    CHECK_TEXT(r->description, "what it is for");
    CHECK_TEXT(r->cwd, here);
    CHECK_TEXT(run.out, format("%s\n", here));
    CHECK(nacre_id_equal(&r->session, &session));
    CHECK_RANGE(now.tv_sec * 1000 - 1000, r->started_ms, now.tv_sec * 1000 + MS(5000));
    CHECK_RANGE(r->started_ms + 50, r->exited_ms, r->started_ms + MS(5000));
    CHECK_RANGE(r->exited_ms - r->started_ms - 3, r->elapsed_ms, r->exited_ms - r->started_ms + 3);
    CHECK_RANGE(1, r->cpu_ms, r->elapsed_ms + 10);
    CHECK_RANGE(500, r->max_rss_kb, 200000);
    CHECK_EQ_INT(0, r->timeout_ms);
    CHECK_EQ_INT(NACRE_LIFE_SESSION, r->lifetime);
    CHECK_EQ_INT(NACRE_STDIN_NULL, r->input);
    CHECK_EQ_INT(0, r->leftover_count);
    CHECK_EQ_INT(0, r->signalled);
    nacre_id again;
    CHECK_OK(nacre_find(s, nacre_id_short(&r->id).s, &again, ERR));
    CHECK(nacre_id_equal(&again, &r->id));
    run_done(&run);
    close_session(s);
}

TEST(record_of_a_program)
{
    nacre_session *s = open_session();
    nacre_command command = NACRE_COMMAND_INIT;
    const char *argv[] = {"printf", "%s|", "a b", "", "$HOME", "*", NULL};

    command.argv = argv;
    struct run run = run_command(s, &command);
    CHECK_TEXT(run.out, "a b||$HOME|*|");
    CHECK_STR(run.record.command, "printf %s| a b");
    CHECK_TEXT(run.record.name, "");
    CHECK_TEXT(run.record.description, "");
    run_done(&run);
    close_session(s);
}

TEST(record_while_it_runs)
{
    nacre_session *s = open_session();
    const char *m = marker();
    nacre_id id = start_text(s, format("exec sleep 300.%s", m));
    struct process found;

    await_marked(m, 1);
    find_marked(m, &found, 1);
    nacre_record first = record_of(s, &id);
    CHECK_EQ_INT(NACRE_RUNNING, first.outcome);
    CHECK_EQ_INT(NACRE_TREE_ALIVE, first.tree);
    CHECK_EQ_INT(found.pid, first.pid);
    CHECK_EQ_INT(-1, first.exit_code);
    CHECK_EQ_INT(0, first.exited_ms);
    pause_ms(20);
    nacre_record second = record_of(s, &id);
    CHECK(second.elapsed_ms >= first.elapsed_ms + 15);
    CHECK_OK(nacre_get(s, &id, &second, ERR));
    CHECK_TEXT(status_of(s, &id), "running");
    nacre_record_done(&first);
    nacre_record_done(&second);
    nacre_record_done(&second);
    close_session(s);
}

/* -- What the command finds around itself ---------------------------------------------------- */

static struct run run_with_env(nacre_session *s, const char *const *env, const char *text)
{
    nacre_command command = NACRE_COMMAND_INIT;

    command.text = text;
    command.env = env;
    return run_command(s, &command);
}

TEST(environment)
{
    static const char *const env[] = {"ADDED=new value", "REPLACED=after", "REMOVED",
                                      "EMPTY=", NULL};
    nacre_session *s = open_session();

    setenv("REPLACED", "before", 1);
    setenv("REMOVED", "there", 1);
    setenv("KEPT", "kept", 1);
    struct run run = run_with_env(
        s, env, "echo \"$ADDED|$REPLACED|${REMOVED-unset}|${EMPTY-unset}|$KEPT|$NACRE_ID\"");
    CHECK_TEXT(run.out,
               format("new value|after|unset||kept|%s\n", nacre_id_format(&run.record.id).s));
    run_done(&run);
    run = run_text(s, "env | grep -c '^REPLACED='; echo ${LD_PRELOAD-unset};"
                      "echo $PAGER $GIT_PAGER $GIT_TERMINAL_PROMPT $GIT_EDITOR "
                      "$GIT_SEQUENCE_EDITOR $GCM_INTERACTIVE $DEBIAN_FRONTEND $TERM $NO_COLOR");
    CHECK_TEXT(run.out, "1\nunset\ncat cat 0 false false never noninteractive dumb 1\n");
    run_done(&run);
    setenv("KEPT", "changed", 1);
    unsetenv("REPLACED");
    run = run_text(s, "echo \"$KEPT|${REPLACED-unset}\"");
    CHECK_TEXT(run.out, "changed|unset\n");
    run_done(&run);
    CHECK(!getenv("NACRE_ID"));
    close_session(s);
}

/* Those are the host's at each start, also when a keeper was made ahead of time. */
TEST(umask_limits_nice_and_directory)
{
    nacre_session *s = open_session();
    const char *text = "umask; ulimit -n; ulimit -Hc; nice; pwd";
    struct rlimit files = {200, 300}, core = {0, 4096};
    struct run run;

    CHECK(mkdir("a", 0700) == 0 && mkdir("b", 0700) == 0);
    umask(022);
    CHECK(chdir("a") == 0);
    run = run_text(s, text);
    CHECK_STR(run.out, "0022\n");
    CHECK_STR(run.out, "/a\n");
    run_done(&run);
    umask(077);
    CHECK(chdir("../b") == 0);
    CHECK(setrlimit(RLIMIT_NOFILE, &files) == 0);
    CHECK(setrlimit(RLIMIT_CORE, &core) == 0);
    CHECK(setpriority(PRIO_PROCESS, 0, 5) == 0);
    run = run_text(s, text);
    CHECK_TEXT(run.out, format("0077\n200\n4\n5\n%s/work/b\n", test_base()));
    run_done(&run);
    umask(027);
    run = run_text(s, "umask; cat /proc/$PPID/limits | grep -c .");
    CHECK_STR(run.out, "0027\n");
    run_done(&run);
    CHECK_EQ_INT(027, umask(022));
    close_session(s);
}

static const char *own_processors(void)
{
    char line[512];
    FILE *file = fopen("/proc/self/status", "re");

    CHECK(file);
    while (fgets(line, sizeof(line), file) && strncmp(line, "Cpus_allowed:", 13) != 0)
        ;
    fclose(file);
    return format("%s", line);
}

static void check_processors(nacre_session *s)
{
    nacre_command command = NACRE_COMMAND_INIT;

    command.text = "grep Cpus_allowed: /proc/self/status; cat";
    command.input = NACRE_STDIN_BYTES;
    command.input_data = "all of it";
    command.input_size = 9;
    for (int i = 0; i < 3; i++) {
        struct run run = run_command(s, &command);
        CHECK_TEXT(run.out, format("%sall of it", own_processors()));
        run_done(&run);
    }
}

/* A keeper that was made ahead of time, for a host that was elsewhere, starts nothing: neither
 * twice nor there. What it was given goes to another one. */
TEST(processors)
{
    nacre_session *s = open_session();
    cpu_set_t all, one;
    int runs = 0;

    CHECK_EQ_INT(0, sched_getaffinity(0, sizeof(all), &all));
    if (CPU_COUNT(&all) == 1)
        SKIP("there is one processor");
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    check_processors(s);
    CHECK_EQ_INT(0, sched_setaffinity(0, sizeof(one), &one));
    check_processors(s);
    CHECK_EQ_INT(0, sched_setaffinity(0, sizeof(all), &all));
    check_processors(s);
    CHECK_OK(list_home(s, false, count_runs, &runs));
    CHECK_EQ_INT(9, runs);
    close_session(s);
}

TEST(relative_directory)
{
    nacre_session *s = open_session();
    nacre_command command = NACRE_COMMAND_INIT;

    CHECK(mkdir("sub", 0700) == 0);
    command.text = "pwd; echo $PWD; cd -";
    command.cwd = "sub";
    struct run run = run_command(s, &command);
    const char *sub = format("%s/work/sub", test_base());
    CHECK_STR(run.out, format("%s\n%s\n", sub, sub));
    CHECK_TEXT(run.record.cwd, sub);
    run_done(&run);
    close_session(s);
}

TEST(descriptors)
{
    nacre_session *s = open_session();
    nacre_command command = NACRE_COMMAND_INIT;
    const char *argv[] = {program("fd-list"), NULL};
    int extra[40];

    for (int i = 0; i < 40; i++)
        CHECK((extra[i] = open("/dev/null", O_RDWR)) >= 0);
    CHECK(dup2(extra[0], 900) == 900);
    for (int i = 0; i < 4; i++) {
        struct run run = run_text(s, format("exec %s", argv[0]));
        CHECK_TEXT(run.out, "0 1 2\n");
        run_done(&run);
        run = run_text(s, format("%s; true", argv[0]));
        CHECK_TEXT(run.out, "0 1 2\n");
        run_done(&run);
        command.argv = argv;
        run = run_command(s, &command);
        CHECK_TEXT(run.out, "0 1 2\n");
        run_done(&run);
    }
    command.argv = NULL;
    command.shell = "sh";
    command.text = format("%s; true", argv[0]);
    struct run run = run_command(s, &command);
    CHECK_TEXT(run.out, "0 1 2\n");
    run_done(&run);
    command.input = NACRE_STDIN_BYTES;
    command.input_data = "x";
    command.input_size = 1;
    run = run_command(s, &command);
    CHECK_TEXT(run.out, "0 1 2\n");
    run_done(&run);
    close_session(s);
}

TEST(signals)
{
    nacre_session *s = open_session();
    const char *clean = "blocked: ignored:\n", *list = program("sig-list");
    nacre_command command = NACRE_COMMAND_INIT;
    const char *argv[] = {list, NULL};
    sigset_t all, before;

    struct run run = run_text(s, list);
    CHECK_TEXT(run.out, clean);
    run_done(&run);
    for (int sig = 1; sig < 32; sig++) {
        if (sig != SIGKILL && sig != SIGSTOP)
            signal(sig, SIG_IGN);
    }
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    for (int i = 0; i < 3; i++) {
        run = run_text(s, list);
        CHECK_TEXT(run.out, clean);
        run_done(&run);
        run = run_text(s, format("%s & wait", list));
        CHECK_STR(run.out, "blocked: ignored:");
        run_done(&run);
        command.argv = argv;
        run = run_command(s, &command);
        CHECK_STR(run.out, "blocked: ignored:\n");
        run_done(&run);
    }
    run = run_text(s, "trap 'echo caught' TERM; kill -TERM $$; echo end");
    CHECK_TEXT(run.out, "caught\nend\n");
    run_done(&run);
    run = run_text(s, "yes | head -1; echo ${PIPESTATUS[0]}");
    CHECK_TEXT(run.out, "y\n141\n");
    run_done(&run);
    sigset_t now;
    sigprocmask(SIG_SETMASK, &before, &now);
    CHECK(sigismember(&now, SIGUSR1) && sigismember(&now, SIGCHLD));
    close_session(s);
}

/* -- Ids ------------------------------------------------------------------------------------- */

TEST(finding_by_prefix)
{
    nacre_session *s = open_session();
    struct run run = run_text(s, "true");
    nacre_id_text id = nacre_id_format(&run.record.id);
    nacre_id found;
    char prefix[40];

    for (size_t digits = 4; digits <= 32; digits++) {
        snprintf(prefix, sizeof(prefix), "%.*s", (int)digits, id.s);
        CHECK_OK(nacre_find(s, prefix, &found, ERR));
        CHECK(nacre_id_equal(&found, &run.record.id));
    }
    snprintf(prefix, sizeof(prefix), "%.3s", id.s);
    CHECK_CODE(NACRE_EINVAL, nacre_find(s, prefix, &found, ERR));
    CHECK_CODE(NACRE_EINVAL, nacre_find(s, "", &found, ERR));
    CHECK_CODE(NACRE_EINVAL, nacre_find(s, "ABCDEF", &found, ERR));
    CHECK_CODE(NACRE_EINVAL, nacre_find(s, "../../etc", &found, ERR));
    CHECK_CODE(NACRE_EINVAL, nacre_find(s, format("%s0", id.s), &found, ERR));
    snprintf(prefix, sizeof(prefix), "%.7s%c", id.s, id.s[7] == '0' ? '1' : '0');
    CHECK_CODE(NACRE_ENOTFOUND, nacre_find(s, prefix, &found, ERR));
    run_done(&run);
    close_session(s);
}
