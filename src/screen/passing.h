/*
 * What a program writes to a terminal of its own, on its way to a person's terminal that stands in
 * for it: all that draws passes as it is, with titles and links. What the keeper answers does not,
 * nor anything else that a terminal would answer, nor what reaches beyond the screen: clipboard,
 * printer, window. In whatever pieces the bytes come, what passes is the same.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "screen/escape.h"
#include "screen/terminal.h"

#define PASSING_MAX 4096 /* a longer sequence does not pass */

/* Zeros, but for the terminal, which follows what is written to know how to leave it. */
struct passing {
    struct terminal terminal;
    struct escape escape;
    bool spilled; /* the sequence is longer */
    size_t held_size;
    char held[PASSING_MAX]; /* of a sequence or a character that is not complete */
};

/* Appends what passes. 0, -ENOMEM or -E2BIG. */
int passing_feed(struct passing *p, struct buf *out, const char *data, size_t size);

/* What ends all that is still on: modes, the other screen, colours. */
int passing_leave(const struct passing *p, struct buf *out);
