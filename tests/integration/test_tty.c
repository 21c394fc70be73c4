/*
 * Commands with a terminal: whose it is, what becomes of what they leave behind, how they end; what
 * is answered and what is kept; and the screen of real programs.
 */
#include "harness/harness.h"

#include <ctype.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static nacre_id start_tty(nacre_session *s, const char *text, int columns, int rows)
{
    nacre_command command = NACRE_COMMAND_INIT;
    command.text = text;
    command.tty = 1;
    command.columns = columns;
    command.rows = rows;
    command.background = 1;
    return start_command(s, &command);
}

static struct run run_tty(nacre_session *s, const char *text)
{
    nacre_command command = NACRE_COMMAND_INIT;
    command.text = text;
    command.tty = 1;
    return run_command(s, &command);
}

static void type(nacre_session *s, const nacre_id *id, const char *text)
{
    CHECK_EQ_INT(strlen(text), nacre_input(s, id, text, strlen(text), 0, -1, ERR));
}

static bool screen_has(nacre_session *s, const nacre_id *id, const char *needle)
{
    nacre_screen screen = NACRE_SCREEN_INIT;
    CHECK_OK(nacre_get_screen(s, id, &screen, ERR));
    bool has = strstr(screen.text, needle) != NULL;
    nacre_screen_done(&screen);
    return has;
}

#define AWAIT_SCREEN(s, id, text)                                        \
    do {                                                                 \
        if (!AWAIT(screen_has(s, id, text), 10000))                      \
            FAIL("\"%s\" is not on the screen:\n%s", text, seen(s, id)); \
    } while (0)

static const char *seen(nacre_session *s, const nacre_id *id)
{
    nacre_screen screen = NACRE_SCREEN_INIT;
    CHECK_OK(nacre_get_screen(s, id, &screen, ERR));
    const char *text = format("%s", screen.text);
    nacre_screen_done(&screen);
    return text;
}

/* -- What it is -------------------------------------------------------------------------------- */

TEST(it_is_a_terminal)
{
    nacre_session *s = open_session();
    struct run run = run_tty(s, "test -t 0 && test -t 1 && test -t 2 && stty size && "
                                "echo $TERM ${NO_COLOR-none} && tty && echo x >/dev/tty; exit 7");

    CHECK_EQ_INT(7, run.record.exit_code);
    CHECK_STR(run.out, "40 120\r\nxterm-256color none\r\n/dev/pts/");
    CHECK_STR(run.out, "\r\nx\r\n");
    CHECK_EQ_INT(0, run.err_size);
    CHECK_EQ_INT(120, run.record.columns);
    CHECK_EQ_INT(40, run.record.rows);
    CHECK_EQ_INT(NACRE_STDIN_PIPE, run.record.input);
    run_done(&run);
    close_session(s);
}

TEST(pipes_are_no_terminal)
{
    nacre_session *s = open_session();
    struct run run = run_text(s, "tty; echo $TERM $NO_COLOR");

    CHECK_TEXT(run.out, "not a tty\ndumb 1\n");
    CHECK_EQ_INT(0, run.record.columns);
    run_done(&run);
    close_session(s);
}

TEST(sizes_have_bounds)
{
    nacre_session *s = open_session();
    static const int wrong[][2] = {{19, 40}, {501, 40}, {80, 4}, {80, 201}, {-1, 0}, {0, -1}};
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_id id;

    command.text = "true";
    command.tty = 1;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        command.columns = wrong[i][0];
        command.rows = wrong[i][1];
        CHECK_CODE(NACRE_EINVAL, nacre_start(s, &command, &id, NULL, ERR));
    }
    command.columns = command.rows = 0;
    command.input = NACRE_STDIN_BYTES;
    command.input_data = "x";
    command.input_size = 1;
    CHECK_CODE(NACRE_EINVAL, nacre_start(s, &command, &id, NULL, ERR));
    close_session(s);
}

