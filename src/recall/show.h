/* A line that was found, as people and models read it. */
#pragma once

#include <nacre/recall.h>

#include "base/buf.h"

#define SHOW_LINE_MAX ((size_t)2000)

/* Where the match is in the text that was appended; both 0 if it cannot be told. */
struct shown_match {
    size_t start;
    size_t end;
};

/*
 * Appends the text of a line as a terminal would show it: one line, valid UTF-8 without controls.
 * What a carriage return drew over is not there, unless the match is in it. A line longer than
 * max is cut around its match, with the number of bytes left out. 0, -ENOMEM, -E2BIG.
 */
int show_text(struct buf *out, const nacre_recall_line *line, size_t max,
              struct shown_match *ret_match);

/* Appends "1a2b3c4d stderr:123: " for a match, with "-" instead of the colons for context. */
int show_origin(struct buf *out, const nacre_recall_line *line);
