/* An agent as a child process: two pipes, and an end that is certain. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct acp_child {
    pid_t pid;
    int pidfd; /* readable once it has exited */
    int in;    /* its stdin, to be written */
    int out;   /* its stdout, to be read */
};

/* Starts the program, found in PATH; stderr is ours. Signals are as in a new login. 0 or -errno. */
int acp_child_start(char **argv, struct acp_child *ret);

/* Ends it: closes its stdin, after grace_ms SIGTERM, after as much again SIGKILL. Returns its wait
 * status, and closes everything. */
int acp_child_end(struct acp_child *c, int64_t grace_ms);
