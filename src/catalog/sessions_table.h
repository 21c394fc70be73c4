/* The tables of sessions, and of the completions that are owed to them, for the files of this
 * layer. */
#pragma once

#include "catalog/db.h"

/* Operations, see db_op; arg is a const struct catalog_session. */
int sessions_put(struct catalog *c, void *arg);

/* For what a run directory says of a session: never over what is known better. */
int sessions_put_hearsay(struct catalog *c, void *arg);

/* The directory says that a completion is owed; the catalog may know of it already. Inside of a
 * transaction; 0 or an SQLite result code. */
int completions_restore(struct catalog *c, const nacre_id *run, const nacre_id *session);
