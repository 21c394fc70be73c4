/*
 * What the files of the acp backend share.
 *
 *   acp.c         the verbs, and what a record says
 *   acp_link.c    requests on their way and the answers to them
 *   acp_text.c    one growing text out of snapshots
 *   acp_watch.c   watches
 *
 * Everything is under one lock, but for the callbacks: they are never called with it held.
 */
#ifndef NACRE_BACKEND_ACP_H
#define NACRE_BACKEND_ACP_H

#include <nacre/acp.h>
#include <pthread.h>
#include <stdbool.h>

#include <jansson.h>

#include "base/buf.h"

enum acp_request {
    ACP_CREATE, /* somebody waits for the answer */
    ACP_KILL,   /* likewise, unless it is for a deadline */
    ACP_WAIT,   /* from here on the answer is taken in by feed */
    ACP_OUTPUT,
    ACP_RELEASE
};

/* Output as known from snapshots: offsets from base on are in the text. */
struct acp_text {
    struct buf bytes;
    uint64_t base;
    uint64_t lines; /* of what is there; an unfinished last one counts */
    bool cut;
};

struct acp_shell {
    struct acp_shell *next;
    nacre_id id;
    char *terminal; /* the client's name for it */
    char *command, *cwd, *name, *description;
    int64_t started_ms, exited_ms; /* since the epoch */
    int64_t deadline_ns;           /* INT64_MAX = none */
    int64_t timeout_ms;
    int background;
    bool exited;
    int exit_code; /* -1 = not known */
    int signal;
    nacre_reason reason; /* why we had it killed */
    struct acp_text text;
    bool fetching; /* a request for output is on its way */
    bool last;     /* and it was made after the exit */
    uint64_t fetches;
    bool final;     /* there will be no more text */
    bool releasing; /* the client was told */
    bool over;      /* and has answered, or is gone */
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
    nacre_acp_agent_options options;
    char *session_id;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool gone;
    uint64_t next_number;
    struct acp_call *calls;
    struct acp_shell *shells;
    struct acp_watch *watches;
};

/* -- acp_link.c ------------------------------------------------------------------------------ */

/* Sends a request; params is consumed. The answer is waited for up to answer_ms and owned by the
 * caller: the result, or the client's error as ours. Without the lock. */
int acp_call(nacre_acp_agent *a, enum acp_request kind, json_t *params, json_t **ret_result,
             nacre_error *err);

/* Sends a request about a shell whose answer feed takes in. Without the lock. */
void acp_post(nacre_acp_agent *a, enum acp_request kind, struct acp_shell *shell);

json_t *acp_target(const nacre_acp_agent *a, const struct acp_shell *shell);

/* Waits for something to change, or the deadline: false when that is over. With the lock. */
bool acp_pause(nacre_acp_agent *a, int64_t deadline_ns);

/* -- acp_text.c ------------------------------------------------------------------------------ */

/* Takes in a snapshot. 0 or -errno; then the text is as it was. */
int acp_text_update(struct acp_text *t, const char *snapshot, size_t size, bool truncated);
uint64_t acp_text_end(const struct acp_text *t);

/* Copies from *cursor on, which is advanced; a gap before it is counted. */
size_t acp_text_read(const struct acp_text *t, uint64_t *cursor, void *buf, size_t size,
                     uint64_t *ret_gap);

/* -- acp_watch.c, acp.c ---------------------------------------------------------------------- */

int acp_watch_new(nacre_acp_agent *a, struct acp_shell *shell, uint64_t offset,
                  nacre_watch **ret_watch, nacre_error *err);

/* Wakes the watches of a shell. With the lock. */
void acp_watch_ring(nacre_acp_agent *a, const struct acp_shell *shell);

/* The record as it is known here. With the lock. */
int acp_record(const struct acp_shell *shell, bool strings, nacre_record *ret_record,
               nacre_error *err);

/* Whether its time is over and it has to be killed now; asked once. With the lock. */
bool acp_is_late(struct acp_shell *shell);

#endif
