/* Terminals of ACP, by messages: what each method answers, when, and what is left afterwards. */
#include "harness/harness.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

struct client {
    nacre_session *session;
    nacre_acp_host *host;
    json_t *answers; /* that came, in order */
    int next_id;
};

static void keep_answer(const char *message, size_t size, void *userdata)
{
    struct client *c = userdata;
    json_t *answer = json_loadb(message, size, JSON_ALLOW_NUL, NULL);
    CHECK(answer);
    CHECK_TEXT(json_string_value(json_object_get(answer, "jsonrpc")), "2.0");
    json_array_append_new(c->answers, answer);
}

static struct client open_client(void)
{
    struct client c = {.answers = json_array()};
    c.session = open_session();
    return c;
}

static void open_host(struct client *c, nacre_acp_host_options options)
{
    options.send = keep_answer;
    options.userdata = c;
    CHECK_OK(nacre_acp_host_open(c->session, &options, &c->host, ERR));
}

static void close_client(struct client *c)
{
    nacre_acp_host_close(c->host);
    close_session(c->session);
    json_decref(c->answers);
}

#define CLIENT(name)                    \
    struct client name = open_client(); \
    open_host(&name, (nacre_acp_host_options)NACRE_ACP_HOST_OPTIONS_INIT)

static void feed(struct client *c, const char *text)
{
    CHECK_EQ_INT(1, nacre_acp_host_feed(c->host, text, strlen(text), ERR));
}

/* Sends a request; params is consumed. Returns its id. */
static int ask(struct client *c, const char *method, json_t *params)
{
    int id = ++c->next_id;
    json_t *request = json_pack("{s:s, s:i, s:s, s:o}", "jsonrpc", "2.0", "id", id, "method",
                                method, "params", params);
    char *text = json_dumps(request, JSON_COMPACT);
    feed(c, text);
    free(text);
    json_decref(request);
    return id;
}

static json_t *answer_now(const struct client *c, int id)
{
    size_t i;
    json_t *answer;
    json_array_foreach(c->answers, i, answer) if (json_integer_value(json_object_get(
                                                      answer, "id")) == id) return answer;
    return NULL;
}

static void dispatch(struct client *c, int ms)
{
    struct pollfd poller = {.fd = nacre_acp_host_fd(c->host), .events = POLLIN};
    if (poll(&poller, 1, ms) > 0)
        CHECK_OK(nacre_acp_host_dispatch(c->host, ERR));
}

static json_t *await_answer(struct client *c, int id)
{
    int64_t until = now_ms() + soon(10000);
    while (!answer_now(c, id) && now_ms() < until)
        dispatch(c, 100);
    json_t *answer = answer_now(c, id);
    if (!answer)
        FAIL("request %d was not answered", id);
    return answer;
}

static json_t *await_result(struct client *c, int id)
{
    json_t *answer = await_answer(c, id);
    json_t *result = json_object_get(answer, "result");
    if (!result)
        FAIL("an error: %s", json_dumps(answer, 0));
    return result;
}

static const char *await_error(struct client *c, int id, int code)
{
    const json_t *error = json_object_get(await_answer(c, id), "error");
    CHECK(error);
    CHECK_EQ_INT(code, json_integer_value(json_object_get(error, "code")));
    return json_string_value(json_object_get(error, "message"));
}

static json_t *target(const char *session, const char *terminal)
{
    return json_pack("{s:s, s:s}", "sessionId", session, "terminalId", terminal);
}

static const char *create(struct client *c, json_t *params)
{
    const json_t *result = await_result(c, ask(c, "terminal/create", params));
    return json_string_value(json_object_get(result, "terminalId"));
}

static const char *create_line(struct client *c, const char *line)
{
    return create(c, json_pack("{s:s, s:s, s:[s, s]}", "sessionId", "a", "command", "/bin/bash",
                               "args", "-c", line));
}

static json_t *call(struct client *c, const char *method, const char *terminal)
{
    return await_result(c, ask(c, method, target("a", terminal)));
}

