/*
 * The acp backend with a client that is another process, whose answers a thread of the host's reads
 * while others wait for them.
 */
#include "harness/harness.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

struct peer {
    pid_t pid;
    int to, from;
    nacre_acp_agent *agent;
};

static int send_line(const char *message, size_t size, void *userdata)
{
    const struct peer *peer = userdata;
    const char *line = format("%.*s\n", (int)size, message);
    return write(peer->to, line, size + 1) == (ssize_t)size + 1 ? 0 : -1;
}

static void *read_lines(void *arg)
{
    const struct peer *peer = arg;
    FILE *file = fdopen(peer->from, "r");
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    while ((n = getline(&line, &cap, file)) > 0)
        nacre_acp_agent_feed(peer->agent, line, (size_t)n, NULL);
    nacre_acp_agent_gone(peer->agent);
    free(line);
    fclose(file);
    return NULL;
}

static void start_peer(struct peer *peer, const char *const *argv)
{
    int in[2], out[2];
    CHECK_OK(pipe2(in, O_CLOEXEC));
    CHECK_OK(pipe2(out, O_CLOEXEC));
    peer->pid = fork();
    if (peer->pid == 0) {
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        execvp(argv[0], (char *const *)argv);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    peer->to = in[1];
    peer->from = out[0];
}

static nacre_session *open_with(struct peer *peer, int64_t answer_ms)
{
    nacre_acp_agent_options agent = NACRE_ACP_AGENT_OPTIONS_INIT;
    nacre_options options = NACRE_OPTIONS_INIT;
    nacre_session *session;
    agent.session_id = "s";
    agent.send = send_line;
    agent.userdata = peer;
    agent.answer_ms = answer_ms;
    CHECK_OK(nacre_acp_agent_open(&agent, &peer->agent, ERR));
    options.backend = nacre_backend_acp(peer->agent);
    CHECK_OK(nacre_open(&options, &session, ERR));
    return session;
}

static void run_some(int index, void *arg)
{
    nacre_session *session = arg;
    nacre_command command = NACRE_COMMAND_INIT;
    char text[64];
    for (int i = 0; i < 5; i++) {
        nacre_record record = NACRE_RECORD_INIT;
        nacre_snapshot snapshot;
        snprintf(text, sizeof text, "echo %d-%d; exit %d", index, i, i);
        command.text = text;
        CHECK_OK(nacre_run(session, &command, -1, &record, ERR));
        CHECK_EQ_INT(i, record.exit_code);
        CHECK_OK(nacre_output(session, &record.id, NACRE_BOTH, 0, &snapshot, ERR));
        CHECK_EQ_INT(4, snapshot.size);
        CHECK_EQ_INT('0' + index, snapshot.data[0]);
        CHECK_EQ_INT('0' + i, snapshot.data[2]);
        free(snapshot.data);
        nacre_record_done(&record);
    }
}

TEST_LIMIT(threads_share_one_connection, 60)
{
    const char *const argv[] = {program("../../nacre"), "acp-terminals", NULL};
    struct peer peer;
    pthread_t reader;

    start_peer(&peer, argv);
    nacre_session *session = open_with(&peer, 0);
    CHECK_OK(pthread_create(&reader, NULL, read_lines, &peer));
    run_threads(4, run_some, session);
    CHECK_OK(nacre_close(session, ERR));
    close(peer.to);
    pthread_join(reader, NULL);
    nacre_acp_agent_close(peer.agent);
    host_join(peer.pid);
}

TEST(the_client_dies)
{
    const char *const argv[] = {program("../../nacre"), "acp-terminals", NULL};
    const char *mark = marker();
    struct peer peer;
    pthread_t reader;
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_record record = NACRE_RECORD_INIT;
    nacre_id id;

    signal(SIGPIPE, SIG_IGN);
    start_peer(&peer, argv);
    nacre_session *session = open_with(&peer, 0);
    CHECK_OK(pthread_create(&reader, NULL, read_lines, &peer));
    command.text = format("exec sleep 300.%s", mark);
    CHECK_OK(nacre_start(session, &command, &id, NULL, ERR));
    await_marked(mark, 1);
    host_kill(peer.pid);
    CHECK_OK(nacre_wait(session, &id, 1, NACRE_WAIT_ALL, 5000, NULL, ERR));
    CHECK_OK(nacre_get(session, &id, &record, ERR));
    CHECK_EQ_INT(NACRE_LOST, record.outcome);
    CHECK_CODE(NACRE_EBACKEND, nacre_start(session, &command, &id, NULL, ERR));
    CHECK_STR(harness_error.msg, "connection");
    nacre_record_done(&record);
    CHECK_OK(nacre_close(session, ERR));
    pthread_join(reader, NULL);
    nacre_acp_agent_close(peer.agent);
    close(peer.to);
    CHECK(AWAIT(count_marked(mark) == 0, 5000));
}

/* It reads the request, says the half of an answer, and is gone: nobody waits for the other half.
 */
TEST(the_client_dies_in_the_middle_of_an_answer)
{
    const char *const argv[] = {
        "sh", "-c", "read request; printf '{\"jsonrpc\":\"2.0\",\"id\":\"nacre-1\",\"res'", NULL};
    struct peer peer;
    pthread_t reader;
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_id id;

    signal(SIGPIPE, SIG_IGN);
    start_peer(&peer, argv);
    nacre_session *session = open_with(&peer, 0);
    CHECK_OK(pthread_create(&reader, NULL, read_lines, &peer));
    command.text = "true";
    int64_t begin = now_ms();
    CHECK_CODE(NACRE_EBACKEND, nacre_start(session, &command, &id, NULL, ERR));
    CHECK_RANGE(0, now_ms() - begin, soon(5000));
    CHECK_STR(harness_error.msg, "connection to the client has ended");
    CHECK_OK(nacre_close(session, ERR));
    pthread_join(reader, NULL);
    nacre_acp_agent_close(peer.agent);
    close(peer.to);
    host_join(peer.pid);
}

struct waiting {
    nacre_session *session;
    nacre_id id;
};

/* One thread waits for the end that the other one brings about. */
static void wait_or_release(int index, void *arg)
{
    struct waiting *w = arg;
    if (index == 0)
        CHECK_OK(nacre_wait(w->session, &w->id, 1, NACRE_WAIT_ALL, 10000, NULL, ERR));
    else
        CHECK_OK(nacre_release(w->session, &w->id, ERR));
}

TEST(release_while_another_waits)
{
    const char *const argv[] = {program("../../nacre"), "acp-terminals", NULL};
    const char *mark = marker();
    struct peer peer;
    pthread_t reader;
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_record record = NACRE_RECORD_INIT;

    start_peer(&peer, argv);
    struct waiting w = {.session = open_with(&peer, 0)};
    CHECK_OK(pthread_create(&reader, NULL, read_lines, &peer));
    command.text = format("exec sleep 300.%s", mark);
    CHECK_OK(nacre_start(w.session, &command, &w.id, NULL, ERR));
    await_marked(mark, 1);
    run_threads(2, wait_or_release, &w);
    CHECK_EQ_INT(0, count_marked(mark));
    CHECK_OK(nacre_get(w.session, &w.id, &record, ERR));
    CHECK_EQ_INT(NACRE_KILLED, record.outcome);
    nacre_record_done(&record);
    CHECK_OK(nacre_close(w.session, ERR));
    close(peer.to);
    pthread_join(reader, NULL);
    nacre_acp_agent_close(peer.agent);
    host_join(peer.pid);
}

TEST(a_client_that_does_not_answer)
{
    const char *const argv[] = {"sh", "-c", "cat > /dev/null", NULL};
    struct peer peer;
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_id id;

    start_peer(&peer, argv);
    nacre_session *session = open_with(&peer, 200);
    command.text = "true";
    CHECK_CODE(NACRE_EBACKEND, nacre_start(session, &command, &id, NULL, ERR));
    CHECK_STR(harness_error.msg, "does not answer terminal/create");
    CHECK_OK(nacre_close(session, ERR));
    nacre_acp_agent_close(peer.agent);
    close(peer.to);
    close(peer.from);
    host_join(peer.pid);
}
