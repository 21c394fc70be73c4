/*
 * The fences of a session: composed when a command first wants one, made by nacre-fence once, and
 * handed to every keeper whose commands run inside. What is made is held in descriptors; the
 * directory for what is private inside lies in the home, and is locked by whoever has a part in it.
 */
#pragma once

#include <nacre/command.h>
#include <nacre/error.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "fence/fence_plan.h"
#include "home/home.h"
#include "local/gate.h"
#include "run/wire.h"

#define FENCES_MAX                                                                 \
    6 /* a session's own, that of calls that want less, and of calls that got more \
       */

/* One that is not as it was composed any more is made anew in the same network, for what starts
 * then; what runs stays where it is. */
struct made_fence {
    enum fence_mode mode;
    struct fence_more more;  /* of its own; what its user allowed for single calls */
    struct made_fence *next; /* of those that another has taken the place of */
    _Atomic bool replaced;
    size_t users; /* starts that are under way */
    struct fence_plan plan;
    bool made;
    int fd[FENCE_FDS]; /* in the order of enum wire_fence_fds; the first is there when it is
                          composed */
    uint32_t landlock;
    uint32_t port;
    struct gate gate; /* its way out, where it has one */
    bool gate_open;
};

struct fences {
    pthread_mutex_t lock;
    struct fence_wish wish; /* of the session; its lists are borrowed from the settings */
    char private_dir[4096]; /* "" = there is none yet */
    int private_fd;         /* locked */
    struct made_fence *list[FENCES_MAX]; /* first one for each mode that was wanted */
    size_t count;
    struct made_fence *replaced; /* empty, but they stay: others compare with where they are */
};

void fences_init(struct fences *f, const struct fence_wish *wish);

/* Where a session of that id has what is private. */
void fences_name_private_dir(const char *home, const nacre_id *session, char ret_path[4096]);

/* This session has no part in what is private any more; and whether nobody else has. */
void fences_let_go(struct fences *f);
bool fences_are_left(const struct fences *f);

/* forked: only memory is freed. Else what is private is removed, if nobody uses it any more. */
void fences_done(struct fences *f, bool forked);

/* The fence of a command: NULL = it runs without. It may not be made yet. keeper_fd is the program,
 * beside which nacre-fence lies. The caller gives it back, when the command runs or does not. */
int fences_want(struct fences *f, nacre_home *home, const nacre_command *command, int keeper_fd,
                struct made_fence **ret_fence, nacre_error *err);
void fences_give_back(struct fences *f, struct made_fence *fence);

/* "workspace-write, network off"; and the record of the one that is called so, borrowed for as long
 * as the session lives. */
const char *fences_words(const struct made_fence *fence);
bool fences_of_words(struct fences *f, const char *words, struct fence *ret_record);

/* Starts nacre-fence for one that is not made: a socket to hear it on. */
int fences_begin(struct fences *f, const struct made_fence *fence, int keeper_fd, int *ret_sock,
                 nacre_error *err);

/* 1 = it is made, 0 = not yet. */
int fences_hear(struct fences *f, struct made_fence *fence, int sock, nacre_error *err);

/* Opens the gate of one that is made, if it has one: 1 = it is open, 0 = not yet; *ret_fd is
 * readable when it may be. order: with program, line and owner. */
int fences_open_gate(struct fences *f, struct made_fence *fence, const struct gate_order *order,
                     int *ret_fd, nacre_error *err);

/* The variables of a command inside: those of the plan, and how the gate is reached, by the name of
 * the run. The caller frees the list, each entry and itself. NULL = out of memory. */
char **fences_variables(const struct made_fence *fence, const nacre_id *run);
void fences_free_variables(char **list);

/* Has a keeper's commands run in it: the message after its hello. 0 or -errno. */
int fences_tell(const struct fences *f, const struct made_fence *fence, int sock);
