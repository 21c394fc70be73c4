/*
 * A terminal of somebody's, on which the cells of another are shown: a part of them, if it is
 * smaller. Nothing of what a program wrote reaches it but characters, their colours, the cursor
 * and, for who types, the modes that say what keys send. It is written only what has changed.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "screen/grid.h"

struct canvas {
    unsigned columns, rows;
    struct drawn *shown; /* what stands there */
    struct drawn *next;  /* one row that shall */
    bool known;          /* what stands there is; else it is cleared first */
    bool placed;         /* it is known where the cursor is */
    bool cursor;         /* it is shown */
    unsigned row, column;
    struct pen pen;
    uint32_t modes; /* for keys that are on */
};

/* What is to be seen. */
struct scene {
    const struct grid *grid;
    unsigned top, left; /* the first row and column that are shown */
    unsigned rows;      /* that are shown of it */
    const char *line;   /* words of ours in the last row, in ASCII; NULL = none */
    uint32_t modes;     /* that shall be on, of enum terminal_mode: those of keys are obeyed */
};

#define CANVAS_KEYS                                                                     \
    (MODE_KEYS | MODE_KEYPAD | MODE_PASTE | MODE_FOCUS | MODE_MOUSE | MODE_MOUSE_DRAG | \
     MODE_MOUSE_MOVE | MODE_MOUSE_SGR)
#define CANVAS_MOUSE (MODE_MOUSE | MODE_MOUSE_DRAG | MODE_MOUSE_MOVE)

/* A terminal of that size of which nothing is known. -ENOMEM: it is as before. */
int canvas_size(struct canvas *c, unsigned columns, unsigned rows);
void canvas_done(struct canvas *c);

/* What is to be written first and last, so that the terminal is as it was. */
int canvas_enter(struct canvas *c, struct buf *out);
int canvas_leave(struct canvas *c, struct buf *out);
/* Ends the modes for keys that are on. */
int canvas_keys_off(struct canvas *c, struct buf *out);

/* Appends what shows the scene. 0, -ENOMEM or -E2BIG. */
int canvas_draw(struct canvas *c, const struct scene *scene, struct buf *out);
