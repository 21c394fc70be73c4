/* The tool bash: what it answers, when, and what is left afterwards. */
#include "tool.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

/* -- Outcomes --------------------------------------------------------------------------------- */

TEST(summary_and_record)
{
    nacre_session *s = open_tool(NULL);
    struct reply r = call(s, "bash", "{\"command\": \"echo out; echo err >&2; exit 7\"}");

    CHECK(!r.error);
    CHECK_TEXT(r.text,
               "Exit code: 7\n--- stderr (1 line) ---\nerr\n--- stdout (1 line) ---\nout\n");
    CHECK_TEXT(json_string_value(json_object_get(r.run, "status")), "exited(7)");
    CHECK_EQ_INT(7, json_integer_value(json_object_get(r.run, "exit_code")));
    CHECK(!json_object_get(r.run, "command"));
    CHECK(!json_object_get(r.json, "structuredContent"));
    r = call(s, "bash", "{\"command\": \"kill -SEGV $$\"}");
    CHECK(!r.error);
    CHECK(strncmp(r.text, "Signal: SIGSEGV", 15) == 0);
    r = call(s, "bash", "{\"command\": \"exit 143\"}");
    CHECK_TEXT(r.text, "Exit code: 143\n");
    r = call(s, "bash", "{\"command\": \"sh -c 'exit 3' | tail -1\"}");
#ifdef SMALL_BACKEND
    CHECK_TEXT(r.text, "Exit code: 0\n"); /* its shell is sh, which does not know */
#else
    CHECK_TEXT(r.text, "Exit code: 0 (pipeline: 3 | 0)\n");
#endif
    close_session(s);
}

TEST(what_cannot_be_started)
{
    nacre_session *s = open_tool(NULL);
    struct reply r = call(s, "bash", "{\"command\": \"echo x\", \"cwd\": \"/nonexistent\"}");

    CHECK(r.error);
    CHECK_STR(r.text, "/nonexistent");
    r = call(s, "bash", "{\"command\": \"nonexistent-program\"}");
    CHECK(!r.error);
    CHECK(strncmp(r.text, "Exit code: 127\n", 15) == 0);
    close_session(s);
}

#ifndef SMALL_BACKEND
/* Each string may have 128 KiB, all together a quarter of the stack. */
TEST(an_environment_that_is_too_large)
{
    nacre_session *s = open_tool(NULL);
    char *value = malloc(200001);
    CHECK(value);
    memset(value, 'x', 200000);
    value[200000] = '\0';
    struct reply r = call(s, "bash", "{\"command\": \"true\", \"env\": {\"X\": \"%s\"}}", value);

    CHECK(r.error);
    CHECK_STR(r.text, "variables and 1");
    CHECK_STR(r.text, "pass less in env, or large values by a file: Argument list too long");
    free(value);
    close_session(s);
}
#endif

TEST(command_of_a_mebibyte)
{
    nacre_session *s = open_tool(NULL);
    size_t size = 1000000;
    char *text = malloc(size + 64);
    CHECK(text);
    size_t len = (size_t)sprintf(text, "{\"command\": \"echo begun; : ");
    memset(text + len, 'x', size - len);
    strcpy(text + size, "; echo done\"}");
    struct reply r = call(s, "bash", "%s", text);

    CHECK_STR(r.text, "begun\ndone\n");
    CHECK(!json_object_get(r.run, "command"));
    free(text);
    close_session(s);
}

TEST(timeouts)
{
    nacre_session *s = open_tool(NULL);
    static const char *const wrong[] = {"0", "-1", "\"abc\"", "true", "[1]"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct reply r = call(s, "bash", "{\"command\": \"echo ran\", \"timeout\": %s}", wrong[i]);
        CHECK(r.error);
        CHECK(strncmp(r.text, "timeout must be", 15) == 0);
    }
    struct reply r = call(s, "bash", "{\"command\": \"echo ran\", \"timeout\": 99999}");
    CHECK(!r.error);
    CHECK_STR(r.text, "ran\n[nacre: the timeout was cut to 300 s");
    int64_t begin = now_ms();
    r = call(s, "bash", "{\"command\": \"echo BEFORE; sleep 999\", \"timeout\": 1}");
    CHECK_RANGE(1000, now_ms() - begin, soon(3200));
    CHECK(strncmp(r.text, "Timed out after 1s (killed)", 27) == 0);
    CHECK_STR(r.text, "BEFORE\n");
    CHECK_TEXT(json_string_value(json_object_get(r.run, "status")), "timed_out");
    begin = now_ms();
    r = call(s, "bash", "{\"command\": \"sleep 999\", \"timeout_ms\": 200}");
    CHECK_RANGE(200, now_ms() - begin, soon(2400));
    CHECK(strncmp(r.text, "Timed out after", 15) == 0);
    close_session(s);
}

