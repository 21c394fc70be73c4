/* From what a caller asks to the spec of a run: checked, resolved, and laid out as bytes. */
#pragma once

#include <nacre/command.h>
#include <nacre/error.h>
#include <nacre/id.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "base/buf.h"
#include "config/secrets.h"
#include "run/spec.h"
#include "sys/proc.h"

/* What is known of the program that was looked at last. */
struct compose_shells {
    pthread_mutex_t lock;
    dev_t device;
    ino_t inode;
    struct timespec changed;
    bool takes_preload;
};

struct compose {
    const nacre_command *command;
    struct compose_shells *shells;
    const nacre_id *session;
    struct proc_ref owner;
    const char *cwd; /* the session's; NULL = the host's */
    const char *session_name;
    const char *session_cwd; /* for later sessions to be found by */
    const char *shell;       /* likewise; NULL = bash, else sh */
    const struct secret_rules *secrets;
    const char *run_path;      /* of the run directory */
    const char *sandbox;       /* what it runs in, in words; NULL = nothing */
    const char *const *fenced; /* variables of that, under those of the call; may be NULL */
    const char *granted;       /* what of it a person has said yes to: granted_size bytes */
    size_t granted_size;
    int64_t grace_ms;
    uint64_t quota;
    bool gated;     /* rules are held against whatever it executes */
    bool person;    /* the session is a person's, for single commands */
    bool successor; /* the keeper shall make the next one ready */
    bool fleeting;  /* nothing of it is kept after the session */
    bool elsewhere; /* it runs on another machine, or as if: programs are not looked for, shell is
                       taken as it is, and of the environment there is what was asked for */
};

/* Everything that can be wrong with a command before anything is started. */
int compose_check(const nacre_command *command, nacre_error *err);

/* The absolute path of the directory the command will run in, into a buffer of PATH_MAX. */
int compose_cwd(const struct compose *c, char *ret_path, nacre_error *err);

/* How the calling thread stands now. */
void compose_host(struct spec_host *ret_host);

/* The bytes of the spec file, but for how the host stands: that is noted by whoever executes it. */
int compose_spec(const struct compose *c, const nacre_id *id, const char *cwd, struct buf *out,
                 nacre_error *err);

/* The descriptor that becomes stdin, or -EBADF if the keeper provides it; the caller closes it. */
int compose_input(const nacre_command *command, int *ret_fd, nacre_error *err);

/* -- The environment of a command ------------------------------------------------------------- */

/* The host's without its secrets, then what keeps tools from asking, then the call's. */

/*
 * Appends the entries to out, each with its NUL, and counts them. extra: "NAME=value" or "NAME"
 * to remove; NULL-terminated or NULL. What it sets is passed on, whatever it is called; of the
 * host's, only what the rules let pass. terminal: it has one. fenced, likewise, lies between the
 * two. cwd becomes PWD. 0 or -errno.
 */
int environment_build(const nacre_id *id, const char *cwd, bool terminal, const char *const *fenced,
                      const char *const *extra, const struct secret_rules *rules, struct buf *out,
                      uint32_t *ret_count);

/* The same of a command that runs elsewhere: without the host's, NACRE_ID and PWD. */
int environment_own(const char *const *extra, struct buf *out, uint32_t *ret_count);

/* The value a command will see for a name, from extra or the host; NULL if none. */
const char *environment_lookup(const char *const *extra, const struct secret_rules *rules,
                               const char *name);
