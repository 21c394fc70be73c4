/* The end of a shell, with an answer for every way that can fail. */
#ifndef NACRE_BACKEND_KILL_H
#define NACRE_BACKEND_KILL_H

#include <nacre/session.h>

#include "run/rundir.h"

/* See nacre_kill(). options and ret_result may be NULL. */
int kill_run(const struct run *run, const nacre_kill_options *options,
             nacre_kill_result *ret_result, nacre_error *err);

/* NACRE_EUNSUPPORTED if what runs has no keeper to ask, because it runs at an ACP client's. */
int kill_check_reach(const struct run_state *state, nacre_error *err);

#endif
