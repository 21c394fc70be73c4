/*
 * The home of a session: the runs in it, whoever runs them, and what a run is told of the session
 * that starts it. Everything that can be said of a run without talking to anybody is said here, and
 * nothing here waits. Thread-safe.
 *
 *   locate.c      where a home lies
 *   home.c        its directory of runs: opened, found, listed, removed
 *   compose.c     from a command to the spec of a run, its variables among it
 *   door.c        a look at a run whose files may be gone
 *   sweep.c       what a keeper left that is gone; the state of a run as an operation, swept first
 *   overdue.c     what a keeper that lives owes, and what is done when it does not come to it
 *   denials.c     what the fence of a run refused
 *   report.c      from state and spec to a record; readers; usage.c what its processes use
 *   run_watch.c   watches; keeper_line.h a connection to a keeper
 *   mirror.c      a run that this process writes; mirror_kill.c its end
 */
#pragma once

#include <nacre/backend.h>
#include <pthread.h>
#include <stdbool.h>

#include "config/secrets.h"
#include "home/compose.h"
#include "home/locate.h"
#include "run/rundir.h"
#include "run/spare.h"

struct home_options {
    const char *home; /* as configured; NULL = the usual place */
    nacre_id session;
    const char *session_name;
    bool person;                 /* the session is a person's, for single commands */
    const char *session_cwd;     /* where the session is at home, for later ones to be found by */
    const char *cwd;             /* where commands run; NULL = where the host is */
    const char *shell;           /* of commands that name none; NULL = bash, else sh */
    struct secret_rules secrets; /* borrowed for as long as the home lives */
    int64_t grace_ms;
    uint64_t quota;
    bool fleeting; /* what dies with the session is not kept after it */
};

struct nacre_home {
    pthread_mutex_t lock; /* over what is opened late, and the mirrors */
    struct home_options options;
    char *strings[5];           /* that the options point to */
    struct home_location where; /* path "" = not found yet */
    int runs_fd;
    unsigned moves;        /* how often it became another directory */
    struct proc_ref owner; /* this process */
    struct compose_shells shells;
    nacre_mirror *mirrors;
    const nacre_backend_ops *ops; /* of the backend that has them; NULL = none */
    void *self;
    void (*hear_questions)(void *userdata); /* NULL = nobody is asked */
    void *hear_userdata;
};

/* Creates nothing on disk. Strings are copied but those of secrets. */
int home_new(const struct home_options *options, nacre_home **ret_home, nacre_error *err);
void home_free(nacre_home *h);

/* The backend whose mirrors are in it; ops is borrowed, NULL = none. */
void home_set_backend(nacre_home *h, const nacre_backend_ops *ops, void *self);

/* Has fn be called by who watches a run that waits for a person. */
void home_set_questions(nacre_home *h, void (*fn)(void *userdata), void *userdata);
void home_hear_questions(const nacre_home *h);

/* See nacre_session_home(). */
int home_path(nacre_home *h, const char **ret_path, const char **ret_note, nacre_error *err);

/* What its runs are found by when nothing else is left of them: see run/sign.h. 0 = no home. */
uint32_t home_number(nacre_home *h);

/* The directory of runs, borrowed: NACRE_ENOTFOUND if there is none yet, NACRE_EPERM if it is not
 * this user's. Or made, if there is none. */
int home_runs(nacre_home *h, nacre_error *err);
int home_make_runs(nacre_home *h, nacre_error *err);

/* A spare for runs, made if there is none: a descriptor to close, or -errno. Its path is that
 * of run_spare_path(). */
int home_make_spare(nacre_home *h, int index);

/* Whether the home is surely too full for another run and what it prints. */
bool home_has_no_room(nacre_home *h);

/* How often it was another directory than before, because somebody removed or moved it: what was
 * made ready in the one before is of no use. */
unsigned home_moves(nacre_home *h);

