/*
 * What stands in one column: a character with the marks that combine with it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define CELL_MARKS 3 /* further ones are dropped */
#define CELL_REST                                                                   \
    UINT32_MAX /* as a point: all but the first column of a tab or a wide character \
                */
#define CELL_BYTES ((size_t)4 * (1 + CELL_MARKS))

struct cell {
    uint32_t point;
    uint32_t marks[CELL_MARKS];
};

/* Writes it as UTF-8; returns the length, at most CELL_BYTES, 0 for CELL_REST. */
size_t cell_write(const struct cell *cell, char *to);

void cell_add_mark(struct cell *cell, uint32_t point);
