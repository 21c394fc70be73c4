/*
 * The catalog: a SQLite index of the sessions, runs and owed completions of a home, in
 * `catalog.db`. Run directories are the truth about runs; the catalog can always be made again
 * from them (docs/catalog.md says what is lost then). So a caller goes on without it when it
 * fails.
 *
 * Every function that can fail returns >= 0 or a NACRE_* code with err filled:
 *   NACRE_EBUSY         another process writes; nothing was changed; try again
 *   NACRE_EIO           the home cannot be read or written, or the disk is full; nothing changed
 *   NACRE_EUNSUPPORTED  the file is a newer nacre's or no catalog at all; it is not touched
 *   NACRE_ENOTFOUND     no such row; or a writing call, no file, and not allowed to create one
 *
 * A damaged file is moved aside, and a deleted one replaced, inside of any call: both are rebuilt
 * from the run directories, and the session that this handle put is put again.
 *
 * Functions marked "reads" never create the file: without one, where the home is read-only, or as
 * long as somebody keeps it from being opened, they answer from the run directories through a
 * database in memory, made for that call.
 *
 * A handle may be used by any number of threads at once; every call is one transaction. Callbacks
 * run outside of it and may call the catalog. Strings in rows are never NULL.
 */
#pragma once

#include <nacre/command.h>
#include <nacre/error.h>
#include <nacre/id.h>
#include <nacre/record.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "run/rundir.h"
#include "run/state.h"

#define CATALOG_COMMAND_MAX 4096 /* bytes of a command that are kept, cut at a character */
#define CATALOG_BUSY_MS     200  /* a good time to wait for other writers */

struct catalog;

/*
 * Opens the catalog of a home, an absolute path that was checked by home_find(). If create, the
 * file is made when it is missing, also later, and it is an error if that fails; else a home that
 * is missing or read-only is no error, and see "reads" above. Somebody who is in the way is none
 * in any case. busy_ms: how long a call waits for
 * other processes before NACRE_EBUSY; after that none waits, until one was not in the way.
 */
int catalog_open(const char *home, bool create, int busy_ms, struct catalog **ret_catalog,
                 nacre_error *err);

/* From now on this handle may create the file, and does so now if there is none. */
int catalog_create(struct catalog *c, nacre_error *err);

/* Frees the handle; NULL is ignored. forked: this is a forked child, whose copy of the handle may
 * only be forgotten, never closed. */
void catalog_free(struct catalog *c, bool forked);

/*
 * Takes what the run directories say into the catalog and drops runs that were over and have no
 * directory. Rows keep what only the catalog knows (read_to, listed, owed). Returns the number of
 * runs; damaged directories are passed over.
 */
int catalog_rebuild(struct catalog *c, nacre_error *err);

/* Takes one run in as its directory is now; NACRE_ENOTFOUND if it has none. Then the row of what
 * was over is gone; what was not stays known, since a command may take its own directory away. */
int catalog_refresh(struct catalog *c, const nacre_id *run, nacre_error *err);

/*
 * Takes in runs that are new in the home and drops those that were over and are gone, without
 * looking at the others: what is not final has to be refreshed by whoever wants to know.
 */
int catalog_sync(struct catalog *c, nacre_error *err);

/* Reads. What sync passed over: directories without a row. They were made ahead of time, are
 * damaged, or their keeper was killed before it had a command. A result != 0 of fn ends it. */
int catalog_each_stray(struct catalog *c, run_fn *fn, void *userdata, nacre_error *err);

/* Reads. What the tables need of the disk, without what is free between them or on its way into
 * them: as much as is left by catalog_compact(). */
int catalog_cost(struct catalog *c, uint64_t *ret_bytes, nacre_error *err);

/* Gives back to the disk what is not needed, unless somebody else is at it. */
void catalog_compact(struct catalog *c);

/* -- Sessions ---------------------------------------------------------------------------------- */

/* What the home has of a session. */
struct catalog_counts {
    uint32_t runs;
    uint32_t running; /* without an outcome */
    uint32_t due;     /* completions to offer: owed, and their runs have an outcome */
};

/* The process behind a session; it lives if boot and pid_ns are ours and pid has that start. */
struct catalog_session {
    nacre_id id;
    const char *name;   /* $NACRE_SESSION, or "" */
    const char *cwd;    /* the default directory of its commands, or "" */
    const char *client; /* what it works for calls itself, or "" or NULL */
    bool person;        /* it was opened for one command of a person */
    int32_t pid;        /* 0 = not known */
    uint64_t start;     /* clock ticks since boot; 0 = not known (rebuilt from an older run) */
    uint8_t boot[16];
    uint64_t pid_ns;
    int64_t opened_ms;
    int64_t closed_ms;            /* 0 = not closed properly (yet) */
    int64_t ends_ms;              /* it will be closed then, if nothing comes; 0 = not known */
    struct catalog_counts counts; /* only for reading, if the filter asks for them */
};

/* Inserts or replaces. This is the session that the handle puts again after a rebuild. */
int catalog_put_session(struct catalog *c, const struct catalog_session *session, nacre_error *err);
int catalog_close_session(struct catalog *c, const nacre_id *session, int64_t closed_ms,
                          nacre_error *err);
/* Not an error if there is none. */
int catalog_remove_session(struct catalog *c, const nacre_id *session, nacre_error *err);

/* Reads. *ret_session is one block with its strings; the caller frees it with free(). */
int catalog_get_session(struct catalog *c, const nacre_id *session,
                        struct catalog_session **ret_session, nacre_error *err);

