/*
 * What the files of the acp backend share.
 *
 *   acp.c          the agent, and the verbs of the backend
 *   acp_create.c   from a command to a terminal
 *   acp_link.c     requests on their way and the answers to them
 *   acp_run.c      the run directory of a terminal
 *   acp_text.c     one growing text out of snapshots
 *   acp_watch.c    watches
 *   acp_place.c    which directories are in the workspace
 *
 * A terminal has a run directory like any other shell; the process of the agent writes it, in the
 * place of a keeper. So whatever reads shells reads it there, by means of the local backend.
 *
 * Everything is under one lock, but for the callbacks: they are never called with it held.
 */
#ifndef NACRE_BACKEND_ACP_H
#define NACRE_BACKEND_ACP_H

#include <nacre/acp.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

#include <jansson.h>

#include "base/buf.h"
#include "run/spec.h"

enum acp_request {
    ACP_CREATE, /* somebody waits for the answer */
    ACP_KILL,   /* likewise, unless it is for a deadline */
    ACP_WAIT,   /* from here on the answer is taken in by feed */
    ACP_OUTPUT,
    ACP_RELEASE
};

#define ACP_OVERLAP 256   /* bytes by which a snapshot is recognised as going on where we are */
#define ACP_END_MS  10000 /* for an exit to be reported after a kill */

/* What is known of a text of which snapshots are seen. */
struct acp_text {
    uint64_t end; /* bytes of it, with one for each gap */
    char last[ACP_OVERLAP];
    size_t known; /* of last: the bytes before end */
    bool cut;     /* it does not begin at its beginning any more */
    uint64_t sum; /* of the snapshot seen last */
    size_t size;
};

struct acp_run;

struct acp_shell {
    struct acp_shell *next;
    nacre_id id;
    char *terminal;      /* the client's name for it */
    struct acp_run *run; /* NULL = all of it is written */
    struct acp_text text;
    int64_t deadline_ns; /* INT64_MAX = none */
    int64_t patience_ns; /* when it goes on without what the client owes; INT64_MAX = never */
    bool background;
    bool exited;
    int exit_code; /* -1 = not known */
    int signal;
    nacre_reason reason; /* why we had it killed */
    bool fetching;       /* a request for output is on its way */
    bool last;           /* and it was made after the exit */
    uint64_t fetches;
    bool final;     /* there will be no more text */
    bool releasing; /* the client was told */
    bool settled;   /* nobody waits any longer for it to answer */
    bool over;      /* and has answered, or is gone */
    bool rings;     /* its session is to be told of its end */
};

struct acp_call {
    struct acp_call *next;
    uint64_t number;
    enum acp_request kind;
    struct acp_shell *shell; /* NULL of ACP_CREATE */
    bool awaited;            /* somebody takes the answer and frees this */
    bool done;
    json_t *answer; /* the whole message; NULL if the client has gone */
};

struct acp_watch;

struct nacre_acp_agent {
    nacre_backend backend;
    nacre_backend home; /* the local backend of the session that uses it; self NULL = none */
    nacre_acp_agent_options options;
    char *session_id;
    char **workspace; /* normalised, NULL-terminated; NULL = anywhere */
    pid_t owner;      /* the process that opened it */
    int bell_fd;      /* readable when a shell of the background has ended */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool gone;
    uint64_t next_number;
    struct acp_call *calls;
    struct acp_shell *shells;
    struct acp_watch *watches;
};

/* -- For the session --------------------------------------------------------------------------- */

/* The agent of a backend, if it is one of ours; else NULL. */
nacre_acp_agent *acp_agent_of(const nacre_backend *backend);

/* The directory where commands run if nothing else is said; NULL = the host's. */
const char *acp_default_cwd(const nacre_acp_agent *a);

/* From here on its shells are runs of home, which it closes with itself. NACRE_EBUSY if another
 * session uses the agent: home is as it was. */
int acp_join(nacre_acp_agent *a, const nacre_backend *home, nacre_error *err);

/* -- acp_create.c ------------------------------------------------------------------------------ */

int acp_create(void *self, const nacre_command *command, nacre_id *ret_id, nacre_watch **ret_watch,
               nacre_error *err);
void acp_shell_free(struct acp_shell *shell);

/* -- acp_link.c -------------------------------------------------------------------------------- */

/* Sends a request; params is consumed. The answer is waited for up to answer_ms and owned by the
 * caller: the result, or the client's error as ours. Without the lock. */
int acp_call(nacre_acp_agent *a, enum acp_request kind, json_t *params, json_t **ret_result,
             nacre_error *err);

/* Sends a request about a shell whose answer feed takes in. Without the lock. */
void acp_post(nacre_acp_agent *a, enum acp_request kind, struct acp_shell *shell);

json_t *acp_target(const nacre_acp_agent *a, const struct acp_shell *shell);

/* Waits for something to change, or the deadline: false when that is over. With the lock. */
bool acp_pause(nacre_acp_agent *a, int64_t deadline_ns);

/* Whether its time is over and it has to be killed now; asked once. With the lock. */
bool acp_is_late(struct acp_shell *shell);

/* A client that was told to end a command and reports no exit, or has reported one and neither
 * shows its output nor answers the release: after a while shells go on without. Without the lock;
 * whether one did. */
bool acp_lose_patience(nacre_acp_agent *a);

/* -- acp_place.c ------------------------------------------------------------------------------- */

/* An absolute path without empty parts, "." and ".."; NULL if out of memory. */
char *acp_place_normal(const char *path);

/* Whether a directory is one of the list or below one, also with links followed, as far as they
 * are on this machine. -ENOMEM, or 1 and 0. */
int acp_place_is_within(const char *path, char *const *list);

/* -- acp_run.c --------------------------------------------------------------------------------- */

/* The directory of a run that nobody sees yet, with the spec in it. */
int acp_run_make(int runs_fd, const struct spec *spec, struct acp_run **ret_run, nacre_error *err);

/* It runs: everybody sees it. */
int acp_run_begin(struct acp_run *run, nacre_error *err);

/* Text that came; gap: something before it was never seen. */
void acp_run_add(struct acp_run *run, const char *text, size_t size, bool gap);

/* What the shell is known to be now. When it is over nothing more is written: the run is freed. */
void acp_run_note(struct acp_shell *shell);

/* It was not started: nothing of it is left. NULL is ignored. */
void acp_run_undo(struct acp_run *run, int runs_fd);

/* Frees it without a word: its directory belongs to another process. NULL is ignored. */
void acp_run_free(struct acp_run *run);

/* -- acp_text.c -------------------------------------------------------------------------------- */

/* Takes in a snapshot. Returns where its new text begins; *ret_gap: not right behind the old. */
size_t acp_text_take(struct acp_text *t, const char *snapshot, size_t size, bool truncated,
                     bool *ret_gap);

/* -- acp_watch.c ------------------------------------------------------------------------------- */

int acp_watch_new(nacre_acp_agent *a, struct acp_shell *shell, uint64_t offset,
                  nacre_watch **ret_watch, nacre_error *err);

/* Wakes the watches of a shell. With the lock. */
void acp_watch_ring(nacre_acp_agent *a, const struct acp_shell *shell);

#endif