static const char *output(struct client *c, const char *terminal)
{
    return json_string_value(json_object_get(call(c, "terminal/output", terminal), "output"));
}

static void check_exit(const json_t *status, int code, const char *signal)
{
    const json_t *got = json_object_get(status, "signal");
    if (signal)
        CHECK_TEXT(json_string_value(got), signal);
    else
        CHECK(json_is_null(got));
    got = json_object_get(status, "exitCode");
    if (code >= 0)
        CHECK_EQ_INT(code, json_integer_value(got));
    else
        CHECK(json_is_null(got));
}

/* -- One life -------------------------------------------------------------------------------- */

TEST(life_of_a_terminal)
{
    CLIENT(c);
    const char *id = create_line(&c, "echo out; echo err >&2; exit 7");

    check_exit(call(&c, "terminal/wait_for_exit", id), 7, NULL);
    json_t *result = call(&c, "terminal/output", id);
    const char *text = json_string_value(json_object_get(result, "output"));
    CHECK_STR(text, "out\n");
    CHECK_STR(text, "err\n");
    CHECK(json_is_false(json_object_get(result, "truncated")));
    check_exit(json_object_get(result, "exitStatus"), 7, NULL);
    CHECK_EQ_INT(1, nacre_acp_host_count(c.host));
    CHECK_EQ_INT(0, json_object_size(call(&c, "terminal/release", id)));
    CHECK_EQ_INT(0, nacre_acp_host_count(c.host));
    for (int i = 0; i < 4; i++) {
        static const char *const methods[] = {"terminal/output", "terminal/wait_for_exit",
                                              "terminal/kill", "terminal/release"};
        await_error(&c, ask(&c, methods[i], target("a", id)), -32002);
    }
    close_client(&c);
}

TEST(output_while_it_runs)
{
    CLIENT(c);
    CHECK_OK(mkfifo("fifo", 0600));
    const char *id = create_line(&c, "echo one; read x < fifo; echo two");

    CHECK(AWAIT(strcmp(output(&c, id), "one\n") == 0, 5000));
    CHECK(!json_object_get(call(&c, "terminal/output", id), "exitStatus"));
    call(&c, "terminal/kill", id);
    check_exit(json_object_get(call(&c, "terminal/output", id), "exitStatus"), -1, "SIGTERM");
    close_client(&c);
}

TEST(its_shell_is_one_of_the_session)
{
    CLIENT(c);
    const char *id = create_line(&c, "echo seen");
    nacre_id shell;

    call(&c, "terminal/wait_for_exit", id);
    call(&c, "terminal/release", id);
    CHECK_OK(nacre_id_parse(id, &shell));
    CHECK(output_has(c.session, &shell, NACRE_OUT, "seen\n"));
    close_client(&c);
}

/* -- What is run ------------------------------------------------------------------------------ */

static const char *printed_by(struct client *c, json_t *params)
{
    const char *id = create(c, params);
    call(c, "terminal/wait_for_exit", id);
    return output(c, id);
}

TEST(commands_of_both_kinds)
{
    char here[4096];
    CLIENT(c);

    spit("a file", "#!/bin/sh\necho \"file $#\"\n", 24);
    CHECK_OK(chmod("a file", 0755));
    CHECK_TEXT(printed_by(&c, json_pack("{s:s, s:s, s:[s, s]}", "sessionId", "a", "command",
                                        "printf", "args", "%s;", "a b")),
               "a b;");
    CHECK_TEXT(printed_by(&c, json_pack("{s:s, s:s, s:n}", "sessionId", "a", "command",
                                        "echo a && echo b | cat", "args")),
               "a\nb\n");
    CHECK_TEXT(printed_by(&c, json_pack("{s:s, s:s, s:[]}", "sessionId", "a", "command", "./a file",
                                        "args")),
               "file 0\n");
    CHECK_TEXT(printed_by(&c, json_pack("{s:s, s:s}", "sessionId", "a", "command", "pwd")),
               format("%s\n", getcwd(here, sizeof here)));
    CHECK_TEXT(printed_by(&c, json_pack("{s:s, s:s, s:s, s:[{s:s, s:s}]}", "sessionId", "a",
                                        "command", "pwd; echo $WHO", "cwd", "/", "env", "name",
                                        "WHO", "value", "me=you")),
               "/\nme=you\n");
    close_client(&c);
}

