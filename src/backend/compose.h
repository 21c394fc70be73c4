/* From what a caller asks to the spec of a run: checked, resolved, and laid out as bytes. */
#ifndef NACRE_BACKEND_COMPOSE_H
#define NACRE_BACKEND_COMPOSE_H

#include <nacre/command.h>
#include <nacre/error.h>
#include <nacre/id.h>
#include <pthread.h>
#include <stdbool.h>
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
    const char *run_path; /* of the run directory */
    int64_t grace_ms;
    uint64_t quota;
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

#endif
