/* From state and spec to the record a caller gets. */
#ifndef NACRE_BACKEND_REPORT_H
#define NACRE_BACKEND_REPORT_H

#include <nacre/error.h>
#include <nacre/record.h>

#include "run/spec.h"
#include "run/state.h"

/* Fills a record; spec may be NULL if it is damaged. NACRE_ENOMEM or 0. */
int report_fill(const struct run_state *state, const struct spec *spec, nacre_record *ret_record,
                nacre_error *err);

/* The same without a look at the processes that are alive. */
int report_fill_plain(const struct run_state *state, const struct spec *spec,
                      nacre_record *ret_record, nacre_error *err);

/* And without strings. */
void report_state(const struct run_state *state, nacre_record *ret_record);

/* When a piece of output was read, in ms since the epoch; any number from a damaged log. */
int64_t report_time_ms(const struct run_state *state, int64_t when_us);

#endif