/* Nothing of what was printed last is missing when the exit is told. */
TEST_LIMIT(all_output_is_there_at_the_exit, 60)
{
    nacre_session *s = open_session();
    for (int i = 0; i < rounds(40); i++) {
        struct run run = run_tty(s, "seq 3000; echo end");
        size_t want = 0;
        for (int n = 1; n <= 3000; n++)
            want += strlen(format("%d", n)) + 2;
        CHECK_EQ_INT(want + strlen("end\r\n"), run.out_size);
        CHECK_TEXT(run.out + want, "end\r\n");
        run_done(&run);
    }
    close_session(s);
}

/* -- Who leads its session -------------------------------------------------------------------- */

/* With the command as leader its end would send a SIGHUP to whoever is in the foreground. */
TEST_LIMIT(what_it_leaves_behind_lives_on, 60)
{
    nacre_session *s = open_session();
    for (int i = 0; i < rounds(20); i++) {
        const char *mark = marker();
        nacre_id id = start_tty(s, format("sleep 300.%s & echo started; exit 3", mark), 0, 0);
        wait_outcome(s, &id, 5000);
        await_marked(mark, 1);
        nacre_record record = record_of(s, &id);
        CHECK_EQ_INT(NACRE_EXITED, record.outcome);
        CHECK_EQ_INT(3, record.exit_code);
        CHECK_EQ_INT(NACRE_TREE_ALIVE, record.tree);
        CHECK_EQ_INT(1, record.leftover_count);
        CHECK_STR(record.leftover[0].command, "sleep 300.");
        nacre_record_done(&record);
        nacre_kill_result result = kill_shell(s, &id, -1);
        CHECK_EQ_INT(1, result.signalled);
        CHECK_EQ_INT(0, count_marked(mark));
    }
    close_session(s);
}

TEST(what_it_leaves_behind_prints_on)
{
    nacre_session *s = open_session();
    nacre_id id =
        start_tty(s, format("(%s; echo late; stty size </dev/tty) & echo early", gate()), 90, 30);

    wait_outcome(s, &id, 5000);
    CHECK(output_has(s, &id, NACRE_OUT, "early"));
    let_go();
    CHECK(AWAIT(output_has(s, &id, NACRE_OUT, "late\r\n30 90"), 5000));
    CHECK(AWAIT(tree_empty(s, &id), 5000));
    close_session(s);
}

TEST(who_leaves_the_session_is_held_too)
{
    need_tree();
    nacre_session *s = open_session();
    const char *mark = marker();
    nacre_id id = start_tty(s, scattered(mark), 0, 0);

    await_marked(mark, 4);
    kill_shell(s, &id, 200);
    CHECK_EQ_INT(0, count_marked(mark));
    close_session(s);
}

static pid_t leader_of(pid_t pid)
{
    char *text = slurp(format("/proc/%d/stat", (int)pid), NULL);
    int leader = 0;
    CHECK(text && sscanf(strrchr(text, ')') + 1, " %*c %*d %*d %d", &leader) == 1);
    free(text);
    return leader;
}

/* Then it hangs up, as a terminal does; nothing is left, and nobody is blamed but the signal. */
TEST(the_leader_may_be_killed)
{
    nacre_session *s = open_session();
    nacre_id id = start_tty(s, "sleep 300", 0, 0);
    nacre_record record = record_of(s, &id);

    CHECK(leader_of(record.pid) != record.pid);
    kill(leader_of(record.pid), SIGKILL);
    nacre_record_done(&record);
    wait_outcome(s, &id, 5000);
    CHECK_TEXT(status_of(s, &id), "signaled(SIGHUP)");
    CHECK(AWAIT(tree_empty(s, &id), 5000));
    close_session(s);
}

TEST(a_shell_has_job_control)
{
    need_tree();
    nacre_session *s = open_session();
    nacre_id id = start_tty(s, "exec bash --norc -i", 80, 24);

    type(s, &id, "PS1='p> '\r");
    AWAIT_SCREEN(s, &id, "\np>");
    type(s, &id, "sleep 300\r");
    AWAIT_SCREEN(s, &id, "p> sleep 300\n");
    pause_ms(MS(100)); /* the shell has to wait for it before it is stopped */
    type(s, &id, "\x1a");
    AWAIT_SCREEN(s, &id, "Stopped");
    type(s, &id, "fg\r");
    AWAIT_SCREEN(s, &id, "p> fg\nsleep 300\n");
    type(s, &id, "\x03");
    AWAIT_SCREEN(s, &id, "^C");
    type(s, &id, "exit 5\r");
    wait_outcome(s, &id, 5000);
    CHECK_TEXT(status_of(s, &id), "exited(5)");
    close_session(s);
}

