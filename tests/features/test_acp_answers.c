/*
 * What a client may answer to the acp backend, right and wrong: ends of all kinds, errors of each
 * method, and answers that nobody asked for.
 */
#include "acp_op.h"

#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>

#include <jansson.h>

enum { CREATE, WAIT, OUTPUT, KILL, RELEASE, METHODS };

static const char *const names[METHODS] = {"terminal/create", "terminal/wait_for_exit",
                                           "terminal/output", "terminal/kill", "terminal/release"};

/* A client that says what it was told to say, from "result" or "error" on; NULL = nothing. */
struct script {
    const char *answers[METHODS];
    int asked[METHODS];
    json_t *open; /* requests that were not looked at yet */
    nacre_acp_agent *agent;
    nacre_session *session;
    nacre_id created; /* heard of last */
};

static int method_of(const json_t *request)
{
    const char *name = json_string_value(json_object_get(request, "method"));
    for (int i = 0; i < METHODS; i++)
        if (strcmp(name, names[i]) == 0)
            return i;
    FAIL("a request for %s", name);
    return -1;
}

static int hear(const char *message, size_t size, void *userdata)
{
    struct script *s = userdata;
    json_t *request = json_loadb(message, size, 0, NULL);
    CHECK(request);
    s->asked[method_of(request)]++;
    json_array_append_new(s->open, request);
    return 0;
}

static int feed(const struct script *s, const char *id, const char *rest)
{
    const char *text = format("{\"jsonrpc\":\"2.0\",\"id\":\"%s\",%s}", id, rest);
    return nacre_acp_agent_feed(s->agent, text, strlen(text), ERR);
}

static int say(int timeout_ms, void *userdata)
{
    struct script *s = userdata;
    if (json_array_size(s->open) == 0)
        return poll(NULL, 0, timeout_ms < 5 ? timeout_ms : 5);
    json_t *request = json_incref(json_array_get(s->open, 0));
    json_array_remove(s->open, 0);
    const char *id = json_string_value(json_object_get(request, "id"));
    const char *answer = s->answers[method_of(request)];
    if (answer) {
        CHECK_EQ_INT(1, feed(s, id, answer));
        /* What comes twice, or was never asked for, is taken and says nothing. */
        CHECK_EQ_INT(1, feed(s, id, "\"result\":{\"exitCode\":99,\"output\":\"twice\"}"));
        CHECK_EQ_INT(1, feed(s, "nacre-99999", "\"result\":{\"exitCode\":98}"));
    }
    json_decref(request);
    return 0;
}

static struct script open_script(void)
{
    return (struct script){.answers = {[CREATE] = "\"result\":{\"terminalId\":\"t\"}",
                                       [WAIT] = "\"result\":{\"exitCode\":0,\"signal\":null}",
                                       [OUTPUT] = "\"result\":{\"output\":\"text\\n\","
                                                  "\"truncated\":false}",
                                       [KILL] = "\"result\":{}",
                                       [RELEASE] = "\"result\":{}"},
                           .open = json_array()};
}

static void note_created(const nacre_id *id, const char *terminal, void *userdata)
{
    struct script *s = userdata;
    CHECK_TEXT(terminal, "t");
    CHECK_EQ_INT(s->asked[CREATE] - 1, s->asked[WAIT]);
    s->created = *id;
}

static void begin(struct script *s)
{
    nacre_acp_agent_options agent = NACRE_ACP_AGENT_OPTIONS_INIT;
    nacre_options options = NACRE_OPTIONS_INIT;
    agent.session_id = "s";
    agent.send = hear;
    agent.receive = say;
    agent.created = note_created;
    agent.userdata = s;
    agent.answer_ms = 300;
    CHECK_OK(nacre_acp_agent_open(&agent, &s->agent, ERR));
    options.backend = nacre_backend_acp(s->agent);
    CHECK_OK(nacre_open(&options, &s->session, ERR));
}

