/*
 * The acp backend: the shells of a session are terminals of an ACP client. The client is our own
 * host, in the same process.
 */
#include "acp_op.h"
#include "acp_pair.h"

#include <signal.h>

/* -- A client in the same process ------------------------------------------------------------- */

static nacre_record run(struct pair *p, const char *text, int64_t timeout_ms)
{
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_record record = NACRE_RECORD_INIT;
    command.text = text;
    command.timeout_ms = timeout_ms;
    CHECK_OK(nacre_run(p->session, &command, -1, &record, ERR));
    return record;
}

static char *all_of(struct pair *p, const nacre_id *id)
{
    nacre_snapshot snapshot;
    CHECK_OK(nacre_output(p->session, id, NACRE_BOTH, 0, &snapshot, ERR));
    snapshot.data = realloc(snapshot.data, snapshot.size + 1);
    snapshot.data[snapshot.size] = '\0';
    return snapshot.data;
}

TEST(run_in_a_terminal)
{
    struct pair *p = open_pair(0);
    nacre_record record = run(p, "echo \"out $0\"; echo err >&2; exit 7", 0);
    char *text = all_of(p, &record.id);

    CHECK_EQ_INT(NACRE_EXITED, record.outcome);
    CHECK_EQ_INT(7, record.exit_code);
    CHECK_STR(text, "out /bin/sh\n");
    CHECK_STR(text, "err\n");
    CHECK_EQ_INT(2, record.lines[NACRE_STDOUT]);
    CHECK_STR(record.command, "exit 7");
    free(text);
    nacre_record_done(&record);
    CHECK_EQ_INT(1, count_method(p, "terminal/release"));
    close_pair(p);
}

TEST(programs_places_and_variables)
{
    static const char *const argv[] = {"sh", "-c", "pwd; echo $WHO", NULL};
    static const char *const env[] = {"WHO=me", NULL};
    struct pair *p = open_pair(0);
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_record record = NACRE_RECORD_INIT;

    command.argv = argv;
    command.env = env;
    command.cwd = "/";
    CHECK_OK(nacre_run(p->session, &command, -1, &record, ERR));
    char *text = all_of(p, &record.id);
    CHECK_TEXT(text, "/\nme\n");
    free(text);
    nacre_record_done(&record);
    close_pair(p);
}

TEST(signals_have_their_names)
{
    struct pair *p = open_pair(0);
    nacre_record record = run(p, "kill -SEGV $$", 0);

    CHECK_EQ_INT(NACRE_SIGNALED, record.outcome);
    CHECK_EQ_INT(SIGSEGV, record.signal);
    nacre_record_done(&record);
    close_pair(p);
}

TEST(a_timeout_kills_and_keeps_the_output)
{
    struct pair *p = open_pair(0);
    int64_t begin = now_ms();
    nacre_record record = run(p, "echo BEFORE; exec sleep 300", 300);
    char *text = all_of(p, &record.id);

    CHECK_RANGE(300, now_ms() - begin, soon(3000));
    CHECK_EQ_INT(NACRE_TIMED_OUT, record.outcome);
    CHECK_EQ_INT(SIGTERM, record.signal);
    CHECK_TEXT(text, "BEFORE\n");
    free(text);
    nacre_record_done(&record);
    CHECK_EQ_INT(1, count_method(p, "terminal/release"));
    CHECK_EQ_INT(0, nacre_acp_host_count(p->host));
    close_pair(p);
}

