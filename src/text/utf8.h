/*
 * Reading bytes of strangers as UTF-8. What is not valid becomes U+FFFD, one for each maximal
 * part of a character, as the Unicode standard recommends.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define UTF8_INVALID     UINT32_MAX
#define UTF8_REPLACEMENT "\xef\xbf\xbd"

/*
 * The length of the character at s, 1 to 4, and its code point. An invalid sequence has the
 * length of its maximal part and the code point UTF8_INVALID. 0 if the bytes end inside a
 * character that more bytes could complete, and if size is 0.
 */
size_t utf8_next(const char *s, size_t size, uint32_t *ret_point);

/* Writes a point as a character; returns its length, 1 to 4. */
size_t utf8_write(uint32_t point, char *to);

/* The columns of a character on a terminal: 0 (it combines with the one before), 1 or 2. What is
 * UTF8_INVALID has 1, as its replacement has. */
unsigned utf8_width(uint32_t point);

/* Whether a reader sees nothing of it, or a blank at most: white space, what takes no room, what
 * only says how others are shown, controls. */
bool utf8_is_invisible(uint32_t point);

/* Whether it makes others appear in another order than they stand: the embeddings, overrides and
 * isolates of U+202A to U+202E and U+2066 to U+2069. All have three bytes, as the replacement has.
 */
bool utf8_reorders(uint32_t point);

/* Replaces them in place. */
void utf8_upright(char *s, size_t size);

/* How many bytes at s, at most 3, can only be the rest of a character that began before. */
size_t utf8_torn(const char *s, size_t size);

/* Whether all of it is valid, the last character complete. */
bool utf8_is_valid(const char *s, size_t size);

/* Appends text with its invalid parts replaced, an unfinished last character among them. */
int utf8_clean(struct buf *b, const char *s, size_t size);

/* -- Many bytes at a time --------------------------------------------------------------------- */

/* How far bytes are text that needs no thought: the length of the longest beginning of printable
 * ASCII: space to tilde, nothing else. */
size_t scan_plain(const char *s, size_t size);

/*
 * The length of the longest beginning of lines of text: printable ASCII, tabs, newlines, and
 * whole valid characters that are not controls (U+0080 to U+009F).
 */
size_t scan_clean(const char *s, size_t size);
