/* Rows of the table of runs as structures. */
#ifndef NACRE_CATALOG_RUN_ROWS_H
#define NACRE_CATALOG_RUN_ROWS_H

#include "catalog/query.h"
#include "catalog/rows.h"

/* In the order that a query for run_rows_take() has them. */
#define RUN_COLUMNS                                                                           \
    "id, session, started_ms, exited_ms, lifetime, outcome, tree, bytes, log_bytes, read_to," \
    " background, final, name, cwd, description, command, state"

/* And what is read besides. */
#define RUN_SELECT RUN_COLUMNS ", EXISTS (SELECT 1 FROM owed WHERE run = runs.id)"

/* All rows of the query, which is ended: 0 or an SQLite result code. */
int run_rows_take(struct query *q, struct rows *rows);

#endif
