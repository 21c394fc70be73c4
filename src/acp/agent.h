/*
 * What the files of the acp backend share.
 *
 *   agent.c            the agent, and the verbs that are done at once
 *   agent_ops.c        those that wait for the client: kill, look, close
 *   agent_create.c     from a command to a terminal
 *   agent_link.c       requests on their way, the answers to them, and what is due
 *   agent_text.c       one growing text out of snapshots
 *   agent_workspace.c  which directories are in the workspace
 *
 * Everything is under one lock, but for the callbacks: they are never called with it held.
 */
#pragma once

#include <nacre/acp.h>
#include <nacre/session.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

#include <jansson.h>

#include "base/buf.h"

enum acp_request {
    ACP_CREATE, /* an operation waits for the answer */
    ACP_KILL,   /* likewise, unless nobody waits for the end */
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

struct acp_shell {
    struct acp_shell *next;
    nacre_id id;
    char *terminal;       /* the client's name for it */
    nacre_mirror *mirror; /* NULL = all of it is written, or its session was closed */
    struct acp_text text;
    int64_t deadline_ns; /* INT64_MAX = none */
    int64_t patience_ns; /* when it goes on without what the client owes; INT64_MAX = never */
    int64_t look_ns;     /* when its output is asked for again, if somebody watches */
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
    struct acp_shell *shell; /* NULL of ACP_CREATE, and of what releases an unwanted terminal */
    bool awaited;            /* an operation takes the answer and frees this */
    bool done;
    json_t *answer; /* the whole message; NULL if the client has gone */
};

/* The beginning of an operation that waits for something that the client does. */
struct acp_op {
    nacre_op op; /* its descriptor is readable when something was heard */
    struct acp_op *next;
    nacre_acp_agent *agent;
    struct acp_shell *shell; /* NULL of a close */
    struct acp_call *call;   /* whose answer it awaits; NULL = none, or none any more */
    int64_t deadline_ns;     /* until when it waits */
    /* Whether that has happened, without waiting: as a step. Without the lock. */
    int (*see)(struct acp_op *o, nacre_error *err);
};

struct nacre_acp_agent {
    nacre_backend backend;
    nacre_home *home; /* of the session that uses it; NULL = none */
    nacre_acp_agent_options options;
    char *session_id;
    char **workspace; /* normalised, NULL-terminated; NULL = anywhere */
    pid_t owner;      /* the process that opened it */
    int bell_fd;      /* readable when a shell of the background has ended */
    pthread_mutex_t lock;
    bool gone;
    uint64_t next_number;
    struct acp_call *calls;
    struct acp_shell *shells; /* until the agent is closed: who has found one may keep it */
    struct acp_op *ops;       /* that wait, if another thread reads the connection */
};

/* NULL = no terminal of this agent's. */
struct acp_shell *acp_find_shell(nacre_acp_agent *a, const nacre_id *id);

/* -- agent_ops.c ------------------------------------------------------------------------------- */

int acp_kill(void *self, const nacre_id *id, const nacre_kill_options *options, nacre_op **ret_op,
             nacre_error *err);
int acp_look(void *self, const nacre_id *id, nacre_op **ret_op, nacre_error *err);
int acp_close(void *self, int forked, nacre_op **ret_op, nacre_error *err);

/* An operation of size bytes, zeroed but for its beginning; it waits for answer_ms. NULL if out of
 * memory, which err says then. */
struct acp_op *acp_op_new(nacre_acp_agent *a, size_t size,
                          int (*see)(struct acp_op *, nacre_error *), struct acp_shell *shell,
                          nacre_error *err);
void acp_op_end(nacre_op *op);

/* The answer that it awaits: 1 = *ret_result is the caller's, 0 = not yet, or the client's error as
 * ours. */
int acp_op_hear(struct acp_op *o, json_t **ret_result, nacre_error *err);

/* -- agent_create.c ---------------------------------------------------------------------------- */

int acp_start(void *self, const nacre_command *command, nacre_op **ret_op, nacre_error *err);
void acp_shell_free(struct acp_shell *shell);

/* -- agent_link.c: without the lock, but where it says so -------------------------------------- */

/* Sends a request whose answer an operation awaits; params is consumed. */
int acp_ask(struct acp_op *o, enum acp_request kind, json_t *params, nacre_error *err);

/* The answer to a call, if it is done: see acp_op_hear(). */
int acp_take_answer(struct acp_call *call, bool done, json_t **ret_result, nacre_error *err);

/* Nobody awaits it any more. A terminal that is made all the same is released. */
void acp_drop_call(nacre_acp_agent *a, struct acp_call *call);

/* Sends a request about a shell whose answer feed takes in. */
void acp_post(nacre_acp_agent *a, enum acp_request kind, struct acp_shell *shell);

json_t *acp_target_of(const nacre_acp_agent *a, const char *terminal);

/* Whether there is something to kill; then it is noted why. */
bool acp_condemn(nacre_acp_agent *a, struct acp_shell *shell, nacre_reason reason);

/*
 * Does what is due: takes in what has come, if nobody else reads the connection; kills what is
 * late; and has shells go on whose client was told to end a command and reports no exit, or has
 * reported one and neither shows the output nor answers the release. When there is more to do: in
 * ns.
 */
int64_t acp_tend(nacre_acp_agent *a);

/* Writes down what is known of a shell; or that nothing more will be heard of it. With the lock. */
void acp_note(struct acp_shell *shell);
void acp_note_end(nacre_acp_agent *a, struct acp_shell *shell);

/* -- agent_text.c ------------------------------------------------------------------------------ */

/* Takes in a snapshot. Returns where its new text begins; *ret_gap: not right behind the old. */
size_t acp_text_take(struct acp_text *t, const char *snapshot, size_t size, bool truncated,
                     bool *ret_gap);

/* -- agent_workspace.c ------------------------------------------------------------------------- */

/* An absolute path without empty parts, "." and ".."; NULL if out of memory. */
char *acp_place_normal(const char *path);

/* Whether a directory is one of the list or below one, also with links followed, as far as they
 * are on this machine. -ENOMEM, or 1 and 0. */
int acp_place_is_within(const char *path, char *const *list);
