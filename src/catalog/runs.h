/* The table of runs, for the files of this layer. */
#ifndef NACRE_CATALOG_RUNS_H
#define NACRE_CATALOG_RUNS_H

#include "catalog/db.h"

/* Operations, see db_op. */
int runs_put(struct catalog *c, void *run);   /* a const struct catalog_run */
int runs_remove(struct catalog *c, void *id); /* a const nacre_id */

#endif
