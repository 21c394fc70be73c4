/* Tables: for people columns as wide as what is in them, and no wider than the terminal; for
 * programs a tab between the cells. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "console/out.h"

#define TABLE_COLUMNS_MAX 12

struct table_column {
    const char *title;
    bool right;    /* numbers stand at the right */
    unsigned rank; /* where all do not fit, the highest leaves first; 0 = it stays */
};

struct table_row {
    char *cells[TABLE_COLUMNS_MAX];
    size_t widths[TABLE_COLUMNS_MAX];
    const char *colour; /* of the first cell */
};

struct table {
    const struct table_column *columns;
    size_t count; /* of columns, of which the last one is cut to what is left of the line */
    bool hidden[TABLE_COLUMNS_MAX];
    struct table_row *rows;
    size_t row_count;
    size_t cap;
};

void table_init(struct table *t, const struct table_column *columns, size_t count);
void table_done(struct table *t);

/* Adds a row; the cells are copied and made harmless, "" and NULL become "-". colour is borrowed.
 * 0 or -errno, as is what the next one returns. */
int table_add(struct table *t, const char *const *cells, const char *colour);

/* Appends the table to a text: up to max_rows rows and a heading, within columns. */
int table_format(const struct table *t, const struct paint *paint, size_t columns, size_t max_rows,
                 struct buf *out);

/* Appends every cell of every row, without a heading, for programs. */
int table_format_plain(const struct table *t, struct buf *out);
