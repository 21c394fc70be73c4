/*
 * Between an ACP client and its agent. Lines pass as they are, in order, both ways. Three kinds do
 * not: the client's `initialize`, in which the agent is told that there are terminals; the agent's
 * requests for terminals, which are answered here and never seen by the client; and the client's
 * answers to what we ask its person, which the agent never sees. Only lines that may be one of
 * these are read as JSON.
 */
#include <poll.h>
#include <string.h>

#include "acp/client.h"
#include "acp/greeting.h"
#include "acp/permission.h"
#include "acp/proxy_child.h"
#include "acp/proxy_lines.h"
#include "acp/serve.h"
#include "acp/serve_wire.h"
#include "base/clock.h"
#include "base/err.h"
#include "rpc/message.h"
#include "session/asking.h"
#include "sys/fd.h"

#define GRACE_MS 2000
#define DRAIN_MS 2000

struct proxy {
    nacre_session *session;
    nacre_acp_host *host;
    const char *acp_session; /* of the request that is taken just now */
    struct acp_child agent;
    bool always;
    bool greeted; /* the client's `initialize` has passed */
    bool hosting; /* the agent's terminals are ours */
    struct acp_lines from_client, from_agent;
    struct rpc_writer to_client, to_agent;
};

static void send_to_agent(const char *message, size_t size, void *userdata)
{
    struct proxy *p = userdata;
    wire_send(&p->to_agent, message, size);
}

/* The agent wants to run something that the rules leave open: its client's person is asked. */
static int ask_permission(nacre_session *session UNUSED, const nacre_question *question,
                          void *userdata)
{
    struct proxy *p = userdata;
    struct buf request cleanup_buf = BUF_UP_TO(ACP_LINE_MAX);
    if (!p->acp_session || permission_request(p->acp_session, question, &request) < 0)
        return NACRE_ASK_CANNOT;
    wire_send(&p->to_client, request.data, request.len);
    return NACRE_ASK_WAITS;
}

/* -- Lines ------------------------------------------------------------------------------------ */

/* Whether a line may hold a word in a JSON string: as it is, or behind escapes. */
static bool may_mention(const char *line, size_t size, const char *word)
{
    return memmem(line, size, word, strlen(word)) || memmem(line, size, "\\u", 2);
}

/* Puts "terminal": true into the capabilities. */
static int declare_terminals(json_t *params)
{
    json_t *capabilities = json_object_get(params, "clientCapabilities");
    if (!json_is_object(capabilities)) {
        capabilities = json_object();
        if (json_object_set_new(params, "clientCapabilities", capabilities) < 0)
            return -ENOMEM;
    }
    return json_object_set_new(capabilities, "terminal", json_true()) < 0 ? -ENOMEM : 0;
}

/* Sends an `initialize` on with the terminals in it; false if it is to pass as it is. */
static bool pass_greeting(struct proxy *p, json_t *value, const struct rpc_message *m)
{
    bool has = acp_greeting_has_terminals(m);
    p->greeted = true;
    p->hosting = acp_greeting_is_ours(m) && (p->always || !has);
    if (!p->hosting || has)
        return false;
    struct buf line cleanup_buf = BUF_UP_TO(ACP_LINE_MAX);
    if (declare_terminals(m->params) < 0 || rpc_append_json(&line, value) < 0) {
        p->hosting = false;
        return false;
    }
    wire_send(&p->to_agent, line.data, line.len);
    return true;
}

static bool is_answer_to_us(const struct proxy *p, const char *line, size_t size)
{
    struct rpc_fault fault;
    struct rpc_message m;
    if (!p->hosting || !may_mention(line, size, "nacre-ask-"))
        return false;
    json_auto_t *value = rpc_decode(line, size, &fault);
    return value && rpc_read(value, &m, &fault) == 0 && permission_hear(p->session, &m);
}

