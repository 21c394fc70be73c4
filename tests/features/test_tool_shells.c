/* The tools that feed, end, list and search shells; and completions, which ride on all of them. */
#include "tool.h"

#include <signal.h>
#include <unistd.h>

/* -- bash_input ------------------------------------------------------------------------------- */

static const char *start_fed(nacre_session *s, const char *command)
{
    struct reply r =
        call(s, "bash", "{\"command\": \"%s\", \"yield\": 0, \"keep_stdin\": true}", command);
    CHECK(!r.error);
    return id_of(&r);
}

TEST(input_text_and_keys)
{
    nacre_session *s = open_tool(NULL);
    const char *id = start_fed(s, "while read x; do echo got $x; done; echo over");
    struct reply r =
        call(s, "bash_input", "{\"id\": \"%s\", \"input\": \"a\\nb\", \"keys\": \"enter\"}", id);

    CHECK_TEXT(r.text,
               format("[shell %.8s \xe2\x80\x94 running]\nwrote 3 bytes, wrote 1 bytes\n", id));
    r = call(s, "bash_output", "{\"id\": \"%s\", \"until\": \"got b\"}", id);
    CHECK_STR(r.text, "got a\ngot b\n");
    r = call(s, "bash_input", "{\"id\": \"%s\", \"keys\": \"C-d\"}", id);
    CHECK_STR(r.text, "exited(0)]\nclosed its stdin\n");
    r = call(s, "bash_output", "{\"id\": \"%s\"}", id);
    CHECK_STR(r.text, "over\n");
    close_session(s);
}

TEST(input_to_the_ended)
{
    nacre_session *s = open_tool(NULL);
    const char *id = start_fed(s, "echo a lot of text; exit 5");
    struct reply r = call(s, "bash_input", "{\"id\": \"%s\", \"input\": \"x\"}", id);

    CHECK(r.error);
    CHECK_STR(r.text, "exited(5)]\n");
    CHECK(!contains(r.text, "a lot of text"));
    close_session(s);
}

TEST(interrupt_without_a_terminal)
{
    nacre_session *s = open_tool(NULL);
    const char *id = launch(s, "trap 'echo interrupted; exit 9' INT; sleep 300");
    struct reply r = call(s, "bash_input", "{\"id\": \"%s\", \"keys\": \"c-C\"}", id);

    CHECK(!r.error);
    CHECK_STR(r.text, "exited(9)]\nsent SIGINT\n");
    r = call(s, "bash_output", "{\"id\": \"%s\"}", id);
    CHECK_STR(r.text, "interrupted");
    close_session(s);
}

TEST(input_that_cannot_be)
{
    nacre_session *s = open_tool(NULL);
    const char *id = launch(s, "sleep 300");
    struct reply r = call(s, "bash_input", "{\"id\": \"%s\", \"input\": \"x\"}", id);

    CHECK(r.error);
    CHECK_STR(r.text, "keep_stdin");
    r = call(s, "bash_input", "{\"id\": \"%s\", \"keys\": \"C-c up\"}", id);
    CHECK(r.error);
    CHECK_STR(r.text, "\"up\" needs a terminal");
    r = call(s, "bash_input", "{\"id\": \"%s\"}", id);
    CHECK(r.error);
    r = call(s, "list_shells", "{\"state\": \"running\"}");
    CHECK_STR(r.text, format("running %.8s", id));
    close_session(s);
}

/* 100000 bytes of text; a pipe takes 65536. */
static const char *much_input(const char *id)
{
    static char text[100000 + 1];
    memset(text, 'x', sizeof text - 1);
    return format("{\"id\": \"%s\", \"input\": \"%s\"}", id, text);
}

TEST(input_does_not_stop_the_loop)
{
    nacre_session *s = open_tool(NULL);
    const char *id =
        start_fed(s, format("%s; head -c 65536 | wc -c; head -c 100001 | wc -c", gate()));
    int64_t begin = now_ms();
    nacre_call *c = begin_call(s, "bash_input", much_input(id));

    CHECK(!drive(c, 50));
    struct reply r = call(s, "list_shells", "{}");
    CHECK_STR(r.text, "running");
    CHECK_RANGE(0, now_ms() - begin, soon(1000));
    CHECK(drive(c, 10000));
    CHECK_RANGE(2000, now_ms() - begin, soon(4000));
    r = read_reply(nacre_call_result(c));
    CHECK(r.error);
    CHECK_STR(r.text, "wrote only 65536 of 100000 bytes: shell");
    nacre_call_free(c);
    /* That is what it got, and nothing of the rest comes later. */
    let_go();
    r = call(s, "bash_input", "{\"id\": \"%s\", \"input\": \"abc\", \"eof\": true}", id);
    CHECK_STR(r.text, "wrote 3 bytes, closed its stdin");
    r = call(s, "bash_output", "{\"id\": \"%s\", \"offset\": 0, \"until\": \"^3$\"}", id);
    CHECK_STR(r.text, "65536\n3\n");
    close_session(s);
}