/* -- Never hang ------------------------------------------------------------------------------- */

TEST(leftovers_do_not_delay_and_can_be_read)
{
    nacre_session *s = open_tool(NULL);
    const char *mark = marker();
    int64_t begin = now_ms();
    struct reply r =
        call(s, "bash", "{\"command\": \"(sleep 0.5; echo late; sleep 300.%s) & echo hi\"}", mark);

    CHECK_RANGE(0, now_ms() - begin, soon(400));
    CHECK(strncmp(r.text, "Exit code: 0\n", 13) == 0);
    CHECK_STR(r.text, "\nhi\n");
    CHECK_STR(r.text, "Left running: ");
    const char *id = id_of(&r);
    r = call(s, "bash_output", "{\"id\": \"%s\", \"wait\": 10}", id);
    CHECK_STR(r.text, "lingering]\nlate\n");
    CHECK(!contains(r.text, "hi\n"));
    r = call(s, "kill_shell", "{\"id\": \"%.8s\"}", id);
    CHECK(strncmp(r.text, "killed background shell ", 24) == 0);
    CHECK_EQ_INT(0, count_marked(mark));
    close_session(s);
}

TEST(nothing_asks)
{
    nacre_session *s = open_tool(NULL);
    int64_t begin = now_ms();
    struct reply r = call(s, "bash", "{\"command\": \"read x; echo $?; cat; read y </dev/tty\"}");

    CHECK_STR(r.text, "\n1\n");
    CHECK_RANGE(0, now_ms() - begin, soon(1000));
    close_session(s);
}

TEST(foreground_server_yields)
{
    nacre_session *s = open_tool(NULL);
    const char *mark = marker();
    int64_t begin = now_ms();
    struct reply r =
        call(s, "bash", "{\"command\": \"echo up; sleep 300.%s\", \"yield\": 0.3}", mark);

    CHECK_RANGE(300, now_ms() - begin, soon(800));
    CHECK(!r.error);
    CHECK(strncmp(r.text, "Still running after 0.3 s: background shell ", 44) == 0);
    CHECK_STR(r.text, "\xe2\x80\x94 running]\nup\n");
    CHECK_STR(r.text, "[nacre: no timeout ends it]");
    const char *id = id_of(&r);
    r = call(s, "bash_output", "{\"id\": \"%s\"}", id);
    CHECK_STR(r.text, "(no new output)");
    r = call(s, "list_shells", "{}");
    CHECK_STR(r.text, format("running %.8s", id));
    call(s, "kill_shell", "{\"id\": \"%s\"}", id);
    CHECK_EQ_INT(0, count_marked(mark));
    close_session(s);
}

TEST(timeout_that_was_given_stays_after_the_yield)
{
    nacre_session *s = open_tool(NULL);
    struct reply r =
        call(s, "bash", "{\"command\": \"sleep 300\", \"yield\": 0.2, \"timeout\": 1}");

    CHECK_STR(r.text, "[nacre: it is ended 1 s after its start]");
    nacre_id id = parsed_id(&r);
    CHECK(AWAIT(tree_empty(s, &id), 5000));
    CHECK_TEXT(status_of(s, &id), "timed_out");
    close_session(s);
}

TEST(default_timeout_lapses_with_the_yield)
{
    setenv("NACRE_TIMEOUT", "600ms", 1);
    nacre_session *s = open_tool(NULL);
    struct reply r = call(s, "bash", "{\"command\": \"sleep 1.2; echo end\", \"yield\": 0.2}");
    nacre_id id = parsed_id(&r);

    wait_outcome(s, &id, 5000);
    CHECK_TEXT(status_of(s, &id), "exited(0)");
    r = call(s, "bash", "{\"command\": \"sleep 300\", \"yield\": 5}");
    CHECK(strncmp(r.text, "Timed out after", 15) == 0);
    close_session(s);
}