/* By the verbs alone, as a caller without watches has it. */
TEST(the_verbs_keep_a_timeout_too)
{
    struct pair *p = open_pair(0);
    const nacre_backend *backend = nacre_backend_acp(p->agent);
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_kill_options kill_options = NACRE_KILL_OPTIONS_INIT;
    nacre_kill_result killed;
    nacre_op *op;

    command.text = "exec sleep 300";
    command.timeout_ms = 200;
    nacre_id id = start_by_verb(backend, &command);
    CHECK(
        AWAIT((backend->ops->pump(backend->self, &id, 1), count_method(p, "terminal/release") == 1),
              10000));
    look_by_verb(backend, &id);
    CHECK_TEXT(status_of(p->session, &id), "timed_out");
    nacre_record record = record_of(p->session, &id);
    CHECK_EQ_INT(NACRE_TREE_EMPTY, record.tree);
    nacre_record_done(&record);
    CHECK_OK(backend->ops->kill(backend->self, &id, &kill_options, &op, ERR));
    finish_op(op, &killed, sizeof killed);
    CHECK_EQ_INT(0, killed.was_alive);
    CHECK_TEXT(methods_of(p), "create wait_for_exit kill output release");
    close_pair(p);
}

TEST(kill_wait_and_release)
{
    struct pair *p = open_pair(0);
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_kill_result result;
    nacre_record record = NACRE_RECORD_INIT;
    nacre_id id;
    char *terminal;

    command.text = "exec sleep 300";
    CHECK_OK(nacre_start(p->session, &command, &id, NULL, ERR));
    CHECK_OK(nacre_acp_agent_terminal(p->agent, &id, &terminal, ERR));
    CHECK_EQ_INT(NACRE_ID_DIGITS, strlen(terminal));
    free(terminal);
    CHECK_CODE(NACRE_ETIMEOUT, nacre_wait(p->session, &id, 1, NACRE_WAIT_ALL, 50, NULL, ERR));
    CHECK_OK(nacre_kill(p->session, &id, NULL, &result, ERR));
    CHECK_EQ_INT(1, result.was_alive);
    CHECK_OK(nacre_wait(p->session, &id, 1, NACRE_WAIT_ALL, -1, NULL, ERR));
    CHECK_OK(nacre_release(p->session, &id, ERR));
    CHECK_OK(nacre_release(p->session, &id, ERR));
    CHECK_EQ_INT(1, count_method(p, "terminal/release"));
    CHECK_OK(nacre_get(p->session, &id, &record, ERR));
    CHECK_EQ_INT(NACRE_KILLED, record.outcome);
    CHECK_EQ_INT(NACRE_TREE_EMPTY, record.tree);
    nacre_record_done(&record);
    close_pair(p);
}

/* What it was first killed for is what it ended by. */
TEST(cancelled_then_killed)
{
    struct pair *p = open_pair(0);
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_kill_options cancel = NACRE_KILL_OPTIONS_INIT;
    nacre_record record = NACRE_RECORD_INIT;
    nacre_id id;

    command.text = "exec sleep 300";
    CHECK_OK(nacre_start(p->session, &command, &id, NULL, ERR));
    cancel.cancel = cancel.no_wait = 1;
    CHECK_OK(nacre_kill(p->session, &id, &cancel, NULL, ERR));
    CHECK_OK(nacre_kill(p->session, &id, NULL, NULL, ERR));
    CHECK_OK(nacre_get(p->session, &id, &record, ERR));
    CHECK_EQ_INT(NACRE_CANCELLED, record.outcome);
    CHECK_EQ_INT(SIGTERM, record.signal);
    nacre_record_done(&record);
    close_pair(p);
}

TEST(release_of_what_runs)
{
    const char *mark = marker();
    struct pair *p = open_pair(0);
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_record record = NACRE_RECORD_INIT;
    nacre_id id;

    command.text = format("exec sleep 300.%s", mark);
    CHECK_OK(nacre_start(p->session, &command, &id, NULL, ERR));
    CHECK_OK(nacre_release(p->session, &id, ERR));
    CHECK_EQ_INT(0, count_marked(mark));
    CHECK_OK(nacre_get(p->session, &id, &record, ERR));
    CHECK_EQ_INT(NACRE_KILLED, record.outcome);
    nacre_record_done(&record);
    close_pair(p);
}

