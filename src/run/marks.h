/*
 * The file `marks` of a run: where in the log its terminal became another size, which who draws the
 * log again needs to know; and when a person came, typed and left. What was typed is nowhere.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "run/format.h"

#define MARKS_MAX     4096
#define MARKS_PERSONS 2048 /* from this many on only sizes are noted */

enum mark_kind {
    MARK_SIZE = 0,
    MARK_ATTACHED = 1, /* a person sees it */
    MARK_TYPED = 2,    /* a person typed, and maybe again in the minute that follows */
    MARK_DETACHED = 3,
};

struct run_mark {
    uint64_t offset;        /* in the log */
    uint64_t when_us;       /* since the start */
    uint16_t columns, rows; /* which it has from here on, or has now */
    uint32_t kind;          /* enum mark_kind */
    uint64_t sum;           /* over all of the above */
};

FORMAT_PIN(5, struct run_mark, 32);

/* Writes down the mark with this number, from 0. 0 or -errno. */
int marks_add(int dir, uint32_t number, const struct run_mark *mark);

/* The marks that are there from one number on, up to the first that is damaged: how many. */
size_t marks_read(int dir, size_t from, struct run_mark marks[MARKS_MAX]);