TEST(cancelled_foreground_command_is_ended_with_its_tree)
{
    nacre_session *s = open_tool(NULL);
    const char *mark = marker();
    nacre_call *c = begin_call(
        s, "bash",
        format("{\"command\": \"setsid sleep 300.%s & trap '' TERM; sleep 301.%s\"}", mark, mark));

    CHECK(!drive(c, 200));
    await_marked(mark, 2);
    int64_t begin = now_ms();
    nacre_call_cancel(c);
    CHECK_RANGE(0, now_ms() - begin, soon(500));
    CHECK(drive(c, 20000));
    CHECK_EQ_INT(0, count_marked(mark));
    nacre_call_delivered(c);
    nacre_call_free(c);
    struct reply r = call(s, "bash", "{\"command\": \"echo next\"}");
    CHECK_STR(r.text, "next");
    CHECK_TEXT(r.completions, "");
    close_session(s);
}

TEST(call_that_is_only_freed_ends_its_command_too)
{
    nacre_session *s = open_tool(NULL);
    const char *mark = marker();
    nacre_call *c = begin_call(s, "bash", format("{\"command\": \"exec sleep 300.%s\"}", mark));

    CHECK(!drive(c, 100));
    await_marked(mark, 1);
    nacre_call_free(c);
    await_marked(mark, 0);
    close_session(s);
}

TEST(cancelled_call_leaves_background_shells_alone)
{
    nacre_session *s = open_tool(NULL);
    const char *mark = marker();
    nacre_call *c = begin_call(
        s, "bash", format("{\"command\": \"exec sleep 300.%s\", \"background\": true}", mark));

    nacre_call_cancel(c);
    CHECK(drive(c, soon(1000)));
    nacre_call_free(c);
    await_marked(mark, 1);
    const char *id = launch(s, "sleep 300");
    c = begin_call(s, "bash_output", format("{\"id\": \"%s\", \"wait\": 20}", id));
    CHECK(!drive(c, 50));
    nacre_call_cancel(c);
    CHECK(drive(c, 0));
    nacre_call_free(c);
    nacre_id parsed = id_from(id);
    CHECK_TEXT(status_of(s, &parsed), "running");
    close_session(s);
}

TEST(second_call_is_served_while_the_first_waits)
{
    nacre_session *s = open_tool(NULL);
    nacre_call *c =
        begin_call(s, "bash", format("{\"command\": \"echo first; %s; echo done\"}", gate()));
    const char *progress = NULL;

    CHECK(AWAIT(!drive(c, 0) && (progress = nacre_call_progress(c)) && contains(progress, "first"),
                10000));
    CHECK_TEXT(progress, "first");
    CHECK(!nacre_call_progress(c));
    CHECK(!nacre_call_result(c));
    int64_t begin = now_ms();
    struct reply r = call(s, "bash", "{\"command\": \"echo second\"}");
    CHECK_STR(r.text, "second");
    call(s, "list_shells", "{}");
    CHECK_RANGE(0, now_ms() - begin, soon(500));
    CHECK(!drive(c, 0));
    let_go();
    CHECK(drive(c, soon(10000)));
    r = read_reply(nacre_call_result(c));
    CHECK_STR(r.text, "first\ndone\n");
    nacre_call_delivered(c);
    nacre_call_free(c);
    close_session(s);
}

/* -- Background ------------------------------------------------------------------------------- */

TEST(background_shows_its_first_moments)
{
    nacre_session *s = open_tool(NULL);
    int64_t begin = now_ms();
    struct reply r =
        call(s, "bash", "{\"command\": \"echo up; sleep 300\", \"run_in_background\": true}");

    CHECK_RANGE(250, now_ms() - begin, soon(800));
    CHECK(strncmp(r.text, "Started background shell ", 25) == 0);
    CHECK_STR(r.text, "running]\nup\n");
    begin = now_ms();
    r = call(s, "bash", "{\"command\": \"echo no such port >&2; exit 1\", \"yield\": 0}");
    CHECK_RANGE(0, now_ms() - begin, soon(250));
    CHECK_STR(r.text, "exited(1)]\nno such port\n");
    /* Its end was told. */
    r = call(s, "list_shells", "{}");
    CHECK_TEXT(r.completions, "");
    close_session(s);
}

TEST(exactly_eight)
{
    nacre_session *s = open_tool(NULL);
    const char *ids[8];
    for (int i = 0; i < 8; i++)
        ids[i] = launch(s, "sleep 300");
    struct reply r = call(s, "bash", "{\"command\": \"echo ninth\", \"background\": true}");

    CHECK(r.error);
    CHECK_STR(r.text, "8 background shells are running");
    for (int i = 0; i < 8; i++)
        CHECK_STR(r.text, format("%.8s", ids[i]));
    r = call(s, "bash", "{\"command\": \"echo foreground\"}");
    CHECK(!r.error);
    call(s, "kill_shell", "{\"id\": \"%s\"}", ids[3]);
    r = call(s, "bash", "{\"command\": \"sleep 300\", \"background\": true}");
    CHECK(!r.error);
    close_session(s);
}

