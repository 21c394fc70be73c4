/*
 * Terminals of an ACP client as shells among others: the registry, the tools, completions, recall
 * and the history work on them as on what a keeper runs, for this session and for later ones.
 */
#include "acp_pair.h"
#include "tool.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

/* -- The tools --------------------------------------------------------------------------------- */

TEST(a_command_in_the_foreground)
{
    struct pair *p = open_pair(0);
    struct reply r = call(p->session, "bash", "{\"command\": \"echo hello; exit 4\"}");

    CHECK_STR(r.text, "hello");
    CHECK_STR(r.text, "Exit code: 4");
    CHECK_TEXT(methods_of(p), "create wait_for_exit output release");
    CHECK_TEXT(json_string_value(json_object_get(r.run, "containment")), "client");
    close_pair(p);
}

TEST(in_the_background_read_and_listed)
{
    struct pair *p = open_pair(0);
    const char *id = launch_held(p->session, "echo one; exec sleep 300");
    struct reply r = call(p->session, "list_shells", "{}");

    CHECK_STR(r.text, format("%.8s", id));
    CHECK_STR(r.text, "running");
    CHECK_EQ_INT(1, counts_of(p->session).running);
    let_go();
    r = call(p->session, "bash_output", "{\"id\": \"%.8s\", \"until\": \"one\"}", id);
    CHECK_STR(r.text, "one\n");
    r = call(p->session, "bash_output", "{\"id\": \"%s\"}", id);
    CHECK_STR(r.text, "(no new output)");
    close_pair(p);
}

TEST(its_end_is_told_with_the_next_answer)
{
    struct pair *p = open_pair(0);
    const char *id = launch_held(p->session, "echo last words; exit 3");
    nacre_id shell = id_from(id);

    let_go();
    CHECK(AWAIT(counts_of(p->session).completions == 1, 10000));
    struct reply r = call(p->session, "bash", "{\"command\": \"true\"}");
    CHECK_STR(r.completions, format("[Background task %.8s completed]", id));
    CHECK_STR(r.completions, "exit_code: 3");
    CHECK_STR(r.completions, "last words");
    CHECK_TEXT(status_of(p->session, &shell), "exited(3)");
    r = call(p->session, "bash", "{\"command\": \"true\"}");
    CHECK_TEXT(r.completions, "");
    close_pair(p);
}

TEST(kill_through_the_tool)
{
    const char *mark = marker();
    struct pair *p = open_pair(0);
    const char *id = launch(p->session, format("echo here; exec sleep 300.%s", mark));

    await_marked(mark, 1);
    await_output(p->session, id, "here");
    struct reply r = call(p->session, "kill_shell", "{\"id\": \"%s\"}", id);
    CHECK(!r.error);
    CHECK_STR(r.text, "killed");
    CHECK_EQ_INT(0, count_marked(mark));
    CHECK_STR(methods_of(p), "kill output release");
    r = call(p->session, "kill_shell", "{\"id\": \"%s\"}", id);
    CHECK_STR(r.text, "had ended already: killed");
    r = call(p->session, "bash_output", "{\"id\": \"%s\", \"offset\": 0}", id);
    CHECK_STR(r.text, "here");
    close_pair(p);
}

TEST(a_timeout_kills_then_releases)
{
    const char *mark = marker();
    struct pair *p = open_pair(0);
    struct reply r =
        call(p->session, "bash",
             "{\"command\": \"echo so far; exec sleep 300.%s\", \"timeout\": 0.4}", mark);

    CHECK_STR(r.text, "so far");
    CHECK_STR(r.text, "Timed out");
    CHECK_STR(methods_of(p), "create wait_for_exit");
    CHECK_STR(methods_of(p), "kill output release");
    CHECK_EQ_INT(1, count_method(p, "terminal/kill"));
    CHECK_EQ_INT(1, count_method(p, "terminal/release"));
    CHECK_EQ_INT(0, count_marked(mark));
    close_pair(p);
}

/* Nobody waits for it: whoever calls the session next sees to it. */
TEST(a_timeout_in_the_background)
{
    const char *mark = marker();
    struct pair *p = open_pair(0);
    nacre_command command = NACRE_COMMAND_INIT;
    command.text = format("exec sleep 300.%s", mark);
    command.timeout_ms = 300;
    command.background = 1;
    nacre_id id = start_command(p->session, &command);

    CHECK(AWAIT(counts_of(p->session).completions == 1, 10000));
    CHECK_TEXT(status_of(p->session, &id), "timed_out");
    CHECK_EQ_INT(0, count_marked(mark));
    close_pair(p);
}

