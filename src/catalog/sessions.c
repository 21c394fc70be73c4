#include "catalog/sessions.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "catalog/query.h"
#include "catalog/rows.h"

#define COLUMNS "id, pid, start, boot, pid_ns, opened_ms, closed_ms, name, cwd"

#define COUNTS                                                                  \
    ", (SELECT count(*) FROM runs WHERE session = sessions.id)"                 \
    ", (SELECT count(*) FROM runs WHERE session = sessions.id AND outcome = 0)" \
    ", (SELECT count(*) FROM owed JOIN runs ON runs.id = run"                   \
    "   WHERE owed.session = sessions.id AND offered = 0 AND outcome <> 0)"

static int put(struct catalog *c, const char *sql, const struct catalog_session *session)
{
    struct query q = query_begin(c, sql);
    query_id(&q, &session->id);
    query_int(&q, session->pid);
    query_int(&q, (int64_t)session->start);
    query_blob(&q, session->boot, sizeof session->boot);
    query_int(&q, (int64_t)session->pid_ns);
    query_int(&q, session->opened_ms);
    query_int(&q, session->closed_ms);
    query_text(&q, session->name);
    query_text(&q, session->cwd);
    return query_run(&q, NULL);
}

int sessions_put(struct catalog *c, void *arg)
{
    static const char sql[] =
        "INSERT OR REPLACE INTO sessions (" COLUMNS ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";
    return put(c, sql, arg);
}

int sessions_put_hearsay(struct catalog *c, void *arg)
{
    static const char sql[] =
        "INSERT INTO sessions (" COLUMNS ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (id) DO UPDATE SET pid = excluded.pid, start = excluded.start,"
        " boot = excluded.boot, pid_ns = excluded.pid_ns, name = excluded.name, cwd = excluded.cwd"
        " WHERE start = 0 AND excluded.start <> 0";
    return put(c, sql, arg);
}

static struct catalog_session *copy_session(const struct catalog_session *from)
{
    const char *strings[] = {from->name ? from->name : "", from->cwd ? from->cwd : ""};
    struct row row = rows_new(sizeof *from, strings, ARRAY_SIZE(strings));
    struct catalog_session *session = (void *)row.block;
    if (!session)
        return NULL;
    *session = *from;
    session->name = rows_copy(&row, strings[0]);
    session->cwd = rows_copy(&row, strings[1]);
    return session;
}

int catalog_put_session(struct catalog *c, const struct catalog_session *session, nacre_error *err)
{
    struct catalog_session *copy = copy_session(session);
    if (!copy)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    /* Remembered also if it cannot be put now: it is due then. */
    pthread_mutex_lock(&c->lock);
    free(c->session);
    c->session = copy;
    c->session_due = true;
    pthread_mutex_unlock(&c->lock);
    return db_write(c, sessions_put, (void *)session, err);
}

struct closing {
    const nacre_id *id;
    int64_t closed_ms;
    int changes;
};

static int close_op(struct catalog *c, void *arg)
{
    struct closing *closing = arg;
    if (c->session && nacre_id_equal(&c->session->id, closing->id))
        c->session->closed_ms = closing->closed_ms;
    struct query q = query_begin(c, "UPDATE sessions SET closed_ms = ? WHERE id = ?");
    query_int(&q, closing->closed_ms);
    query_id(&q, closing->id);
    return query_run(&q, &closing->changes);
}

static int no_session(const nacre_id *id, nacre_error *err)
{
    return err_set(err, NACRE_ENOTFOUND, "no session with id \"%s\"", nacre_id_short(id).s);
}

int catalog_close_session(struct catalog *c, const nacre_id *session, int64_t closed_ms,
                          nacre_error *err)
{
    struct closing closing = {.id = session, .closed_ms = closed_ms};
    int r = db_write(c, close_op, &closing, err);
    return r == 0 && closing.changes == 0 ? no_session(session, err) : r;
}

static int remove_op(struct catalog *c, void *arg)
{
    const nacre_id *id = arg;
    if (c->session && nacre_id_equal(&c->session->id, id)) {
        free(TAKE_PTR(c->session));
        c->session_due = false;
    }
    struct query q = query_begin(c, "DELETE FROM sessions WHERE id = ?");
    query_id(&q, id);
    return query_run(&q, NULL);
}

