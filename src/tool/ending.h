/* A kill that a call waits for without standing still. */
#ifndef NACRE_TOOL_ENDING_H
#define NACRE_TOOL_ENDING_H

#include <nacre/session.h>
#include <nacre/tool.h>
#include <nacre/watch.h>
#include <stdbool.h>

struct ending {
    bool begun;
    bool was_alive;
    nacre_id id;
    nacre_watch *watch;
    int64_t deadline_ns; /* the proof, or an admission, should be there by then */
};

/* TOOL_WAIT, TOOL_DONE if there was nothing to end, or a code. */
int ending_begin(struct ending *e, nacre_session *session, const nacre_id *id,
                 const nacre_kill_options *options, nacre_error *err);

/* TOOL_DONE once nothing is left, or who is left is known. */
int ending_step(struct ending *e, nacre_call *c, nacre_error *err);

void ending_done(struct ending *e);

#endif