TEST(a_cancelled_call_kills_and_the_connection_lives_on)
{
    const char *mark = marker();
    struct pair *p = open_pair(0);
    nacre_call *c =
        begin_call(p->session, "bash", format("{\"command\": \"exec sleep 300.%s\"}", mark));

    CHECK(!drive(c, 200));
    await_marked(mark, 1);
    nacre_call_cancel(c);
    CHECK(drive(c, 10000));
    nacre_call_free(c);
    CHECK_EQ_INT(0, count_marked(mark));
    CHECK_EQ_INT(1, count_method(p, "terminal/kill"));
    CHECK(AWAIT((counts_of(p->session), nacre_acp_host_count(p->host) == 0), 5000));
    struct reply r = call(p->session, "bash", "{\"command\": \"echo still here\"}");
    CHECK_STR(r.text, "still here");
    close_pair(p);
}

TEST(a_command_that_yields_goes_on)
{
    struct pair *p = open_pair(0);
    struct reply r = call(p->session, "bash",
                          "{\"command\": \"echo first; %s; echo second\", \"yield\": 0.3}", gate());
    const char *id = id_of(&r);

    CHECK_STR(r.text, "first");
    CHECK_EQ_INT(1, counts_of(p->session).running);
    let_go();
    r = call(p->session, "bash_output", "{\"id\": \"%s\", \"wait\": 10, \"until\": \"second\"}",
             id);
    CHECK_STR(r.text, "second");
    close_pair(p);
}

TEST(what_terminals_cannot_do)
{
    struct pair *p = open_pair(0);
    const char *id = launch(p->session, "exec sleep 300");
    nacre_id shell = id_from(id);
    nacre_usage usage = NACRE_USAGE_INIT;
    struct reply r = call(p->session, "bash_input", "{\"id\": \"%s\", \"input\": \"x\"}", id);

    CHECK(r.error);
    CHECK_STR(r.text, "takes no input");
    CHECK_CODE(NACRE_EUNSUPPORTED, nacre_signal(p->session, &shell, SIGINT, ERR));
    CHECK_CODE(NACRE_EUNSUPPORTED, nacre_get_usage(p->session, &shell, &usage, ERR));
    r = call(p->session, "bash", "{\"command\": \"true\", \"lifetime\": \"keep\"}");
    CHECK(r.error);
    CHECK_STR(r.text, "cannot be kept");
    close_pair(p);
}

/* -- Recall and history ------------------------------------------------------------------------ */

TEST(recall_finds_what_was_fetched)
{
    struct pair *p = open_pair(0);
    struct reply r =
        call(p->session, "bash", "{\"command\": \"seq 1 5000; echo the cause; seq 1 9\"}");
    const char *id = id_of(&r);

    r = call(p->session, "recall", "{\"pattern\": \"the cause\"}");
    CHECK_STR(r.text, format("%.8s", id));
    CHECK_STR(r.text, "5001");
    r = call(p->session, "recall", "{\"id\": \"%s\", \"lines\": \"5000-5002\"}", id);
    CHECK_STR(r.text, "5000");
    CHECK_STR(r.text, "the cause");
    close_pair(p);
}

TEST(a_later_session_reads_it)
{
    struct pair *p = open_pair(0);
    struct reply r = call(p->session, "bash", "{\"command\": \"echo left behind; exit 2\"}");
    nacre_id id = parsed_id(&r);
    close_pair(p);

    nacre_session *s = open_tool(NULL);
    CHECK_TEXT(status_of(s, &id), "exited(2)");
    CHECK(output_has(s, &id, NACRE_BOTH, "left behind\n"));
    r = call(s, "recall", "{\"pattern\": \"left behind\"}");
    CHECK_STR(r.text, nacre_id_short(&id).s);
    nacre_record record = record_of(s, &id);
    CHECK_TEXT(record.command, "echo left behind; exit 2");
    CHECK_EQ_INT(NACRE_TIER_CLIENT, record.tier);
    nacre_record_done(&record);
    close_session(s);
}

