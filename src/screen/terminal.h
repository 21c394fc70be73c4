/*
 * A terminal: what bytes do to its cursor, its modes and its cells.
 *
 * One machine for everybody. Who wants to know what is on the screen gives it paper to draw on
 * (screen/grid.h); the keeper, which only has to know where the cursor is and which modes are on,
 * gives none. It allocates nothing, and the same bytes in other pieces do the same. It is an
 * xterm of 256 and more colours, as far as programs use one; docs/terminals.md says how far.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "screen/escape.h"

#define TERMINAL_COLUMNS_MIN 20u
#define TERMINAL_COLUMNS_MAX 500u
#define TERMINAL_ROWS_MIN    5u
#define TERMINAL_ROWS_MAX    200u
#define TERMINAL_COLUMNS     120u /* if nobody says */
#define TERMINAL_ROWS        40u

/* A colour: 0 is the terminal's own; else one of 256, or red, green and blue. */
#define COLOUR_INDEX 0x01000000u
#define COLOUR_RGB   0x02000000u

enum pen_attribute {
    PEN_BOLD = 1 << 0,
    PEN_FAINT = 1 << 1,
    PEN_ITALIC = 1 << 2,
    PEN_UNDERLINE = 1 << 3,
    PEN_BLINK = 1 << 4,
    PEN_REVERSE = 1 << 5,
    PEN_HIDDEN = 1 << 6,
    PEN_STRUCK = 1 << 7,
};

/* How characters are drawn. */
struct pen {
    uint32_t front;
    uint32_t back;
    uint32_t attributes; /* bits of enum pen_attribute */
};

/* Lines and columns count from 0; a range ends before its end. */
struct paper_ops {
    void (*put_plain)(void *self, unsigned row, unsigned column, const char *s, size_t size,
                      const struct pen *pen);
    void (*put)(void *self, unsigned row, unsigned column, uint32_t point, unsigned width,
                const struct pen *pen);
    /* A mark on the character that the column belongs to. */
    void (*mark)(void *self, unsigned row, unsigned column, uint32_t point);
    void (*erase)(void *self, unsigned row, unsigned from, unsigned to, const struct pen *pen);
    /* Rows from top to bottom, between two columns: by so many up, or down if less than 0. */
    void (*scroll)(void *self, unsigned top, unsigned bottom, unsigned left, unsigned right, int by,
                   const struct pen *pen);
    /* What stands in a row between two columns: by so many to the right, or to the left. */
    void (*shift)(void *self, unsigned row, unsigned from, unsigned to, int by,
                  const struct pen *pen);
    void (*choose)(void *self, bool alternate); /* which of both screens is drawn on */
};

/* Modes; bits. */
enum terminal_mode {
    MODE_WRAP = 1 << 0,      /* DECAWM */
    MODE_INSERT = 1 << 1,    /* IRM */
    MODE_NEWLINE = 1 << 2,   /* LNM */
    MODE_MARGINS = 1 << 4,   /* DECLRMM */
    MODE_ALTERNATE = 1 << 5, /* the other screen, of programs that fill it */
    MODE_CURSOR = 1 << 6,    /* it is shown */
    MODE_KEYS = 1 << 7,      /* DECCKM: cursor keys in their other form */
    MODE_KEYPAD = 1 << 8,    /* DECKPAM */
    MODE_PASTE = 1 << 9,     /* what is pasted comes in brackets */
    MODE_FOCUS = 1 << 10,
    MODE_REVERSE = 1 << 11,
    MODE_MOUSE = 1 << 12,      /* its buttons are told, */
    MODE_MOUSE_DRAG = 1 << 13, /* and moves while one is pressed, */
    MODE_MOUSE_MOVE = 1 << 14, /* or all moves; */
    MODE_MOUSE_SGR = 1 << 15,  /* in the form that has room for large screens */
};

struct cursor {
    uint16_t row, column;
    bool full; /* a character stands in the last column: the next one begins a new row */
    bool origin;
    uint8_t set;  /* which of the four is in use, */
    uint8_t once; /* and for the next character alone, or the same */
    char sets[4]; /* final bytes of their names: '0' has lines, 'A' a pound */
    struct pen pen;
};

/* Says what a program asked for; short, and at once. */
typedef void terminal_answer_fn(void *self, const char *text, size_t size);

struct terminal {
    const struct paper_ops *paper; /* NULL: nothing is drawn */
    void *paper_self;
    terminal_answer_fn *answer; /* NULL: nobody is answered */
    void *answer_self;

    struct escape escape;
    char torn[4]; /* the beginning of a character */
    uint8_t torn_size;

    uint16_t columns, rows;
    uint16_t top, bottom; /* the rows that scroll; a range */
    uint16_t left, right;
    uint32_t modes;
    uint32_t last; /* the character before, for who repeats it; 0 = none */
    struct cursor at;
    struct cursor saved[2]; /* of either screen */
    uint64_t tabs[(TERMINAL_COLUMNS_MAX + 63) / 64];
};

/* The size is brought within the bounds above. Paper and answer are set by the owner, afterwards.
 */
void terminal_init(struct terminal *t, unsigned columns, unsigned rows);

void terminal_feed(struct terminal *t, const void *bytes, size_t size);

/*
 * Another size. Rows leave at the top if the cursor would be below the last one: how many, so that
 * who has cells does the same to them.
 */
unsigned terminal_resize(struct terminal *t, unsigned columns, unsigned rows);

static inline bool terminal_has(const struct terminal *t, enum terminal_mode mode)
{
    return (t->modes & mode) != 0;
}

/* -- Between its own files -------------------------------------------------------------------- */

/* terminal_csi.c: obeys a CSI; terminal_mode.c: those that set modes, and ESC c. */
void terminal_obey_csi(struct terminal *t);
void terminal_obey_private(struct terminal *t);
void terminal_set_modes(struct terminal *t, bool private, bool on);
/* 1 = on, 2 = off, 0 = not known. */
int terminal_ask_mode(const struct terminal *t, bool private, uint32_t number);
void terminal_reset(struct terminal *t);
void terminal_take_pen(struct terminal *t);
void terminal_answer(const struct terminal *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

void terminal_go_to(struct terminal *t, unsigned row, unsigned column);
void terminal_save(struct terminal *t);
void terminal_restore(struct terminal *t);
/* Down a row, or up, scrolling where that is the last or the first one of those that scroll. */
void terminal_down(struct terminal *t);
void terminal_up(struct terminal *t);
void terminal_tab(struct terminal *t, unsigned count);
void terminal_put(struct terminal *t, uint32_t point);
void terminal_erase(struct terminal *t, unsigned row, unsigned from, unsigned to);
void terminal_scroll(struct terminal *t, unsigned top, int by);
