/*
 * Launching keepers. One is kept warm: executed, with its run directory made and its child
 * waiting, so that starting a command costs little more than the command itself. It is made by
 * the keeper before it when its command is over or has run for a while, or when it is wanted; never
 * before the first one.
 */
#ifndef NACRE_BACKEND_LAUNCH_H
#define NACRE_BACKEND_LAUNCH_H

#include <errno.h>
#include <nacre/error.h>
#include <nacre/id.h>
#include <nacre/record.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sys/proc.h"

struct launcher;

/*
 * What a keeper inherits and a spec cannot carry: if it changed, a warm keeper is of no use. Both
 * are compared as bytes.
 */
struct identity {
    uid_t uid, euid;
    gid_t gid, egid;
    int group_count;
    gid_t groups[32];
    int no_new_privs;
    int seccomp;
    int pad;
    uint32_t capabilities[6];
};

struct place {
    unsigned char affinity[128];
    char spaces[4][24]; /* namespaces, as the kernel names them */
    ino_t root;
};

/* A keeper that is getting ready, or is. */
struct launched {
    nacre_id id;            /* of its run; known once it is ready */
    struct proc_ref keeper; /* likewise */
    uint32_t copies;        /* likewise: see struct wire_ready */
    struct proc_ref maker;  /* of a warm one: the keeper before it */
    int sock;
    int word; /* tells what becomes of the start (struct wire_started); once it is ready */
    int next; /* the socket of the keeper after it; likewise, if a descriptor was left */
    struct identity identity;
    struct place place;
};

#define LAUNCHED_NONE                                  \
    {                                                  \
        .sock = -EBADF, .word = -EBADF, .next = -EBADF \
    }

/* Nothing is started yet. runs_fd is borrowed; keeper may be NULL. */
int launcher_new(int runs_fd, const nacre_id *session, const char *keeper, nacre_tier tier,
                 struct launcher **ret_launcher, nacre_error *err);

/* Ends the warm keeper and lets go of every other: keepers of the session end their trees. */
void launcher_end_session(struct launcher *l);
void launcher_free(struct launcher *l);

/*
 * Hands out a keeper that is ready: the warm one, if there is one for who the calling thread is, or
 * a new one. Thread-safe. The warm one is of use only if the thread has not moved since.
 */
bool launcher_take_warm(struct launcher *l, struct launched *ret_launched);
int launcher_take_new(struct launcher *l, struct launched *ret_launched, nacre_error *err);

/* Whether the calling thread is where that keeper was made. */
bool launcher_is_here(struct launcher *l, const struct launched *launched);

/* A keeper that was not used; returns when it has cleaned up. */
void launcher_dismiss(struct launcher *l, struct launched *launched);

/* Our end of the session's line to its keepers (run/wire.h): readable when one has ended. */
int launcher_line(const struct launcher *l);

/* Whether the keeper that is about to start something should make a successor. */
bool launcher_wants_warm(struct launcher *l, const struct launched *launched);

/* Keeps the successor of a keeper, which was asked for one, for the next start. Thread-safe. */
void launcher_keep(struct launcher *l, struct launched *of);

/* Where the host adopts orphans: reaps keepers that have left; waits up to that long for all. */
void launcher_reap(struct launcher *l, int wait_ms);

void launched_drop(struct launched *launched);

#endif