/* -- How it ends ------------------------------------------------------------------------------- */

TEST(it_is_killed_like_any_other)
{
    nacre_session *s = open_session();
    nacre_id id = start_tty(s, "trap '' TERM HUP; while :; do sleep 1; done", 0, 0);

    kill_shell(s, &id, 100);
    check_ended(s, &id, NACRE_KILLED, NACRE_REASON_KILL);
    close_session(s);
}

TEST(its_time_may_be_over)
{
    nacre_session *s = open_session();
    nacre_command command = NACRE_COMMAND_INIT;
    command.text = "cat";
    command.tty = 1;
    command.timeout_ms = 200;
    struct run run = run_command(s, &command);

    CHECK_EQ_INT(NACRE_TIMED_OUT, run.record.outcome);
    run_done(&run);
    close_session(s);
}

TEST(it_ends_with_its_session)
{
    const char *mark = marker();
    nacre_session *s = open_session();
    start_tty(s, format("sleep 300.%s & exec sleep 301.%s", mark, mark), 0, 0);
    await_marked(mark, 2);
    close_session(s);
    CHECK_EQ_INT(0, count_marked(mark));
}

TEST(what_cannot_be_executed_leaves_nothing)
{
    nacre_session *s = open_session();
    static const char *const argv[] = {"/nonexistent/program", NULL};
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_id id;

    command.argv = argv;
    command.tty = 1;
    for (int i = 0; i < 5; i++)
        CHECK_CODE(NACRE_ESTART, nacre_start(s, &command, &id, NULL, ERR));
    struct run run = run_tty(s, "echo fine");
    CHECK_TEXT(run.out, "fine\r\n");
    run_done(&run);
    close_session(s);
}

/* Nobody has it open for a while, but it is still the command's. */
TEST(it_may_be_opened_again)
{
    nacre_session *s = open_session();
    struct run run =
        run_tty(s, "echo one; exec 3</dev/null <&3 >&3 2>&3; sleep 0.3; echo two >/dev/tty");

    CHECK_TEXT(run.out, "one\r\ntwo\r\n");
    run_done(&run);
    close_session(s);
}

/* -- Input ------------------------------------------------------------------------------------- */

TEST(the_end_of_input_is_typed)
{
    nacre_session *s = open_session();
    nacre_id id = start_tty(s, "cat; echo and; cat; echo over", 0, 0);

    type(s, &id, "line\n");
    CHECK(AWAIT(output_has(s, &id, NACRE_OUT, "line\r\nline\r\n"), 5000));
    CHECK_EQ_INT(0, nacre_input(s, &id, "", 0, 1, -1, ERR));
    CHECK(AWAIT(output_has(s, &id, NACRE_OUT, "and"), 5000));
    CHECK_EQ_INT(2, nacre_input(s, &id, "x\n", 2, 1, -1, ERR));
    wait_outcome(s, &id, 5000);
    CHECK(output_has(s, &id, NACRE_OUT, "x\r\nx\r\nover"));
    CHECK_CODE(NACRE_ECLOSED, (int)nacre_input(s, &id, "x", 1, 0, -1, ERR));
    close_session(s);
}

static void check_nowhere(const nacre_id *id, const char *needle)
{
    DIR *dir = opendir(run_path(id, "."));
    CHECK(dir);
    for (struct dirent *e; (e = readdir(dir));) {
        size_t size = 0;
        if (e->d_type != DT_REG)
            continue;
        char *bytes = slurp(run_path(id, e->d_name), &size);
        if (bytes && memmem(bytes, size, needle, strlen(needle)))
            FAIL("%s has what was typed", e->d_name);
        free(bytes);
    }
    closedir(dir);
}

