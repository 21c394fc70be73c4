/*
 * One statement from preparing to the end. Parameters are bound in their order; the first failure
 * sticks, makes the rest do nothing, and is what query_end() returns: 0 or an SQLite result code.
 */
#pragma once

#include <nacre/id.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "catalog/db.h"

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

/* Rows that were read and are handed out after the transaction: each is one block of memory. */
struct rows {
    void **items;
    size_t count;
    size_t room;
};

/* Frees the rows; empty afterwards. */
void rows_done(struct rows *rows);

/* A block of size bytes with room for copies of strings behind it, which rows_copy() fills. */
struct row_block {
    char *block;
    char *next;
};

struct row_block rows_new(size_t size, const char *const *strings, size_t count);
const char *rows_copy(struct row_block *row, const char *string);

/* Each row to the end as a block of memory that take makes of it, NULL if there is none. */
typedef void *query_take_fn(struct query *q);
int query_collect(struct query *q, query_take_fn *take, struct rows *rows);

/* Steps to the end; *ret_changes, if not NULL, is how many rows were changed. */
int query_run(struct query *q, int *ret_changes);

/* All of a statement whose parameters are ids: one, or two. */
int query_run_ids(struct catalog *c, const char *sql, const nacre_id *id, const nacre_id *second);
