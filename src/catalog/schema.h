/*
 * The schema and its versions. A version is a step of SQL; a database of an older version takes
 * the steps it lacks, in one transaction with the new version number. docs/catalog.md describes
 * the tables.
 *
 * Functions return SQLITE_OK or an SQLite result code.
 */
#pragma once

#include <sqlite3.h>

struct schema {
    int application_id;
    int version;              /* the number of steps */
    const char *const *steps; /* steps[n] leads from version n to n + 1 */
};

extern const struct schema catalog_schema;

enum schema_state {
    SCHEMA_CURRENT = 0,
    SCHEMA_EMPTY = 1,   /* no database yet: no table, no id, no version */
    SCHEMA_OLDER = 2,   /* steps are missing */
    SCHEMA_NEWER = 3,   /* written by a newer program */
    SCHEMA_FOREIGN = 4, /* some other program's */
};

int schema_look(sqlite3 *db, const struct schema *schema, enum schema_state *ret_state);

/* Takes the missing steps. The caller has begun a transaction and ends it. */
int schema_bring_up(sqlite3 *db, const struct schema *schema);
