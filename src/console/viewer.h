/*
 * A person's terminal beside a shell: what is on the screen of the shell is drawn there as it
 * comes, and what is typed goes to its command, if that is wanted. Of a shell with pipes its output
 * is shown, and lines are typed. Nobody waits for a viewer: it reads the log, and if it is slow, it
 * leaves pictures out.
 */
#pragma once

#include <nacre/nacre.h>
#include <stdbool.h>

#include "console/detach_key.h"

struct viewer_options {
    bool input;  /* what is typed goes to the command */
    bool resize; /* the shell's terminal takes the size of this one meanwhile */
    struct detach_key leave;
};

struct viewer_end {
    bool detached;         /* by the key; else the shell has an outcome, or a signal came */
    int signal;            /* that means "stop"; or 0 */
    uint64_t missed, next; /* bytes that were not in the log any more, and where it was read to */
};

/* Until the person leaves, or nothing more is to be seen. A status, with a sentence said unless it
 * is STATUS_OK; the terminal is as it was. */
int viewer_run(nacre_session *session, const nacre_id *id, const struct viewer_options *options,
               struct viewer_end *ret_end);

/* The person's terminal stands in for that of a shell that was just started for it: what the
 * program writes passes (screen/passing.h), every key goes to it, and the sizes are one. The watch
 * is from the first byte on, and stays the caller's. Until the shell has an outcome, or a signal
 * came. */
int viewer_stand_in(nacre_session *session, const nacre_id *id, nacre_watch *watch,
                    struct viewer_end *ret_end);