TEST(a_person_sees_it_and_cannot_kill_it)
{
    struct pair *p = open_pair(0);
    nacre_id id = id_from(launch(p->session, "exec sleep 300"));
    nacre_options options = NACRE_OPTIONS_INIT;
    nacre_usage usage = NACRE_USAGE_INIT;
    options.person = 1;
    nacre_session *person = open_options(&options);

    CHECK_TEXT(status_of(person, &id), "running");
    CHECK_CODE(NACRE_EUNSUPPORTED, nacre_kill(person, &id, NULL, NULL, ERR));
    CHECK_STR(harness_error.msg, "only its own session");
    CHECK_CODE(NACRE_EUNSUPPORTED, nacre_signal(person, &id, SIGINT, ERR));
    CHECK_CODE(NACRE_EUNSUPPORTED, nacre_input(person, &id, "x", 1, 0, 100, ERR));
    CHECK_CODE(NACRE_EUNSUPPORTED, nacre_get_usage(person, &id, &usage, ERR));
    CHECK_CODE(NACRE_ETIMEOUT, nacre_wait(person, &id, 1, NACRE_WAIT_ALL, 100, NULL, ERR));
    CHECK_OK(nacre_kill(p->session, &id, NULL, NULL, ERR));
    CHECK_OK(nacre_wait(person, &id, 1, NACRE_WAIT_ALL, 5000, NULL, ERR));
    CHECK_TEXT(status_of(person, &id), "killed");
    close_session(person);
    close_pair(p);
}

struct stay {
    nacre_id id;
    bool forks;
    pid_t child; /* that it forked, which stays too */
};

static void start_and_stay(void *arg)
{
    struct stay *stay = arg;
    struct pair *p = open_pair(0);
    nacre_id started = id_from(launch(p->session, "echo seen; exec sleep 300"));
    await_output(p->session, nacre_id_format(&started).s, "seen");
    pid_t child = stay->forks ? fork() : 1;
    if (child > 0) {
        stay->child = child;
        stay->id = started;
    }
    for (;;)
        pause();
}

static void check_lost_with_its_agent(bool forks)
{
    static const nacre_id none;
    struct stay *stay = shared_memory(sizeof *stay);
    const nacre_id *id = &stay->id;
    stay->forks = forks;
    pid_t host = host_fork(start_and_stay, stay);

    CHECK(AWAIT(!nacre_id_equal(id, &none), 10000));
    nacre_options options = NACRE_OPTIONS_INIT;
    options.person = 1;
    nacre_session *s = open_options(&options);
    CHECK_TEXT(status_of(s, id), "running");
    host_kill(host);
    CHECK_STR(status_of(s, id), "lost");
    CHECK(output_has(s, id, NACRE_BOTH, "seen\n"));
    nacre_record record = record_of(s, id);
    CHECK_EQ_INT(NACRE_TREE_EMPTY, record.tree);
    nacre_record_done(&record);
    if (forks)
        CHECK_OK(kill(stay->child, SIGKILL));
    close_session(s);
}

TEST(the_agent_dies)
{
    check_lost_with_its_agent(false);
}

/* Its shells are its own: a child that it forked does not keep them. */
TEST(the_agent_dies_and_leaves_a_child)
{
    check_lost_with_its_agent(true);
}

TEST(a_start_that_fails_leaves_nothing)
{
    static const char *const argv[] = {"no-such-program", NULL};
    struct pair *p = open_pair(0);
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_id id;

    command.argv = argv;
    CHECK_CODE(NACRE_ESTART, nacre_start(p->session, &command, &id, NULL, ERR));
    CHECK_EQ_INT(0, list_home(p->session, false, NULL, NULL));
    close_pair(p);
}

TEST(one_session_at_a_time)
{
    struct pair *p = open_pair(0);
    nacre_options options = NACRE_OPTIONS_INIT;
    nacre_session *second;

    options.backend = nacre_backend_acp(p->agent);
    CHECK_CODE(NACRE_EBUSY, nacre_open(&options, &second, ERR));
    CHECK_OK(nacre_close(p->session, ERR));
    CHECK_OK(nacre_open(&options, &p->session, ERR));
    struct reply r = call(p->session, "bash", "{\"command\": \"echo again\"}");
    CHECK_STR(r.text, "again");
    close_pair(p);
}

