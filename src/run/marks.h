/*
 * The file `marks` of a run with a terminal: where in the log it became another size. Who draws the
 * log again needs to know. What was typed is nowhere.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "run/format.h"

#define MARKS_MAX 4096

struct run_mark {
    uint64_t offset;  /* in the log */
    uint64_t when_us; /* since the start */
    uint16_t columns, rows;
    uint32_t pad;
    uint64_t sum; /* over all of the above */
};

FORMAT_PIN(4, struct run_mark, 32);

/* Writes down the mark with this number, from 0. 0 or -errno. */
int marks_add(int dir, uint32_t number, const struct run_mark *mark);

/* The marks that are there, up to count and the first that is damaged: how many. */
size_t marks_read(int dir, uint32_t count, struct run_mark marks[MARKS_MAX]);