int home_open_run(nacre_home *h, const nacre_id *id, struct run *ret_run, nacre_error *err);

/* What can be said of a run that has begun, when nothing else is known of it but, maybe, its spec;
 * whether that was there. */
bool home_guess_state(const nacre_home *h, const nacre_id *id, struct run_state *ret_state);

/* Writes down what is known of a run whose keeper and files are gone: nobody holds its lock, and of
 * its output nothing is left. 0 or -errno. */
int home_rewrite_run(nacre_home *h, const struct run_state *state);

/* What a command is composed with; what is not the session's is still to be filled in. */
struct compose home_compose(nacre_home *h, const nacre_command *command);

/* The absolute path of the directory a command would run in, into a buffer of PATH_MAX. */
int home_command_cwd(nacre_home *h, const nacre_command *command, char *ret_path, nacre_error *err);

/* The run whose id begins so: see nacre_find(), whose prefix was checked. */
int home_find_run(nacre_home *h, const char *prefix, nacre_id *ret_id, nacre_error *err);

/* How much of a record is wanted. */
enum home_detail {
    HOME_LIGHT, /* without strings */
    HOME_PLAIN, /* without the processes that are alive: those take long to look for */
    HOME_FULL,
};

/* The record of a run as its state is now. *ret_unswept, if not NULL: its keeper is gone and what
 * that left was not swept yet, or it is stopped or late (see home_look()). */
int home_record(nacre_home *h, const nacre_id *id, enum home_detail detail,
                nacre_record *ret_record, bool *ret_unswept, nacre_error *err);

/* Records of all runs, oldest first; a result other than 0 ends it. */
int home_each_record(nacre_home *h, bool only_alive,
                     int (*fn)(const nacre_record *record, void *userdata), void *userdata,
                     nacre_error *err);

/* Whether a run is over, so that it may be removed: 1 with its record; 0 if that cannot be read,
 * and it may be removed all the same; else NACRE_EBUSY, or why it is not to be had. */
int home_may_remove(nacre_home *h, const nacre_id *id, nacre_record *ret_record, nacre_error *err);

/* Removes the directory of a run that may be removed. */
int home_remove_run(nacre_home *h, const nacre_id *id, nacre_error *err);

/* Notes in the run directory that the completion of a shell was delivered. */
int home_set_told(nacre_home *h, const nacre_id *id, nacre_error *err);

/* The session that started it, and whether the process of that session lives. */
int home_run_owner(nacre_home *h, const nacre_id *id, nacre_id *ret_session, bool *ret_alive,
                   nacre_error *err);

/* See nacre_read() and nacre_get_usage(). */
int64_t home_read(nacre_home *h, const nacre_id *id, uint64_t *cursor, unsigned streams, void *buf,
                  size_t size, nacre_piece *ret_piece, nacre_error *err);
int home_usage(nacre_home *h, const nacre_id *id, nacre_usage *ret_usage, nacre_error *err);

/*
 * An operation that is done when the state of a run is true: if its keeper is gone without having
 * finished it, it is swept first. A keeper that is stopped is woken; one that is held, or late, and
 * owes the end of its run is made to leave. left_ns: when this process left the run, on the
 * monotonic clock, since its session is closed; 0 = it did not. No result.
 */
int home_look(nacre_home *h, const nacre_id *id, int64_t left_ns, nacre_op **ret_op,
              nacre_error *err);

/* Has the backend take in what there is of a mirror; see its pump. */
int64_t home_pump(nacre_home *h, const nacre_id *id, bool quiet);

/* Watches and readers of any run; see nacre_watch_open() and nacre_reader_open(). */
int home_watch(nacre_home *h, const nacre_id *id, uint64_t offset, nacre_watch **ret_watch,
               nacre_error *err);
int home_reader(nacre_home *h, const nacre_id *id, const nacre_reader_options *options,
                nacre_reader **ret_reader, nacre_error *err);
