/* What the files of the local backend share. */
#ifndef NACRE_BACKEND_LOCAL_PARTS_H
#define NACRE_BACKEND_LOCAL_PARTS_H

#include <nacre/backend.h>
#include <pthread.h>
#include <stdbool.h>

#include "backend/compose.h"
#include "backend/launch.h"
#include "backend/local.h"
#include "run/home.h"
#include "run/rundir.h"
#include "sys/proc.h"

struct local {
    pthread_mutex_t lock; /* over what is opened late, and the list */
    struct home home;
    char *configured;
    char *keeper;
    char *cwd;
    char *shell;
    struct secret_rules secrets;
    char *name;  /* of the session */
    char *place; /* its default directory, whatever the host does later */
    nacre_id session;
    struct proc_ref owner; /* this process */
    int64_t grace_ms;
    int64_t longest_grace_ms; /* of any command */
    uint64_t quota;
    nacre_tier tier;
    bool single;
    bool fleeting;
    int runs_fd;
    struct launcher *launcher;
    struct compose_shells shells;
    nacre_id *mine; /* shells that die with the session and may still be alive */
    size_t mine_count;
    size_t mine_cap;
};

/* local.c: the directory of runs, if there is one; reading creates nothing. */
int local_runs(struct local *l, nacre_error *err);
/* The same; made if there is none. */
int local_make_runs(struct local *l, nacre_error *err);
int local_open_for_starting(struct local *l, nacre_error *err);
int local_open_run(struct local *l, const nacre_id *id, struct run *ret_run, nacre_error *err);
/* Remembers a shell for the end of the session. The list stays as short as what is alive. */
int local_remember(struct local *l, const nacre_id *id, int64_t grace_ms);
int local_get(void *self, const nacre_id *id, nacre_record *ret_record, nacre_error *err);

/* local_create.c */
int local_create(void *self, const nacre_command *command, nacre_id *ret_id,
                 nacre_watch **ret_watch, nacre_error *err);

/* local_list.c */
int local_find(void *self, const char *prefix, nacre_id *ret_id, nacre_error *err);
int local_list(void *self, int only_alive, int (*fn)(const nacre_record *, void *), void *userdata,
               nacre_error *err);
int local_remove(void *self, const nacre_id *id, nacre_error *err);

/* local_owner.c */
int local_bell(void *self);
int local_rung(void *self, nacre_id *ret_id);
int local_change(void *self, const nacre_id *id, int background, int keep, nacre_error *err);
int local_owner(void *self, const nacre_id *id, nacre_id *ret_session, int *ret_alive,
                nacre_error *err);

/* usage.c */
int local_usage(void *self, const nacre_id *id, nacre_usage *ret_usage, nacre_error *err);

#endif