/* A name with a blank in it is a program if there is one: in cwd, or in the PATH that comes along.
 */
TEST(programs_with_a_blank_in_their_name)
{
    static const char script[] = "#!/bin/sh\necho \"own $#\"\n";
    CLIENT(c);
    const char *dir = format("%s/other place", test_base());
    CHECK_OK(mkdir(dir, 0700));
    const char *path = format("%s/my tool", dir);
    spit(path, script, strlen(script));
    CHECK_OK(chmod(path, 0755));

    CHECK_TEXT(printed_by(&c, json_pack("{s:s, s:s, s:s}", "sessionId", "a", "command", "./my tool",
                                        "cwd", dir)),
               "own 0\n");
    CHECK_TEXT(printed_by(&c, json_pack("{s:s, s:s, s:[{s:s, s:s}]}", "sessionId", "a", "command",
                                        "my tool", "env", "name", "PATH", "value",
                                        format("/usr/bin:/bin:%s", dir))),
               "own 0\n");
    close_client(&c);
}

TEST(a_start_that_fails_is_an_error_at_once)
{
    CLIENT(c);

    CHECK_STR(await_error(&c,
                          ask(&c, "terminal/create",
                              json_pack("{s:s, s:s}", "sessionId", "a", "command", "no-such-one")),
                          -32603),
              "no-such-one");
    CHECK_STR(await_error(&c,
                          ask(&c, "terminal/create",
                              json_pack("{s:s, s:s, s:s}", "sessionId", "a", "command", "true",
                                        "cwd", "/no/such/place")),
                          -32603),
              "/no/such/place");
    CHECK_EQ_INT(0, nacre_acp_host_count(c.host));
    close_client(&c);
}

TEST(wrong_parameters_are_named)
{
    static const struct {
        const char *params, *field;
    } cases[] = {
        {"[]", "params"},
        {"{}", "sessionId"},
        {"{\"sessionId\":1,\"command\":\"true\"}", "sessionId"},
        {"{\"sessionId\":\"a\"}", "command"},
        {"{\"sessionId\":\"a\",\"command\":\"\"}", "command"},
        {"{\"sessionId\":\"a\",\"command\":\"a\\u0000b\"}", "command"},
        {"{\"sessionId\":\"a\",\"command\":\"true\",\"args\":\"x\"}", "args"},
        {"{\"sessionId\":\"a\",\"command\":\"true\",\"args\":[\"x\",3]}", "args[1]"},
        {"{\"sessionId\":\"a\",\"command\":\"true\",\"env\":{}}", "env"},
        {"{\"sessionId\":\"a\",\"command\":\"true\",\"env\":[{\"value\":\"v\"}]}", "env[0].name"},
        {"{\"sessionId\":\"a\",\"command\":\"true\",\"env\":[{\"name\":\"N\"}]}", "env[0].value"},
        {"{\"sessionId\":\"a\",\"command\":\"true\",\"cwd\":\"here\"}", "cwd"},
        {"{\"sessionId\":\"a\",\"command\":\"true\",\"cwd\":7}", "cwd"},
        {"{\"sessionId\":\"a\",\"command\":\"true\",\"outputByteLimit\":-1}", "outputByteLimit"},
        {"{\"sessionId\":\"a\",\"command\":\"true\",\"outputByteLimit\":\"9\"}", "outputByteLimit"},
    };
    CLIENT(c);

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int id = ask(&c, "terminal/create", json_loads(cases[i].params, JSON_ALLOW_NUL, NULL));
        CHECK_STR(await_error(&c, id, -32602), format(": %s ", cases[i].field));
    }
    CHECK_STR(
        await_error(&c, ask(&c, "terminal/output", json_pack("{s:s}", "sessionId", "a")), -32602),
        "terminalId");
    await_error(&c, ask(&c, "terminal/frobnicate", json_object()), -32601);
    close_client(&c);
}

