/* Rows that were read and are handed out after the transaction: each is one block of memory. */
#ifndef NACRE_CATALOG_ROWS_H
#define NACRE_CATALOG_ROWS_H

#include <stddef.h>

struct rows {
    void **items;
    size_t count;
    size_t room;
};

/* Takes the row, which may be NULL for one that could not be had, and frees it on failure. Returns
 * 0 or SQLITE_NOMEM. */
int rows_add_consume(struct rows *rows, void *row);

/* Frees the rows; empty afterwards. */
void rows_done(struct rows *rows);

#define cleanup_rows __attribute__((cleanup(rows_done)))

/* A block of size bytes with room for copies of strings behind it, which rows_copy() fills. */
struct row {
    char *block;
    char *next;
};

struct row rows_new(size_t size, const char *const *strings, size_t count);
const char *rows_copy(struct row *row, const char *string);

#endif
