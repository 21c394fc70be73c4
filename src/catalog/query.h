/*
 * One statement from preparing to the end. Parameters are bound in their order; the first failure
 * sticks, makes the rest do nothing, and is what query_end() returns: 0 or an SQLite result code.
 */
#ifndef NACRE_CATALOG_QUERY_H
#define NACRE_CATALOG_QUERY_H

#include <nacre/id.h>
#include <stdbool.h>
#include <stdint.h>

#include "catalog/db.h"
#include "catalog/rows.h"

struct query {
    sqlite3_stmt *stmt;
    int rc;
    int bound;
    bool cached;
};

/* sql must be a constant of the program: the statement is kept under its address. */
struct query query_begin(struct catalog *c, const char *sql);

/* For text that was put together; not kept. */
struct query query_begin_once(struct catalog *c, const char *sql);

/* What is bound must stay as it is until query_end(). */
void query_int(struct query *q, int64_t value);
void query_id(struct query *q, const nacre_id *id);
void query_blob(struct query *q, const void *data, int size);
void query_text(struct query *q, const char *text);
void query_text_cut(struct query *q, const char *text, size_t size);

/* True for each row. */
bool query_row(struct query *q);
int64_t query_get_int(struct query *q, int column);
const char *query_get_text(struct query *q, int column); /* "" for NULL; until the next row */
nacre_id query_get_id(struct query *q, int column);      /* zeros if it is none */
int query_size(struct query *q, int column);             /* of a blob in bytes; 0 for NULL */
void query_get_blob(struct query *q, int column, void *buf, size_t size);

int query_end(struct query *q);

/* Each row to the end as a block of memory that take makes of it, NULL if there is none. */
typedef void *query_take_fn(struct query *q);
int query_collect(struct query *q, query_take_fn *take, struct rows *rows);

/* Steps to the end; *ret_changes, if not NULL, is how many rows were changed. */
int query_run(struct query *q, int *ret_changes);

#endif