TEST(what_is_not_for_the_host)
{
    static const char *const others[] = {
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"fs/read_text_file\",\"params\":{}}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"terminal/kill\",\"params\":{}}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"$/cancel_request\",\"params\":{\"requestId\":5}}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}",
    };
    CLIENT(c);

    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        CHECK_EQ_INT(0, nacre_acp_host_feed(c.host, others[i], strlen(others[i]), ERR));
    CHECK_EQ_INT(0, json_array_size(c.answers));
    feed(&c, "{\"jsonrpc\":");
    CHECK_EQ_INT(-32700, json_integer_value(json_object_get(
                             json_object_get(json_array_get(c.answers, 0), "error"), "code")));
    close_client(&c);
}

TEST(sessions_do_not_see_each_other)
{
    CLIENT(c);
    const char *id = create_line(&c, "sleep 300");

    await_error(&c, ask(&c, "terminal/output", target("b", id)), -32002);
    await_error(&c, ask(&c, "terminal/release", target("b", id)), -32002);
    CHECK_EQ_INT(1, nacre_acp_host_count(c.host));
    call(&c, "terminal/release", id);
    close_client(&c);
}

TEST(terminals_have_a_limit)
{
    struct client c = open_client();
    nacre_acp_host_options options = NACRE_ACP_HOST_OPTIONS_INIT;
    options.terminals_max = 2;
    open_host(&c, options);
    const char *first = create_line(&c, "true");

    create_line(&c, "true");
    CHECK_STR(await_error(&c,
                          ask(&c, "terminal/create",
                              json_pack("{s:s, s:s}", "sessionId", "a", "command", "true")),
                          -32603),
              "release one");
    call(&c, "terminal/release", first);
    create_line(&c, "true");
    close_client(&c);
}

/* -- Waiting, killing, releasing -------------------------------------------------------------- */

TEST(exit_is_not_the_end_of_the_pipes)
{
    const char *mark = marker();
    CLIENT(c);
    int64_t begin = now_ms();
    const char *id = create_line(&c, format("sleep 300.%s & echo hi", mark));

    check_exit(call(&c, "terminal/wait_for_exit", id), 0, NULL);
    CHECK_RANGE(0, now_ms() - begin, soon(2000));
    CHECK_TEXT(output(&c, id), "hi\n");
    await_marked(mark, 1);
    call(&c, "terminal/release", id);
    CHECK_EQ_INT(0, count_marked(mark));
    close_client(&c);
}

TEST(kill_leaves_the_terminal)
{
    const char *mark = marker();
    CLIENT(c);
    const char *id = create_line(&c, format("echo before; (%s sleep 300.%s &) ; exec sleep 300.%s",
                                            own_session(), mark, mark));
    int waiting = ask(&c, "terminal/wait_for_exit", target("a", id));

    await_marked(mark, 2);
    CHECK(!answer_now(&c, waiting));
    CHECK_EQ_INT(0, json_object_size(call(&c, "terminal/kill", id)));
    CHECK_EQ_INT(0, count_marked(mark));
    check_exit(await_result(&c, waiting), -1, "SIGTERM");
    json_t *result = call(&c, "terminal/output", id);
    CHECK_TEXT(json_string_value(json_object_get(result, "output")), "before\n");
    check_exit(json_object_get(result, "exitStatus"), -1, "SIGTERM");
    call(&c, "terminal/kill", id);
    check_exit(call(&c, "terminal/wait_for_exit", id), -1, "SIGTERM");
    call(&c, "terminal/release", id);
    close_client(&c);
}

