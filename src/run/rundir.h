/* Run directories as their readers see them. */
#ifndef NACRE_RUN_RUNDIR_H
#define NACRE_RUN_RUNDIR_H

#include <nacre/error.h>
#include <nacre/id.h>
#include <stdbool.h>

#include "run/spec.h"
#include "run/state.h"

struct run {
    nacre_id id;
    int dir;
    int state_fd; /* for reading */
};

#define RUN_NONE                          \
    (struct run)                          \
    {                                     \
        .dir = -EBADF, .state_fd = -EBADF \
    }

/* NACRE_ENOTFOUND if there is none, NACRE_EIO if it is damaged. */
int run_open(int runs_fd, const nacre_id *id, struct run *ret_run, nacre_error *err);
void run_close(struct run *run);

#define cleanup_run __attribute__((cleanup(run_close)))

/* The state; NACRE_EIO with a sentence if it cannot be read. */
int run_read_state(const struct run *run, struct run_state *ret_state, nacre_error *err);

/* The same for a state that was read already, with the result r. */
int run_check_state(const struct run *run, int r, const struct run_state *state, nacre_error *err);

/* The whole spec in memory the caller frees, checked. */
int run_load_spec(const struct run *run, struct spec *ret_spec, nacre_error *err);

/*
 * A background shell owes its session a completion from the start on, until somebody says, with a
 * file in its directory, that it was told.
 */
int run_set_told(const struct run *run);
bool run_owes(const struct run *run, const struct run_state *state);

/* The command as people read it: the text, or the arguments joined by blanks. The caller frees it;
 * NULL if out of memory. */
char *run_command_text(const struct spec *spec);

/* Calls fn for every directory that is named like a run; a result != 0 ends it. */
typedef int run_fn(const nacre_id *id, void *userdata);
int run_each(int runs_fd, run_fn *fn, void *userdata);

/* Removes a run's own files, and its directory; anything else in it is left, and -ENOTEMPTY. */
int run_remove(int runs_fd, const nacre_id *id);

#endif