static void end(struct script *s)
{
    nacre_close(s->session, ERR);
    nacre_acp_agent_close(s->agent);
    json_decref(s->open);
}

static int start(struct script *s, nacre_id *ret_id)
{
    nacre_command command = NACRE_COMMAND_INIT;
    command.text = "true";
    return nacre_start(s->session, &command, ret_id, NULL, ERR);
}

static nacre_record run(struct script *s)
{
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_record record = NACRE_RECORD_INIT;
    command.text = "true";
    CHECK_OK(nacre_run(s->session, &command, -1, &record, ERR));
    return record;
}

TEST(ends_of_all_kinds)
{
    static const struct {
        const char *status;
        int outcome, code, signal;
    } cases[] = {
        {"{\"exitCode\":0}", NACRE_EXITED, 0, 0},
        {"{\"exitCode\":255,\"signal\":null}", NACRE_EXITED, 255, 0},
        {"{\"exitCode\":4294967295}", NACRE_EXITED, INT_MAX, 0},
        {"{\"exitCode\":null,\"signal\":\"SIGKILL\"}", NACRE_SIGNALED, -1, SIGKILL},
        {"{\"signal\":\"SIGSEGV\"}", NACRE_SIGNALED, -1, SIGSEGV},
        {"{\"exitCode\":143,\"signal\":\"SIGTERM\"}", NACRE_SIGNALED, 143, SIGTERM},
        {"{\"exitCode\":-1}", NACRE_LOST, -1, 0},
        {"{\"exitCode\":\"0\"}", NACRE_LOST, -1, 0},
        {"{}", NACRE_LOST, -1, 0},
        {"null", NACRE_LOST, -1, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct script s = open_script();
        s.answers[WAIT] = format("\"result\":%s", cases[i].status);
        begin(&s);
        nacre_record record = run(&s);
        CHECK(nacre_id_equal(&record.id, &s.created));
        CHECK_EQ_INT(cases[i].outcome, record.outcome);
        CHECK_EQ_INT(cases[i].code, record.exit_code);
        CHECK_EQ_INT(cases[i].signal, record.signal);
        CHECK_EQ_INT(NACRE_TREE_EMPTY, record.tree);
        CHECK(output_has(s.session, &record.id, NACRE_BOTH, "text\n"));
        CHECK(!output_has(s.session, &record.id, NACRE_BOTH, "twice"));
        CHECK_EQ_INT(1, s.asked[RELEASE]);
        nacre_record_done(&record);
        end(&s);
    }
}

TEST(a_refused_start)
{
    static const struct {
        const char *error, *says;
        int code;
    } cases[] = {
        {"{\"code\":-32603,\"message\":\"no\",\"data\":{\"details\":\"ENOENT here\"}}",
         "refuses terminal/create: no: ENOENT here", NACRE_ESTART},
        {"{\"code\":-32603,\"message\":\"the user said no\"}", "terminal/create: the user said no",
         NACRE_ESTART},
        {"{\"code\":-32603}", "without a message", NACRE_ESTART},
        {"{\"code\":-32601,\"message\":\"what\"}", "what", NACRE_EUNSUPPORTED},
        {"{\"code\":-32002,\"message\":\"which\"}", "which", NACRE_ENOTFOUND},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct script s = open_script();
        nacre_id id;
        s.answers[CREATE] = format("\"error\":%s", cases[i].error);
        begin(&s);
        CHECK_CODE(cases[i].code, start(&s, &id));
        CHECK_STR(harness_error.msg, cases[i].says);
        CHECK_EQ_INT(0, s.asked[WAIT] + s.asked[RELEASE]);
        end(&s);
    }
}

TEST(an_answer_without_a_terminal)
{
    static const char *const answers[] = {"\"result\":{}", "\"result\":null",
                                          "\"result\":{\"terminalId\":7}"};
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        struct script s = open_script();
        nacre_id id;
        s.answers[CREATE] = answers[i];
        begin(&s);
        CHECK_CODE(NACRE_EBACKEND, start(&s, &id));
        CHECK_STR(harness_error.msg, "names no terminal");
        end(&s);
    }
}

