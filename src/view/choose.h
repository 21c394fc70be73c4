/*
 * Choosing what is shown of two streams that do not fit. In this order, each stage from what the
 * ones before it left, and each divided fairly between the streams (half each; what one does not
 * need is the other's):
 *
 *   1. the safe lines: the last 50 of stderr, the last 20 of stdout. If there are causes, a quarter
 *      of the room is not for these. If they do not fit, their long lines are cut shorter and
 *      shorter, down to 64 bytes, then there are fewer of them
 *   2. lines that look like a cause, the likeliest first (see rank.h): up to half of the rest
 *   3. the first lines: up to a third of the rest
 *   4. more of the last lines
 *
 * A cause that is among the first or the last lines is shown there, and not once more.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nacre/record.h>

#include "base/buf.h"
#include "view/collect.h"

#define CHOOSE_LIFTED  24  /* at most so many lines are lifted out of one stream */
#define CHOOSE_HEADING 112 /* what a line above a part takes at most, with three long numbers */

/* A line that is lifted out: a cause, or one near it. Its numbers are those of the stream. */
struct lifted {
    struct raw_lines raw;
    const char *text; /* borrowed from where it was collected */
    size_t size;
    uint64_t lost;
    enum salience salience; /* NONE: near a cause */
    uint64_t cause;         /* the number of the first cause that it is, or is near to */
};

/* What there is of a stream, and what was chosen of it. */
struct shown_stream {
    struct collect *before; /* from its beginning on, */
    struct collect *after;  /* and what follows a gap; NULL = there is none. Both are borrowed */
    uint64_t lines, bytes;  /* as printed */
    uint64_t line_base, byte_base; /* what to add to the numbers of after */
    uint64_t safe;                 /* how many lines are safe */
    bool binary;                   /* none of it is shown: then there are neither lines nor bytes */

    size_t limit;                        /* bytes of one line */
    size_t first;                        /* so many lines of before->first */
    size_t last;                         /* the lines of choose_tail()->last from this one on */
    struct lifted lifted[CHOOSE_LIFTED]; /* in the order of lines */
    size_t lifted_count;
};

/* Whether all of the stream is at hand, nothing missing and nothing cut. */
bool choose_is_complete(const struct shown_stream *s);

/* The cost of all lines of a complete stream, uncut. */
size_t choose_whole_cost(const struct shown_stream *s);
void choose_whole(struct shown_stream *s);

/* Chooses for a room of so many bytes. failed: the command did not end well. */
void choose(struct shown_stream streams[2], size_t room, bool failed);
/* Nothing but the safe lines. */
void choose_compact(struct shown_stream streams[2], size_t room);

/* Where the last lines are. */
struct collect *choose_tail(const struct shown_stream *s);

/* How many raw lines, and bytes, the first lines and the last ones that are shown stand for. */
uint64_t choose_first_lines(const struct shown_stream *s);
uint64_t choose_first_bytes(const struct shown_stream *s);
uint64_t choose_last_lines(const struct shown_stream *s);
uint64_t choose_last_bytes(const struct shown_stream *s);

/* The number of the first line that is shown of the last ones. */
uint64_t choose_last_number(const struct shown_stream *s);

/* How many of the lifted lines are causes, and how many there are of the degrees of which some are
 * shown, but those that are shown otherwise. */
size_t choose_causes(const struct shown_stream *s);
uint64_t choose_cause_total(const struct shown_stream *s);

/* How many lines of a degree the stream has. */
uint64_t choose_degree(const struct shown_stream *s, enum salience degree);

/* Appends line i, cut and framed, with its newline; and what that takes. */
int choose_write_line(struct buf *out, const struct lines *lines, size_t i, size_t limit);
size_t choose_line_cost(const struct lines *lines, size_t i, size_t limit);

/* How many of the lines that are shown are cut, and the first and the last of those that are among
 * the last lines; 0 if none is. */
uint64_t choose_cut_lines(const struct shown_stream *s, uint64_t *ret_from, uint64_t *ret_to);