TEST(close_releases_everything)
{
    const char *mark = marker();
    struct pair *p = open_pair(0);
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_id id;

    command.text = format("exec sleep 300.%s", mark);
    for (int i = 0; i < 3; i++)
        CHECK_OK(nacre_start(p->session, &command, &id, NULL, ERR));
    close_pair(p);
    CHECK_EQ_INT(0, count_marked(mark));
}

TEST(output_beyond_the_limit)
{
    struct pair *p = open_pair(1000);
    nacre_record record = run(p, "for i in $(seq 1000 1999); do echo $i; done", 0);
    nacre_snapshot snapshot;

    CHECK_OK(nacre_output(p->session, &record.id, NACRE_BOTH, 0, &snapshot, ERR));
    CHECK_EQ_INT(1, snapshot.truncated);
    CHECK_EQ_INT(1000, snapshot.size);
    CHECK(memcmp(snapshot.data, "1800\n", 5) == 0);
    free(snapshot.data);
    nacre_record_done(&record);
    close_pair(p);
}

/* The client cuts at a character, and what comes of it is text: whatever the limit. */
TEST(a_limit_within_a_character)
{
    static const char text[] = "x\U0001F40C\U0001F41A";
    enum { SIZE = sizeof text - 1 };
    for (size_t limit = 1; limit <= SIZE; limit++) {
        struct pair *p = open_pair(limit);
        nacre_record record = run(p, "printf 'x\\360\\237\\220\\214\\360\\237\\220\\232'", 0);
        size_t kept = limit == SIZE ? SIZE : limit / 4 * 4;
        nacre_snapshot snapshot;
        CHECK_OK(nacre_output(p->session, &record.id, NACRE_BOTH, 0, &snapshot, ERR));
        CHECK_EQ_INT(kept, snapshot.size);
        CHECK(memcmp(snapshot.data, text + SIZE - kept, kept) == 0);
        CHECK_EQ_INT(kept > 0 && kept < SIZE, snapshot.truncated);
        free(snapshot.data);
        nacre_record_done(&record);
        close_pair(p);
    }
}

static int gather(const nacre_piece *piece, const void *bytes, void *userdata)
{
    const char **text = userdata;
    *text = format("%s%.*s", *text, (int)piece->size, (const char *)bytes);
    return 0;
}

TEST(follow_while_it_prints)
{
    struct pair *p = open_pair(0);
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_id id;
    const char *text = "";

    command.text = "for i in 1 2 3; do echo $i; sleep 0.3; done";
    CHECK_OK(nacre_start(p->session, &command, &id, NULL, ERR));
    CHECK_OK(nacre_follow(p->session, &id, 0, gather, &text, ERR));
    CHECK_TEXT(text, "1\n2\n3\n");
    close_pair(p);
}

/* The user closes the terminal in the editor: its end is known, nothing more can be had, and our
 * own release finds nothing to release. */
TEST(the_client_releases_first)
{
    const char *mark = marker();
    struct pair *p = open_pair(0);
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_record record = NACRE_RECORD_INIT;
    nacre_id id;

    command.text = format("echo early; exec sleep 300.%s", mark);
    CHECK_OK(nacre_start(p->session, &command, &id, NULL, ERR));
    await_marked(mark, 1);
    CHECK(AWAIT(output_has(p->session, &id, NACRE_BOTH, "early"), 5000));
    user_asks(p, "terminal/release", &id);
    CHECK_OK(nacre_wait(p->session, &id, 1, NACRE_WAIT_ALL, 5000, NULL, ERR));
    CHECK_OK(nacre_get(p->session, &id, &record, ERR));
    CHECK_EQ_INT(NACRE_SIGNALED, record.outcome);
    CHECK_EQ_INT(NACRE_TREE_EMPTY, record.tree);
    nacre_record_done(&record);
    CHECK_OK(nacre_release(p->session, &id, ERR));
    CHECK_OK(nacre_release(p->session, &id, ERR));
    CHECK_EQ_INT(1, count_method(p, "terminal/release"));
    CHECK(output_has(p->session, &id, NACRE_BOTH, "early"));
    close_pair(p);
}