TEST(what_is_typed_is_not_kept)
{
    nacre_session *s = open_session();
    nacre_id id = start_tty(s, "read -rs -p 'Password: ' p; echo; echo ${#p}; sleep 300", 0, 0);

    CHECK(AWAIT(output_has(s, &id, NACRE_OUT, "Password: "), 5000));
    type(s, &id, "pass\xc3\xa4word\n");
    CHECK(AWAIT(output_has(s, &id, NACRE_OUT, "\r\n9\r\n") ||
                    output_has(s, &id, NACRE_OUT, "\r\n8\r\n"),
                5000));
    check_nowhere(&id, "pass\xc3\xa4word");
    kill_shell(s, &id, 0);
    check_nowhere(&id, "pass\xc3\xa4word");
    close_session(s);
}

/* -- What programs ask ------------------------------------------------------------------------- */

TEST(where_the_cursor_is_is_answered)
{
    nacre_session *s = open_session();
    struct run run = run_tty(s, "stty -echo; printf 'a\\nbcd\\033[6n'; "
                                "IFS= read -r -t 10 -d R answer; printf '%q' \"$answer\"");

    CHECK_STR(run.out, "$'\\E[2;4'");
    run_done(&run);
    close_session(s);
}

/* Who asks for ever and reads nothing is drained all the same. */
TEST(questions_without_end_hold_up_nobody)
{
    nacre_session *s = open_session();
    struct run run =
        run_tty(s, "stty -echo -icanon; for i in {1..4000}; do printf '\\033[6n'; done; "
                   "echo done");

    CHECK_EQ_INT(0, run.record.exit_code);
    CHECK_STR(run.out + run.out_size - 6, "done\r\n");
    run_done(&run);
    close_session(s);
}

/* -- Sizes and screens ------------------------------------------------------------------------- */

TEST(another_size_is_told_and_kept)
{
    nacre_session *s = open_session();
    nacre_screen screen = NACRE_SCREEN_INIT;
    nacre_id id =
        start_tty(s, "trap 'stty size' WINCH; stty size; while :; do sleep 0.05; done", 80, 24);

    CHECK(AWAIT(output_has(s, &id, NACRE_OUT, "24 80"), 5000));
    CHECK_OK(nacre_resize(s, &id, 132, 50, ERR));
    CHECK(AWAIT(output_has(s, &id, NACRE_OUT, "50 132"), 5000));
    CHECK_OK(nacre_get_screen(s, &id, &screen, ERR));
    CHECK_EQ_INT(132, screen.columns);
    CHECK_EQ_INT(50, screen.rows);
    CHECK_TEXT(screen.text, "24 80\n50 132\n");
    nacre_record record = record_of(s, &id);
    CHECK_EQ_INT(132, record.columns);
    nacre_record_done(&record);
    CHECK_CODE(NACRE_EINVAL, nacre_resize(s, &id, 10, 50, ERR));
    kill_shell(s, &id, 0);
    CHECK_CODE(NACRE_ECLOSED, nacre_resize(s, &id, 80, 24, ERR));

    /* The sizes are known without the keeper too. */
    CHECK_OK(nacre_get_screen(s, &id, &screen, ERR));
    CHECK_EQ_INT(132, screen.columns);
    nacre_screen_done(&screen);
    close_session(s);
}

TEST(pipes_have_no_size)
{
    nacre_session *s = open_session();
    nacre_id id = start_held(s, "echo a; echo b; read x");
    nacre_screen screen = NACRE_SCREEN_INIT;

    CHECK_CODE(NACRE_EUNSUPPORTED, nacre_resize(s, &id, 80, 24, ERR));
    CHECK(AWAIT(output_has(s, &id, NACRE_OUT, "b"), 5000));
    CHECK_OK(nacre_get_screen(s, &id, &screen, ERR));
    CHECK_TEXT(screen.text, "a\nb\n");
    CHECK_EQ_INT(0, screen.terminal);
    nacre_screen_done(&screen);
    release_shell(s, &id);
    wait_outcome(s, &id, 5000);
    close_session(s);
}

