/* The catalog from the run directories, inside of a transaction. */
#pragma once

#include "catalog/db.h"

/* All of them; see catalog_rebuild(). Returns 0 or an SQLite result code. */
int rebuild_all(struct catalog *c, uint32_t *ret_count);
