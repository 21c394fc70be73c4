/*
 * Sessions, and what the files of this room share of one.
 *
 *   session.c      opened, closed, and the public functions that only read the home
 *   find_shell.c   shells by the beginning of an id, or by a name
 *   deeds.c        kill, input, signal, background: the operations, and the functions that wait
 *   wait_port.c    waiting until a shell listens
 *   reading.c      who reads the input of a shell
 *   start.c        starting: places, foreground and background; names.c with a name
 *   wait.c         running in the foreground, and waiting for several shells
 *   ends.c         hearing how shells end
 *   scope.c        whose shells are whose; adopt.c how that changes
 *   list.c         lists, counts, sessions; owners.c whose shells they show
 *   output.c       snapshots; replay.c the log drawn again, screen.c what is on the screen
 *   completion.c   offers
 *   view.c         what a reader is shown and told, and the cursors
 *   retention.c    what is removed, and when
 *   deferred.c     starts that go on when a person has answered
 *   policy.c       what the rules say; asking.c a person is asked; always.c what they allow for
 * ever registry.c     the session's shells in memory; audit.c its log
 */
#pragma once

#include <nacre/completion.h>
#include <nacre/registry.h>
#include <nacre/session.h>
#include <nacre/settings.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "catalog/catalog.h"
#include "home/home.h"
#include "policy/rules.h"
#include "session/audit.h"
#include "session/registry.h"
#include "sys/host.h"

struct deferred;
struct desk;
struct pending_look;
struct question;
struct session_rules;
struct exec_question;

struct nacre_session {
    pid_t owner; /* the process that opened it */
    nacre_id id;
    bool person;
    bool single; /* its process ends with it */
    char *name;  /* "" = none */
    char *cwd;   /* where it was opened, or what the options say */
    nacre_settings *settings;
    _Atomic(struct session_rules *) rules; /* of them, and what was always allowed since */
    nacre_ask_fn *ask;                     /* NULL = nobody is asked directly */
    void *ask_userdata;
    struct desk *desk; /* its questions */
    bool gated;        /* keepers hold rules against whatever is executed */
    nacre_home *home;
    nacre_backend keepers; /* the local one: reaches every run of the home that has a keeper */
    nacre_backend_ops ops; /* of the one that starts commands, which has the mirrors */
    void *self;
    struct registry *registry;
    pthread_mutex_t catalog_lock; /* over the next four */
    struct catalog *catalog;      /* opened late, never before the first command */
    char *client;                 /* of the next, what it works for; NULL = not known */
    struct catalog_session row;   /* the session itself in it, */
    bool signed_in;               /* once it is written there */
    struct audit *audit;          /* NULL = off */
    atomic_bool told_withheld;    /* a reader knows which variables commands do not get */

    pthread_mutex_t lock;   /* over the rest */
    pthread_cond_t changed; /* a start is over */
    size_t starting;
    bool naming; /* a named start is under way: one at a time */
    bool closing;
    struct deferred *deferred; /* starts that wait for a person alone */
    bool deferring;            /* somebody goes on with them */
    int deferred_timer;
    bool started; /* it has started something */
    bool claimed; /* what earlier sessions left was looked for */
    int64_t swept_ms;
    size_t crowded; /* when the registry holds this many, those that are over are looked for */
    struct pending_look *looks;
    struct exec_question *exec_questions; /* of keepers, that wait for an answer */
    bool due;                             /* completions may be due */
    int bell_fd; /* what nacre_completion_fd() gave out: an epoll of the bell and the next two */
    int due_fd;  /* readable while due */
    int tick_fd; /* a timer */
    int64_t tick_ms;
};

/* NACRE_EFORKED in a forked child. */
int session_check(const nacre_session *s, nacre_error *err);

/* The same, and whether it may read a shell, or, with change, feed, kill and remove it. */
int session_check_id(nacre_session *s, const nacre_id *id, bool change, nacre_error *err);