/* The client has let go of the terminal before: nothing more can be known, but it is over. */
TEST(errors_after_the_start)
{
    static const char gone[] = "\"error\":{\"code\":-32002,\"message\":\"gone\"}";
    struct script s = open_script();
    s.answers[WAIT] = s.answers[OUTPUT] = s.answers[RELEASE] = gone;
    begin(&s);
    nacre_record record = run(&s);

    CHECK_EQ_INT(NACRE_LOST, record.outcome);
    CHECK_EQ_INT(NACRE_TREE_EMPTY, record.tree);
    CHECK_EQ_INT(1, s.asked[RELEASE]);
    nacre_record_done(&record);
    end(&s);
}

/* The output is lost, not how the command ended. */
TEST(no_output_after_the_exit)
{
    struct script s = open_script();
    s.answers[WAIT] = "\"result\":{\"exitCode\":6}";
    s.answers[OUTPUT] = "\"error\":{\"code\":-32603,\"message\":\"no\"}";
    begin(&s);
    nacre_record record = run(&s);

    CHECK_EQ_INT(NACRE_EXITED, record.outcome);
    CHECK_EQ_INT(6, record.exit_code);
    CHECK_EQ_INT(0, record.bytes[NACRE_STDOUT]);
    nacre_record_done(&record);
    end(&s);
}

TEST(a_kill_that_is_refused)
{
    static const struct {
        int theirs, ours;
    } codes[] = {{-32002, NACRE_ENOTFOUND}, {-32601, NACRE_EUNSUPPORTED}, {-32603, NACRE_EBACKEND}};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        struct script s = open_script();
        nacre_id id;
        s.answers[WAIT] = NULL;
        s.answers[KILL] =
            format("\"error\":{\"code\":%d,\"message\":\"not now\"}", codes[i].theirs);
        begin(&s);
        CHECK_OK(start(&s, &id));
        CHECK_CODE(codes[i].ours, nacre_kill(s.session, &id, NULL, NULL, ERR));
        CHECK_STR(harness_error.msg, "refuses terminal/kill: not now");
        end(&s);
    }
}

/* A terminal that was made too late is nobody's: the client is told. */
TEST(a_start_that_was_given_up)
{
    struct script s = open_script();
    nacre_id id;
    s.answers[CREATE] = NULL;
    begin(&s);

    CHECK_CODE(NACRE_EBACKEND, start(&s, &id));
    CHECK_STR(harness_error.msg, "does not answer terminal/create");
    CHECK_EQ_INT(0, list_home(s.session, false, NULL, NULL));
    CHECK_EQ_INT(1, feed(&s, "nacre-1", "\"result\":{\"terminalId\":\"late\"}"));
    CHECK_EQ_INT(1, s.asked[RELEASE]);
    CHECK_EQ_INT(0, s.asked[WAIT]);
    end(&s);
}

/* -- What is owed and does not come ------------------------------------------------------------ */

/* How it ended is told all the same; that nothing is left of it nobody has said. */
TEST(a_release_that_is_not_answered)
{
    struct script s = open_script();
    int64_t begun = now_ms();
    s.answers[RELEASE] = NULL;
    begin(&s);
    nacre_record record = run(&s);

    CHECK_EQ_INT(NACRE_EXITED, record.outcome);
    CHECK_RANGE(0, now_ms() - begun, soon(4000));
    CHECK_EQ_INT(NACRE_TREE_ALIVE, record.tree);
    nacre_record_done(&record);
    CHECK_EQ_INT(1, nacre_close(s.session, ERR));
    CHECK_STR(harness_error.msg, "has not released 1 terminals");
    nacre_acp_agent_close(s.agent);
    json_decref(s.open);
}

