/* The table of sessions, for the files of this layer. */
#ifndef NACRE_CATALOG_SESSIONS_H
#define NACRE_CATALOG_SESSIONS_H

#include "catalog/db.h"

/* Operations, see db_op; arg is a const struct catalog_session. */
int sessions_put(struct catalog *c, void *arg);

/* For what a run directory says of a session: never over what is known better. */
int sessions_put_hearsay(struct catalog *c, void *arg);

#endif
