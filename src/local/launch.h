/*
 * Launching keepers. One is kept warm: executed, with its run directory made and its child
 * waiting, so that starting a command costs little more than the command itself. It is made by
 * the keeper before it when its command is over or has run for a while, or when it is wanted; never
 * before the first one.
 */
#pragma once

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
struct scope_ask;
struct fences;
struct made_fence;
struct gate_order;

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

struct standpoint {
    unsigned char affinity[128];
    char spaces[4][24]; /* namespaces, as the kernel names them */
    ino_t root;
};

/* A keeper that is getting ready, or is. */
struct launched {
    nacre_id id;            /* of its run; known once it is ready */
    struct proc_ref keeper; /* known as soon as it has said so */
    uint32_t copies;        /* likewise: see struct wire_ready */
    int error;              /* why it cannot get ready: errno, 0 = nothing was said */
    struct proc_ref maker;  /* of a warm one: the keeper before it */
    int sock;
    int word;      /* tells what becomes of the start (struct wire_started); once it is ready */
    int next;      /* the socket of the keeper after it; likewise, if a descriptor was left */
    bool in_scope; /* of the user's service manager, made for it */
    struct scope_ask *ask;          /* for that, while it has not been greeted; else NULL */
    int runs;                       /* the directory that it is to be told of then */
    unsigned home;                  /* see home_moves() */
    const struct made_fence *fence; /* that its commands run in; NULL = none */
    struct identity identity;
    struct standpoint standpoint;
};

#define LAUNCHED_NONE                                                  \
    {                                                                  \
        .sock = -EBADF, .word = -EBADF, .next = -EBADF, .runs = -EBADF \
    }

/* Nothing is started yet; home is its number; keeper may be NULL. */
int launcher_new(const nacre_id *session, uint32_t home, const char *keeper, nacre_tier tier,
                 struct launcher **ret_launcher, nacre_error *err);

void launcher_free(struct launcher *l);

/* What its keepers hold against whatever is executed, before the first one is launched; borrowed,
 * -EBADF = nothing. */
void launcher_set_policy(struct launcher *l, int policy_fd);

/* The directory of runs has become another one: a keeper that is warm, or gets ready, for the one
 * before is not handed out any more. */
void launcher_set_home(struct launcher *l, unsigned moves);

/* The end of the session: the warm keeper is dismissed, and the line is closed, so that the others
 * end their trees. */
void launcher_end_session(struct launcher *l);

/* What a keeper is wanted for. */
struct errand {
    const struct fences *fences;
    const struct made_fence *fence; /* of those; NULL = none */
    bool kept;                      /* its command outlives the session */
};

/*
 * Hands out a keeper that is ready, or gets ready: the warm one, if there is one for who the
 * calling thread is, or a new one. Thread-safe. The warm one is of use only if the thread has not
 * moved since, and for errands like the one that it was made for; one that was made for somebody
 * else is dismissed. A new one makes its run directory in runs_fd, and its commands run in the
 * fence of those. If it has launched.ask, it has to be greeted first.
 */
bool launcher_take_warm(struct launcher *l, const struct errand *errand,
                        struct launched *ret_launched);
int launcher_take_new(struct launcher *l, int runs_fd, const struct errand *errand,
                      struct launched *ret_launched, nacre_error *err);

/* What becomes of its scope, without waiting: 1 = it is greeted, in its scope or, if that is
 * refused or takes too long (late), where it is; 0 = the bus has not answered yet. */
int launcher_greet(struct launcher *l, const struct errand *errand, struct launched *launched,
                   bool late, nacre_error *err);

/* The program of keepers, borrowed; and what a gate of this session has to have. */
int launcher_program(const struct launcher *l);
void launcher_fill_gate_order(const struct launcher *l, struct gate_order *order);

/* The keeper's word that everything is prepared: 1 = it is ready, 0 = not yet. */
int launcher_hear_ready(struct launcher *l, struct launched *launched, nacre_error *err);

/* A warm one is made when its maker has nothing else to do, or at once if somebody waits. It, or
 * its maker, may have been stopped, and is woken. */
void launched_hurry(const struct launched *launched);
void launched_wake(const struct launched *launched);

/* Whether the calling thread is where that keeper was made. */
bool launcher_is_here(struct launcher *l, const struct launched *launched);

/* Says goodbye to a keeper that is not wanted: it cleans up, and goes. What was launched is
 * dropped. */
void launcher_dismiss(struct launcher *l, struct launched *launched);

/* How many of those have not gone yet; one of them is heard of at *ret_fd. */
size_t launcher_dismissed(struct launcher *l, int *ret_fd);

/* Our end of the session's line to its keepers (run/wire.h): readable when one has ended. */
int launcher_line(const struct launcher *l);

/* Whether the keeper that is about to start something should make a successor. One that stands
 * outside of the scope that it should have is no mother of others. */
bool launcher_wants_warm(struct launcher *l, const struct launched *launched);

/* Keeps the successor of a keeper, which was asked for one, for the next start. Thread-safe. */
void launcher_keep(struct launcher *l, struct launched *of);

/* Where the host adopts orphans: reaps keepers that have left; how many have not. */
size_t launcher_reap(struct launcher *l);

void launched_drop(struct launched *launched);