static void pass_from_client(struct proxy *p, const char *line, size_t size)
{
    struct rpc_fault fault;
    struct rpc_message m;
    bool passed = is_answer_to_us(p, line, size);
    if (!p->greeted && may_mention(line, size, "initialize")) {
        json_auto_t *value = rpc_decode(line, size, &fault);
        if (value && rpc_read(value, &m, &fault) == 0 && m.kind == RPC_REQUEST &&
            strcmp(m.method, "initialize") == 0)
            passed = pass_greeting(p, value, &m);
    }
    if (!passed)
        wire_send(&p->to_agent, line, size);
}

static int pass_from_agent(struct proxy *p, const char *line, size_t size, nacre_error *err)
{
    struct rpc_fault fault;
    struct rpc_message m;
    int taken = 0;
    if (p->hosting &&
        (may_mention(line, size, "terminal") || may_mention(line, size, "cancel_request"))) {
        json_auto_t *value = rpc_decode(line, size, &fault);
        if (value && rpc_read(value, &m, &fault) == 0) {
            p->acp_session = rpc_text(json_object_get(m.params, "sessionId"));
            taken = acp_host_take(p->host, &m, err);
            p->acp_session = NULL;
        }
    }
    if (taken == 0)
        wire_send(&p->to_client, line, size);
    return MIN(taken, 0);
}

static int take_from_client(struct proxy *p, nacre_error *err)
{
    const char *line;
    size_t size;
    int n = acp_lines_fill(&p->from_client);
    while (acp_lines_next(&p->from_client, &line, &size))
        pass_from_client(p, line, size);
    return n == -E2BIG ? err_set(err, NACRE_ELIMIT, "a message of the client is over 64 MiB")
                       : MAX(n, 0);
}

/* 1, 0 at the end, or an error. */
static int take_from_agent(struct proxy *p, nacre_error *err)
{
    const char *line;
    size_t size;
    int n = acp_lines_fill(&p->from_agent), r = 0;
    while (r == 0 && acp_lines_next(&p->from_agent, &line, &size))
        r = pass_from_agent(p, line, size, err);
    if (n == -E2BIG)
        return err_set(err, NACRE_ELIMIT, "a message of the agent is over 64 MiB");
    return r < 0 ? r : n > 0;
}

/* -- The loop --------------------------------------------------------------------------------- */

enum { AT_CLIENT_IN, AT_CLIENT_OUT, AT_AGENT_IN, AT_AGENT_OUT, AT_AGENT, AT_HOST, AT_STOP, COUNT };

static void set_polls(struct proxy *p, int stop_fd, struct pollfd polls[COUNT])
{
    int client = wire_has_room(&p->to_agent) ? p->from_client.fd : -1;
    /* An agent that writes and does not read has to be listened to, or it never reads. */
    bool answers_fit = p->to_agent.queued < WIRE_QUEUE_MAX / 4;
    int agent = wire_has_room(&p->to_client) && answers_fit ? p->agent.out : -1;
    int to_client = p->to_client.queued > 0 ? rpc_writer_fd(&p->to_client) : -1;
    int to_agent = p->to_agent.queued > 0 ? rpc_writer_fd(&p->to_agent) : -1;
    polls[AT_CLIENT_IN] = (struct pollfd){.fd = client, .events = POLLIN};
    polls[AT_CLIENT_OUT] = (struct pollfd){.fd = to_client, .events = POLLOUT};
    polls[AT_AGENT_IN] = (struct pollfd){.fd = to_agent, .events = POLLOUT};
    polls[AT_AGENT_OUT] = (struct pollfd){.fd = agent, .events = POLLIN};
    polls[AT_AGENT] = (struct pollfd){.fd = p->agent.pidfd, .events = POLLIN};
    polls[AT_HOST] = (struct pollfd){.fd = nacre_acp_host_fd(p->host), .events = POLLIN};
    polls[AT_STOP] = (struct pollfd){.fd = stop_fd, .events = POLLIN};
}

