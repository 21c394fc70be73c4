/* The table of runs, for the files of this layer. */
#pragma once

#include "catalog/db.h"

/* Operations, see db_op; arg is a const struct catalog_run, and a const nacre_id. */
int runs_put(struct catalog *c, void *arg);
int runs_remove(struct catalog *c, void *arg);