TEST(names_are_idempotent)
{
    nacre_session *s = open_tool(NULL);
    static const char web[] =
        "{\"command\": \"sleep 300\", \"background\": true, \"name\": \"web\"}";
    struct reply first = call(s, "bash", "%s", web), second = call(s, "bash", "%s", web);

    CHECK_TEXT(id_of(&second), id_of(&first));
    CHECK_STR(second.text, "nothing was started");
    /* In the foreground it is not waited for, and not ended with the call. */
    nacre_call *c = begin_call(s, "bash", "{\"command\": \"sleep 300\", \"name\": \"web\"}");
    CHECK(drive(c, 5000));
    nacre_call_free(c);
    nacre_id id = parsed_id(&first);
    CHECK_TEXT(status_of(s, &id), "running");
    struct reply r = call(s, "bash", "{\"command\": \"sleep 301\", \"name\": \"web\"}");
    CHECK(r.error);
    CHECK_STR(r.text, "web");
    close_session(s);
}

/* -- Many threads ----------------------------------------------------------------------------- */

#define THREADS 16

struct starter {
    nacre_session *session;
    pthread_barrier_t *together;
    char *result;
    int r;
};

static void *start_one(void *argument)
{
    struct starter *one = argument;
    pthread_barrier_wait(one->together);
    one->r = nacre_tool_call(one->session, "bash",
                             "{\"command\": \"exec sleep 300\", \"background\": true}",
                             &one->result, NULL);
    return NULL;
}

/* Of many that start at once exactly eight do; the others are told which ones. */
TEST(exactly_eight_of_many_threads)
{
    nacre_session *s = open_tool(NULL);
    pthread_t threads[THREADS];
    pthread_barrier_t together;
    struct starter starters[THREADS];
    const char *ids[8] = {0};
    int started = 0;
    pthread_barrier_init(&together, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        starters[i] = (struct starter){.session = s, .together = &together};
        CHECK_EQ_INT(0, pthread_create(&threads[i], NULL, start_one, &starters[i]));
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQ_INT(0, pthread_join(threads[i], NULL));
        CHECK_EQ_INT(0, starters[i].r);
        struct reply r = read_reply(starters[i].result);
        if (!r.error) {
            CHECK(started < 8);
            ids[started++] = id_of(&r);
        } else {
            CHECK_STR(r.text, "8 background shells are running");
        }
        free(starters[i].result);
    }
    CHECK_EQ_INT(8, started);
    struct reply r = call(s, "bash", "{\"command\": \"true\", \"background\": true}");
    CHECK(r.error);
    for (int i = 0; i < 8; i++)
        CHECK_STR(r.text, format("%.8s", ids[i]));
    call(s, "kill_shell", "{\"id\": \"%s\"}", ids[5]);
    r = call(s, "bash", "{\"command\": \"exec sleep 300\", \"background\": true}");
    CHECK(!r.error);
    pthread_barrier_destroy(&together);
    close_session(s);
}

/* -- What it is given ------------------------------------------------------------------------- */

TEST(directory_environment_and_input)
{
    nacre_session *s = open_tool(NULL);
    struct reply r = call(s, "bash",
                          "{\"command\": \"pwd; echo $A-$HOME-$B; cat\", \"workdir\": \"/\", "
                          "\"env\": {\"A\": \"1 2\", \"HOME\": null, \"B\": \"x=y\"}, \"stdin\": "
                          "\"text\\u0000\\n\"}");

    CHECK(!r.error);
    CHECK_STR(r.text, "\n/\n1 2--x=y\ntext");
    r = call(s, "bash", "{\"command\": \"cd /; export X=1\"}");
    r = call(s, "bash", "{\"command\": \"echo [$X] $PWD\"}");
    CHECK_STR(r.text, "\n[] ");
    CHECK(!contains(r.text, "[] /\n"));
    close_session(s);
}

TEST(kept_shell_survives)
{
    nacre_session *s = open_tool(NULL);
    struct reply r = call(
        s, "bash", "{\"command\": \"sleep 300\", \"background\": true, \"lifetime\": \"keep\"}");
    nacre_id id = parsed_id(&r);

    close_session(s);
    s = open_session();
    CHECK_TEXT(status_of(s, &id), "running");
    kill_shell(s, &id, 100);
    close_session(s);
}

