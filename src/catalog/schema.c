#include "catalog/schema.h"

#include <stdbool.h>
#include <stdio.h>

/*
 * Numbers of outcomes, trees and lifetimes are those of <nacre/record.h> and <nacre/command.h>;
 * ids are blobs of 16 bytes; times are milliseconds since the epoch. The wide columns of runs
 * stand last, so that counting does not read them.
 */
static const char version_1[] =
    "CREATE TABLE sessions ("
    " id BLOB PRIMARY KEY,"
    " pid INTEGER NOT NULL,"
    " start INTEGER NOT NULL,"
    " boot BLOB NOT NULL,"
    " pid_ns INTEGER NOT NULL,"
    " opened_ms INTEGER NOT NULL,"
    " closed_ms INTEGER NOT NULL,"
    " name TEXT NOT NULL,"
    " cwd TEXT NOT NULL"
    ") STRICT, WITHOUT ROWID;"

    "CREATE TABLE runs ("
    " seq INTEGER PRIMARY KEY,"
    " id BLOB NOT NULL UNIQUE,"
    " session BLOB NOT NULL,"
    " started_ms INTEGER NOT NULL,"
    " exited_ms INTEGER NOT NULL,"
    " lifetime INTEGER NOT NULL,"
    " outcome INTEGER NOT NULL,"
    " tree INTEGER NOT NULL,"
    " bytes INTEGER NOT NULL,"
    " log_bytes INTEGER NOT NULL,"
    " read_to INTEGER NOT NULL,"
    " background INTEGER NOT NULL,"
    " final INTEGER NOT NULL,"
    " name TEXT NOT NULL,"
    " cwd TEXT NOT NULL,"
    " description TEXT NOT NULL,"
    " command TEXT NOT NULL,"
    " state BLOB"
    ") STRICT;"
    "CREATE INDEX runs_by_start ON runs (started_ms);"
    "CREATE INDEX runs_by_session ON runs (session, started_ms);"
    "CREATE INDEX runs_open ON runs (started_ms) WHERE final = 0;"
    "CREATE INDEX runs_open_by_session ON runs (session) WHERE final = 0;"
    "CREATE INDEX runs_by_name ON runs (name, started_ms) WHERE name <> '';"

    "CREATE TABLE owed ("
    " run BLOB PRIMARY KEY,"
    " session BLOB NOT NULL,"
    " offered INTEGER NOT NULL,"
    " repeated INTEGER NOT NULL"
    ") STRICT, WITHOUT ROWID;"
    "CREATE INDEX owed_by_session ON owed (session);";

static const char version_2[] =
    "ALTER TABLE sessions ADD COLUMN client TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE sessions ADD COLUMN person INTEGER NOT NULL DEFAULT 0;";

static const char version_3[] =
    "ALTER TABLE sessions ADD COLUMN ends_ms INTEGER NOT NULL DEFAULT 0;";

static const char *const steps[] = {version_1, version_2, version_3};

const struct schema catalog_schema = {
    .application_id = 0x6e616372, /* "nacr" */
    .version = sizeof steps / sizeof steps[0],
    .steps = steps,
};

static int query_number(sqlite3 *db, const char *sql, int *ret_number)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);
    if (rc == SQLITE_OK && sqlite3_step(stmt) == SQLITE_ROW)
        *ret_number = sqlite3_column_int(stmt, 0);
    int finished = sqlite3_finalize(stmt);
    return rc != SQLITE_OK ? rc : finished;
}

struct facts {
    int id;
    int version;
    int tables;
};

/* All at one moment: another process may be filling an empty file. */
static int read_facts(sqlite3 *db, struct facts *ret_facts)
{
    bool begun = sqlite3_get_autocommit(db);
    int rc = begun ? sqlite3_exec(db, "BEGIN", NULL, NULL, NULL) : SQLITE_OK;
    if (rc == SQLITE_OK)
        rc = query_number(db, "PRAGMA application_id", &ret_facts->id);
    if (rc == SQLITE_OK)
        rc = query_number(db, "PRAGMA user_version", &ret_facts->version);
    if (rc == SQLITE_OK)
        rc = query_number(db, "SELECT count(*) FROM sqlite_schema", &ret_facts->tables);
    if (begun && !sqlite3_get_autocommit(db))
        sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    return rc;
}

int schema_look(sqlite3 *db, const struct schema *schema, enum schema_state *ret_state)
{
    struct facts f = {0};
    int rc = read_facts(db, &f);
    if (rc != SQLITE_OK)
        return rc;
    if (f.id != schema->application_id)
        *ret_state = f.id == 0 && f.version == 0 && f.tables == 0 ? SCHEMA_EMPTY : SCHEMA_FOREIGN;
    else if (f.version < 0)
        *ret_state = SCHEMA_FOREIGN;
    else if (f.version > schema->version)
        *ret_state = SCHEMA_NEWER;
    else
        *ret_state = f.version < schema->version ? SCHEMA_OLDER : SCHEMA_CURRENT;
    return SQLITE_OK;
}

int schema_bring_up(sqlite3 *db, const struct schema *schema)
{
    char sql[96];
    int version = 0;
    int rc = query_number(db, "PRAGMA user_version", &version);
    for (; rc == SQLITE_OK && version < schema->version; version++)
        rc = sqlite3_exec(db, schema->steps[version], NULL, NULL, NULL);
    if (rc != SQLITE_OK)
        return rc;
    snprintf(sql, sizeof sql, "PRAGMA application_id = %d; PRAGMA user_version = %d",
             schema->application_id, schema->version);
    return sqlite3_exec(db, sql, NULL, NULL, NULL);
}
