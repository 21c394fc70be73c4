/* A kill that a call waits for without standing still, whatever the keeper of the shell does. */
#ifndef NACRE_TOOL_ENDING_H
#define NACRE_TOOL_ENDING_H

#include <nacre/session.h>
#include <nacre/tool.h>
#include <nacre/watch.h>
#include <stdbool.h>

#include "backend/kill.h"

struct ending {
    bool begun;
    bool was_alive;
    nacre_session *session;
    nacre_id id;
    struct killing killing; /* of a shell with a keeper */
    nacre_watch *watch;     /* of one without */
    int64_t deadline_ns;    /* the proof, or an admission, should be there by then */
};

/* TOOL_WAIT, TOOL_DONE if there was nothing to end, or a code. */
int ending_begin(struct ending *e, nacre_session *session, const nacre_id *id,
                 const nacre_kill_options *options, nacre_error *err);

/* TOOL_DONE once nothing is left, or who is left is known. */
int ending_step(struct ending *e, nacre_call *c, nacre_error *err);

/* Whether the shell is ended also if nobody steps it any more. */
bool ending_is_sure(const struct ending *e);

void ending_done(struct ending *e);

#endif
