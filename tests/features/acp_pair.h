/*
 * A client in the same process, for tests of the acp backend: our own host, pumped by whoever waits
 * for its answers. Every message that passes is counted, in both directions.
 */
#ifndef TESTS_ACP_PAIR_H
#define TESTS_ACP_PAIR_H

#include "harness/harness.h"

#include <poll.h>
#include <stdlib.h>

#include <jansson.h>

#define PAIR __attribute__((unused)) static

struct pair {
    nacre_session *below; /* where the client runs commands */
    nacre_acp_host *host;
    nacre_acp_agent *agent;
    nacre_session *session; /* of the agent */
    json_t *requests;       /* on their way to the client */
    json_t *answers;        /* and back */
    json_t *methods;        /* of all requests, in their order */
};

static int pair_send_request(const char *message, size_t size, void *userdata)
{
    struct pair *p = userdata;
    json_t *value = json_loadb(message, size, 0, NULL);
    CHECK(value);
    json_array_append(p->methods, json_object_get(value, "method"));
    json_decref(value);
    json_array_append_new(p->requests, json_stringn(message, size));
    return 0;
}

static void pair_send_answer(const char *message, size_t size, void *userdata)
{
    struct pair *p = userdata;
    json_array_append_new(p->answers, json_stringn(message, size));
}

static void pair_feed_host(struct pair *p)
{
    while (json_array_size(p->requests) > 0) {
        json_t *message = json_incref(json_array_get(p->requests, 0));
        json_array_remove(p->requests, 0);
        CHECK_EQ_INT(1, nacre_acp_host_feed(p->host, json_string_value(message),
                                            json_string_length(message), ERR));
        json_decref(message);
    }
}

static void pair_feed_agent(struct pair *p)
{
    while (json_array_size(p->answers) > 0) {
        json_t *message = json_incref(json_array_get(p->answers, 0));
        json_array_remove(p->answers, 0);
        const char *text = json_string_value(message);
        int ours = nacre_acp_agent_feed(p->agent, text, json_string_length(message), ERR);
        CHECK(ours == 1 || strstr(text, "\"id\":\"user\""));
        json_decref(message);
    }
}

/* Until neither side has anything to say: what an answer leads to is asked for at once. */
static int pair_pump(int timeout_ms, void *userdata)
{
    struct pair *p = userdata;
    struct pollfd poller = {.fd = nacre_acp_host_fd(p->host), .events = POLLIN};
    do {
        pair_feed_host(p);
        if (poll(&poller, 1, json_array_size(p->answers) > 0 ? 0 : timeout_ms) > 0)
            CHECK_OK(nacre_acp_host_dispatch(p->host, ERR));
        pair_feed_agent(p);
    } while (json_array_size(p->requests) > 0);
    return 0;
}

/* The commands of the client have a home of their own: the agent's sees its own shells only. */
PAIR struct pair *open_pair_with(nacre_acp_agent_options agent)
{
    struct pair *p = calloc(1, sizeof *p);
    nacre_acp_host_options host = NACRE_ACP_HOST_OPTIONS_INIT;
    nacre_options below = NACRE_OPTIONS_INIT, options = NACRE_OPTIONS_INIT;

    p->requests = json_array();
    p->answers = json_array();
    p->methods = json_array();
    below.home = format("%s/client", test_base());
    CHECK_OK(nacre_open(&below, &p->below, ERR));
    host.send = pair_send_answer;
    host.userdata = agent.userdata = p;
    CHECK_OK(nacre_acp_host_open(p->below, &host, &p->host, ERR));
    agent.session_id = "s";
    agent.send = pair_send_request;
    agent.receive = pair_pump;
    agent.receive_fd = nacre_acp_host_fd(p->host);
    CHECK_OK(nacre_acp_agent_open(&agent, &p->agent, ERR));
    options.backend = nacre_backend_acp(p->agent);
    CHECK_OK(nacre_open(&options, &p->session, ERR));
    return p;
}

PAIR struct pair *open_pair(size_t limit)
{
    nacre_acp_agent_options agent = NACRE_ACP_AGENT_OPTIONS_INIT;
    agent.output_limit = limit;
    return open_pair_with(agent);
}

PAIR void close_pair(struct pair *p)
{
    CHECK_OK(nacre_close(p->session, ERR));
    CHECK_EQ_INT(0, nacre_acp_host_count(p->host));
    nacre_acp_agent_close(p->agent);
    nacre_acp_host_close(p->host);
    close_session(p->below);
    json_decref(p->requests);
    json_decref(p->answers);
    json_decref(p->methods);
    free(p);
}

/* The client's user does something to a terminal, which the agent does not ask for. */
PAIR void user_asks(struct pair *p, const char *method, const nacre_id *id)
{
    char *terminal;
    CHECK_OK(nacre_acp_agent_terminal(p->agent, id, &terminal, ERR));
    const char *text = format("{\"jsonrpc\":\"2.0\",\"id\":\"user\",\"method\":\"%s\",\"params\":{"
                              "\"sessionId\":\"s\",\"terminalId\":\"%s\"}}",
                              method, terminal);
    json_array_append_new(p->requests, json_string(text));
    free(terminal);
}

/* How often a method was asked for. */
PAIR int count_method(const struct pair *p, const char *name)
{
    int count = 0;
    for (size_t i = 0; i < json_array_size(p->methods); i++)
        count += strcmp(json_string_value(json_array_get(p->methods, i)), name) == 0;
    return count;
}

/* The methods in their order without "terminal/", each but the output's polls once. */
PAIR const char *methods_of(const struct pair *p)
{
    const char *text = "";
    for (size_t i = 0; i < json_array_size(p->methods); i++) {
        const char *name = strchr(json_string_value(json_array_get(p->methods, i)), '/') + 1;
        const char *last = strrchr(text, ' ');
        if (strcmp(name, "output") != 0 || strcmp(last ? last + 1 : "", "output") != 0)
            text = format("%s%s%s", text, *text ? " " : "", name);
    }
    return text;
}

#endif