TEST(release_tells_who_waits)
{
    CLIENT(c);
    const char *id = create_line(&c, "exec sleep 300");
    int first = ask(&c, "terminal/wait_for_exit", target("a", id));
    int second = ask(&c, "terminal/wait_for_exit", target("a", id));
    int killed = ask(&c, "terminal/kill", target("a", id));
    int released = ask(&c, "terminal/release", target("a", id));
    int after = ask(&c, "terminal/output", target("a", id));

    await_error(&c, after, -32002);
    check_exit(await_result(&c, first), -1, "SIGTERM");
    check_exit(await_result(&c, second), -1, "SIGTERM");
    await_result(&c, killed);
    CHECK_EQ_INT(0, json_object_size(await_result(&c, released)));
    close_client(&c);
}

/* Also while what runs in it takes its time to end. */
TEST(a_released_terminal_is_unknown_at_once)
{
    CLIENT(c);
    const char *id = create_line(&c, "trap '' TERM; echo ready; while :; do sleep 300; done");

    CHECK(AWAIT(strcmp(output(&c, id), "ready\n") == 0, 5000));
    int released = ask(&c, "terminal/release", target("a", id));
    int after = ask(&c, "terminal/output", target("a", id));
    int again = ask(&c, "terminal/release", target("a", id));
    CHECK(!answer_now(&c, released));
    await_error(&c, after, -32002);
    await_error(&c, again, -32002);
    CHECK_EQ_INT(0, nacre_acp_host_count(c.host));
    await_result(&c, released);
    close_client(&c);
}

TEST(nobody_waits_for_a_grace)
{
    CLIENT(c);
    const char *stubborn = create_line(&c, "trap '' TERM; echo ready; while :; do sleep 300; done");

    CHECK(AWAIT(strcmp(output(&c, stubborn), "ready\n") == 0, 5000));
    int64_t begin = now_ms();
    int killed = ask(&c, "terminal/kill", target("a", stubborn));
    const char *other = create_line(&c, "echo other");
    check_exit(call(&c, "terminal/wait_for_exit", other), 0, NULL);
    CHECK_RANGE(0, now_ms() - begin, soon(1000));
    CHECK(!answer_now(&c, killed));
    await_result(&c, killed);
    check_exit(call(&c, "terminal/wait_for_exit", stubborn), -1, "SIGKILL");
    close_client(&c);
}

static void cancel(struct client *c, int id)
{
    feed(c, format("{\"jsonrpc\":\"2.0\",\"method\":\"$/cancel_request\",\"params\":"
                   "{\"requestId\":%d}}",
                   id));
}

TEST(a_wait_can_be_cancelled)
{
    CLIENT(c);
    const char *id = create_line(&c, "exec sleep 300");
    int waiting = ask(&c, "terminal/wait_for_exit", target("a", id));

    cancel(&c, waiting);
    await_error(&c, waiting, -32800);
    CHECK(!json_object_get(call(&c, "terminal/output", id), "exitStatus"));
    call(&c, "terminal/release", id);
    close_client(&c);
}

/* Nothing is started, and there is nothing to release. */
static int count_shell(const nacre_listed *listed, void *userdata)
{
    (void)listed;
    ++*(int *)userdata;
    return 0;
}

static int count_alive(struct client *c)
{
    int count = 0;
    CHECK_OK(list_home(c->session, true, count_shell, &count));
    return count;
}

/* A start that is quicker than its cancellation is no case of this: then there is another. */
TEST(a_start_can_be_cancelled)
{
    const char *mark = marker();
    CLIENT(c);
    int id, starts = 0;
    do
        id = ask(&c, "terminal/create",
                 json_pack("{s:s, s:s}", "sessionId", "a", "command",
                           format("sleep 300.%s; true", mark)));
    while (answer_now(&c, id) && ++starts < 50);

    CHECK_EQ_INT(starts + 1, nacre_acp_host_count(c.host));
    cancel(&c, id);
    await_error(&c, id, -32800);
    CHECK_EQ_INT(starts, nacre_acp_host_count(c.host));
    CHECK(AWAIT(count_alive(&c) == starts && count_marked(mark) == starts, 5000));
    close_client(&c);
}

