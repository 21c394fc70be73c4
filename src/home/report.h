/* What a caller gets of a run: from state and spec to its record, from its log to pieces, and
 * readers over one of its streams (home_reader()). */
#pragma once

#include <nacre/error.h>
#include <nacre/record.h>
#include <nacre/watch.h>

#include "run/log.h"
#include "run/spec.h"
#include "run/state.h"
#include "sys/proc.h"

/* Whether a record may be filled: it starts from NACRE_RECORD_INIT. */
int report_check(const nacre_record *record, nacre_error *err);

/* Fills a record; spec may be NULL if it is damaged. NACRE_ENOMEM or 0. */
int report_fill(const struct run_state *state, const struct spec *spec, nacre_record *ret_record,
                nacre_error *err);

/* The same without a look at the processes that are alive. */
int report_fill_plain(const struct run_state *state, const struct spec *spec,
                      nacre_record *ret_record, nacre_error *err);

/* The processes of its tree that are alive, where its pids mean anything; how many were stored. */
size_t report_living(const struct run_state *state, struct proc_ref *refs, size_t max);

/* And without strings. */
void report_state(const struct run_state *state, nacre_record *ret_record);

/* A piece of a log, as a caller gets it. */
nacre_piece report_piece(const struct run_state *state, const struct log_piece *piece);
