/* What a keeper notes of its shell while it runs, without standing still: poll the descriptor, and
 * step. */
#ifndef NACRE_BACKEND_CHANGE_H
#define NACRE_BACKEND_CHANGE_H

#include <nacre/error.h>

#include "backend/ask.h"
#include "run/rundir.h"

struct change {
    struct run run; /* closed at the end */
    struct run_state state;
    struct ask ask; /* its socket and its deadline are what to wait for */
};

#define CHANGE_NONE                       \
    (struct change)                       \
    {                                     \
        .run = RUN_NONE, .ask = ASK_NONE, \
    }

/*
 * From now on (1) it is a background shell, and survives its session. The run was put there. 1 =
 * done: there is nobody to note it any more; 0 = the keeper was asked. To be ended in any case.
 */
int change_begin(struct change *c, int background, int keep, nacre_error *err);

/* 1 = noted, or nobody is there any more; 0 = not yet. */
int change_step(struct change *c, nacre_error *err);
void change_end(struct change *c);

#endif
