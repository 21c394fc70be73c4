/*
 * nacre acp-proxy between a client and an agent that the case plays both: what passes untouched,
 * what is answered on the way, and what happens when either side goes.
 */
#include "proxy_rig.h"

#include <signal.h>
#include <stdarg.h>

#define INITIALIZE                                                                                \
    "{\"jsonrpc\": \"2.0\", \"id\":0, \"method\":\"initialize\",\"params\":{\"protocolVersion\":" \
    "1,\"clientCapabilities\":{\"fs\":{\"readTextFile\":true}}}}\n"

static void initialize(const struct rig *r)
{
    say_text(r->to_proxy, INITIALIZE);
    json_t *got = hear_message(r->from_agent_in);
    json_t *want = json_loads(INITIALIZE, 0, NULL);
    json_object_set_new(json_object_get(json_object_get(want, "params"), "clientCapabilities"),
                        "terminal", json_true());
    CHECK(json_equal(got, want));
    json_decref(got);
    json_decref(want);
}

static const char *create(const struct rig *r, const char *line)
{
    say_text(r->to_agent_out,
             format("{\"jsonrpc\":\"2.0\",\"id\":\"t\",\"method\":\"terminal/create\",\"params\":{"
                    "\"sessionId\":\"a\",\"command\":\"sh\",\"args\":[\"-c\",\"%s\"]}}\n",
                    line));
    json_t *answer = hear_message(r->from_agent_in);
    CHECK_TEXT(json_string_value(json_object_get(answer, "id")), "t");
    json_t *id = json_object_get(json_object_get(answer, "result"), "terminalId");
    CHECK(id);
    const char *text = format("%s", json_string_value(id));
    json_decref(answer);
    return text;
}

static const char strange[] =
    "{ \"jsonrpc\":\"2.0\" , \"id\" : 1.0e0, \"method\":\"x\\/y\" }\r\n"
    "\n"
    "no json \xff\xfe at all\n"
    "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"terminal\\/create\":\"\\u0074erminal\"}}\n"
    "{\"jsonrpc\":\"2.0\",\"method\":\"$/cancel_request\",\"params\":{\"requestId\":99}}\n"
    "{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"x\":[1,2.50,1e3,"
    "12345678901234567890123]}}\n"
    "[{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"terminal/create\"}]\n"
    "  {\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"fs/read_text_file\"}  \n";

TEST(everything_else_passes_untouched)
{
    struct rig r = start_rig(NULL);

    say_text(r.to_proxy, strange);
    expect(r.from_agent_in, strange);
    initialize(&r);
    say_text(r.to_proxy, strange);
    say_text(r.to_proxy, INITIALIZE);
    expect(r.from_agent_in, strange);
    expect(r.from_agent_in, INITIALIZE);
    say_text(r.to_agent_out, strange);
    expect(r.from_proxy, strange);
    end_rig(&r);
}

TEST(what_has_no_newline_passes_at_the_end)
{
    struct rig r = start_rig(NULL);

    say_text(r.to_proxy, "{\"half\":");
    say_text(r.to_agent_out, "line\n{\"other half\":");
    expect(r.from_proxy, "line\n");
    close(r.to_proxy);
    expect(r.from_agent_in, "{\"half\":");
    expect_end(r.from_agent_in);
    close(r.to_agent_out);
    expect(r.from_proxy, "{\"other half\":");
    expect_end(r.from_proxy);
    CHECK_EQ_INT(5, exit_status(&r));
}

TEST(large_messages_both_ways)
{
    enum { SIZE = 3 << 20 };
    struct rig r = start_rig(NULL);
    char *line = malloc(SIZE + 1);

    CHECK(line);
    memset(line, 'x', SIZE);
    line[SIZE - 1] = '\n';
    line[SIZE] = '\0';
    initialize(&r);
    say(r.to_proxy, line, SIZE / 2);
    say(r.to_agent_out, line, SIZE / 2);
    /* Neither line has ended, so that nobody has to read yet. */
    say(r.to_proxy, line + SIZE / 2, SIZE / 2 - 65536);
    char *rest = line + SIZE - 65536;
    pid_t writer = fork();
    if (writer == 0) {
        say(r.to_proxy, rest, 65536);
        say(r.to_agent_out, line + SIZE / 2, SIZE / 2);
        _exit(0);
    }
    char *got = hear(r.from_agent_in, SIZE);
    CHECK(memcmp(got, line, SIZE) == 0);
    free(got);
    got = hear(r.from_proxy, SIZE);
    CHECK(memcmp(got, line, SIZE) == 0);
    CHECK_EQ_INT(writer, waitpid(writer, NULL, 0));
    free(got);
    free(line);
    end_rig(&r);
}

