/*
 * Recorded output on somebody's terminal: only what cannot do anything there passes. That is text,
 * tabs, ends of lines, what moves the cursor back within its line (CR, BS), and sequences that set
 * colours (CSI ... m, of numbers only). All other controls and sequences are written out
 * (^[]52;...), what is not UTF-8 and what would reorder the text is shown as U+FFFD. In whatever
 * pieces the bytes come, what is shown is the same.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "screen/escape.h"

/* Zeros to begin with, but for colours. */
struct harmless {
    bool colours; /* wanted; if not, what sets them is left out */
    bool painted; /* they were set, and not reset since */
    bool spilled; /* the sequence is too long to be one of colours; its beginning was written out */
    struct escape escape;
    size_t held_size; /* of a sequence or a character that is not complete */
    char held[64];
};

/* Appends what is shown of the bytes. 0, -ENOMEM or -E2BIG. */
int harmless_feed(struct harmless *h, struct buf *out, const char *data, size_t size);

/* Nothing more comes: what is incomplete is written out, and colours are reset. */
int harmless_end(struct harmless *h, struct buf *out);
