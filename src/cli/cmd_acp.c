/* nacre acp-terminals and nacre acp-proxy: terminals for agents that speak ACP. */
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <nacre/nacre.h>

#include "acp/serve.h"
#include "cli/verbs.h"
#include "console/out.h"
#include "console/shells.h"
#include "console/signals.h"

struct proxy_options {
    bool always;
};

/* A session of an agent's, and the signals that end it. A client that has gone is an error of
 * writing, not a signal. */
static int open_agent_session(nacre_session **ret_session, int *ret_stop_fd)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    nacre_error error = NACRE_ERROR_INIT;
    *ret_stop_fd = signals_catch();
    if (*ret_stop_fd < 0 || sigaction(SIGPIPE, &ignore, NULL) < 0)
        return failure("cannot catch signals");
    return nacre_open(NULL, ret_session, &error) < 0 ? library_failure(&error) : STATUS_OK;
}

/* Brings the proof that nothing is left. */
static int close_agent_session(nacre_session *session, int status)
{
    nacre_error error = NACRE_ERROR_INIT;
    return nacre_close(session, &error) == 0 ? status : library_failure(&error);
}

static int serve_terminals(const void *options UNUSED, char **words UNUSED, size_t count UNUSED)
{
    nacre_session *session;
    nacre_error error = NACRE_ERROR_INIT;
    int stop_fd;
    int status = open_agent_session(&session, &stop_fd);
    if (status != STATUS_OK)
        return status;
    if (acp_serve(session, STDIN_FILENO, STDOUT_FILENO, stop_fd, &error) < 0)
        status = library_failure(&error);
    return close_agent_session(session, status);
}

static int proxy(const void *options, char **words, size_t count)
{
    const struct proxy_options *o = options;
    nacre_session *session;
    nacre_error error = NACRE_ERROR_INIT;
    int agent_status = 0, stop_fd;
    int status = open_agent_session(&session, &stop_fd);
    if (status != STATUS_OK)
        return status;
    cleanup_free char **agent = calloc(count + 1, sizeof *agent);
    if (!agent)
        return close_agent_session(session, failure("out of memory"));
    memcpy(agent, words, count * sizeof *agent);
    struct acp_proxy_options proxy_options = {.client_in = STDIN_FILENO,
                                              .client_out = STDOUT_FILENO,
                                              .stop_fd = stop_fd,
                                              .always = o->always,
                                              .agent = agent};
    if (acp_proxy(session, &proxy_options, &agent_status, &error) < 0)
        status = library_failure(&error);
    else if (WIFSIGNALED(agent_status))
        status = STATUS_SIGNAL + WTERMSIG(agent_status);
    else
        status = WEXITSTATUS(agent_status);
    return close_agent_session(session, status);
}

const struct verb verb_acp_terminals = {
    .name = "acp-terminals",
    .words = "",
    .summary = "serve ACP's terminal/... requests on stdin and stdout",
    .details =
        "For editors and other ACP clients: requests for terminals, one JSON-RPC message a line,\n"
        "are answered with shells of nacre. A terminal's id is the id of its shell, so that\n"
        "\"nacre output\" and \"nacre kill\" know it. Ends, with every terminal, when stdin ends\n"
        "or on SIGTERM, SIGINT or SIGHUP.\n",
    .run = serve_terminals,
};

const struct verb verb_acp_proxy = {
    .name = "acp-proxy",
    .words = "AGENT [ARGUMENT]...",
    .summary = "give an ACP agent terminals, between it and its client",
    .details =
        "Configure it in the client in the place of the agent. It starts the agent, tells it that\n"
        "there are terminals, answers its terminal/... requests with shells of nacre, and passes\n"
        "everything else on as it is. A client that has terminals of its own serves them itself,\n"
        "unless --always is given. Ends when either side goes; the exit status is the agent's.\n"
        "\n"
        "example:\n"
        "  nacre acp-proxy -- kimi acp\n",
    .options = {{"always", NULL, "also for a client that has terminals of its own", OPTION_FLAG,
                 false, offsetof(struct proxy_options, always)}},
    .options_size = sizeof(struct proxy_options),
    .min_words = 1,
    .max_words = SIZE_MAX,
    .is_command = true,
    .offered = OFFERED_PROGRAMS,
    .run = proxy,
};
