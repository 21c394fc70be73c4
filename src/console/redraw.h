/*
 * A part of the terminal that is drawn again and again, below what was there before. Nothing but
 * the last picture is left behind: no other screen, no hidden cursor.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <termios.h>

#include "base/buf.h"

struct redraw {
    int signal_fd;
    int signal; /* that ended it; 0 = a key */
    bool keys;  /* stdin is the terminal, and set to give single keys */
    struct termios saved;
    size_t lines; /* that are drawn, */
    size_t rows;  /* on a terminal of this size */
    size_t columns;
};

/* Whether stdout is a terminal that can move its cursor. */
bool redraw_is_possible(void);

/* 0 or -errno. Release with redraw_close() in any case. */
int redraw_open(struct redraw *s);
void redraw_close(struct redraw *s);

/* Looks at the size of the terminal: columns, and rows that a picture may have. */
void redraw_measure(struct redraw *s, size_t *ret_columns, size_t *ret_rows);

/* Draws a picture of whole lines instead of the last one. 0 or -errno. */
int redraw_draw(struct redraw *s, const struct buf *picture);

/* Waits so long; false if q was pressed, Ctrl-C, or another signal came. */
bool redraw_wait(struct redraw *s, int ms);
