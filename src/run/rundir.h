/* Run directories: made by a keeper, or by a process that writes down what runs elsewhere; and as
 * their readers see them. */
#pragma once

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

/* Whether what is open is not in its place any more: somebody removed it, or its keeper has put
 * another file there. */
bool run_is_gone(const struct run *run);

#define cleanup_run __attribute__((cleanup(run_close)))

/* Says that a file of a run cannot be used, and why: NACRE_EIO. e is what opening or reading it
 * returned. */
int run_damaged(const nacre_id *id, const char *part, int e, nacre_error *err);

/* The state; NACRE_EIO with a sentence if it cannot be read. */
int run_read_state(const struct run *run, struct run_state *ret_state, nacre_error *err);

/* The same for a state that was read already, with the result r. */
int run_check_state(const struct run *run, int r, const struct run_state *state, nacre_error *err);

/* Whether the files of its output are there, or something else in their places. */
bool run_has_log(const struct run *run);

/* The whole spec in memory the caller frees, checked. */
int run_load_spec(const struct run *run, struct spec *ret_spec, nacre_error *err);

/*
 * A background shell owes its session a completion from the start on, until a file in its directory
 * says that it was told. The file has the moment of the exit: before it, no command can know that.
 */
int run_set_told(const struct run *run, const struct run_state *state);
bool run_owes(const struct run *run, const struct run_state *state);

/* The command as people read it: the text, or the arguments joined by blanks. The caller frees it;
 * NULL if out of memory. */
char *run_command_text(const struct spec *spec);

/* Opens a file of a run as fd_open_file_at(). A command may take its rights away, and cannot keep
 * them from who has the same: they are given back. */
int run_open_file(int dir, const char *name, int flags);

/* Calls fn for every directory that is named like a run; a result != 0 ends it. */
typedef int run_fn(const nacre_id *id, void *userdata);
int run_each(int runs_fd, run_fn *fn, void *userdata);

/* What a run takes of the disk: its own files and its directory. */
uint64_t run_cost(int dir);

/* When the newest of its files was written last, since the epoch; 0 if there is none. */
int64_t run_changed_ns(int dir);

/* Removes a run: all that is in its directory, whoever put it there, and the directory. */
int run_remove(int runs_fd, const nacre_id *id);

/* The same for a directory that is no run. */
int run_remove_dir(int above, const char *name);

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

/* Parts of it. A new file: a descriptor. A state, locked before it can be seen: after an error the
 * descriptor may be open all the same. */
int run_make_file(int dir, const char *name);
int run_make_state(int dir, struct run_state *state, int *ret_fd);

void run_files_close(struct run_files *files);