/* 1 = go on, 0 = one side has gone, or an error. */
static int proxy_step(struct proxy *p, int stop_fd, nacre_error *err)
{
    struct pollfd polls[COUNT];
    set_polls(p, stop_fd, polls);
    if (RETRY(poll(polls, COUNT, -1)) < 0)
        return err_sys(err, NACRE_EIO, errno, "poll", "cannot wait for messages");
    if (polls[AT_CLIENT_OUT].revents)
        rpc_writer_flush(&p->to_client);
    if (polls[AT_AGENT_IN].revents)
        rpc_writer_flush(&p->to_agent);
    int r = polls[AT_HOST].revents ? nacre_acp_host_dispatch(p->host, err) : 0;
    r = r == 0 ? 1 : r;
    if (r > 0 && polls[AT_AGENT_OUT].revents)
        r = take_from_agent(p, err);
    if (r > 0 && polls[AT_CLIENT_IN].revents)
        r = take_from_client(p, err);
    bool over = polls[AT_AGENT].revents || polls[AT_STOP].revents || p->to_client.error < 0;
    return r > 0 && over ? 0 : MIN(r, 1);
}

/* What came after the last newline is no message, but it is not ours to keep. */
static void pass_rest(struct acp_lines *from, struct rpc_writer *to)
{
    const char *rest;
    size_t size = acp_lines_rest(from, &rest);
    if (size > 0 && to->queued == 0 && to->error == 0)
        fd_write_all(to->fd, rest, size);
}

/* The agent may have said more than was read, and may say more when its stdin ends. */
static void listen_to_the_end(struct proxy *p, nacre_error *err)
{
    int64_t deadline = clock_deadline(GRACE_MS);
    wire_drain(&p->to_agent, DRAIN_MS);
    pass_rest(&p->from_client, &p->to_agent);
    rpc_writer_done(&p->to_agent);
    close_fd(&p->agent.in);
    p->to_agent.error = -EPIPE;
    for (;;) {
        struct pollfd polls[] = {{.fd = p->agent.out, .events = POLLIN},
                                 {.fd = p->agent.pidfd, .events = POLLIN}};
        if (poll(polls, 2, clock_left_ms(deadline)) <= 0 || p->to_client.error < 0)
            break;
        if (polls[0].revents ? take_from_agent(p, err) <= 0 : polls[1].revents)
            break;
        wire_drain(&p->to_client, clock_left_ms(deadline));
    }
    wire_drain(&p->to_client, DRAIN_MS);
    pass_rest(&p->from_agent, &p->to_client);
}

static int pass_messages(struct proxy *p, int stop_fd, nacre_error *err)
{
    int r;
    do
        r = proxy_step(p, stop_fd, err);
    while (r > 0);
    listen_to_the_end(p, NULL);
    return r;
}

int acp_proxy(nacre_session *session, const struct acp_proxy_options *options, int *ret_status,
              nacre_error *err)
{
    struct proxy p = {.session = session, .always = options->always};
    nacre_acp_host_options host = NACRE_ACP_HOST_OPTIONS_INIT;
    host.send = send_to_agent;
    host.userdata = &p;
    int r = nacre_acp_host_open(session, &host, &p.host, err);
    if (r < 0)
        return r;
    asking_by(session, ask_permission, &p);
    r = acp_child_start(options->agent, &p.agent);
    if (r < 0) {
        nacre_acp_host_close(p.host);
        return err_sys(err, NACRE_ESTART, -r, "exec", "cannot start the agent \"%.100s\"",
                       options->agent[0]);
    }
    acp_lines_init(&p.from_client, options->client_in);
    acp_lines_init(&p.from_agent, p.agent.out);
    rpc_writer_init(&p.to_client, options->client_out, WIRE_QUEUE_MAX);
    rpc_writer_init(&p.to_agent, p.agent.in, WIRE_QUEUE_MAX);
    r = pass_messages(&p, options->stop_fd, err);
    nacre_acp_host_close(p.host);
    *ret_status = acp_child_end(&p.agent, GRACE_MS);
    acp_lines_done(&p.from_client);
    acp_lines_done(&p.from_agent);
    rpc_writer_done(&p.to_client);
    return r;
}