TEST(what_is_missing_is_said)
{
    nacre_session *s = open_session();
    nacre_screen screen = NACRE_SCREEN_INIT;
    nacre_command command = NACRE_COMMAND_INIT;
    command.text = "seq 200000; printf '\\033[2J\\033[Hend'";
    command.tty = 1;
    command.quota = 256 * 1024;
    struct run run = run_command(s, &command);

    CHECK(run.record.dropped_bytes[0] > 0);
    CHECK_OK(nacre_get_screen(s, &run.record.id, &screen, ERR));
    CHECK_TEXT(screen.text, "end\n");
    CHECK_EQ_INT(1, screen.partial);
    nacre_screen_done(&screen);
    run_done(&run);
    close_session(s);
}

/* -- Real programs ----------------------------------------------------------------------------- */

static void end_by(nacre_session *s, const nacre_id *id, const char *keys, const char *status)
{
    type(s, id, keys);
    wait_outcome(s, id, 10000);
    CHECK_TEXT(status_of(s, id), status);
    CHECK(AWAIT(tree_empty(s, id), 5000));
}

TEST(python_answers)
{
    nacre_session *s = open_session();
    nacre_id id = start_tty(s, "exec python3 -q", 80, 24);

    AWAIT_SCREEN(s, &id, ">>>");
    type(s, &id, "print(6 * 7)\r");
    AWAIT_SCREEN(s, &id, "\n42\n>>>");
    end_by(s, &id, "exit(4)\r", "exited(4)");
    close_session(s);
}

TEST(sqlite_answers)
{
    nacre_session *s = open_session();
    nacre_id id = start_tty(s, "exec sqlite3 -interactive", 80, 24);

    AWAIT_SCREEN(s, &id, "sqlite>");
    type(s, &id, "select 6 * 7;\r");
    AWAIT_SCREEN(s, &id, "\n42\n");
    end_by(s, &id, ".quit\r", "exited(0)");
    close_session(s);
}

TEST(node_answers)
{
    nacre_session *s = open_session();
    if (!have_program("node"))
        SKIP("there is no node");
    nacre_id id = start_tty(s, "exec node", 80, 24);

    AWAIT_SCREEN(s, &id, "\n>");
    type(s, &id, "6 * 7\r");
    AWAIT_SCREEN(s, &id, "\n42\n>");
    end_by(s, &id, ".exit\r", "exited(0)");
    close_session(s);
}

TEST(vim_edits_and_saves)
{
    nacre_session *s = open_session();
    if (!have_program("vim"))
        SKIP("there is no vim");
    nacre_screen screen = NACRE_SCREEN_INIT;
    nacre_id id = start_tty(s, "exec vim -u NONE -i NONE edited", 80, 24);

    AWAIT_SCREEN(s, &id, "\"edited\" [New");
    CHECK_OK(nacre_get_screen(s, &id, &screen, ERR));
    CHECK_EQ_INT(1, screen.alternate);
    nacre_screen_done(&screen);
    type(s, &id, "ione\rtwo\x1b");
    AWAIT_SCREEN(s, &id, "one\ntwo\n~\n");
    end_by(s, &id, ":wq\r", "exited(0)");
    char *text = slurp("edited", NULL);
    CHECK_TEXT(text, "one\ntwo\n");
    free(text);
    close_session(s);
}

TEST(less_turns_pages)
{
    nacre_session *s = open_session();
    if (!have_program("less"))
        SKIP("there is no less");
    nacre_id id = start_tty(s, "seq 100 >numbers; exec less numbers", 80, 24);

    AWAIT_SCREEN(s, &id, "\n23\n");
    type(s, &id, " ");
    AWAIT_SCREEN(s, &id, "\n46\n");
    type(s, &id, "G");
    AWAIT_SCREEN(s, &id, "\n100\n(END)");
    end_by(s, &id, "q", "exited(0)");
    close_session(s);
}

TEST(top_fills_its_screen)
{
    nacre_session *s = open_session();
    nacre_id id = start_tty(s, "exec top -d 0.5", 100, 20);

    AWAIT_SCREEN(s, &id, "load average");
    AWAIT_SCREEN(s, &id, "PID USER");
    end_by(s, &id, "q", "exited(0)");
    close_session(s);
}
