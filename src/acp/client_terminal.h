/*
 * One terminal: a shell, whom it belongs to, what is kept of its output, what is being done to it,
 * and the requests that wait for something to happen to it.
 */
#pragma once

#include <nacre/session.h>
#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "acp/client_params.h"
#include "acp/client_tail.h"

enum acp_wait_for {
    ACP_FOR_START,
    ACP_FOR_EXIT,
    ACP_FOR_END, /* of everything */
};

struct acp_wait {
    struct acp_wait *next;
    json_t *id; /* of the request */
    enum acp_wait_for what;
};

struct acp_terminal {
    struct acp_terminal *next;
    nacre_session *session;
    char *owner; /* the ACP session */
    nacre_id id;
    struct acp_starting *starting; /* NULL: it has begun */
    nacre_op *op;                  /* the start or a kill; NULL: nothing is under way */
    int polled_fd;                 /* what was last polled for it */
    nacre_watch *watch;            /* NULL: it is over, or has not begun */
    bool settled;                  /* the command has exited */
    bool released;
    struct acp_wait *waits;
    uint64_t cursor; /* the log was read up to here */
    struct acp_tail tail;
};

/* Begins to start the command. params are what create was read from; create is consumed. */
int acp_terminal_new(nacre_session *session, struct acp_create *create, json_t *params,
                     size_t limit, struct acp_terminal **ret_terminal, nacre_error *err);
void acp_terminal_free(struct acp_terminal *t);

/* The start is done: it has an id now, and a watch without output. */
void acp_terminal_begin(struct acp_terminal *t);

/* Hears what happened: whether everything is over. A watch that fails says nothing more, which is
 * the same; how the shell is, is asked where it matters. */
bool acp_terminal_listen(struct acp_terminal *t);

/* Brings the tail up to date; the record is of the same moment. */
int acp_terminal_catch_up(struct acp_terminal *t, nacre_record *ret_record, nacre_error *err);

/* 0 or -ENOMEM. */
int acp_terminal_add_wait(struct acp_terminal *t, json_t *id, enum acp_wait_for what);

/* The first that waits for that, owned by the caller; NULL if nobody does. */
struct acp_wait *acp_terminal_take_wait(struct acp_terminal *t, enum acp_wait_for what);
/* The same by the id of its request, whatever it waits for. */
struct acp_wait *acp_terminal_take_wait_of(struct acp_terminal *t, const json_t *id);
void acp_wait_free(struct acp_wait *wait);