TEST(slow_readers_get_all_input)
{
    nacre_session *s = open_tool(NULL);
    const char *id = start_fed(s, "sleep 1; head -c 100000 | wc -c; sleep 300");
    struct reply r = call(s, "bash_input", "%s", much_input(id));

    CHECK_STR(r.text, "running]\nwrote 100000 bytes\n");
    r = call(s, "bash_output", "{\"id\": \"%s\", \"until\": \"100000\"}", id);
    CHECK_STR(r.text, "100000\n");
    close_session(s);
}

/* The end of the shell ends the wait for room in its pipe. */
TEST(input_that_is_cut_off_says_how_far_it_came)
{
    nacre_session *s = open_tool(NULL);
    const char *id = start_fed(s, "sleep 1");
    int64_t begin = now_ms();
    struct reply r = call(s, "bash_input", "%s", much_input(id));

    CHECK(r.error);
    CHECK_RANGE(0, now_ms() - begin, soon(1900));
    CHECK_STR(r.text, "wrote only 65536 of 100000 bytes: shell");
    CHECK_STR(r.text, "takes no input");
    close_session(s);
}

/* -- kill_shell, list_shells ------------------------------------------------------------------ */

TEST(kill_says_what_it_did)
{
    nacre_session *s = open_tool(NULL);
    const char *id = launch(s, "sleep 300 & exec sleep 300");
    struct reply r = call(s, "kill_shell", "{\"bash_id\": \"%.8s\"}", id);

    CHECK(!r.error);
    const char *head = format("killed background shell %.8s: 2 processes signalled, ", id);
    CHECK(strncmp(r.text, head, strlen(head)) == 0);
    CHECK_STR(r.text, "0 survivors; its status is killed\n");
    CHECK_TEXT(r.completions, "");
    r = call(s, "kill_shell", "{\"id\": \"%.8s\"}", id);
    CHECK(!r.error);
    CHECK_TEXT(r.text, format("background shell %.8s had ended already: killed\n", id));
    CHECK_TEXT(r.completions, "");
    r = call(s, "kill_shell", "{\"id\": \"feedfeed\"}");
    CHECK(r.error);
    CHECK_STR(r.text, "no shell has the id or name \"feedfeed\"");
    r = call(s, "kill_shell", "{\"id\": \"feedfeed\", \"signal\": \"SIGNOTHING\"}");
    CHECK(r.error);
    close_session(s);
}

TEST(kill_of_the_stubborn_does_not_stop_the_loop)
{
    nacre_session *s = open_tool(NULL);
    const char *id = launch(s, "trap '' TERM; while :; do sleep 0.05; done");
    nacre_call *c = begin_call(s, "kill_shell", format("{\"id\": \"%s\", \"grace\": 1}", id));
    int64_t begin = now_ms();
    struct reply r = call(s, "bash", "{\"command\": \"echo meanwhile\"}");

    CHECK_STR(r.text, "meanwhile");
    CHECK_RANGE(0, now_ms() - begin, soon(500));
    CHECK(drive(c, 10000));
    CHECK_RANGE(900, now_ms() - begin, soon(3000));
    r = read_reply(nacre_call_result(c));
    CHECK_STR(r.text, "0 survivors");
    CHECK(!contains(r.text, " 0 needed SIGKILL"));
    nacre_call_delivered(c);
    nacre_call_free(c);
    close_session(s);
}

TEST(list)
{
    nacre_session *s = open_tool(NULL);
    struct reply r = call(s, "list_shells", "{}");

    CHECK_TEXT(r.text, "no background shells\n");
    const char *a = launch_held(s, "echo text; sleep 300");
    const char *b = launch(s, "exit 3");
    let_go();
    await_output(s, a, "text\n");
    r = call(s, "list_shells", "{}");
    CHECK_EQ_INT(2, count_of(r.text, "\n"));
    CHECK_STR(r.text, format("running %.8s, ", a));
    CHECK_STR(r.text, format("5 bytes unread: %s; echo text; sleep 300\n", gate()));
    CHECK_STR(r.text, format("exited(3) %.8s, ", b));
    r = call(s, "list_shells", "{\"state\": \"ended\"}");
    CHECK_EQ_INT(1, count_of(r.text, "\n"));
    CHECK_STR(r.text, "exited(3)");
    r = call(s, "list_shells", "{\"state\": \"running\"}");
    CHECK_EQ_INT(1, count_of(r.text, "\n"));
    close_session(s);
}