TEST(the_user_kills_it)
{
    struct pair *p = open_pair(0);
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_record record = NACRE_RECORD_INIT;
    nacre_id id;

    command.text = "echo said; exec sleep 300";
    CHECK_OK(nacre_start(p->session, &command, &id, NULL, ERR));
    CHECK(AWAIT(output_has(p->session, &id, NACRE_BOTH, "said"), 5000));
    user_asks(p, "terminal/kill", &id);
    CHECK_OK(nacre_wait(p->session, &id, 1, NACRE_WAIT_ALL, 5000, NULL, ERR));
    CHECK_OK(nacre_get(p->session, &id, &record, ERR));
    CHECK_EQ_INT(NACRE_SIGNALED, record.outcome);
    CHECK_EQ_INT(SIGTERM, record.signal);
    nacre_record_done(&record);
    CHECK_EQ_INT(1, count_method(p, "terminal/release"));
    close_pair(p);
}

/* Its output is fetched after its exit, all of it, before the release. */
TEST(output_after_the_exit)
{
    struct pair *p = open_pair(0);
    nacre_record record = run(p, "seq 1 200000", 0);
    nacre_snapshot snapshot;

    CHECK_OK(nacre_output(p->session, &record.id, NACRE_BOTH, 4 << 20, &snapshot, ERR));
    CHECK_EQ_INT(1288895, snapshot.size);
    CHECK_EQ_INT(0, snapshot.truncated);
    CHECK(memcmp(snapshot.data + snapshot.size - 7, "200000\n", 7) == 0);
    CHECK_EQ_INT(200000, record.lines[NACRE_STDOUT]);
    free(snapshot.data);
    nacre_record_done(&record);
    close_pair(p);
}

TEST(a_client_without_terminals_is_not_asked)
{
    static const char initialize[] =
        "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":1,"
        "\"clientCapabilities\":{\"fs\":{}}}}";
    nacre_options options = NACRE_OPTIONS_INIT;

    CHECK_EQ_INT(0, nacre_acp_client_has_terminals(initialize, strlen(initialize)));
    nacre_session *session = open_options(&options);
    struct run local = run_text(session, "exit 3");
    CHECK_EQ_INT(3, local.record.exit_code);
    CHECK(local.record.tier != NACRE_TIER_CLIENT);
    run_done(&local);
    close_session(session);
}

TEST(errors_of_the_client_are_ours)
{
    static const char *const argv[] = {"no-such-program", NULL};
    static const char *const removes[] = {"PATH", NULL};
    struct pair *p = open_pair(0);
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_id id = {{1}};

    command.argv = argv;
    CHECK_CODE(NACRE_ESTART, nacre_start(p->session, &command, &id, NULL, ERR));
    CHECK_STR(harness_error.msg, "no-such-program");
    command.input = NACRE_STDIN_PIPE;
    CHECK_CODE(NACRE_EUNSUPPORTED, nacre_start(p->session, &command, &id, NULL, ERR));
    command.input = NACRE_STDIN_NULL;
    command.env = removes;
    CHECK_CODE(NACRE_EUNSUPPORTED, nacre_start(p->session, &command, &id, NULL, ERR));
    CHECK_CODE(NACRE_ENOTFOUND, nacre_kill(p->session, &id, NULL, NULL, ERR));
    close_pair(p);
}

TEST(what_is_not_an_answer_of_ours)
{
    static const char *const others[] = {
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}",
        "{\"jsonrpc\":\"2.0\",\"id\":\"x-1\",\"result\":{}}",
        "{\"jsonrpc\":\"2.0\",\"id\":\"nacre-1\",\"method\":\"session/prompt\"}",
        "no json",
    };
    struct pair *p = open_pair(0);

    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        CHECK_EQ_INT(0, nacre_acp_agent_feed(p->agent, others[i], strlen(others[i]), ERR));
    close_pair(p);
}
