/*
 * After a keeper: what it left is killed, and the run is recorded as lost. Done by whichever
 * front end looks first, under the lock that the keeper used to hold. Never across the border of
 * a pid namespace, and after another boot there is nothing to kill.
 */
#ifndef NACRE_BACKEND_SWEEP_H
#define NACRE_BACKEND_SWEEP_H

#include <stdint.h>

#include "run/rundir.h"

/*
 * The state of a run, true at the time it is given: if its keeper is gone without having finished
 * it, it is swept first. Who resists (a process may not be killable for a while) is waited for
 * once: the run is lost, its tree alive, and each further look tries again without waiting.
 * NACRE_ENOTFOUND for what never became a run.
 */
int sweep_state(const struct run *run, struct run_state *ret_state, nacre_error *err);

/* A sweep in steps, for who must not stand still. */
enum sweep_phase { SWEEP_LOCK, SWEEP_KEEPER, SWEEP_CGROUP, SWEEP_MARK, SWEEP_RECORD };

struct sweeping {
    int fd; /* the state, with the lock from the second phase on */
    enum sweep_phase phase;
    int64_t deadline_ns; /* of the phase */
    bool again;          /* somebody swept before, in vain */
    int doubts;
    struct run_state state;
};

#define SWEEPING_NONE \
    (struct sweeping) \
    {                 \
        .fd = -EBADF, \
    }

#define SWEEP_ROUND_MS 2 /* between two steps */

/* Like sweep_state(): 1 = the state is there; 0 = a sweep has begun, to be stepped. To be ended in
 * any case, as below. */
int sweep_begin(const struct run *run, struct sweeping *s, struct run_state *ret_state,
                nacre_error *err);

/*
 * A keeper that answers nothing: SIGKILL, and a sweep begins. The caller has tried SIGCONT. 1 = it
 * was over already, and the state is there; 0 = to be stepped.
 */
int sweep_by_force(const struct run *run, struct sweeping *ret, struct run_state *ret_state,
                   nacre_error *err);

/* 1 = the run is swept, and the state is there; 0 = not yet, none of it waits. */
int sweep_step(const struct run *run, struct sweeping *s, struct run_state *ret_state,
               nacre_error *err);
void sweep_end(struct sweeping *s);

/* Wakes a keeper that was stopped; the caller has waited for it in vain. */
void sweep_wake(const struct run_state *state);

/* The same for who has not waited yet: only if it is stopped. */
void sweep_wake_stopped(const struct run_state *state);

/* Whether the pids in a state mean anything here and now. */
bool sweep_is_here(const struct run_state *state);

#endif
