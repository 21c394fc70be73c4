/* The local backend: a keeper per shell on this machine. */
#ifndef NACRE_BACKEND_LOCAL_H
#define NACRE_BACKEND_LOCAL_H

#include <nacre/backend.h>
#include <stdbool.h>

#include "config/secrets.h"

struct local_options {
    const char *home;
    const char *cwd;
    const char *keeper;
    const char *session_name;
    const char *session_cwd;     /* where the session is at home, for later ones to be found by */
    const char *shell;           /* of commands that name none; NULL = bash, else sh */
    struct secret_rules secrets; /* borrowed for as long as the backend lives */
    int64_t grace_ms;
    uint64_t quota;
    nacre_tier tier;
    nacre_id session;
    bool single;
    bool fleeting; /* what dies with the session is not kept after it */
};

/* Creates nothing on disk. Strings are copied but those of secrets. The backend is freed by its
 * close function. */
int local_new(const struct local_options *options, nacre_backend *ret_backend, nacre_error *err);

/* Whether the home is there (else NACRE_ENOTFOUND) and belongs to this user (else NACRE_EPERM). */
int local_check(void *self, nacre_error *err);

/* Makes the home, if there is none yet. */
int local_prepare(void *self, nacre_error *err);

/* The absolute path of the directory a command would run in, into a buffer of PATH_MAX. */
int local_place(void *self, const nacre_command *command, char *ret_path, nacre_error *err);

/* The record of a shell without the processes that are alive: those take long to look for. */
int local_get_plain(void *self, const nacre_id *id, nacre_record *ret_record, nacre_error *err);

/* Notes in the run directory that the completion of a shell was delivered. */
int local_told(void *self, const nacre_id *id, nacre_error *err);

/* Opens a feed to a shell; see feed.h. */
struct feed;
int local_feed(void *self, const nacre_id *id, struct feed *ret, nacre_error *err);

/* Begins to end a shell; see killing_begin() in kill.h. To be ended in any case. */
struct killing;
struct nacre_kill_options;
int local_kill_begin(void *self, const nacre_id *id, const struct nacre_kill_options *options,
                     struct killing *ret, nacre_error *err);

/* Asks a keeper to note that its shell is a background one now, or a kept one; see
 * change_begin() in change.h. To be ended in any case. */
struct change;
int local_change_begin(void *self, const nacre_id *id, int background, int keep, struct change *ret,
                       nacre_error *err);

/* The home's path and the note about it; see nacre_session_home(). */
int local_home(void *self, const char **ret_path, const char **ret_note, nacre_error *err);

#endif
