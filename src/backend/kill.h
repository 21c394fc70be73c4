/*
 * The end of a shell, with an answer for every way that can fail. Nothing here stands still: poll
 * the descriptor, and step, until it is done.
 */
#ifndef NACRE_BACKEND_KILL_H
#define NACRE_BACKEND_KILL_H

#include <nacre/session.h>
#include <stdbool.h>

#include "backend/ask.h"
#include "backend/sweep.h"
#include "run/rundir.h"

enum kill_phase {
    KILL_KNOCK,    /* the keeper is to be asked */
    KILL_ASKED,    /* it has not answered yet */
    KILL_PROMISED, /* it has, and is at work */
    KILL_SWEEP,    /* it is gone, or was deaf: what it left is being swept */
    KILL_DONE
};

struct killing {
    struct run run; /* closed at the end */
    nacre_kill_options options;
    enum kill_phase phase;
    struct run_state state; /* when it was last looked at */
    struct ask ask;
    struct sweeping sweeping;
    int64_t door_ns; /* until then a closed door is knocked at */
    int64_t wake_ns; /* when to step it although the descriptor is silent */
    nacre_kill_result result;
};

#define KILLING_NONE                                                                    \
    (struct killing)                                                                    \
    {                                                                                   \
        .run = RUN_NONE, .phase = KILL_DONE, .ask = ASK_NONE, .sweeping = SWEEPING_NONE \
    }

/* Begins, and steps once; the run was put there. See nacre_kill(). options may be NULL. */
int killing_begin(struct killing *k, const nacre_kill_options *options, nacre_error *err);

/* 1 = the result is there, 0 = not yet. */
int killing_step(struct killing *k, nacre_error *err);

/* The descriptor to poll for reading, or -1. */
int killing_fd(const struct killing *k);

/* Whether it goes on without being stepped. */
bool killing_is_promised(const struct killing *k);

/* Waits until it is done: 0, or the error. */
int killing_wait(struct killing *k, nacre_error *err);
void killing_end(struct killing *k);

/* NACRE_EUNSUPPORTED if what runs has no keeper to ask, because it runs at an ACP client's. */
int kill_check_reach(const struct run_state *state, nacre_error *err);

#endif