TEST(terminals_are_answered_on_the_way)
{
    struct rig r = start_rig(NULL);

    initialize(&r);
    const char *id = create(&r, "echo hi; exit 3");
    say_text(r.to_agent_out, format("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"terminal\\/"
                                    "wait_for_exit\",\"params\":{\"sessionId\":\"a\","
                                    "\"terminalId\":\"%s\"}}\nmark\n",
                                    id));
    json_t *answer = hear_message(r.from_agent_in);
    CHECK_EQ_INT(
        3, json_integer_value(json_object_get(json_object_get(answer, "result"), "exitCode")));
    json_decref(answer);
    expect(r.from_proxy, "mark\n");
    expect_silence(r.from_proxy);
    end_rig(&r);
}

TEST(ids_of_both_sides_are_apart)
{
    struct rig r = start_rig(NULL);

    initialize(&r);
    const char *id = create(&r, "exec sleep 300");
    say_text(r.to_agent_out,
             format("{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"terminal/wait_for_exit\","
                    "\"params\":{\"sessionId\":\"a\",\"terminalId\":\"%s\"}}\n",
                    id));
    say_text(r.to_proxy, "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"session/prompt\"}\n");
    expect(r.from_agent_in, "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"session/prompt\"}\n");
    /* One of these is for the client, the other for the terminal. */
    say_text(r.to_agent_out, "{\"jsonrpc\":\"2.0\",\"method\":\"$/cancel_request\",\"params\":{"
                             "\"requestId\":5}}\n");
    expect(r.from_proxy, "{\"jsonrpc\":\"2.0\",\"method\":\"$/cancel_request\",\"params\":{"
                         "\"requestId\":5}}\n");
    say_text(r.to_agent_out, "{\"jsonrpc\":\"2.0\",\"method\":\"$/cancel_request\",\"params\":{"
                             "\"requestId\":4}}\n");
    json_t *answer = hear_message(r.from_agent_in);
    CHECK_EQ_INT(-32800,
                 json_integer_value(json_object_get(json_object_get(answer, "error"), "code")));
    json_decref(answer);
    expect_silence(r.from_proxy);
    end_rig(&r);
}

#define OWN                                                                                       \
    "{\"jsonrpc\":\"2.0\", \"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":1," \
    "\"clientCapabilities\":{\"terminal\":true}}}\n"
#define SECOND                                                                                    \
    "{\"jsonrpc\":\"2.0\", \"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":2," \
    "\"capabilities\":{}}}\n"
#define CREATE                                                                                \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"terminal/create\",\"params\":{\"sessionId\":" \
    "\"a\",\"command\":\"true\"}}\n"

static void want_directory(struct rig *r, int id, const char *name)
{
    char line[400];

    snprintf(line, sizeof line,
             "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"terminal/create\",\"params\":{"
             "\"sessionId\":\"s1\",\"command\":\"mkdir\",\"args\":[\"%s\"]}}\n",
             id, name);
    say_text(r->to_agent_out, line);
}

static const char *text_in(const json_t *object, const char *path, ...)
{
    va_list names;
    va_start(names, path);
    for (const char *name = path; name; name = va_arg(names, const char *))
        object = json_object_get(object, name);
    va_end(names);
    return json_is_string(object) ? json_string_value(object) : "";
}

/* The options in their order, "id:kind ...". */
static void list_options(const json_t *request, char *text, size_t size)
{
    size_t i, used = 0;
    json_t *option;

    text[0] = '\0';
    json_array_foreach(json_object_get(json_object_get(request, "params"), "options"), i, option)
        used += (size_t)snprintf(text + used, size - used, "%s:%s ",
                                 text_in(option, "optionId", NULL), text_in(option, "kind", NULL));
}

static void choose(struct rig *r, const char *id, const char *outcome)
{
    char line[300];

    snprintf(line, sizeof line, "{\"jsonrpc\":\"2.0\",\"id\":\"%s\",\"result\":{\"outcome\":%s}}\n",
             id, outcome);
    say_text(r->to_proxy, line);
}

#define CHOSEN(option) "{\"outcome\":\"selected\",\"optionId\":\"" option "\"}"