TEST(starts_at_once)
{
    enum { COUNT = 8 };
    int ids[COUNT];
    CLIENT(c);

    for (int i = 0; i < COUNT; i++)
        ids[i] = ask(&c, "terminal/create",
                     json_pack("{s:s, s:s}", "sessionId", "a", "command", "exec sleep 300"));
    for (int i = 0; i < COUNT; i++)
        CHECK(json_object_get(await_result(&c, ids[i]), "terminalId"));
    CHECK_EQ_INT(COUNT, nacre_acp_host_count(c.host));
    close_client(&c);
}

TEST(closing_while_it_starts)
{
    const char *mark = marker();
    CLIENT(c);

    ask(&c, "terminal/create",
        json_pack("{s:s, s:s}", "sessionId", "a", "command", format("sleep 300.%s; true", mark)));
    close_client(&c);
    CHECK_EQ_INT(0, count_marked(mark));
}

TEST(closing_ends_everything)
{
    const char *mark = marker();
    CLIENT(c);

    for (int i = 0; i < 4; i++)
        ask(&c, "terminal/wait_for_exit",
            target("a", create_line(&c, format("exec sleep 300.%s", mark))));
    await_marked(mark, 4);
    close_client(&c);
    CHECK_EQ_INT(0, count_marked(mark));
}

/* The host alone: its session goes on. */
TEST(closing_the_host_ends_its_terminals)
{
    const char *mark = marker();
    CLIENT(c);

    create_line(&c, format("exec sleep 300.%s", mark));
    await_marked(mark, 1);
    nacre_acp_host_close(c.host);
    c.host = NULL;
    CHECK(AWAIT(count_marked(mark) == 0, 5000));
    close_client(&c);
}

TEST(a_shell_that_others_killed)
{
    CLIENT(c);
    const char *id = create_line(&c, "exec sleep 300");
    int waiting = ask(&c, "terminal/wait_for_exit", target("a", id));
    nacre_id shell;

    CHECK_OK(nacre_id_parse(id, &shell));
    kill_shell(c.session, &shell, 0);
    await_result(&c, waiting);
    call(&c, "terminal/release", id);
    close_client(&c);
}

TEST(many_at_once)
{
    enum { COUNT = 24 };
    CLIENT(c);
    const char *ids[COUNT];
    int waits[COUNT];

    for (int i = 0; i < COUNT; i++)
        ids[i] = create_line(&c, format("echo %d; sleep 0.0%d; exit %d", i, i % 10, i));
    for (int i = 0; i < COUNT; i++)
        waits[i] = ask(&c, "terminal/wait_for_exit", target("a", ids[i]));
    for (int i = COUNT - 1; i >= 0; i--) {
        check_exit(await_result(&c, waits[i]), i, NULL);
        CHECK_TEXT(output(&c, ids[i]), format("%d\n", i));
        call(&c, "terminal/release", ids[i]);
    }
    close_client(&c);
}

/* -- What is kept ----------------------------------------------------------------------------- */

static json_t *output_of_line(struct client *c, const char *line, json_int_t limit)
{
    const char *id =
        create(c, json_pack("{s:s, s:s, s:[s, s], s:I}", "sessionId", "a", "command", "/bin/bash",
                            "args", "-c", line, "outputByteLimit", limit));
    call(c, "terminal/wait_for_exit", id);
    return call(c, "terminal/output", id);
}

TEST(the_tail_begins_with_a_character)
{
    CLIENT(c);

    for (int limit = 0; limit <= 13; limit++) {
        json_t *result = output_of_line(&c, "printf 'x\\U1F40C\\U1F41A\\U1F419'", limit);
        const json_t *text = json_object_get(result, "output");
        size_t whole = limit == 13 ? 13 : (size_t)limit / 4 * 4;
        CHECK_EQ_INT(whole, json_string_length(text));
        CHECK_TEXT(json_string_value(text), &"x\U0001F40C\U0001F41A\U0001F419"[13 - whole]);
        CHECK_EQ_INT(limit < 13, json_is_true(json_object_get(result, "truncated")));
    }
    close_client(&c);
}

