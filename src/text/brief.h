/* Text made short. For lists: how old, how much, and a text on one line. In long lines the middle
 * is left out, and in its place stands how much that is. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* The columns that text without controls takes on a terminal. */
size_t brief_columns(const char *text);

/* "17s", "4m", "3h", "12d" */
#define AGE_TEXT 24
const char *brief_age(int64_t ms, char buf[AGE_TEXT]);

/* "0.4s", "17s", "4m12s", "3h05m", "12d" */
const char *brief_duration(int64_t ms, char buf[AGE_TEXT]);

/* "512", "1.5K", "64M" */
#define BYTES_TEXT 24
const char *brief_bytes(uint64_t bytes, char buf[BYTES_TEXT]);

/* Appends a stranger's text so that it stays on its line: controls and separators of lines become
 * blanks, what is invalid or would reorder the others U+FFFD. */
int brief_inline(struct buf *b, const char *text, size_t size);

/* The same as far as it fits the columns; what does not is cut with an ellipsis. */
int brief_line(struct buf *b, const char *text, size_t columns);

/* -- Long lines ------------------------------------------------------------------------------- */

#define CUT_LEAST 64 /* bytes a line can be cut to: the notice fits, and a little more */

/* A line of valid UTF-8, of which lost bytes may be missing already: those that stood between
 * text[head] and text[head + skip]. skip is the size of a notice that says so; 0 = there is none.
 */
struct cut {
    const char *text;
    size_t size;
    size_t head, skip;
    uint64_t lost;
};

/* A line as it is, or one that was cut before. */
struct cut cut_of(const char *text, size_t size, uint64_t lost);

/* Writes at most max bytes (>= CUT_LEAST) of the line and returns how many. No character is
 * divided; the number in the notice, *ret_lost, counts all missing bytes. to may be NULL. */
size_t cut_middle(char *to, size_t max, const struct cut *cut, uint64_t *ret_lost);

/* The same, but what stands from byte at on stays, as far as there is room: what is left out is
 * after the first words of the line, and behind it. */
size_t cut_around(char *to, size_t max, const struct cut *cut, size_t at, uint64_t *ret_lost);
