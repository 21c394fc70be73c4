/*
 * One terminal: a shell, whom it belongs to, what is kept of its output, and the requests that
 * wait for something to happen to it.
 */
#ifndef NACRE_ACP_TERMINAL_H
#define NACRE_ACP_TERMINAL_H

#include <nacre/session.h>
#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "acp/params.h"
#include "acp/tail.h"

struct acp_wait {
    struct acp_wait *next;
    json_t *id;    /* of the request */
    bool for_exit; /* else for the end of everything */
};

struct acp_terminal {
    struct acp_terminal *next;
    nacre_session *session;
    char *owner; /* the ACP session */
    nacre_id id;
    nacre_watch *watch; /* NULL: it is over */
    bool settled;       /* the command has exited */
    bool released;
    bool killed;
    struct acp_wait *waits;
    uint64_t cursor; /* the log was read up to here */
    struct acp_tail tail;
};

/* Starts the command. The watch is there afterwards, without output. */
int acp_terminal_new(nacre_session *session, const struct acp_create *create, size_t limit,
                     struct acp_terminal **ret_terminal, nacre_error *err);
void acp_terminal_free(struct acp_terminal *t);

/* Hears what happened: whether everything is over. A watch that fails says nothing more, which is
 * the same; how the shell is, is asked where it matters. */
bool acp_terminal_listen(struct acp_terminal *t);

/* Brings the tail up to date; the record is of the same moment. */
int acp_terminal_catch_up(struct acp_terminal *t, nacre_record *ret_record, nacre_error *err);

/* Begins to kill everything. */
int acp_terminal_kill(struct acp_terminal *t, nacre_error *err);

/* 0 or -ENOMEM. */
int acp_terminal_add_wait(struct acp_terminal *t, json_t *id, bool for_exit);

/* The first that waits for that, owned by the caller; NULL if nobody does. */
struct acp_wait *acp_terminal_take_wait(struct acp_terminal *t, bool for_exit);
/* The same by the id of its request, whatever it waits for. */
struct acp_wait *acp_terminal_take_wait_of(struct acp_terminal *t, const json_t *id);
void acp_wait_free(struct acp_wait *wait);

#endif
