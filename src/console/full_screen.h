/*
 * The whole of a terminal, drawn by what differs: lines that are as they were are not written
 * again, so that it can be looked at over a slow line. When it is closed, the terminal is as it
 * was.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <termios.h>

#include "base/buf.h"

enum {
    KEY_NONE = -1, /* time is up */
    KEY_END = -2,  /* a signal, or nobody types any more */
    KEY_UP = 256,
    KEY_DOWN,
    KEY_PAGE_UP,
    KEY_PAGE_DOWN,
    KEY_HOME,
    KEY_LAST,
    KEY_ESCAPE
};

struct full_screen {
    int signal_fd;
    int signal; /* that ended it, or 0 */
    struct termios saved;
    bool taken;
    size_t rows, columns;
    struct buf *lines; /* that are shown */
};

/* Whether stdin and stdout are a terminal that can do it. */
bool full_screen_is_possible(void);

/* 0 or -errno. Release with full_screen_close() in any case. */
int full_screen_open(struct full_screen *s);
void full_screen_close(struct full_screen *s);

/* Looks at the size of the terminal: true if it has changed. */
bool full_screen_measure(struct full_screen *s);

/* Shows a picture of lines, none wider than the terminal; what is beyond its rows is left out. 0 or
 * -errno. */
int full_screen_draw(struct full_screen *s, const struct buf *picture);

/* The next key, as a byte or one of those above. */
int full_screen_key(struct full_screen *s, int ms);
