#include "catalog/db.h"

#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/err.h"
#include "base/hold.h"
#include "catalog/catalog_file.h"
#include "catalog/patience.h"
#include "catalog/query.h"
#include "catalog/rebuild.h"
#include "catalog/schema.h"
#include "catalog/sessions_table.h"
#include "sys/fd.h"
#include "sys/fsize.h"

#define TRIES 4

/*
 * SQLite's books about its locks are those of the process. A forked child inherits the books but
 * not the locks, so it must not use a file of the catalog while a handle was open at the fork.
 */
static atomic_int open_handles;
static atomic_int opener;

static bool inherited_handles(void)
{
    return atomic_load(&open_handles) > 0 && atomic_load(&opener) != getpid();
}

/* -- Errors ------------------------------------------------------------------------------------ */

static bool is_corrupt(int rc)
{
    int kind = rc & 0xff;
    return rc > 0 && (kind == SQLITE_CORRUPT || kind == SQLITE_NOTADB);
}

static bool is_busy(int rc)
{
    int kind = rc & 0xff;
    return rc > 0 && (kind == SQLITE_BUSY || kind == SQLITE_PROTOCOL);
}

static int explain_sqlite(const struct catalog *c, int rc, nacre_error *err)
{
    switch (rc & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
        return err_set(err, NACRE_EBUSY, "another process is writing the catalog; try again");
    case SQLITE_ERROR:
        return err_set(err, NACRE_EIO,
                       "the tables of the catalog in %.100s are not as expected; delete " CATALOG_DB
                       ", it is made again",
                       c->home);
    case SQLITE_NOMEM:
        return err_set(err, NACRE_ENOMEM, "out of memory");
    default:
        return err_set(err, NACRE_EIO, "cannot use the catalog in %.100s: %s", c->home,
                       sqlite3_errstr(rc));
    }
}

static int explain_errno(const struct catalog *c, int r, nacre_error *err)
{
    if (r == -EAGAIN)
        return explain_sqlite(c, SQLITE_BUSY, err);
    if (r == -EINVAL)
        return err_set(err, NACRE_EUNSUPPORTED,
                       "%.100s/" CATALOG_DB " or " CATALOG_LOCK " is a link or no file; move it "
                       "out of the way",
                       c->home);
    return err_sys(err, NACRE_EIO, -r, "catalog", "cannot use the catalog in %.100s", c->home);
}

static int explain_state(const struct catalog *c, enum schema_state state, nacre_error *err)
{
    if (state == SCHEMA_NEWER)
        return err_set(err, NACRE_EUNSUPPORTED,
                       "the catalog in %.120s was written by a newer nacre; use that one", c->home);
    return err_set(err, NACRE_EUNSUPPORTED,
                   "%.120s/" CATALOG_DB " is no catalog of nacre; move it out of the way", c->home);
}

/* -- Opening and closing ----------------------------------------------------------------------- */

static void close_db(struct catalog *c)
{
    for (size_t i = 0; i < c->cached; i++)
        sqlite3_finalize(c->cache[i].stmt);
    sqlite3_close(c->db);
    c->cached = 0;
    c->db = NULL;
    c->in_memory = c->damaged = false;
}

static bool has_moved(const struct catalog *c)
{
    must(c->db);
    int moved = 0;
    return sqlite3_file_control(c->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved) != SQLITE_OK ||
           moved;
}

static int exec(const struct catalog *c, const char *sql)
{
    return sqlite3_exec(c->db, sql, NULL, NULL, NULL);
}

static int begin_and_end(struct catalog *c, const char *begin, db_op *op, void *arg)
{
    must(sqlite3_get_autocommit(c->db)); /* transactions do not nest */
    struct query q = query_begin(c, begin);
    int r = query_run(&q, NULL);
    if (r == 0)
        r = op(c, arg);
    if (r == 0) {
        q = query_begin(c, "COMMIT");
        r = query_run(&q, NULL);
    }
    if (r != 0 && !sqlite3_get_autocommit(c->db))
        exec(c, "ROLLBACK");
    return r;
}

/* Who was in the way for as long as anybody waits may be so for ever, stopped or out of malice: a
 * call has no use for waiting again, and a server none at all. */
static void note_busy(struct catalog *c, bool write, int r)
{
    bool busy = is_busy(r);
    if (c->in_memory || (!busy && !(write && r == 0)))
        return;
    c->wait_ms = busy ? 0 : c->busy_ms;
    sqlite3_busy_timeout(c->db, c->wait_ms);
}

static int in_transaction(struct catalog *c, bool write, db_op *op, void *arg)
{
    int r = begin_and_end(c, write ? "BEGIN IMMEDIATE" : "BEGIN", op, arg);
    note_busy(c, write, r);
    return r;
}

/* Somebody else may have done it before we got the lock. */
static int bring_up(struct catalog *c, void *arg)
{
    enum schema_state state;
    uint32_t count;
    (void)arg;
    int rc = schema_look(c->db, &catalog_schema, &state);
    if (rc != SQLITE_OK || (state != SCHEMA_EMPTY && state != SCHEMA_OLDER))
        return rc;
    rc = schema_bring_up(c->db, &catalog_schema);
    return rc == SQLITE_OK && state == SCHEMA_EMPTY ? rebuild_all(c, &count) : rc;
}