TEST(an_output_that_does_not_come)
{
    struct script s = open_script();
    int64_t begun = now_ms();
    s.answers[WAIT] = "\"result\":{\"exitCode\":6}";
    s.answers[OUTPUT] = NULL;
    begin(&s);
    nacre_record record = run(&s);

    CHECK_EQ_INT(NACRE_EXITED, record.outcome);
    CHECK_EQ_INT(6, record.exit_code);
    CHECK_EQ_INT(NACRE_TREE_EMPTY, record.tree);
    CHECK_RANGE(300, now_ms() - begun, soon(4000));
    CHECK_EQ_INT(1, s.asked[RELEASE]);
    nacre_record_done(&record);
    end(&s);
}

/* By the verb alone, which has no watch. */
TEST(the_verb_does_not_hang_either)
{
    struct script s = open_script();
    nacre_id id;
    s.answers[OUTPUT] = s.answers[RELEASE] = NULL;
    begin(&s);
    const nacre_backend *backend = nacre_backend_acp(s.agent);

    CHECK_OK(start(&s, &id));
    look_by_verb(backend, &id);
    CHECK_EQ_INT(1, s.asked[RELEASE]);
    CHECK_EQ_INT(1, nacre_close(s.session, ERR));
    nacre_acp_agent_close(s.agent);
    json_decref(s.open);
}

/* Its time is over, and its client does nothing about it. */
TEST_LIMIT(an_exit_that_does_not_come, 40)
{
    struct script s = open_script();
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_record record = NACRE_RECORD_INIT;
    s.answers[WAIT] = NULL;
    begin(&s);
    command.text = "true";
    command.timeout_ms = 100;
    int64_t begun = now_ms();

    CHECK_OK(nacre_run(s.session, &command, -1, &record, ERR));
    CHECK_RANGE(10000, now_ms() - begun, soon(15000));
    CHECK_EQ_INT(NACRE_TIMED_OUT, record.outcome);
    CHECK_EQ_INT(-1, record.exit_code);
    CHECK(output_has(s.session, &record.id, NACRE_BOTH, "text\n"));
    nacre_record_done(&record);
    end(&s);
}

TEST(what_is_no_text_is_not_sent)
{
    struct script s = open_script();
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_id id;
    static const char *const env[] = {"NAME=\xff", NULL};

    begin(&s);
    command.text = "echo \xff";
    CHECK_CODE(NACRE_EINVAL, nacre_start(s.session, &command, &id, NULL, ERR));
    CHECK_STR(harness_error.msg, "no UTF-8");
    command.text = "true";
    command.env = env;
    CHECK_CODE(NACRE_EINVAL, nacre_start(s.session, &command, &id, NULL, ERR));
    CHECK_EQ_INT(0, s.asked[CREATE]);
    end(&s);
}

/* -- The bell ---------------------------------------------------------------------------------- */

static bool bell_rings(const nacre_backend *backend)
{
    struct pollfd poller = {.fd = backend->ops->bell(backend->self), .events = POLLIN};
    return poll(&poller, 1, 0) > 0;
}

/* The end of a shell of the background is told once, with its id; that of another one never. */
TEST(the_bell_rings_once)
{
    struct script s = open_script();
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_id ids[2], heard;

    begin(&s);
    const nacre_backend *backend = nacre_backend_acp(s.agent);
    command.text = "true";
    for (int i = 0; i < 2; i++) {
        command.background = i == 0;
        ids[i] = start_by_verb(backend, &command);
    }
    for (int i = 0; i < 2; i++)
        look_by_verb(backend, &ids[i]);
    CHECK(bell_rings(backend));
    CHECK_EQ_INT(1, backend->ops->rung(backend->self, &heard));
    CHECK(nacre_id_equal(&heard, &ids[0]));
    CHECK_EQ_INT(0, backend->ops->rung(backend->self, &heard));
    CHECK(!bell_rings(backend));
    end(&s);
}
