/*
 * Sentences that may quote what somebody sent: errors, above all. Wherever one leaves the program,
 * as an answer or on stderr, it goes through here, and is one line in which everything can be seen.
 */
#pragma once

#include <stddef.h>

#include "base/buf.h"

#define LEGIBLE_MAX 1000 /* bytes; of more the middle is left out */

/*
 * Appends the sentence: controls, separators of lines and what cannot be seen or would reorder the
 * rest as escapes (\n, \x1b, \u202e), bytes that are no UTF-8 as U+FFFD; a character that was cut
 * at the end is left out. 0, -ENOMEM or -E2BIG.
 */
int legible_write(struct buf *out, const char *text, size_t size);