TEST(what_the_rules_leave_open_the_client_is_asked)
{
    static const struct {
        const char *outcome, *says;
    } noes[] = {{CHOSEN("no"), "said no"},
                {"{\"outcome\":\"cancelled\"}", "did not answer"},
                {CHOSEN("elsewhere"), "said no"},
                {"7", "change"},
                {CHOSEN("never"), "as long as this session"}};
    char options[300], id[64];
    json_t *message;

    CHECK(setenv("NACRE_POLICY", "[{\"ask\":[\"mkdir\"]}]", 1) == 0);
    struct rig r = start_rig(NULL);
    initialize(&r);
    for (size_t i = 0; i < sizeof noes / sizeof *noes; i++) {
        want_directory(&r, 5, "never");
        message = hear_message(r.from_proxy);
        CHECK_TEXT(text_in(message, "method", NULL), "session/request_permission");
        CHECK_TEXT(text_in(message, "params", "sessionId", NULL), "s1");
        CHECK_TEXT(text_in(message, "params", "toolCall", "title", NULL), "mkdir never");
        list_options(message, options, sizeof options);
        CHECK_TEXT(options, "once:allow_once session:allow_always no:reject_once "
                            "never:reject_always ");
        choose(&r, text_in(message, "id", NULL), noes[i].outcome);
        json_decref(message);
        message = hear_message(r.from_agent_in);
        CHECK_STR(text_in(message, "error", "message", NULL), noes[i].says);
        json_decref(message);
    }
    want_directory(&r, 6, "never");
    message = hear_message(r.from_agent_in);
    CHECK_STR(text_in(message, "error", "message", NULL), "as long as this session");
    json_decref(message);
    /* What the agent says is no answer; nor is an id that was not given. */
    want_directory(&r, 7, "made");
    message = hear_message(r.from_proxy);
    snprintf(id, sizeof id, "%s", text_in(message, "id", NULL));
    json_decref(message);
    snprintf(options, sizeof options,
             "{\"jsonrpc\":\"2.0\",\"id\":\"%s\",\"result\":{\"outcome\":%s}}\n", id,
             CHOSEN("once"));
    say_text(r.to_agent_out, options);
    expect(r.from_proxy, options);
    CHECK(access("made", F_OK) < 0);
    choose(&r, "nacre-ask-77", CHOSEN("once"));
    choose(&r, id, CHOSEN("once"));
    message = hear_message(r.from_agent_in);
    CHECK(json_integer_value(json_object_get(message, "id")) == 7);
    CHECK(json_object_get(message, "result"));
    json_decref(message);
    CHECK(AWAIT(access("made", F_OK) == 0, 5000));
    CHECK(access("never", F_OK) < 0);
    end_rig(&r);
}

TEST(a_client_with_terminals_of_its_own)
{
    struct rig r = start_rig(NULL);

    say_text(r.to_proxy, OWN);
    expect(r.from_agent_in, OWN);
    say_text(r.to_agent_out, CREATE);
    expect(r.from_proxy, CREATE);
    end_rig(&r);
}

TEST(always_means_always)
{
    struct rig r = start_rig("--always");

    say_text(r.to_proxy, OWN);
    expect(r.from_agent_in, OWN);
    create(&r, "true");
    expect_silence(r.from_proxy);
    end_rig(&r);
}

TEST(another_version_of_the_protocol)
{
    struct rig r = start_rig("--always");

    say_text(r.to_proxy, SECOND);
    expect(r.from_agent_in, SECOND);
    say_text(r.to_agent_out, CREATE);
    expect(r.from_proxy, CREATE);
    end_rig(&r);
}

TEST(the_client_goes)
{
    const char *mark = marker();
    struct rig r = start_rig(NULL);

    initialize(&r);
    create(&r, format("trap : TERM; sleep 300.%s & exec sleep 300.%s", mark, mark));
    await_marked(mark, 2);
    /* Both ends at once, as when it is killed; the agent does not care. */
    close(r.to_proxy);
    close(r.from_proxy);
    CHECK_EQ_INT(128 + SIGTERM, exit_status(&r));
    CHECK_EQ_INT(0, count_marked(mark));
}

TEST(the_agent_goes)
{
    const char *mark = marker();
    struct rig r = start_rig(NULL);

    initialize(&r);
    create(&r, format("exec sleep 300.%s", mark));
    await_marked(mark, 1);
    say_text(r.to_agent_out, "last words\n");
    expect(r.from_proxy, "last words\n");
    close(r.to_agent_out);
    close(r.from_agent_in);
    say_text(r.to_proxy, "nobody hears this\n");
    expect_end(r.from_proxy);
    CHECK_EQ_INT(5, exit_status(&r));
    CHECK_EQ_INT(0, count_marked(mark));
}

TEST(the_proxy_is_killed)
{
    const char *mark = marker();
    struct rig r = start_rig(NULL);

    initialize(&r);
    create(&r, format("exec sleep 300.%s", mark));
    await_marked(mark, 1);
    host_kill(r.proxy);
    close(r.to_agent_out);
    expect_end(r.from_agent_in);
    CHECK(AWAIT(count_marked(mark) == 0, 5000));
}

TEST(signals_end_both)
{
    struct rig r = start_rig(NULL);

    initialize(&r);
    CHECK_OK(kill(r.proxy, SIGTERM));
    expect_end(r.from_agent_in);
    close(r.to_agent_out);
    CHECK_EQ_INT(5, exit_status(&r));
}

TEST(an_agent_that_does_not_exist)
{
    int status = system(format("%s acp-proxy -- no-such-agent < /dev/null 2> err", /* NOLINT */
                               program("../../nacre")));
    CHECK_EQ_INT(1, WEXITSTATUS(status));
    char *said = slurp("err", NULL);
    CHECK_STR(said, "no-such-agent");
    free(said);
}
