/*
 * What the files of this layer share of a session.
 *
 *   session.c      open, close, and the public functions that go straight to the backend
 *   start.c        starting: places, foreground and background; names.c with a name
 *   ends.c         hearing how shells end
 *   scope.c        whose shells are whose
 *   list.c         lists, counts, sessions; owners.c whose shells they show
 *   reading.c      cursors
 *   completion.c   offers; completion_text.c what a reader is told
 *   view.c         what a reader is shown
 *   retention.c    what is removed, and when
 *   registry.c     the session's shells in memory; books.c its part of the catalog
 */
#ifndef NACRE_SHELL_SESSION_H
#define NACRE_SHELL_SESSION_H

#include <nacre/completion.h>
#include <nacre/registry.h>
#include <nacre/session.h>
#include <nacre/settings.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

#include "shell/audit.h"
#include "shell/books.h"
#include "shell/registry.h"
#include "sys/host.h"

struct nacre_session {
    pid_t owner; /* the process that opened it */
    nacre_id id;
    void *local; /* the backend of the home, for functions that are its own; NULL = none */
    bool person;
    bool single; /* its process ends with it */
    char *name;  /* "" = none */
    char *cwd;   /* where it was opened, or what the options say */
    nacre_settings *settings;
    nacre_backend_ops ops;
    void *self;
    struct registry *registry;
    struct books *books; /* NULL = the backend keeps none */
    struct audit *audit; /* NULL = off */

    pthread_mutex_t lock;   /* over the rest */
    pthread_cond_t changed; /* a start is over */
    size_t starting;
    bool closing;
    bool started; /* it has started something */
    bool claimed; /* what earlier sessions left was looked for */
    int64_t swept_ms;
    size_t crowded; /* when the registry holds this many, those that are over are looked for */
    bool due;       /* completions may be pending */
    int bell_fd;    /* what nacre_completion_fd() gave out: an epoll of the bell and the next two */
    int due_fd;     /* readable while due */
    int tick_fd;    /* a timer */
    bool ticking;

    pthread_mutex_t naming; /* one named start at a time */
};

/* NACRE_EFORKED in a forked child. */
int session_check(const nacre_session *s, nacre_error *err);
int session_unsupported(const nacre_session *s, const char *what, nacre_error *err);

/* The catalog of the home, for reading, or with this session in it for writing. NACRE_ENOTFOUND if
 * there is no home yet; NACRE_EUNSUPPORTED if the backend has none. */
int session_catalog(nacre_session *s, bool write, struct catalog **ret_catalog, nacre_error *err);

/* Whether there is one. Without, whatever is read of it is made from all run directories anew. */
bool session_has_catalog(nacre_session *s);

/* Opens a feed to a shell (backend/feed.h), as nacre_input() would write to it. NACRE_EUNSUPPORTED
 * if the backend has no such thing. */
struct feed;
int session_feed(nacre_session *s, const nacre_id *id, struct feed *ret, nacre_error *err);

/* nacre_kill() and nacre_background() without standing still (backend/kill.h, backend/change.h):
 * 1 = done, 0 = to be stepped. To be ended in any case. Of a kill NACRE_EUNSUPPORTED if the backend
 * has no such thing. */
struct killing;
int session_kill_begin(nacre_session *s, const nacre_id *id, const nacre_kill_options *options,
                       struct killing *ret, nacre_error *err);
int session_kill_step(nacre_session *s, struct killing *k, nacre_error *err);
void session_kill_end(nacre_session *s, struct killing *k);

struct change;
int session_background_begin(nacre_session *s, const nacre_id *id, struct change *ret,
                             nacre_error *err);
int session_background_step(nacre_session *s, struct change *c, nacre_error *err);

int64_t session_setting(const nacre_session *s, nacre_setting setting);

/* Calls a function of the backend, which may count on an error to fill in. */
#define CALL(s, fn, ...)                                                \
    ({                                                                  \
        nacre_error spare_;                                             \
        (s)->ops.fn((s)->self, __VA_ARGS__, reterr ? reterr : &spare_); \
    })

/* start.c, names.c: nacre_start() without and with a name. */
int start_unnamed(nacre_session *s, const nacre_command *command, nacre_id *ret_id,
                  nacre_watch **ret_watch, nacre_error *reterr);
int names_start(nacre_session *s, const nacre_command *command, nacre_id *ret_id,
                nacre_watch **ret_watch, nacre_error *err);

/* ends.c: takes in what was rung, and looks at those that have been silent for long. */
void ends_hear(nacre_session *s);
/* Looks at one now; the record, if not NULL, is filled. */
int ends_look(nacre_session *s, const nacre_id *id, nacre_record *ret_record, nacre_error *reterr);
/* The same with a record that is cheap: without strings and without the processes alive. */
int ends_peek(nacre_session *s, const nacre_id *id, nacre_record *ret_record, nacre_error *reterr);
/* Looks at every shell that was alive when last heard of. */
void ends_look_at_all(nacre_session *s);
/* Takes in what a record says. */
void ends_note(nacre_session *s, const nacre_record *record);
/* Writes what the run directory says into the catalog. */
int ends_shelve(nacre_session *s, const nacre_id *id);
/* Those of which no end was heard, before a close (NULL = nobody wants to know); and after it, how
 * they ended, for the audit. */
struct ends_rest;
struct ends_rest *ends_rest_new(nacre_session *s);
void ends_rest_tell_consume(nacre_session *s, struct ends_rest *rest);
/* Takes in what the home has, and how those ended that nobody looked at since; also_running: and
 * how much the others have printed. */
int ends_refresh_home(nacre_session *s, struct catalog *catalog, bool also_running,
                      nacre_error *err);

/* scope.c: whether the session may read (or, with change, feed, kill and remove) a shell. */
int scope_check(nacre_session *s, const nacre_id *id, bool change, nacre_error *err);

bool scope_session_lives(const struct catalog_session *row);
/* The same for many sessions, on a host that was identified once. */
bool scope_session_lives_on(const struct catalog_session *row, const struct host *host);

/* reading.c: where the session has read to, for nacre_view_read(). */
nacre_position reading_position(nacre_session *s, const nacre_id *id);
/* nacre_mark_read() with such a position. */
int reading_move(nacre_session *s, const nacre_id *id, const nacre_position *position, bool saw_end,
                 nacre_error *err);

/* completion.c: one is due. */
void completion_ring(nacre_session *s);
/* One will be. */
void completion_expect(nacre_session *s);
/* The end of a shell was shown: its completion is delivered. */
int completion_told(nacre_session *s, const nacre_id *id, nacre_error *err);
int completion_count(nacre_session *s);
nacre_session *completion_session(const nacre_offer *offer);

/* view.c: nacre_summary() of a record that is there already. */
int view_summary(nacre_session *s, const nacre_record *record, const nacre_view_options *options,
                 char **ret_text, nacre_error *err);
/* nacre_view_read() of a record that was looked at already: what is shown of it is that. */
int view_news(nacre_session *session, const nacre_record *record, nacre_position *position,
              const nacre_view_options *options, char **ret_text, int *ret_new,
              nacre_error *reterr);

/* retention.c: a little of it, if it is time. */
void retention_now_and_then(nacre_session *s);
/* Removes what a session whose backend is closed was not to leave. */
void retention_forget(nacre_session *s, const char *home);

#endif
