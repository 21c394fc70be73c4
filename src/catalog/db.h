/*
 * The database behind a catalog: opened when it is needed, replaced when it is damaged or gone,
 * and the one place where a transaction begins and ends.
 */
#pragma once

#include <pthread.h>
#include <sqlite3.h>

#include "catalog/catalog.h"

#define DB_CACHE_MAX 48

struct db_cached {
    const char *sql;
    sqlite3_stmt *stmt;
};

struct catalog {
    pthread_mutex_t lock; /* over all below */
    bool create;
    int busy_ms; /* how long others are waited for, */
    int wait_ms; /* and now: 0 from when that was in vain until nobody is in the way */
    sqlite3 *db; /* NULL = not open just now */
    bool in_memory;
    bool damaged;     /* what is open has to be replaced */
    bool session_due; /* the session has to be put again */
    struct catalog_session *session;
    struct db_cached cache[DB_CACHE_MAX];
    size_t cached;
    char home[]; /* the path */
};

/*
 * The body of a transaction: returns 0; > 0, an SQLite result code; or < 0, a NACRE_* code. It
 * may be run several times, each on a database that knows nothing of the time before.
 */
typedef int db_op(struct catalog *c, void *arg);

/* Runs op in a transaction that is rolled back unless op returns 0. Returns 0 or a NACRE_* code;
 * err is filled but for codes that come from op. */
int db_read(struct catalog *c, db_op *op, void *arg, nacre_error *err);
int db_write(struct catalog *c, db_op *op, void *arg, nacre_error *err);

/* Runs op on the file, outside of any transaction, and never on a database in memory. */
int db_outside(struct catalog *c, db_op *op, void *arg, nacre_error *err);

/* The directory of runs, for a reader: a descriptor to close, or -errno. */
int db_open_runs(const struct catalog *c);
