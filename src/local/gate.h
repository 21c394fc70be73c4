/*
 * The gate of a session: nacre-gate, which lets fenced commands through to the hosts that the rules
 * name. It ends with the session's line, with its owner, or when it is let go. Nothing here waits.
 */
#pragma once

#include <errno.h>
#include <nacre/error.h>
#include <stdbool.h>
#include <sys/types.h>

struct gate {
    int sock; /* what it says; its end is our wish that it ends */
    pid_t pid;
    bool is_child; /* the host is PID 1 or a subreaper, and must reap it */
};

#define GATE_NONE      \
    {                  \
        .sock = -EBADF \
    }

/* What a gate is made of; all belongs to the caller. */
struct gate_order {
    int program; /* nacre-gate, from find_gate() */
    int listen;  /* a TCP socket that listens, where commands reach it */
    const char *rules;
    int line;        /* the end of the session's line that keepers have */
    int owner;       /* a pidfd of the owner, or -EBADF */
    int patience_ms; /* to say what is wanted, and to connect; 0 = the usual 30 s */
};

/* 0, or NACRE_EINVAL with a sentence about the first rule that is none. */
int gate_check_rules(const char *rules, nacre_error *err);

/* Executes it. Then gate->sock is readable when it has its word. */
int gate_begin(const struct gate_order *order, struct gate *ret_gate, nacre_error *err);

/* That word: 1 = it lets through, 0 = not yet. */
int gate_hear_ready(struct gate *gate, nacre_error *err);

/* Lets it go; it ends at once, with all that it carried. */
void gate_let_go(struct gate *gate);

/* Whether it is gone and needs no reaping any more; asked again later if it is not. */
bool gate_is_gone(struct gate *gate);
