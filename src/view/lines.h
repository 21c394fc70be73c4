/* Rendered lines that are kept for a while, in order. Numbers and offsets are those of the raw
 * stream; see struct render_line. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "screen/render.h"

struct line {
    uint64_t number;
    uint64_t offset;
    uint64_t count;   /* equal lines folded into it */
    uint64_t lost;    /* bytes that its own text says are missing */
    size_t at, size;  /* in the text of the whole */
    bool torn;        /* its beginning is not there */
    uint8_t salience; /* what it was judged to be, if it was: see view/salience.h */
    uint16_t match;   /* where the word is that says so */
};

struct lines {
    struct line *all;
    size_t count, room;
    char *text;
    size_t len, text_room;
    size_t cost; /* bytes of all of them, each with a newline */
};

void lines_done(struct lines *l);

/* 0 or -ENOMEM. */
int lines_add(struct lines *l, const struct render_line *line, bool torn);

/* Forgets the first n. */
void lines_drop(struct lines *l, size_t n);

const char *lines_text(const struct lines *l, size_t i);