int catalog_remove_session(struct catalog *c, const nacre_id *session, nacre_error *err)
{
    return db_write(c, remove_op, (void *)session, err);
}

static void *take_row(struct query *q)
{
    struct catalog_session session = {
        .id = query_get_id(q, 0),
        .pid = (int32_t)query_get_int(q, 1),
        .start = (uint64_t)query_get_int(q, 2),
        .pid_ns = (uint64_t)query_get_int(q, 4),
        .opened_ms = query_get_int(q, 5),
        .closed_ms = query_get_int(q, 6),
        .name = query_get_text(q, 7),
        .cwd = query_get_text(q, 8),
    };
    query_get_blob(q, 3, session.boot, sizeof session.boot);
    return copy_session(&session);
}

static void *take_row_with_counts(struct query *q)
{
    struct catalog_session *session = take_row(q);
    if (session)
        session->counts = (struct catalog_counts){
            .runs = (uint32_t)query_get_int(q, 9),
            .running = (uint32_t)query_get_int(q, 10),
            .due = (uint32_t)query_get_int(q, 11),
        };
    return session;
}

struct getting {
    const nacre_id *id;
    struct rows rows;
};

static int get_op(struct catalog *c, void *arg)
{
    struct getting *getting = arg;
    rows_done(&getting->rows);
    struct query q = query_begin(c, "SELECT " COLUMNS " FROM sessions WHERE id = ?");
    query_id(&q, getting->id);
    return query_collect(&q, take_row, &getting->rows);
}

int catalog_get_session(struct catalog *c, const nacre_id *session,
                        struct catalog_session **ret_session, nacre_error *err)
{
    struct getting getting = {.id = session};
    int r = db_read(c, get_op, &getting, err);
    if (r == 0 && getting.rows.count == 0)
        r = no_session(session, err);
    if (r == 0)
        *ret_session = TAKE_PTR(getting.rows.items[0]);
    rows_done(&getting.rows);
    return r;
}

struct listing {
    const struct catalog_session_filter *filter;
    struct rows rows;
};

static int compose_list(struct buf *sql, const struct catalog_session_filter *f)
{
    int r = buf_str(sql, "SELECT " COLUMNS);
    if (r == 0 && f->counts)
        r = buf_str(sql, COUNTS);
    if (r == 0)
        r = buf_str(sql, " FROM sessions WHERE 1");
    if (r == 0 && f->name)
        r = buf_str(sql, " AND name = ?");
    if (r == 0 && f->cwd)
        r = buf_str(sql, " AND cwd = ?");
    if (r == 0 && f->only_owed)
        r = buf_str(sql, " AND id IN (SELECT session FROM owed)");
    if (r == 0 && f->only_open)
        r = buf_str(sql, " AND closed_ms = 0");
    return r < 0 ? r : buf_str(sql, " ORDER BY opened_ms, id");
}

static int list_op(struct catalog *c, void *arg)
{
    struct listing *listing = arg;
    const struct catalog_session_filter *f = listing->filter;
    cleanup_buf struct buf sql;
    buf_init(&sql, 1024);
    rows_done(&listing->rows);
    if (compose_list(&sql, f) < 0)
        return SQLITE_NOMEM;
    struct query q = query_begin_once(c, sql.data);
    if (f->name)
        query_text(&q, f->name);
    if (f->cwd)
        query_text(&q, f->cwd);
    return query_collect(&q, f->counts ? take_row_with_counts : take_row, &listing->rows);
}

int catalog_each_session(struct catalog *c, const struct catalog_session_filter *filter,
                         catalog_session_fn *fn, void *userdata, nacre_error *err)
{
    static const struct catalog_session_filter all;
    struct listing listing = {.filter = filter ? filter : &all};
    int r = db_read(c, list_op, &listing, err);
    for (size_t i = 0; r == 0 && i < listing.rows.count; i++)
        r = fn(listing.rows.items[i], userdata);
    rows_done(&listing.rows);
    return r;
}
