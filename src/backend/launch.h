/*
 * Launching keepers. One is kept warm: executed, with its run directory made and its child
 * waiting, so that starting a command costs little more than the command itself. It is made
 * while a command runs, never before the first one.
 */
#ifndef NACRE_BACKEND_LAUNCH_H
#define NACRE_BACKEND_LAUNCH_H

#include <nacre/error.h>
#include <nacre/id.h>
#include <nacre/record.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct launcher;

/* A keeper that is getting ready, or is. */
struct launched {
    nacre_id id;
    int sock;
    pid_t stage; /* the process that detaches it; reaped when it is ready */
};

/* Nothing is started yet. runs_fd is borrowed; keeper may be NULL. */
int launcher_new(int runs_fd, const nacre_id *session, const char *keeper, nacre_tier tier,
                 struct launcher **ret_launcher, nacre_error *err);

/* Ends the warm keeper and lets go of every other: keepers of the session end their trees. */
void launcher_end_session(struct launcher *l);
void launcher_free(struct launcher *l);

/* Hands out a keeper that is ready: the warm one, or a new one. Thread-safe. */
int launcher_take(struct launcher *l, struct launched *ret_launched, nacre_error *err);

/* Makes a warm keeper if there is none. Thread-safe; failures show at the next take. */
void launcher_refill(struct launcher *l);

/* Where the host adopts orphans: reaps keepers that have left; waits up to that long for all. */
void launcher_reap(struct launcher *l, int wait_ms);

void launched_drop(struct launched *launched);

#endif