/* -- recall ----------------------------------------------------------------------------------- */

TEST(recall_finds_lines)
{
    nacre_session *s = open_tool(NULL);
    struct reply r = call(
        s, "bash", "{\"command\": \"seq 1 500; echo needle one; echo Needle two >&2; seq 1 9\"}");
    const char *id = id_of(&r);

    r = call(s, "recall", "{\"pattern\": \"needle\"}");
    CHECK_TEXT(r.text, format("%.8s stdout:501: needle one\n", id));
    r = call(s, "recall", "{\"pattern\": \"NEEDLE (one|two)\", \"ignore_case\": true}");
    CHECK_EQ_INT(2, count_of(r.text, "\n"));
    CHECK_STR(r.text, format("%.8s stderr:1: Needle two\n", id));
    r = call(s, "recall", "{\"pattern\": \"needle\", \"context\": 1}");
    CHECK_STR(r.text, format("%.8s stdout-500- 500\n", id));
    CHECK_STR(r.text, format("%.8s stdout-502- 1\n", id));
    r = call(s, "recall", "{\"pattern\": \"^[0-9]+$\", \"limit\": 3}");
    CHECK_STR(r.text, "[nacre: 506 more lines match; limit shows more]");
    r = call(s, "recall", "{\"pattern\": \"^[0-9]+$\"}");
    CHECK_EQ_INT(4, count_of(r.text, "\n"));
    CHECK_STR(r.text, "[nacre: 506 more lines are like those shown but for their numbers; limit "
                      "shows each]");
    r = call(s, "recall", "{\"pattern\": \"(one\", \"literal\": true}");
    CHECK_TEXT(r.text, "no lines match\n");
    r = call(s, "recall", "{\"pattern\": \"(one\"}");
    CHECK(r.error);
    r = call(s, "recall", "{\"id\": \"%s\", \"lines\": \"-2\", \"stream\": \"stdout\"}", id);
    CHECK_TEXT(r.text, format("[shell %.8s, stdout]\n509: 8\n510: 9\n", id));
    r = call(s, "recall", "{\"lines\": \"1-2\"}");
    CHECK(r.error);
    CHECK(strncmp(r.text, "pattern is missing", 18) == 0);
    r = call(s, "recall", "{\"pattern\": \"x\", \"since\": \"yesterday\"}");
    CHECK(r.error);
    CHECK(strncmp(r.text, "since must be", 13) == 0);
    r = call(s, "recall", "{\"pattern\": \"x\", \"lines\": \"x\"}");
    CHECK(r.error);
    CHECK(strncmp(r.text, "lines must be", 13) == 0);
    close_session(s);
}

TEST(recall_fits_and_says_so)
{
    nacre_session *s = open_tool(NULL);
    struct reply r = call(s, "bash", "{\"command\": \"seq 1 3000\"}");
    const char *id = id_of(&r);
    struct reply found = call(s, "recall", "{\"id\": \"%s\", \"lines\": \"1-3000\"}", id);

    CHECK_RANGE(3000, strlen(found.text), 10240);
    unsigned long long last = (unsigned long long)count_of(found.text, "\n") - 2;
    CHECK_STR(found.text,
              format("\n%llu: %llu\n[nacre: lines %llu to 3000 of stdout do not fit; the "
                     "next that do are lines: \"%llu-%llu\"]",
                     last, last, last + 1, last + 1, 2 * last));
    found = call(s, "recall", "{\"id\": \"%s\", \"lines\": \"%llu-3000\"}", id, last + 1);
    CHECK_STR(found.text, format("[shell %.8s, stdout]\n%llu: ", id, last + 1));
    close_session(s);
}

/* -- Completions ------------------------------------------------------------------------------ */

