/*
 * The cells of a terminal: paper for the machine of screen/terminal.h to draw on, and what is on
 * it as text.
 */
#pragma once

#include "base/buf.h"
#include "screen/cell.h"
#include "screen/terminal.h"

struct grid;

/* A cell as it was drawn. */
struct drawn {
    struct cell cell;
    struct pen pen;
};

/* A terminal of that size with cells. Its machine tells cursor and modes. -ENOMEM. */
int grid_new(unsigned columns, unsigned rows, struct grid **ret);
void grid_free(struct grid *g);

static inline void grid_free_ptr(struct grid **g)
{
    grid_free(*g);
}

#define cleanup_grid __attribute__((cleanup(grid_free_ptr)))

const struct terminal *grid_terminal(const struct grid *g);
void grid_feed(struct grid *g, const void *bytes, size_t size);

/* -ENOMEM: then it is as before. */
int grid_resize(struct grid *g, unsigned columns, unsigned rows);

/* The cells of a row, as far as it was drawn in: what follows is blank. */
const struct drawn *grid_cells(const struct grid *g, unsigned at, unsigned *ret_count);

/* How many rows have something on them, counted from the first to the last of those. */
unsigned grid_height(const struct grid *g);

/* What stands in a row, without what is blank at its end. 0, -ENOMEM or -E2BIG. */
int grid_row(const struct grid *g, unsigned at, struct buf *out);

/* The stretches of a row that are drawn alike, from the left, without what is blank at its end. A
 * result other than 0 ends it and is returned; else 0, -ENOMEM or -E2BIG. */
typedef int grid_stretch_fn(void *self, const char *text, size_t size, const struct pen *pen);
int grid_stretches(const struct grid *g, unsigned at, grid_stretch_fn *fn, void *self);

/* All rows up to the last that has something, each with a newline. */
int grid_text(const struct grid *g, struct buf *out);

/* Whether a row stands out: all of what is drawn in it was drawn reversed or on a background, and
 * the rows beside it were not drawn so. */
bool grid_row_stands_out(const struct grid *g, unsigned at);
