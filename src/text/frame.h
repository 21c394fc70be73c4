/*
 * Framing: what a command printed can never pass for what nacre says about it. Everything of ours
 * that can stand at the beginning of a line is in one table; a line of output that begins like one
 * of them is shown with a backslash in front.
 *
 * A reader is not a parser, so likeness is judged generously, by what can be seen: case does not
 * matter; blanks of any kind, characters without a width and the like help nowhere, be it before,
 * inside or between the words; letters in full width or in another dress are letters. Backslashes
 * in front do not help, either: such a line gets one more, so taking one away always gives back
 * what was printed. U+2028 and U+2029, which many programs take for the end of a line, begin a new
 * one here, too. What would make others appear in another order is shown as U+FFFD.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* Whether a line of valid UTF-8 begins like one of ours. */
bool frame_is_ours(const char *line, size_t size);

/* The number of bytes that frame_write() would append. */
size_t frame_size(const char *line, size_t size);

/* Appends a line of a command's output, without its newline, such that it is nobody else's. */
int frame_write(struct buf *out, const char *line, size_t size);

/* The table, for tests: entry i, or NULL behind the last. */
const char *frame_entry(size_t i);