/* -- The workspace ----------------------------------------------------------------------------- */

static struct pair *open_workspace(void)
{
    static const char *more[2];
    nacre_acp_agent_options agent = NACRE_ACP_AGENT_OPTIONS_INIT;
    more[0] = format("%s/more", test_base());
    agent.cwd = format("%s/ws/./", test_base());
    agent.directories = more;
    CHECK_OK(mkdir(format("%s/ws", test_base()), 0700));
    CHECK_OK(mkdir(format("%s/ws/sub", test_base()), 0700));
    CHECK_OK(mkdir(more[0], 0700));
    CHECK_OK(symlink("/", format("%s/ws/out", test_base())));
    CHECK_OK(symlink("../more", format("%s/ws/in", test_base())));
    return open_pair_with(agent);
}

TEST(outside_the_workspace_nothing_is_asked_for)
{
    const char *base = test_base();
    const char *const outside[] = {"/",
                                   base,
                                   format("%s/ws/..", base),
                                   format("%s/wsshop", base),
                                   format("%s/ws/out", base),
                                   format("%s/more/../x", base),
                                   format("%s/mor", base)};
    struct pair *p = open_workspace();

    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
        nacre_command command = NACRE_COMMAND_INIT;
        nacre_id id;
        command.text = "true";
        command.cwd = outside[i];
        CHECK_CODE(NACRE_EPERM, nacre_start(p->session, &command, &id, NULL, ERR));
        CHECK_STR(harness_error.msg, "outside the workspace");
        struct reply r =
            call(p->session, "bash", "{\"command\": \"true\", \"cwd\": \"%s\"}", outside[i]);
        CHECK(r.error);
    }
    CHECK_TEXT(methods_of(p), "");
    close_pair(p);
}

TEST(inside_the_workspace)
{
    const char *base = test_base();
    const char *const inside[] = {format("%s/ws", base),        format("%s/ws/", base),
                                  format("%s/ws/sub/..", base), format("%s//ws/sub", base),
                                  format("%s/more", base),      format("%s/ws/in", base)};
    struct pair *p = open_workspace();
    struct reply r = call(p->session, "bash", "{\"command\": \"pwd\"}");

    CHECK_STR(r.text, format("%s/ws\n", test_base()));
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++) {
        r = call(p->session, "bash", "{\"command\": \"pwd\", \"cwd\": \"%s\"}", inside[i]);
        CHECK(!r.error);
    }
    close_pair(p);
}

TEST(a_workspace_has_absolute_paths)
{
    static const char *const relative[] = {"a", NULL};
    nacre_acp_agent_options options = NACRE_ACP_AGENT_OPTIONS_INIT;
    nacre_acp_agent *agent;

    options.session_id = "s";
    options.send = pair_send_request;
    options.cwd = "relative";
    CHECK_CODE(NACRE_EINVAL, nacre_acp_agent_open(&options, &agent, ERR));
    options.cwd = NULL;
    options.directories = relative;
    CHECK_CODE(NACRE_EINVAL, nacre_acp_agent_open(&options, &agent, ERR));
    options.cwd = "/";
    CHECK_CODE(NACRE_EINVAL, nacre_acp_agent_open(&options, &agent, ERR));
}

/* -- With and without the capability ----------------------------------------------------------- */

#define GREETING(version, rest)                                            \
    "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{" \
    "\"protocolVersion\":" version rest "}}"

TEST(whether_a_client_has_terminals)
{
    static const struct {
        const char *text;
        int has;
    } cases[] = {
        {GREETING("1", ",\"clientCapabilities\":{\"terminal\":true}"), 1},
        {GREETING("1", ",\"clientCapabilities\":{\"terminal\":false}"), 0},
        {GREETING("1", ",\"clientCapabilities\":{\"terminal\":\"true\"}"), 0},
        {GREETING("1", ",\"clientCapabilities\":null"), 0},
        {GREETING("1", ""), 0},
        {GREETING("2", ",\"clientCapabilities\":{\"terminal\":true}"), 0},
        {"{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"x\"}", 0},
        {"no json", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK_EQ_INT(cases[i].has,
                     nacre_acp_client_has_terminals(cases[i].text, strlen(cases[i].text)));
}