TEST(limits_of_the_host)
{
    struct client c = open_client();
    nacre_acp_host_options options = NACRE_ACP_HOST_OPTIONS_INIT;
    options.output_default = 10;
    options.output_max = 100;
    open_host(&c, options);
    const json_t *most = json_object_get(output_of_line(&c, "seq 1000", 1000), "output");
    const char *usual = create_line(&c, "seq 1000");

    CHECK_EQ_INT(100, json_string_length(most));
    call(&c, "terminal/wait_for_exit", usual);
    CHECK_TEXT(output(&c, usual), "\n999\n1000\n");
    close_client(&c);
}

TEST(the_tail_moves_while_it_is_polled)
{
    CLIENT(c);
    CHECK_OK(mkfifo("fifo", 0600));
    const char *id =
        create(&c, json_pack("{s:s, s:s, s:i}", "sessionId", "a", "command",
                             "for i in {1..300}; do printf '%04d\\n' $i; done; read x < fifo",
                             "outputByteLimit", 100));

    CHECK(AWAIT(strstr(output(&c, id), "0300\n"), 5000));
    const json_t *text = json_object_get(call(&c, "terminal/output", id), "output");
    CHECK_EQ_INT(100, json_string_length(text));
    CHECK(strncmp(json_string_value(text), "0281\n", 5) == 0);
    call(&c, "terminal/release", id);
    close_client(&c);
}

TEST(megabytes_within_the_limit)
{
    CLIENT(c);
    json_t *result = output_of_line(&c, "yes 'a \"b\"' | head -c 5000000", 4 << 20);
    const json_t *text = json_object_get(result, "output");

    CHECK_EQ_INT(4 << 20, json_string_length(text));
    CHECK(json_is_true(json_object_get(result, "truncated")));
    CHECK_STR(json_string_value(text) + (4 << 20) - 8, "a \"b\"\n");
    close_client(&c);
}

TEST(what_the_quota_dropped_is_missing)
{
    CLIENT(c);
    json_t *result = output_of_line(&c, "yes | head -c 100000000; echo end", 1 << 20);

    CHECK(json_is_true(json_object_get(result, "truncated")));
    CHECK_STR(json_string_value(json_object_get(result, "output")) + (1 << 20) - 6, "\nend\n");
    close_client(&c);
}

/* What comes before a gap does not go with what comes after it, however much may be kept. */
TEST(nothing_stands_before_a_gap)
{
    nacre_options small = NACRE_OPTIONS_INIT;
    small.quota = 256 * 1024;
    struct client c = {.answers = json_array(), .session = open_options(&small)};
    open_host(&c, (nacre_acp_host_options)NACRE_ACP_HOST_OPTIONS_INIT);
    const json_t *result = output_of_line(&c, "seq 400000", 4 << 20);
    const char *text = json_string_value(json_object_get(result, "output"));

    CHECK(json_is_true(json_object_get(result, "truncated")));
    CHECK(strncmp(text, "1\n2\n3\n", 6) != 0);
    CHECK_STR(text, "\n400000\n");
    close_client(&c);
}

TEST(bytes_that_are_no_text)
{
    CLIENT(c);
    json_t *result = output_of_line(&c, "printf 'a\\xffb\\0c\\xf0\\x9f'", 1000);
    const json_t *text = json_object_get(result, "output");

    CHECK_EQ_INT(10, json_string_length(text));
    CHECK(memcmp(json_string_value(text),
                 "a\xef\xbf\xbd"
                 "b\0c\xef\xbf\xbd",
                 10) == 0);
    close_client(&c);
}

TEST(a_character_in_two_pieces)
{
    CLIENT(c);
    CHECK_OK(mkfifo("fifo", 0600));
    const char *id =
        create_line(&c, "printf 'x\\xf0\\x9f'; read x < fifo; printf '\\x90\\x8c'; echo y >&2");

    CHECK(AWAIT(strcmp(output(&c, id), "x") == 0, 5000));
    spit("fifo", "\n", 1);
    call(&c, "terminal/wait_for_exit", id);
    CHECK_STR(output(&c, id), "x\U0001F40C");
    close_client(&c);
}