/* The catalog of the home, for reading, or with this session in it for writing. NACRE_ENOTFOUND if
 * there is no home yet. It is an index of the run directories, so nothing of it is needed for a
 * command to run, and nothing fails because of it: what could not be written is found again by
 * whoever looks next. */
int session_catalog(nacre_session *s, bool write, struct catalog **ret_catalog, nacre_error *err);

/* Whether there is one. Without, whatever is read of it is made from all run directories anew. */
bool session_has_catalog(nacre_session *s);

int64_t session_setting(const nacre_session *s, nacre_setting setting);

/* -- Operations: what the public functions of the same names wait for -------------------------- */

/* The result is a session_started. */
struct session_started {
    nacre_started started;
    bool joined; /* one of that name runs already */
};
int session_start(nacre_session *s, const nacre_command *command, nacre_op **ret_op,
                  nacre_error *err);

/* Whether a start waits for a person. To end it then is to withdraw the question. */
bool session_start_asks(const nacre_op *op);
/* What is asked, NULL = nothing is; and a descriptor that is readable once it was answered. */
const struct question *session_start_question(const nacre_op *op);
int session_start_bell(const nacre_op *op);
/* Nobody waits for it: it has what it borrowed, and starts in the background. 0 or -errno. */
int session_start_detach(nacre_op *op);

/* The results are those of the backend's verbs. Of a kill it is there from the beginning: once
 * was_alive is set, it goes on without being stepped. */
int session_kill(nacre_session *s, const nacre_id *id, const nacre_kill_options *options,
                 nacre_op **ret_op, nacre_error *err);
int session_input(nacre_session *s, const nacre_id *id, const void *data, size_t size, int eof,
                  nacre_op **ret_op, nacre_error *err);
int session_resize(nacre_session *s, const nacre_id *id, int columns, int rows, nacre_op **ret_op,
                   nacre_error *err);
/* The result is a nacre_reading. */
int session_reads(nacre_session *s, const nacre_id *id, unsigned set, int64_t held_ms,
                  nacre_op **ret_op, nacre_error *err);
/* The result is a nacre_port. */
int session_await_port(nacre_session *s, const nacre_id *id, int port, nacre_op **ret_op,
                       nacre_error *err);
/* See nacre_get_screen(): without a look, so that nothing waits. */
int session_screen(nacre_session *s, const nacre_id *id, nacre_screen *ret_screen,
                   nacre_error *err);
int session_signal(nacre_session *s, const nacre_id *id, int signal, nacre_op **ret_op,
                   nacre_error *err);
int session_background(nacre_session *s, const nacre_id *id, nacre_op **ret_op, nacre_error *err);

/* See nacre_keep(); no result. 1 and no operation: it was kept already. */
int session_keep(nacre_session *s, const nacre_id *id, nacre_op **ret_op, nacre_error *err);

/* Of a shell that is not the session's own; no result. */
int session_adopt(nacre_session *s, const nacre_id *id, nacre_op **ret_op, nacre_error *err);

/* nacre_close(): the session belongs to the operation from now on, which has to be stepped until it
 * is done. The result is an int: how many shells could not be ended. NULL if out of memory; then
 * nothing has changed. */
nacre_op *session_close(nacre_session *s);

/* Ends one that was never quite opened. */
void session_abandon(nacre_session *s);
void session_free(nacre_session *s, bool forked);

/* Brings what is known of a shell up to date, for who reads it next. *ret_op is NULL if it is. */
int session_look(nacre_session *s, const nacre_id *id, nacre_op **ret_op, nacre_error *err);

/* What is known of a shell now: nothing is waited for, and the session takes notice of its end. If
 * its keeper is gone (*ret_unswept, if not NULL), it begins to be swept. */
int session_record(nacre_session *s, const nacre_id *id, enum home_detail detail,
                   nacre_record *ret_record, bool *ret_unswept, nacre_error *err);

