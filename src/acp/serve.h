/* The two programs of this layer: a host of terminals alone on a pair of descriptors, and one
 * between a client and its agent. */
#pragma once

#include <nacre/error.h>
#include <nacre/session.h>
#include <stdbool.h>

/* Answers requests from in on out, until in ends, out fails or stop_fd is readable. */
int acp_serve(nacre_session *session, int in, int out, int stop_fd, nacre_error *err);

struct acp_proxy_options {
    int client_in, client_out;
    int stop_fd;
    bool always;  /* also for a client that has terminals of its own */
    char **agent; /* the program and its arguments, NULL-terminated */
};

/*
 * Starts the agent and passes messages between it and the client, until either goes. What the
 * agent asks of terminals is answered here. Ends the agent in any case: its stdin is closed, it
 * gets SIGTERM 2 s later, and SIGKILL after 2 s more. *ret_status is its wait status.
 */
int acp_proxy(nacre_session *session, const struct acp_proxy_options *options, int *ret_status,
              nacre_error *err);
