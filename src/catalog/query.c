#include "catalog/query.h"

#include <sqlite3.h>
#include <string.h>

#include "base/assert.h"
#include "base/defs.h"
#include "base/grow.h"

static sqlite3_stmt *find_cached(const struct catalog *c, const char *sql)
{
    for (size_t i = 0; i < c->cached; i++)
        if (c->cache[i].sql == sql)
            return c->cache[i].stmt;
    return NULL;
}

struct query query_begin(struct catalog *c, const char *sql)
{
    struct query q = {.stmt = find_cached(c, sql), .cached = true};
    if (q.stmt)
        return q;
    if (c->cached == DB_CACHE_MAX)
        return query_begin_once(c, sql);
    q.rc = sqlite3_prepare_v3(c->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &q.stmt, NULL);
    if (q.rc == SQLITE_OK)
        c->cache[c->cached++] = (struct db_cached){.sql = sql, .stmt = q.stmt};
    return q;
}

struct query query_begin_once(struct catalog *c, const char *sql)
{
    struct query q = {0};
    q.rc = sqlite3_prepare_v2(c->db, sql, -1, &q.stmt, NULL);
    return q;
}

void query_int(struct query *q, int64_t value)
{
    if (q->rc == SQLITE_OK)
        q->rc = sqlite3_bind_int64(q->stmt, ++q->bound, value);
}

void query_blob(struct query *q, const void *data, int size)
{
    if (q->rc == SQLITE_OK)
        q->rc = sqlite3_bind_blob(q->stmt, ++q->bound, data, size, SQLITE_STATIC);
}

void query_id(struct query *q, const nacre_id *id)
{
    query_blob(q, id->bytes, sizeof id->bytes);
}

void query_text_cut(struct query *q, const char *text, size_t size)
{
    if (q->rc == SQLITE_OK)
        q->rc = sqlite3_bind_text64(q->stmt, ++q->bound, text, size, SQLITE_STATIC, SQLITE_UTF8);
}

void query_text(struct query *q, const char *text)
{
    query_text_cut(q, text ? text : "", text ? strlen(text) : 0);
}

bool query_row(struct query *q)
{
    if (q->rc != SQLITE_OK)
        return false;
    must(q->stmt);
    int rc = sqlite3_step(q->stmt);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        q->rc = rc;
    return rc == SQLITE_ROW;
}

int64_t query_get_int(struct query *q, int column)
{
    return sqlite3_column_int64(q->stmt, column);
}

const char *query_get_text(struct query *q, int column)
{
    const char *text = (const char *)sqlite3_column_text(q->stmt, column);
    return text ? text : "";
}

int query_size(struct query *q, int column)
{
    return sqlite3_column_bytes(q->stmt, column);
}

void query_get_blob(struct query *q, int column, void *buf, size_t size)
{
    const void *data = sqlite3_column_blob(q->stmt, column);
    if (data && (size_t)sqlite3_column_bytes(q->stmt, column) == size)
        memcpy(buf, data, size);
    else
        memset(buf, 0, size);
}

nacre_id query_get_id(struct query *q, int column)
{
    nacre_id id;
    query_get_blob(q, column, id.bytes, sizeof id.bytes);
    return id;
}

int query_end(struct query *q)
{
    if (!q->cached) {
        sqlite3_finalize(q->stmt);
    } else if (q->stmt) {
        sqlite3_reset(q->stmt);
        sqlite3_clear_bindings(q->stmt);
    }
    q->stmt = NULL;
    return q->rc;
}

/* Takes the row, which may be NULL for one that could not be had, and frees it on failure. */
static int add_row_consume(struct rows *rows, void *row)
{
    cleanup_free void *mine = row;
    if (!mine)
        return SQLITE_NOMEM;
    must(rows->count <= rows->room);
    if (GROW(rows->items, rows->count, rows->room) < 0)
        return SQLITE_NOMEM;
    rows->items[rows->count++] = TAKE_PTR(mine);
    return 0;
}

void rows_done(struct rows *rows)
{
    for (size_t i = 0; i < rows->count; i++)
        free(rows->items[i]);
    free(rows->items);
    *rows = (struct rows){0};
}

struct row_block rows_new(size_t size, const char *const *strings, size_t count)
{
    size_t room = size;
    for (size_t i = 0; i < count; i++)
        room += strlen(strings[i]) + 1;
    char *block = malloc(room);
    return (struct row_block){.block = block, .next = block ? block + size : NULL};
}

const char *rows_copy(struct row_block *row, const char *string)
{
    char *copy = row->next;
    size_t size = strlen(string) + 1;
    memcpy(copy, string, size);
    row->next += size;
    return copy;
}

int query_collect(struct query *q, query_take_fn *take, struct rows *rows)
{
    int r = 0;
    while (r == 0 && query_row(q))
        r = add_row_consume(rows, take(q));
    int ended = query_end(q);
    return ended != 0 ? ended : r;
}

int query_run(struct query *q, int *ret_changes)
{
    while (query_row(q))
        ;
    if (ret_changes)
        *ret_changes = q->rc == SQLITE_OK ? sqlite3_changes(sqlite3_db_handle(q->stmt)) : 0;
    return query_end(q);
}

int query_run_ids(struct catalog *c, const char *sql, const nacre_id *id, const nacre_id *second)
{
    struct query q = query_begin(c, sql);
    query_id(&q, id);
    if (second)
        query_id(&q, second);
    return query_run(&q, NULL);
}
