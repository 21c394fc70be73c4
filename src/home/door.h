/*
 * A look at a run that is done when its state is true, whatever became of its files. A keeper that
 * somebody knocks at puts them back before it answers. If they cannot be had, what it says counts;
 * and if nobody is there, what was last known of the run is written down anew, so that it can be
 * swept like any other whose keeper is gone.
 */
#pragma once

#include <nacre/error.h>
#include <stdbool.h>
#include <stdint.h>

#include "home/home.h"
#include "home/sweep.h"

struct door {
    nacre_home *home;
    struct run *run; /* these three belong to whoever looks; the id of the run is set */
    struct sweeping *sweeping;
    struct run_state *state; /* of phase PHASE_RUN once something is known */
    int sock;                /* where an answer is awaited, or -EBADF */
    int64_t until_ns;
    bool answered;
    bool began; /* this process has started it, and may know nothing else */
};

#define DOOR_OF(home_, run_, sweeping_, state_)                                                    \
    {                                                                                              \
        .home = (home_), .run = (run_), .sweeping = (sweeping_), .state = (state_), .sock = -EBADF \
    }

#define DOOR_MS 2000 /* a keeper that lives answers within this */

/* 1 = the state is there; 0 = not yet: to be called again after SWEEP_ROUND_MS, or when d->sock is
 * readable. NACRE_EBACKEND: there is a keeper, no file, and no answer. */
int door_look(struct door *d, nacre_error *err);
void door_close(struct door *d);

/* The same before anything is waited for: 0 if there are files, or somebody to ask for them, or if
 * something of it lives that has to be swept. */
int door_begin(struct door *d, nacre_error *err);

/* Ends the keeper that is knocked at and does not answer. */
void door_force(struct door *d);

/* Wakes who is on the other side of a connection, if it was stopped. */
void door_wake(int sock);

/* How many keepers of ours listen whose runs have an id that begins so; one of them. */
int door_find(const char *prefix, nacre_id *ret_id);

/* Calls fn for each run of this home that is not over, as the signs on the doors of keepers say: it
 * needs neither a file nor a row to be found. Whoever likes may make such a name, so what it says
 * is no more than a reason to knock. */
int door_each_signed(nacre_home *h, run_fn *fn, void *userdata);

/* Whether an error says that the files of a run cannot be read. */
static inline bool door_is_lost(int code)
{
    return code == NACRE_ENOTFOUND || code == NACRE_EIO;
}
