/* Making a run directory: by a keeper, or by a process that writes down what runs elsewhere. */
#ifndef NACRE_RUN_MAKE_H
#define NACRE_RUN_MAKE_H

#include "run/state.h"

struct run_files {
    int dir;
    int state; /* locked by this descriptor: whoever finds it free knows that the writer is gone */
    int spec;  /* empty */
    int log;
    int spans;
};

#define RUN_FILES_NONE                                                                 \
    (struct run_files)                                                                 \
    {                                                                                  \
        .dir = -EBADF, .state = -EBADF, .spec = -EBADF, .log = -EBADF, .spans = -EBADF \
    }

/* The directory of state->id, with that state in it. The files must be RUN_FILES_NONE; after an
 * error those that were made are still open, and on disk. 0 or -errno. */
int run_make(int runs_fd, struct run_state *state, struct run_files *ret_files);

void run_files_close(struct run_files *files);

#endif
