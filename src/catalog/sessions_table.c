#include "catalog/sessions_table.h"

#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "catalog/query.h"

#define COLUMNS                                                                       \
    "id, pid, start, boot, pid_ns, opened_ms, closed_ms, name, cwd, client, person, " \
    "ends_ms"

#define COUNTS                                                                  \
    ", (SELECT count(*) FROM runs WHERE session = sessions.id)"                 \
    ", (SELECT count(*) FROM runs WHERE session = sessions.id AND outcome = 0)" \
    ", (SELECT count(*) FROM owed JOIN runs ON runs.id = run"                   \
    "   WHERE owed.session = sessions.id AND offered = 0 AND outcome <> 0)"

static int put_session(struct catalog *c, const char *sql, const struct catalog_session *session)
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
    query_text(&q, session->client ? session->client : "");
    query_int(&q, session->person);
    query_int(&q, session->ends_ms);
    return query_run(&q, NULL);
}

int sessions_put(struct catalog *c, void *arg)
{
    static const char sql[] =
        "INSERT OR REPLACE INTO sessions (" COLUMNS ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    return put_session(c, sql, arg);
}

int sessions_put_hearsay(struct catalog *c, void *arg)
{
    static const char sql[] =
        "INSERT INTO sessions (" COLUMNS ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (id) DO UPDATE SET pid = excluded.pid, start = excluded.start,"
        " boot = excluded.boot, pid_ns = excluded.pid_ns, name = excluded.name, cwd = excluded.cwd,"
        " person = excluded.person"
        " WHERE start = 0 AND excluded.start <> 0";
    return put_session(c, sql, arg);
}

static struct catalog_session *copy_session(const struct catalog_session *from)
{
    const char *strings[] = {from->name ? from->name : "", from->cwd ? from->cwd : "",
                             from->client ? from->client : ""};
    struct row_block row = rows_new(sizeof *from, strings, ARRAY_SIZE(strings));
    struct catalog_session *session = (void *)row.block;
    if (!session)
        return NULL;
    *session = *from;
    session->name = rows_copy(&row, strings[0]);
    session->cwd = rows_copy(&row, strings[1]);
    session->client = rows_copy(&row, strings[2]);
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
    return query_run_ids(c, "DELETE FROM sessions WHERE id = ?", id, NULL);
}

int catalog_remove_session(struct catalog *c, const nacre_id *session, nacre_error *err)
{
    return db_write(c, remove_op, (void *)session, err);
}

static void *take_session_row(struct query *q)
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
        .client = query_get_text(q, 9),
        .person = query_get_int(q, 10) != 0,
        .ends_ms = query_get_int(q, 11),
    };
    query_get_blob(q, 3, session.boot, sizeof session.boot);
    return copy_session(&session);
}

static void *take_row_with_counts(struct query *q)
{
    struct catalog_session *session = take_session_row(q);
    if (session)
        session->counts = (struct catalog_counts){
            .runs = (uint32_t)query_get_int(q, 12),
            .running = (uint32_t)query_get_int(q, 13),
            .due = (uint32_t)query_get_int(q, 14),
        };
    return session;
}

struct session_getting {
    const nacre_id *id;
    struct rows rows;
};

static int get_session_op(struct catalog *c, void *arg)
{
    struct session_getting *getting = arg;
    rows_done(&getting->rows);
    struct query q = query_begin(c, "SELECT " COLUMNS " FROM sessions WHERE id = ?");
    query_id(&q, getting->id);
    return query_collect(&q, take_session_row, &getting->rows);
}

int catalog_get_session(struct catalog *c, const nacre_id *session,
                        struct catalog_session **ret_session, nacre_error *err)
{
    struct session_getting getting = {.id = session};
    int r = db_read(c, get_session_op, &getting, err);
    if (r == 0 && getting.rows.count == 0)
        r = no_session(session, err);
    if (r == 0)
        *ret_session = TAKE_PTR(getting.rows.items[0]);
    rows_done(&getting.rows);
    return r;
}

struct session_listing {
    const struct catalog_session_filter *filter;
    struct rows rows;
};

static int compose_session_list(struct buf *sql, const struct catalog_session_filter *f)
{
    return buf_printf(
        sql, "SELECT " COLUMNS "%s FROM sessions WHERE 1%s%s%s%s ORDER BY opened_ms, id",
        f->counts ? COUNTS : "", f->name ? " AND name = ?" : "", f->cwd ? " AND cwd = ?" : "",
        f->only_owed ? " AND id IN (SELECT session FROM owed)" : "",
        f->only_open ? " AND closed_ms = 0" : "");
}

static int list_sessions_op(struct catalog *c, void *arg)
{
    struct session_listing *listing = arg;
    const struct catalog_session_filter *f = listing->filter;
    struct buf sql cleanup_buf = BUF_UP_TO(1024);
    rows_done(&listing->rows);
    if (compose_session_list(&sql, f) < 0)
        return SQLITE_NOMEM;
    struct query q = query_begin_once(c, sql.data);
    if (f->name)
        query_text(&q, f->name);
    if (f->cwd)
        query_text(&q, f->cwd);
    return query_collect(&q, f->counts ? take_row_with_counts : take_session_row, &listing->rows);
}

int catalog_each_session(struct catalog *c, const struct catalog_session_filter *filter,
                         catalog_session_fn *fn, void *userdata, nacre_error *err)
{
    static const struct catalog_session_filter all;
    struct session_listing listing = {.filter = filter ? filter : &all};
    int r = db_read(c, list_sessions_op, &listing, err);
    for (size_t i = 0; r == 0 && i < listing.rows.count; i++)
        r = fn(listing.rows.items[i], userdata);
    rows_done(&listing.rows);
    return r;
}