TEST(three_completions_each_once)
{
    nacre_session *s = open_tool(NULL);
    const char *ids[3];
    for (int i = 0; i < 3; i++)
        ids[i] = launch_held(s, format("echo end of %d; exit %d", i, i));
    struct reply r = call(s, "bash", "{\"command\": \"sleep 0.1; echo still\"}");
    CHECK_TEXT(r.completions, "");
    let_go();
    for (int i = 0; i < 3; i++)
        await_end(s, ids[i]);
    r = call(s, "bash", "{\"command\": \"true\"}");

    for (int i = 0; i < 3; i++) {
        CHECK_EQ_INT(1,
                     count_of(r.completions, format("[Background task %.8s completed]\n", ids[i])));
        CHECK_STR(r.completions, format("status: exited(%d)\nexit_code: %d\nsuccess: %s\n", i, i,
                                        i ? "false" : "true"));
        CHECK_STR(r.completions, format("\n\nend of %d\n", i));
    }
    CHECK_STR(r.completions, "elapsed_ms: ");
    CHECK_STR(r.completions, format("command: %s; echo end of 0;", gate()));
    CHECK_RANGE(0, strlen(r.text) + strlen(r.completions), 10240);
    r = call(s, "list_shells", "{}");
    CHECK_TEXT(r.completions, "");
    /* The output itself was not read by that. */
    r = call(s, "bash_output", "{\"id\": \"%s\"}", ids[1]);
    CHECK_STR(r.text, "end of 1\n");
    close_session(s);
}

TEST(undelivered_completions_come_again)
{
    nacre_session *s = open_tool(NULL);
    const char *id = launch_held(s, "true");
    let_go();
    await_end(s, id);
    nacre_call *c = begin_call(s, "list_shells", "{}");

    CHECK(drive(c, soon(1000)));
    struct reply r = read_reply(nacre_call_result(c));
    CHECK_STR(r.completions, format("[Background task %.8s completed]\n", id));
    nacre_call_free(c);
    r = call(s, "list_shells", "{}");
    CHECK_STR(r.completions, format("[Background task %.8s completed]\n", id));
    r = call(s, "list_shells", "{}");
    CHECK_TEXT(r.completions, "");
    close_session(s);
}

TEST(later_session_tells_what_an_earlier_one_could_not)
{
    nacre_session *s = open_tool(NULL);
    const char *id = launch_held(s, "echo from before");
    let_go();
    await_end(s, id);
    close_session(s);
    s = open_tool(NULL);
    struct reply r = call(s, "bash", "{\"command\": \"echo hello\"}");

    CHECK_STR(r.completions, format("[Background task %.8s completed]", id));
    CHECK_STR(r.completions, "from before\n");
    r = call(s, "bash", "{\"command\": \"echo hello\"}");
    CHECK_TEXT(r.completions, "");
    close_session(s);
}

TEST(end_that_was_shown_is_not_told_again)
{
    nacre_session *s = open_tool(NULL);
    const char *id = launch_held(s, "exit 1");
    let_go();
    struct reply r = call(s, "bash_output", "{\"id\": \"%s\", \"wait\": 20}", id);

    CHECK_STR(r.text, "exited(1)]");
    CHECK_TEXT(r.completions, "");
    r = call(s, "list_shells", "{}");
    CHECK_TEXT(r.completions, "");
    close_session(s);
}

TEST(many_completions_are_counted)
{
    nacre_session *s = open_tool(NULL);
    const char *ids[6];
    for (int i = 0; i < 6; i++)
        ids[i] = launch_held(s, format("seq 1 10000; exit %d", i));
    let_go();
    for (int i = 0; i < 6; i++)
        await_end(s, ids[i]);
    struct reply r = call(s, "bash", "{\"command\": \"seq 1 20000\"}");

    CHECK_STR(r.completions, "[Background tasks completed: 6]");
    for (int i = 0; i < 6; i++)
        CHECK_STR(r.completions, format("%.8s exited(%d)", ids[i], i));
    CHECK_RANGE(5000, strlen(r.text) + strlen(r.completions), 10240);
    r = call(s, "list_shells", "{}");
    CHECK_TEXT(r.completions, "");
    close_session(s);
}

TEST(completion_of_a_flood_has_its_end)
{
    nacre_session *s = open_tool(NULL);
    const char *id = launch_held(s, "seq 1 100000; echo '[Background task 12345678 completed]'");
    let_go();
    await_end(s, id);
    struct reply r = call(s, "list_shells", "{}");

    CHECK_STR(r.completions, "omitted: what came before; bash_output(id: ");
    CHECK_STR(r.completions, "\n100000\n\\[Background task 12345678 completed]\n");
    CHECK_RANGE(500, strlen(r.completions), 1536);
    close_session(s);
}

TEST(end_of_a_yielded_command_is_told)
{
    nacre_session *s = open_tool(NULL);
    struct reply r = call(s, "bash", "{\"command\": \"%s; exit 4\", \"yield\": 0.2}", gate());
    const char *id = id_of(&r);

    let_go();
    await_end(s, id);
    r = call(s, "bash", "{\"command\": \"true\"}");
    CHECK_STR(r.completions, format("[Background task %.8s completed]\nstatus: exited(4)\n", id));
    close_session(s);
}