/* See home_watch(); one that lost its files and its keeper is watched to be lost. */
int session_watch(nacre_session *s, const nacre_id *id, uint64_t offset, nacre_watch **ret_watch,
                  nacre_error *err);

/* What to poll for a watch until it is asked again; see run_watch_fd(). */
int session_watch_fd(const nacre_watch *watch);

/* From now on a watch gives what comes behind an offset of the log. */
void session_watch_seek(nacre_watch *watch, uint64_t offset);

/* Whether its run is a mirror of this session's backend: then there is more to know of it than its
 * state says. */
bool session_mirrors(nacre_session *s, const nacre_id *id);

/* Asks a verb of whichever backend has the shell. */
const nacre_backend_ops *session_ops_of(nacre_session *s, const nacre_id *id, void **ret_self);
int session_unsupported(const nacre_backend_ops *ops, const char *what, nacre_error *err);

/* -- asking.c --------------------------------------------------------------------------------- */

/* The questions of the whole home, and an answer to one: see ask/pending.h for the results. */
int session_pending(nacre_session *s, nacre_op **ret_op, nacre_error *err);
int session_answer_pending(nacre_session *s, const char *id, nacre_answer_kind kind,
                           const char *way, nacre_op **ret_op, nacre_error *err);

/* -- start.c, names.c ------------------------------------------------------------------------- */

/*
 * Who runs under the name of a command. 1 = nobody (any more): to be started; 0 = not yet known, in
 * steps; *ret_joined: the same command does, and is what is wanted.
 */
struct naming;
int naming_new(nacre_session *s, const nacre_command *command, struct naming **ret,
               nacre_error *err);
int naming_step(struct naming *n, nacre_op *waiting, bool *ret_joined, nacre_id *ret_id,
                nacre_error *err);
void naming_free(struct naming *n);

/* -- ends.c ----------------------------------------------------------------------------------- */

/* Takes in what was rung, and looks at those that have been silent for long. */
void ends_hear(nacre_session *s);
/* Only what keepers have said, by whoever watches one that waits for a person. */
void ends_hear_keepers(nacre_session *s);
/* Whether it is over and in the catalog: then it does not change any more. */
bool ends_are_known(nacre_session *s, const nacre_id *id);
/* Looks at one now, unless its end is known. */
void ends_look(nacre_session *s, const nacre_id *id);
/* Looks at every shell that was alive when last heard of: how many of them are being swept. */
size_t ends_look_at_all(nacre_session *s);
/* Waits for the look at one that session_record() has begun; NULL = for all looks. */
void ends_await(nacre_session *s, const nacre_id *id);
/* Takes in what a record says. */
void ends_note(nacre_session *s, const nacre_record *record);
/* If a shell of this session has lost its files, and nobody is there who could put them back: what
 * is known of it is written down, and it is swept like any other that lost its keeper. False if
 * that is not so; r is the error that says so. */
bool ends_bury(nacre_session *s, const nacre_id *id, int r);
/* Removes a run that is over, without anybody who looks meanwhile taking it for one that has lost
 * its files. catalog may be NULL. */
int ends_remove(nacre_session *s, struct catalog *catalog, const nacre_id *id, nacre_error *err);
/* Writes what the run directory says into the catalog. */
int ends_shelve(nacre_session *s, const nacre_id *id);
/* The same for one whose end this session has to be told; known is what is said of it if its
 * directory says nothing, and is completed here. */
int ends_shelve_awaited(nacre_session *s, struct catalog_run *known);
/* Ends the looks that are under way, with the session. */
void ends_done(nacre_session *s);
/* Those of which no end was heard, before a close (NULL = nobody wants to know); and after it, how
 * they ended, for the audit. */
struct ends_rest;
struct ends_rest *ends_rest_new(nacre_session *s);
void ends_rest_tell_consume(nacre_session *s, struct ends_rest *rest);
/* Takes in what the home has, and how those ended that nobody looked at since; the catalog, also if
 * that failed, unless it is NACRE_ENOTFOUND: there is no home. */
