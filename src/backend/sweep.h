/*
 * After a keeper: what it left is killed, and the run is recorded as lost. Done by whichever
 * front end looks first, under the lock that the keeper used to hold. Never across the border of
 * a pid namespace, and after another boot there is nothing to kill.
 */
#ifndef NACRE_BACKEND_SWEEP_H
#define NACRE_BACKEND_SWEEP_H

#include "run/rundir.h"

/*
 * The state of a run, true at the time it is given: if its keeper is gone without having finished
 * it, it is swept first. NACRE_ENOTFOUND for what never became a run.
 */
int sweep_state(const struct run *run, struct run_state *ret_state, nacre_error *err);

/* A keeper that answers nothing: SIGKILL, and sweep. The caller has tried SIGCONT. */
int sweep_by_force(const struct run *run, struct run_state *ret_state, nacre_error *err);

/* Wakes a keeper that was stopped; the caller has waited for it in vain. */
void sweep_wake(const struct run_state *state);

/* Whether the pids in a state mean anything here and now. */
bool sweep_is_here(const struct run_state *state);

#endif