TEST(answers_fit)
{
    nacre_session *s = open_tool(NULL);
    struct reply r = call(s, "bash",
                          "{\"command\": \"seq 1 20000; echo 'ERROR: real cause' >&2; seq "
                          "1 20000\"}");

    CHECK_RANGE(1000, strlen(r.text), 10240);
    CHECK_STR(r.text, "ERROR: real cause");
    CHECK_STR(r.text, "recall(id: ");
    r = call(s, "bash", "{\"command\": \"seq 1 20000; echo 'ERROR: real cause'; seq 1 20000\"}");
    CHECK_RANGE(1000, strlen(r.text), 10240);
    CHECK_STR(r.text, "20001");
    CHECK_STR(r.text, "ERROR: real cause");
    const char *id = id_of(&r);
    r = call(s, "recall", "{\"id\": \"%s\", \"lines\": \"20000-20002\"}", id);
    CHECK_STR(r.text, "\n20001: ERROR: real cause\n");
    r = call(s, "bash", "{\"command\": \"seq 1 20000\", \"max_output_tokens\": 20000}");
    CHECK_RANGE(60000, strlen(r.text), 80000);
    r = call(s, "bash", "{\"command\": \"seq 1 20000\", \"max_output_tokens\": 512}");
    CHECK_RANGE(500, strlen(r.text), 2048);
    r = call(s, "bash", "{\"command\": \"seq 1 20000\", \"background\": true}");
    CHECK_RANGE(1000, strlen(r.text), 10240);
    close_session(s);
}

TEST(structured_content_if_wanted)
{
    setenv("NACRE_STRUCTURED", "on", 1);
    nacre_session *s = open_tool(NULL);
    struct reply r = call(s, "bash", "{\"command\": \"echo x\"}");
    const json_t *content = json_object_get(r.json, "structuredContent");

    CHECK_TEXT(json_string_value(json_object_get(content, "text")), r.text);
    CHECK(json_equal(json_object_get(content, "run"), r.run));
    close_session(s);
}

/* -- Limits ----------------------------------------------------------------------------------- */

TEST(limits_of_a_call)
{
    static const char *const settings[] = {"limit_files=64", "limit_processes=99", NULL};
    nacre_session *s = open_tool(settings);
    struct reply r = call(s, "bash",
                          "{\"command\": \"ulimit -n; echo Too many open files >&2\", "
                          "\"limits\": {\"files\": 48, \"cpu_time\": \"10m\"}}");
    const json_t *limits = json_object_get(r.run, "limits");
    CHECK(!r.error);
    CHECK_STR(r.text, "\nopen files limit 48 in force\n");
    CHECK_STR(r.text, "48\n");
    CHECK_EQ_INT(48,
                 json_integer_value(json_object_get(json_object_get(limits, "in_force"), "files")));
    CHECK_EQ_INT(600000, json_integer_value(
                             json_object_get(json_object_get(limits, "in_force"), "cpu_time")));
    CHECK_EQ_INT(
        99, json_integer_value(json_object_get(json_object_get(limits, "in_force"), "processes")));
    CHECK(json_is_null(json_object_get(limits, "ended_by")));

    r = call(s, "bash", "{\"command\": \"true\", \"limits\": {\"files\": 65}}");
    CHECK(r.error);
    CHECK_STR(r.text, "limits.files can only be narrowed: 65 is more than the 64 of the setting "
                      "limit_files");
    close_session(s);
}

TEST_LIMIT(a_limit_in_a_completion, 60)
{
    nacre_session *s = open_tool(NULL);
    struct reply r = call(s, "bash",
                          "{\"command\": \"head -c 99999 /dev/zero >x; "
                          "exec head -c 99999 /dev/zero >x\", \"background\": true, "
                          "\"limits\": {\"file_size\": 4096}}");
    CHECK(!r.error);
    if (!strstr(r.text, "killed by the file size limit 4 KiB")) {
        const char *id = json_string_value(json_object_get(r.run, "id"));
        r = call(s, "bash_output", "{\"id\": \"%s\", \"wait\": 20}", id);
    }
    CHECK_STR(r.text, "[nacre: killed by the file size limit 4 KiB]");
    CHECK_TEXT(json_string_value(json_object_get(r.run, "status")), "killed(limit file_size)");
    close_session(s);
}