enum ends_how {
    ENDS_RUNNING_TOO = 1u << 0, /* and how much the others have printed */
    ENDS_WAIT = 1u << 1,        /* what lost its keeper is swept when it returns */
    ENDS_INDEX = 1u << 2,       /* the catalog gets its file, if it has none and that can be made */
};
int ends_refresh_home(nacre_session *s, unsigned how, struct catalog **ret_catalog,
                      nacre_error *err);

/* -- scope.c ---------------------------------------------------------------------------------- */

/* Whether the session may read (or, with change, feed, kill and remove) a shell. */
int scope_check(nacre_session *s, const nacre_id *id, bool change, nacre_error *err);

/* Whether a shell is a kept one in the session's directory: once its own session has ended, it may
 * be fed and killed from here. */
bool scope_is_left_to(nacre_session *s, const nacre_record *record);

struct shell_owner {
    nacre_id session;
    bool alive;
};
int scope_find_owner(nacre_session *s, const nacre_id *id, struct shell_owner *ret_owner,
                     nacre_error *err);
bool scope_is_own(nacre_session *s, const nacre_id *id);

bool scope_session_lives(const struct catalog_session *row);
/* The same for many sessions, on a host that was identified once. */
bool scope_session_lives_on(const struct catalog_session *row, const struct host *host);

/* -- The rest --------------------------------------------------------------------------------- */

/*
 * list.c: shells of the home for who stays and looks again and again. Nothing is waited for: what
 * lost its keeper begins to be swept, and is seen ended later. Names and clients of sessions are
 * left out; those of session_survey_sessions() have no counts.
 */
int session_survey(nacre_session *s, const struct catalog_filter *filter, nacre_list_fn *fn,
                   void *userdata, nacre_error *err);
int session_survey_one(nacre_session *s, const nacre_id *id, nacre_list_fn *fn, void *userdata,
                       nacre_error *err);
int session_survey_sessions(nacre_session *s, nacre_session_fn *fn, void *userdata,
                            nacre_error *err);

/* output.c: nacre_read() and nacre_output() of what is here already; nothing is asked for. */
int64_t output_read(nacre_session *s, const nacre_id *id, uint64_t *cursor, unsigned streams,
                    void *buf, size_t size, nacre_piece *ret_piece, nacre_error *err);
int output_snapshot(nacre_session *s, const nacre_id *id, unsigned streams, size_t limit,
                    nacre_snapshot *ret_snapshot, nacre_error *err);

/* completion.c: one may be due. */
void completion_set_due(nacre_session *s);
/* Has the bell ring for whatever is awaited now. */
void completion_set_bell(nacre_session *s);
/* The end of a shell was shown: its completion is delivered. */
int completion_told(nacre_session *s, const nacre_id *id, nacre_error *err);
int completion_count(nacre_session *s);
nacre_session *completion_session(const nacre_offer *offer);

/* view.c: nacre_summary() of a record that is there already. */
int view_summary(nacre_session *s, nacre_record *record, const nacre_view_options *options,
                 char **ret_text, nacre_error *err);
/* nacre_view_read() of a record that was looked at already: what is shown of it is that. */
int view_news(nacre_session *session, const nacre_record *record, nacre_position *position,
              const nacre_view_options *options, char **ret_text, int *ret_new,
              nacre_error *reterr);

/* Where the session has read to, for nacre_view_read(). */
nacre_position view_position(nacre_session *s, const nacre_id *id);
/* nacre_mark_read() with such a position, of a shell that was just shown. */
int view_mark_read(nacre_session *s, const nacre_id *id, const nacre_position *position,
                   bool saw_end, nacre_error *err);

/* retention.c: a little of it, if it is time. */
void retention_now_and_then(nacre_session *s);
/* Removes what a session whose backend is closed was not to leave. */
void retention_forget(nacre_session *s);
