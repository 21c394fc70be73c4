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

enum escape_answer {
    ESCAPE_TAKEN,   /* the byte belongs to the sequence */
    ESCAPE_COMMAND, /* it ended a CSI without private marks: command and number say what it asks */
    ESCAPE_CONTROL, /* a control inside a sequence, to be obeyed at once; the sequence goes on */
    ESCAPE_TEXT,    /* there is no sequence (any more): the byte is to be read as text */
};

/* Zeros: outside of any sequence. */
struct escape {
    uint8_t state;
    bool strange;    /* a CSI with more than numbers in it */
    bool later;      /* past the first number */
    char command;    /* the final byte of the CSI */
    uint32_t number; /* its first number, 0 if there is none, at most ESCAPE_NUMBER_MAX */
    uint32_t size;   /* bytes of the sequence so far */
};

static inline bool escape_inside(const struct escape *e)
{
    return e->state != 0;
}

/* The length of a whole sequence that sets colours, the most common one and without effect, if s
 * begins with one: a short way around escape_feed(). */
size_t escape_colours(const char *s, size_t size);

/* Takes the next byte. Outside of a sequence only ESC is taken. */
enum escape_answer escape_feed(struct escape *e, uint8_t byte);
