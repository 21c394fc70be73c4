/* Requests to a running keeper: kill and input, with an answer for every way it can fail. */
#ifndef NACRE_BACKEND_KILL_H
#define NACRE_BACKEND_KILL_H

#include <nacre/session.h>

#include "run/rundir.h"

/* See nacre_kill(). options and ret_result may be NULL. */
int kill_run(const struct run *run, const nacre_kill_options *options,
             nacre_kill_result *ret_result, nacre_error *err);

/* See nacre_signal(). */
int signal_run(const struct run *run, int signal, nacre_error *err);

/* See nacre_input(). */
int64_t input_run(const struct run *run, const void *data, size_t size, int eof, int64_t timeout_ms,
                  nacre_error *err);

#endif