/* -wal and -shm stay when the last one leaves: SQLite would remove them by their names, which may
 * be those of a new catalog by then. */
static int open_quietly(struct catalog *c, const char *path, int flags)
{
    int rc = sqlite3_open_v2(path, &c->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | flags,
                             patience_vfs());
    if (rc != SQLITE_OK)
        return rc;
    sqlite3_extended_result_codes(c->db, 1);
    sqlite3_busy_timeout(c->db, c->wait_ms);
    return sqlite3_db_config(c->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
}

static const char settings[] = "PRAGMA synchronous = NORMAL;"
                               "PRAGMA journal_size_limit = 8388608;"
                               "PRAGMA cache_size = -1024;"
                               "PRAGMA temp_store = MEMORY;"
                               "PRAGMA trusted_schema = OFF;"
                               "PRAGMA cell_size_check = ON;";

static int set_up(struct catalog *c, nacre_error *err)
{
    /* What is deleted can be given back; it has to be said before there is anything. */
    int rc = exec(c, "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL");
    if (rc == SQLITE_OK)
        rc = in_transaction(c, true, bring_up, NULL);
    c->damaged = is_corrupt(rc);
    return rc == SQLITE_OK || c->damaged ? 0 : explain_sqlite(c, rc, err);
}

/* A damaged file is not an error here: c->damaged tells. */
static int open_file(struct catalog *c, nacre_error *err)
{
    char path[PATH_MAX];
    enum schema_state state = SCHEMA_FOREIGN;
    snprintf(path, sizeof path, "%s/" CATALOG_DB, c->home);
    int rc = open_quietly(c, path, 0);
    if (rc == SQLITE_OK)
        rc = schema_look(c->db, &catalog_schema, &state);
    if (rc == SQLITE_OK && (state == SCHEMA_NEWER || state == SCHEMA_FOREIGN))
        return explain_state(c, state, err);
    if (rc == SQLITE_OK)
        rc = exec(c, settings);
    c->damaged = is_corrupt(rc);
    c->session_due = c->session != NULL;
    if (c->damaged)
        return 0;
    if (is_busy(rc))
        c->wait_ms = 0;
    if (rc != SQLITE_OK)
        return explain_sqlite(c, rc, err);
    return state == SCHEMA_CURRENT ? 0 : set_up(c, err);
}

/* Of several that find the same damage, the first one with the lock replaces the file. */
static int replace_or_make(struct catalog *c, int home_fd)
{
    bool replace = c->damaged && !has_moved(c);
    close_db(c);
    int r = replace ? catalog_file_set_aside(home_fd) : 0;
    return r < 0 ? r : catalog_file_make(home_fd);
}

static bool is_read_only(int r)
{
    return r == -EROFS || r == -EACCES || r == -EPERM;
}

/*
 * While SQLite opens a database it looks for what belongs to it by name, and would meddle with the
 * companions of another one that takes its place just then. Hence all of this, from the decision
 * to replace a file to the first look at the new one, happens under the lock; only where nothing
 * can be written, and so nothing replaced, it goes without.
 */
static int open_locked(struct catalog *c, int home_fd, nacre_error *err)
{
    int exists = catalog_file_exists(home_fd);
    if (exists < 0)
        return explain_errno(c, exists, err);
    if (!exists && !c->create)
        return err_set(err, NACRE_ENOTFOUND, "there is no catalog in %.120s", c->home);
    cleanup_close int lock = catalog_file_lock(home_fd, c->wait_ms);
    if (lock == -EAGAIN)
        c->wait_ms = 0;
    bool as_it_is = is_read_only(lock) && exists && !c->damaged;
    if (lock < 0 && !as_it_is)
        return explain_errno(c, lock, err);
    int r = as_it_is ? 0 : replace_or_make(c, home_fd);
    close_db(c);
    return r < 0 ? explain_errno(c, r, err) : open_file(c, err);
}

static int reopen(struct catalog *c, nacre_error *err)
{
    cleanup_close int home_fd = open(c->home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (home_fd >= 0)
        return open_locked(c, home_fd, err);
    if (errno == ENOENT)
        return err_set(err, NACRE_ENOTFOUND, "there is no catalog in %.120s", c->home);
    return explain_errno(c, -errno, err);
}

static void put_session_again(struct catalog *c)
{
    if (c->session_due && in_transaction(c, true, sessions_put, c->session) == 0)
        c->session_due = false;
}

static int ready_on_disk(struct catalog *c, nacre_error *err)
{
    if (inherited_handles())
        return err_set(err, NACRE_EIO,
                       "the catalog is in use by the process that forked this one; only a new "
                       "program can use it");
    for (int i = 0; i < TRIES; i++) {
        if (c->db && !c->in_memory && !c->damaged && !has_moved(c)) {
            put_session_again(c);
            return 0;
        }
        int r = reopen(c, err);
        if (r < 0) {
            close_db(c);
            return r;
        }
    }
    return err_set(err, NACRE_EIO, "the catalog in %.100s is damaged again and again", c->home);
}

static int ready_in_memory(struct catalog *c, nacre_error *err)
{
    close_db(c);
    int rc = open_quietly(c, ":memory:", SQLITE_OPEN_MEMORY);
    c->in_memory = true;
    if (rc == SQLITE_OK)
        rc = in_transaction(c, true, bring_up, NULL);
    return rc == SQLITE_OK ? 0 : explain_sqlite(c, rc, err);
}

static int make_ready(struct catalog *c, bool write, nacre_error *err)
{
    int r = ready_on_disk(c, err);
    if (!write && (r == NACRE_ENOTFOUND || r == NACRE_EIO || r == NACRE_EBUSY))
        r = ready_in_memory(c, err);
    return r;
}

/* -- Transactions ------------------------------------------------------------------------------ */

static int perform(struct catalog *c, bool write, db_op *op, void *arg, nacre_error *err)
{
    for (int i = 0; i < TRIES; i++) {
        int r = make_ready(c, write, err);
        if (r < 0)
            return r;
        r = in_transaction(c, write, op, arg);
        c->damaged = is_corrupt(r);
        /* Done with a file that was the catalog no longer: it has to be done again. */
        if (!c->damaged && (c->in_memory || !has_moved(c)))
            return r > 0 ? explain_sqlite(c, r, err) : r;
    }
    return err_set(err, NACRE_EIO, "the catalog in %.100s is damaged again and again", c->home);
}

/* SQLite fills closed descriptors below 3 with /dev/null, and leaves it there: hence the plug. */
static int with_lock(struct catalog *c, bool write, db_op *op, void *arg, nacre_error *err)
{
    HOLD(&c->lock);
    FSIZE_SHELTER();
    unsigned low = fd_plug_low();
    patience_begin(c->wait_ms);
    int r = perform(c, write, op, arg, err);
    /* What it knows is old with the next change of a run. */
    if (c->in_memory)
        close_db(c);
    fd_unplug_low(low);
    return r;
}

int db_read(struct catalog *c, db_op *op, void *arg, nacre_error *err)
{
    return with_lock(c, false, op, arg, err);
}

int db_write(struct catalog *c, db_op *op, void *arg, nacre_error *err)
{
    return with_lock(c, true, op, arg, err);
}

int db_outside(struct catalog *c, db_op *op, void *arg, nacre_error *err)
{
    HOLD(&c->lock);
    FSIZE_SHELTER();
    unsigned low = fd_plug_low();
    patience_begin(c->wait_ms);
    int r = ready_on_disk(c, err);
    if (r == 0) {
        r = op(c, arg);
        c->damaged = is_corrupt(r);
    }
    fd_unplug_low(low);
    return r > 0 ? explain_sqlite(c, r, err) : r;
}

int db_open_runs(const struct catalog *c)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/runs", c->home);
    return fd_open_dir_at(AT_FDCWD, path);
}

/* -- The handle -------------------------------------------------------------------------------- */

static int try_disk(struct catalog *c, nacre_error *err)
{
    HOLD(&c->lock);
    FSIZE_SHELTER();
    unsigned low = fd_plug_low();
    patience_begin(c->wait_ms);
    int r = ready_on_disk(c, err);
    fd_unplug_low(low);
    return r;
}

int catalog_open(const char *home, bool create, int busy_ms, struct catalog **ret_catalog,
                 nacre_error *err)
{
    size_t size = strlen(home) + 1;
    if (size > PATH_MAX - sizeof "/" CATALOG_DB)
        return err_set(err, NACRE_EINVAL, "the path of the home is too long");
    struct catalog *c = calloc(1, sizeof *c + size);
    if (!c)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    memcpy(c->home, home, size);
    c->create = create;
    c->busy_ms = c->wait_ms = busy_ms;
    pthread_mutex_init(&c->lock, NULL);
    if (!inherited_handles()) {
        atomic_store(&opener, getpid());
        atomic_fetch_add(&open_handles, 1);
    }
    int r = try_disk(c, err);
    bool later = r == NACRE_EBUSY || (!create && (r == NACRE_ENOTFOUND || r == NACRE_EIO));
    if (r < 0 && !later) {
        catalog_free(c, false);
        return r;
    }
    *ret_catalog = c;
    return 0;
}

int catalog_create(struct catalog *c, nacre_error *err)
{
    pthread_mutex_lock(&c->lock);
    c->create = true;
    pthread_mutex_unlock(&c->lock);
    return try_disk(c, err);
}

void catalog_free(struct catalog *c, bool forked)
{
    if (!c)
        return;
    /* In a forked child the connection is left alone, and its memory with it: closing it would
     * work on files and shared memory that the parent still uses. */
    if (!forked) {
        close_db(c);
        pthread_mutex_destroy(&c->lock);
        if (!inherited_handles())
            atomic_fetch_sub(&open_handles, 1);
    }
    free(c->session);
    free(c);
}
