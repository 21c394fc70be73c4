/* The table of owed completions, for the files of this layer. */
#ifndef NACRE_CATALOG_COMPLETIONS_H
#define NACRE_CATALOG_COMPLETIONS_H

#include "catalog/db.h"

/* The directory says that one is owed; the catalog may know of it already. Inside of a
 * transaction; 0 or an SQLite result code. */
int completions_restore(struct catalog *c, const nacre_id *run, const nacre_id *session);

#endif
