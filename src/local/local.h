/*
 * The local backend: shells of this machine, a keeper for each.
 *
 *   local.c        the backend: opened, heard, closed
 *   start_local.c  from a command to a keeper that says that it runs it
 *   launch.c       keepers: made, kept warm, dismissed; find_keeper.c the program
 *   fences.c       what commands run in, made once for a session
 *   ask.c          an exchange with a keeper
 *   questions.c    what keepers ask: whether something may be executed
 *   kill.c         the end of a shell
 *   words.c        input, signals and changes; ask_reads.c who reads the input
 */
#pragma once

#include <nacre/backend.h>
#include <nacre/session.h>
#include <pthread.h>
#include <stdbool.h>

#include "home/home.h"
#include "local/fences.h"
#include "local/launch.h"

struct local {
    nacre_home *home;     /* borrowed */
    pthread_mutex_t lock; /* over the rest */
    char *keeper;         /* path of the program; NULL = to be looked for */
    nacre_tier tier;
    bool single; /* no keeper is kept warm */
    struct launcher *launcher;
    int64_t longest_grace_ms; /* of any command */
    nacre_id *mine;           /* shells that die with the session and may still be alive */
    size_t mine_count;
    size_t mine_cap;
    struct fences fences;
    int policy_fd;                    /* the rules for keepers; -EBADF = none */
    struct local_question *questions; /* heard on the line, and not yet taken */
};

/* Somebody is to be asked whether a process of a shell may execute something. */
struct local_question {
    struct local_question *next;
    nacre_id id; /* of the shell */
    int reply;   /* for local_reply() */
    const char *cwd;
    const char *argv[]; /* ends with NULL; the strings are behind it */
};

/* Creates nothing on disk. keeper may be NULL; what wish points to has to outlive the backend.
 * Closing the backend frees it. */
int local_new(nacre_home *home, const char *keeper, nacre_tier tier, bool single,
              const struct fence_wish *wish, nacre_backend *ret_backend, nacre_error *err);

/* Before any is started: what commands may execute, rules as in policy/packed.h. 0 or -errno. */
int local_set_policy(struct local *l, const void *packed, size_t size);

/* A command that is about to be started has been granted parts of it (policy/packed.h). The bytes
 * are borrowed until it has started. */
void local_grant(nacre_op *start, const char *granted, size_t size);

/* The next question, or NULL. Free with local_question_free(). */
struct local_question *local_take_question(struct local *l);
void local_question_free(struct local_question *question);

/* What becomes of it (enum wire_answer_kind): 0, or -errno if nobody waits for it any more. */
int local_reply(int reply, unsigned answer);

/* The verbs; each reaches every run of the home that has a keeper. */
int local_start(void *self, const nacre_command *command, nacre_op **ret_op, nacre_error *err);
int local_kill(void *self, const nacre_id *id, const nacre_kill_options *options, nacre_op **ret_op,
               nacre_error *err);
int local_input(void *self, const nacre_id *id, const void *data, size_t size, int eof,
                nacre_op **ret_op, nacre_error *err);
int local_signal(void *self, const nacre_id *id, int signal, nacre_op **ret_op, nacre_error *err);
int local_resize(void *self, const nacre_id *id, int columns, int rows, nacre_op **ret_op,
                 nacre_error *err);
int local_reads(void *self, const nacre_id *id, unsigned set, int64_t held_ms, nacre_op **ret_op,
                nacre_error *err);
int local_change(void *self, const nacre_id *id, int background, int keep, nacre_op **ret_op,
                 nacre_error *err);

/* What a start needs: the directory of runs, and a launcher. */
int local_prepare(struct local *l, nacre_error *err);

/* Remembers a shell for the end of the session. The list stays as short as what is alive. */
void local_remember(struct local *l, const nacre_id *id, int64_t grace_ms);
