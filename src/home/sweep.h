/*
 * After a keeper: what it left is killed, and the run is recorded as lost. Done by whichever
 * front end looks first, under the lock that the keeper used to hold. Never across the border of
 * a pid namespace, and after another boot there is nothing to kill. A keeper that lives and does
 * not do what it owes is woken, or made to leave, first.
 */
#pragma once

#include <stdint.h>

#include "run/rundir.h"
#include "sys/proc.h"

/*
 * The state of a run as it is now: 0, or 1 = it has to be looked at (see home_look()): its keeper
 * is gone without having finished it, and it was not swept yet, so that a command that ran is lost;
 * or its keeper is stopped or late. NACRE_ENOTFOUND for what never became a run.
 */
int sweep_peek(const struct run *run, struct run_state *ret_state, nacre_error *err);

/*
 * A sweep, in steps that do not wait. Who resists (a process may not be killable for a while) is
 * waited for once: the run is lost, its tree alive, and each further sweep tries again without
 * waiting.
 */
enum sweep_phase {
    SWEEP_TREE, /* of a keeper that lives, from outside; it may still say itself how it ended */
    SWEEP_LOCK,
    SWEEP_KEEPER,
    SWEEP_CGROUP,
    SWEEP_MARK,
    SWEEP_RECORD,
};

struct sweeping {
    int fd; /* the state, with the lock from the second phase on */
    enum sweep_phase phase;
    int64_t first_ns;    /* when it was first begun; 0 = not yet */
    int64_t deadline_ns; /* of the phase */
    bool again;          /* somebody swept before, in vain */
    int doubts;
    nacre_reason why;                      /* it was ended, if that is known */
    size_t count;                          /* of the tree, while its keeper lives */
    int64_t moved_ns;                      /* when that last changed */
    struct proc_ref left[STATE_SURVIVORS]; /* of that tree, when its keeper was killed */
    struct run_state state;
};

#define SWEEPING_NONE \
    (struct sweeping) \
    {                 \
        .fd = -EBADF, \
    }

#define SWEEP_ROUND_MS 2 /* between two steps */

/* The state, true at the time it is given: 1 = it is there; 0 = a sweep has begun, to be stepped.
 * To be ended in any case, as below. */
int sweep_begin(const struct run *run, struct sweeping *s, struct run_state *ret_state,
                nacre_error *err);

/*
 * A keeper that does not do what it has to, and why that was wanted. The caller has tried SIGCONT.
 * Its tree is ended from outside; then it gets a moment to say so itself, unless why is
 * NACRE_REASON_NONE; then SIGKILL, and a sweep. 1 = it was over already, and the state is there;
 * 0 = to be stepped.
 */
int sweep_by_force(const struct run *run, struct sweeping *ret, nacre_reason why,
                   struct run_state *ret_state, nacre_error *err);

/* 1 = the run is swept, and the state is there; 0 = not yet, none of it waits. */
int sweep_step(const struct run *run, struct sweeping *s, struct run_state *ret_state,
               nacre_error *err);
void sweep_end(struct sweeping *s);

/* All of it at once, as far as that goes without waiting: 1 = the state is there, 0 = to be called
 * again after SWEEP_ROUND_MS. In between nothing is held: who does not come back is in nobody's
 * way. */
int sweep_look(const struct run *run, struct sweeping *s, struct run_state *ret_state,
               nacre_error *err);

/* Whether something of a run is alive, of which no more is known than what can be guessed. */
bool sweep_finds_life(const struct run_state *state);

/* Wakes a keeper that was stopped; the caller has waited for it in vain. */
void sweep_wake(const struct run_state *state);

/* The same for who has not waited yet: only if it is stopped, or traced; whether it was. */
bool sweep_wake_stopped(const struct run_state *state);

/* Whether the pids in a state mean anything here and now. */
bool sweep_is_here(const struct run_state *state);
