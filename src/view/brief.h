/* Short words for lists: how old, how much, and a text on one line. */
#ifndef NACRE_VIEW_BRIEF_H
#define NACRE_VIEW_BRIEF_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* The columns that text without controls takes on a terminal. */
size_t brief_columns(const char *text);

/* "17s", "4m", "3h", "12d" */
#define AGE_TEXT 24
const char *brief_age(int64_t ms, char buf[AGE_TEXT]);

/* "512", "1.5K", "64M" */
#define BYTES_TEXT 24
const char *brief_bytes(uint64_t bytes, char buf[BYTES_TEXT]);

/* Appends text as one line: controls become blanks, what is invalid U+FFFD, and what does not
 * fit the columns is cut with an ellipsis. */
int brief_line(struct buf *b, const char *text, size_t columns);

#endif
