/*
 * Escape sequences, byte by byte: where one ends, and which command it was.
 *
 * Known are CSI (ESC [ ... final), strings (OSC, DCS, SOS, PM, APC and the title of ESC k) up to
 * ST, and the short forms (ESC, intermediates, final). OSC also ends at BEL. CAN and SUB cut any
 * of them off. What is unfinished ends at a newline, at a ceiling (ESCAPE_MAX bytes, for strings
 * ESCAPE_STRING_MAX), and, except in strings, at a byte that is not ASCII; what follows is text.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ESCAPE_MAX        256
#define ESCAPE_STRING_MAX 65536
#define ESCAPE_NUMBER_MAX 99999
#define ESCAPE_NUMBERS    32 /* of a CSI; further ones are not kept */
#define ESCAPE_TEXT_MAX   16 /* of an OSC: its beginning */

enum escape_answer {
    ESCAPE_TAKEN,   /* the byte belongs to the sequence */
    ESCAPE_COMMAND, /* it ended a CSI of numbers alone: command and numbers say what it asks */
    ESCAPE_PRIVATE, /* it ended a CSI with marks in it: mark and between say which */
    ESCAPE_SHORT,   /* it ended a short form: between and command */
    ESCAPE_STRING,  /* it ended a string; ESC does, and begins the next sequence. Text is that of
                       an OSC */
    ESCAPE_CONTROL, /* a control inside a sequence, to be obeyed at once; the sequence goes on */
    ESCAPE_TEXT,    /* there is no sequence (any more): the byte is to be read as text */
};

/* Zeros: outside of any sequence. */
struct escape {
    uint8_t state;
    char command; /* the final byte */
    char mark;    /* one of <=>? in a CSI, or 0 */
    char between; /* the last intermediate, or 0 */
    uint8_t last; /* the number that is being read; beyond the last one when there are more */
    uint8_t text_size;
    uint32_t joined;                  /* bits: this number stands behind a colon */
    uint32_t size;                    /* bytes of the sequence so far */
    uint32_t numbers[ESCAPE_NUMBERS]; /* each at most ESCAPE_NUMBER_MAX; 0 = none was given */
    char text[ESCAPE_TEXT_MAX];
};

static inline bool escape_inside(const struct escape *e)
{
    return e->state != 0;
}

/* How many numbers a CSI has, and one of them: 0 if it has not that many. */
static inline unsigned escape_count(const struct escape *e)
{
    return e->last < ESCAPE_NUMBERS ? e->last + 1u : ESCAPE_NUMBERS;
}

static inline uint32_t escape_number(const struct escape *e, unsigned which)
{
    return which < escape_count(e) ? e->numbers[which] : 0;
}

/* The length of a whole sequence that sets colours, the most common one, if s begins with one: a
 * short way around escape_feed() for who does not care for colours. */
size_t escape_colours(const char *s, size_t size);

/* Takes the next byte. Outside of a sequence only ESC is taken. */
enum escape_answer escape_feed(struct escape *e, uint8_t byte);