/* -- Completions that are owed to them -------------------------------------------------------- */

int completions_restore(struct catalog *c, const nacre_id *run, const nacre_id *session)
{
    static const char sql[] =
        "INSERT OR IGNORE INTO owed (run, session, offered, repeated) VALUES (?, ?, 0, 0)";
    return query_run_ids(c, sql, run, session);
}

/* The arguments of all functions here. */
struct deal {
    const nacre_id *session;
    const nacre_id *ids; /* of runs or of sessions */
    size_t count;
    nacre_id *ret_runs;
    bool *ret_repeated;
    size_t max;
    size_t done;
};

static int owe_op(struct catalog *c, void *arg)
{
    static const char sql[] =
        "INSERT INTO owed (run, session, offered, repeated) VALUES (?, ?, 0, 0)"
        " ON CONFLICT (run) DO UPDATE SET session = excluded.session";
    const struct deal *deal = arg;
    return query_run_ids(c, sql, deal->ids, deal->session);
}

int catalog_owe(struct catalog *c, const nacre_id *run, const nacre_id *session, nacre_error *err)
{
    struct deal deal = {.session = session, .ids = run, .count = 1};
    return db_write(c, owe_op, &deal, err);
}

/* -- Offers ------------------------------------------------------------------------------------ */

static int find_due(struct catalog *c, void *arg)
{
    static const char sql[] = "SELECT run, repeated FROM owed JOIN runs ON runs.id = run"
                              " WHERE owed.session = ? AND offered = 0 AND outcome <> 0"
                              " ORDER BY exited_ms, seq LIMIT ?";
    struct deal *deal = arg;
    deal->done = 0;
    struct query q = query_begin(c, sql);
    query_id(&q, deal->session);
    query_int(&q, (int64_t)deal->max);
    for (; deal->done < deal->max && query_row(&q); deal->done++) {
        deal->ret_runs[deal->done] = query_get_id(&q, 0);
        deal->ret_repeated[deal->done] = query_get_int(&q, 1);
    }
    return query_end(&q);
}

static int offer_op(struct catalog *c, void *arg)
{
    struct deal *deal = arg;
    int rc = find_due(c, deal);
    for (size_t i = 0; rc == 0 && i < deal->done; i++)
        rc =
            query_run_ids(c, "UPDATE owed SET offered = 1 WHERE run = ?", &deal->ret_runs[i], NULL);
    return rc;
}

int catalog_offer(struct catalog *c, const nacre_id *session, nacre_id *ret_runs,
                  bool *ret_repeated, size_t max, nacre_error *err)
{
    struct deal deal = {
        .session = session, .ret_runs = ret_runs, .ret_repeated = ret_repeated, .max = max};
    /* Nearly always there is nothing, and nobody has to wait for a writer to learn that. */
    int r = db_read(c, find_due, &deal, err);
    if (r == 0 && deal.done > 0)
        r = db_write(c, offer_op, &deal, err);
    return r < 0 ? r : (int)deal.done;
}

static int retract_op(struct catalog *c, void *arg)
{
    static const char sql[] = "UPDATE owed SET offered = 0 WHERE run = ? AND session = ?";
    const struct deal *deal = arg;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < deal->count; i++)
        rc = query_run_ids(c, sql, &deal->ids[i], deal->session);
    return rc;
}

int catalog_retract(struct catalog *c, const nacre_id *session, const nacre_id *runs, size_t count,
                    nacre_error *err)
{
    struct deal deal = {.session = session, .ids = runs, .count = count};
    return db_write(c, retract_op, &deal, err);
}

static int ack_op(struct catalog *c, void *arg)
{
    const struct deal *deal = arg;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < deal->count; i++)
        rc = query_run_ids(c, "DELETE FROM owed WHERE run = ?", &deal->ids[i], NULL);
    return rc;
}

int catalog_ack(struct catalog *c, const nacre_id *runs, size_t count, nacre_error *err)
{
    struct deal deal = {.ids = runs, .count = count};
    return db_write(c, ack_op, &deal, err);
}

/* -- Claims ------------------------------------------------------------------------------------ */

static int claim_from(struct catalog *c, struct deal *deal, const nacre_id *ended)
{
    static const char sql[] = "UPDATE owed SET session = ?, repeated = repeated OR offered,"
                              " offered = 0 WHERE session = ?";
    struct query q = query_begin(c, sql);
    query_id(&q, deal->session);
    query_id(&q, ended);
    int changes = 0;
    int rc = query_run(&q, &changes);
    deal->done += (size_t)changes;
    return rc;
}

static int claim_op(struct catalog *c, void *arg)
{
    struct deal *deal = arg;
    int rc = 0;
    deal->done = 0;
    for (size_t i = 0; rc == 0 && i < deal->count; i++)
        if (!nacre_id_equal(&deal->ids[i], deal->session))
            rc = claim_from(c, deal, &deal->ids[i]);
    return rc;
}

int catalog_claim(struct catalog *c, const nacre_id *session, const nacre_id *ended, size_t count,
                  nacre_error *err)
{
    struct deal deal = {.session = session, .ids = ended, .count = count};
    int r = db_write(c, claim_op, &deal, err);
    return r < 0 ? r : (int)deal.done;
}
