/* Reading the table of runs: rows into memory, and the list with its filter. */
#include "catalog/run_rows.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/defs.h"
#include "run/state.h"

/* A state of this very format; NULL if there is none. */
static const struct run_state *take_state(struct query *q, int column, struct run_state *ret_state)
{
    if (query_size(q, column) != sizeof *ret_state)
        return NULL;
    query_get_blob(q, column, ret_state, sizeof *ret_state);
    return ret_state->format == RUN_FORMAT ? ret_state : NULL;
}

/* A row, its state and its strings are one block. */
struct block {
    struct catalog_run run;
    struct run_state state;
};

static void *take_row(struct query *q)
{
    const char *strings[] = {query_get_text(q, 12), query_get_text(q, 13), query_get_text(q, 14),
                             query_get_text(q, 15)};
    struct row row = rows_new(sizeof(struct block), strings, ARRAY_SIZE(strings));
    struct block *block = (void *)row.block;
    if (!block)
        return NULL;
    block->run = (struct catalog_run){
        .id = query_get_id(q, 0),
        .session = query_get_id(q, 1),
        .started_ms = query_get_int(q, 2),
        .exited_ms = query_get_int(q, 3),
        .lifetime = (nacre_lifetime)query_get_int(q, 4),
        .outcome = (nacre_outcome)query_get_int(q, 5),
        .tree = (nacre_tree)query_get_int(q, 6),
        .bytes = (uint64_t)query_get_int(q, 7),
        .log_bytes = (uint64_t)query_get_int(q, 8),
        .read_to = (uint64_t)query_get_int(q, 9),
        .background = query_get_int(q, 10),
        .final = query_get_int(q, 11),
        .name = rows_copy(&row, strings[0]),
        .cwd = rows_copy(&row, strings[1]),
        .description = rows_copy(&row, strings[2]),
        .command = rows_copy(&row, strings[3]),
        .state = take_state(q, 16, &block->state),
        .owed = query_get_int(q, 17),
    };
    return &block->run;
}

int run_rows_take(struct query *q, struct rows *rows)
{
    return query_collect(q, take_row, rows);
}

struct listing {
    const struct catalog_filter *filter;
    struct rows rows;
};

static int compose_list(struct buf *sql, const struct catalog_filter *f)
{
    int r = buf_str(sql, "SELECT " RUN_SELECT " FROM runs WHERE 1");
    if (r == 0 && f->session)
        r = buf_str(sql, " AND session = ?");
    if (r == 0 && f->name)
        r = buf_str(sql, " AND name = ? AND name <> ''");
    if (r == 0 && f->since_ms > 0)
        r = buf_str(sql, " AND started_ms >= ?");
    if (r == 0 && f->state == CATALOG_OPEN)
        r = buf_str(sql, " AND final = 0");
    if (r == 0 && f->state == CATALOG_FINAL)
        r = buf_str(sql, " AND final = 1");
    if (r == 0)
        r = buf_str(sql, f->oldest_first ? " ORDER BY started_ms, seq"
                                         : " ORDER BY started_ms DESC, seq DESC");
    return r == 0 && f->limit > 0 ? buf_str(sql, " LIMIT ?") : r;
}

static int list_op(struct catalog *c, void *arg)
{
    struct listing *listing = arg;
    const struct catalog_filter *f = listing->filter;
    cleanup_buf struct buf sql;
    buf_init(&sql, 1024);
    rows_done(&listing->rows);
    if (compose_list(&sql, f) < 0)
        return SQLITE_NOMEM;
    struct query q = query_begin_once(c, sql.data);
    if (f->session)
        query_id(&q, f->session);
    if (f->name)
        query_text(&q, f->name);
    if (f->since_ms > 0)
        query_int(&q, f->since_ms);
    if (f->limit > 0)
        query_int(&q, f->limit);
    return run_rows_take(&q, &listing->rows);
}

int catalog_each_run(struct catalog *c, const struct catalog_filter *filter, catalog_run_fn *fn,
                     void *userdata, nacre_error *err)
{
    static const struct catalog_filter all;
    struct listing listing = {.filter = filter ? filter : &all};
    int r = db_read(c, list_op, &listing, err);
    for (size_t i = 0; r == 0 && i < listing.rows.count; i++)
        r = fn(listing.rows.items[i], userdata);
    rows_done(&listing.rows);
    return r;
}
