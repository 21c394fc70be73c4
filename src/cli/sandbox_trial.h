/* Finding out by trying: commands that are run in a home of their own, which is gone afterwards;
 * and what a sandbox that was entered holds. */
#pragma once

#include <jansson.h>
#include <nacre/nacre.h>

#include "console/out.h"
#include "run/fence.h"

typedef int trial_fn(const char *home, void *userdata, nacre_error *reterr);

/* Calls fn with a new home. What it returns, or a code of its own. */
int trial_in_home(trial_fn *fn, void *userdata, nacre_error *reterr);

/* Runs `true` in the sandbox that the settings describe. On entering it the stand-in has tried it.
 */
int trial_of_sandbox(const nacre_settings *settings, nacre_error *reterr);

/* A row for each property: held, not held since the trial failed so, or not asked for with that
 * network. */
void trial_print(const nacre_error *error, enum fence_network network, const struct paint *paint);
json_t *trial_json(const nacre_error *error, enum fence_network network);