/* Which sessions; what is zero or NULL does not restrict. */
struct catalog_session_filter {
    const char *name;
    const char *cwd;
    bool only_owed; /* completions are owed to it */
    bool only_open; /* closed_ms is 0 */
    bool counts;    /* counts are wanted */
};

/* Reads. Oldest first; filter may be NULL. A result != 0 of fn ends it and is returned. */
typedef int catalog_session_fn(const struct catalog_session *session, void *userdata);
int catalog_each_session(struct catalog *c, const struct catalog_session_filter *filter,
                         catalog_session_fn *fn, void *userdata, nacre_error *err);

/* -- Runs -------------------------------------------------------------------------------------- */

struct catalog_run {
    nacre_id id;
    nacre_id session;    /* its owner now */
    const char *command; /* at most CATALOG_COMMAND_MAX bytes */
    const char *cwd;
    const char *name; /* "" = none */
    const char *description;
    int64_t started_ms;
    int64_t exited_ms; /* 0 = no outcome yet */
    nacre_lifetime lifetime;
    nacre_outcome outcome;
    nacre_tree tree;
    uint64_t bytes;      /* printed, as far as the catalog was told */
    uint64_t disk_bytes; /* all of it on disk, not only what it printed */
    uint64_t read_to;    /* the offset up to which its output was shown */
    bool background;
    bool owed;                     /* its completion was not delivered; only for reading */
    bool final;                    /* an outcome and an empty tree; set by the catalog */
    const struct run_state *state; /* of a final run: all there is to say; NULL = not known */
};

/*
 * Inserts or updates. Never undone by an update: the first outcome and its time; an empty tree; a
 * larger bytes or read_to. Without a state, or a text, the row keeps the one it has.
 */
int catalog_put_run(struct catalog *c, const struct catalog_run *run, nacre_error *err);

/* Reads. *ret_run is one block with its strings; the caller frees it with free(). */
int catalog_get_run(struct catalog *c, const nacre_id *run, struct catalog_run **ret_run,
                    nacre_error *err);

/* Removes the row and what is owed for it. Not an error if there is none. */
int catalog_remove_run(struct catalog *c, const nacre_id *run, nacre_error *err);

/* A new owner. NACRE_ENOTFOUND if there is no such run. */
int catalog_set_owner(struct catalog *c, const nacre_id *run, const nacre_id *session,
                      nacre_lifetime lifetime, nacre_error *err);

/* It never goes back. NACRE_ENOTFOUND likewise. */
int catalog_set_read(struct catalog *c, const nacre_id *run, uint64_t read_to, nacre_error *err);

enum catalog_state {
    CATALOG_ANY = 0,
    CATALOG_OPEN = 1,  /* not final: running or lingering */
    CATALOG_FINAL = 2, /* nothing of it lives */
};

/* Which runs; what is zero or NULL does not restrict. */
struct catalog_filter {
    const nacre_id *session;
    const char *name;
    enum catalog_state state;
    int64_t since_ms;  /* started at or after this */
    int64_t before_ms; /* and before this */
    bool oldest_first;
    uint32_t limit;
};

/* Reads. By start, newest first unless asked; filter may be NULL. A result != 0 of fn ends it and
 * is returned. */
typedef int catalog_run_fn(const struct catalog_run *run, void *userdata);
int catalog_each_run(struct catalog *c, const struct catalog_filter *filter, catalog_run_fn *fn,
                     void *userdata, nacre_error *err);

/* Reads: what the home has of a session. */
int catalog_counts(struct catalog *c, const nacre_id *session, struct catalog_counts *ret_counts,
                   nacre_error *err);

/* -- Completions ------------------------------------------------------------------------------- */

/*
 * Owed while the shell runs, due from its outcome on, offered, and gone when it was told. What
 * lasts is in the run directory: a background shell owes until it is marked as told (run/rundir.h),
 * which the caller does before the acknowledgement here. Then a crash in between repeats a
 * completion and never loses it.
 */

/*
 * For the session of a background shell, when it has started and when it has its outcome: takes it
 * in like catalog_refresh(), and owes its completion unless the outcome was known already. Its
 * command can reach the directory, and make it say that it was told, or nothing at all; then known
 * is what the catalog learns.
 */
int catalog_take_awaited(struct catalog *c, const struct catalog_run *known, nacre_error *err);

/* Owed to session; a completion that is owed already only changes its session. */
int catalog_owe(struct catalog *c, const nacre_id *run, const nacre_id *session, nacre_error *err);

/*
 * Takes at most max completions that are due to session, oldest exit first, and marks them offered.
 * Returns how many. ret_repeated[i]: it was offered before by a session
 * that ended without an acknowledgement.
 */
int catalog_offer(struct catalog *c, const nacre_id *session, nacre_id *ret_runs,
                  bool *ret_repeated, size_t max, nacre_error *err);

/* Those of them that are offered by session are due again, as before the offer. */
int catalog_retract(struct catalog *c, const nacre_id *session, const nacre_id *runs, size_t count,
                    nacre_error *err);

/* They are delivered. Not an error for what was not owed. */
int catalog_ack(struct catalog *c, const nacre_id *runs, size_t count, nacre_error *err);

/*
 * What is owed to these ended sessions is owed to session now; what they had offered comes
 * as repeated. Returns how many. Of two that claim at once, one gets each completion.
 */
int catalog_claim(struct catalog *c, const nacre_id *session, const nacre_id *ended, size_t count,
                  nacre_error *err);
