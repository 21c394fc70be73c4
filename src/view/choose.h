/*
 * Choosing what is shown of two streams that do not fit. In this order, each stage from what the
 * ones before it left, and each divided fairly between the streams (half each; what one does not
 * need is the other's):
 *
 *   1. the safe lines: the last 50 of stderr, the last 20 of stdout. If there are causes, a quarter
 *      of the room is not for these. If they do not fit, their long lines are cut shorter and
 *      shorter, down to 64 bytes, then there are fewer of them
 *   2. lines that look like a cause, the likeliest first: up to half of the rest
 *   3. the first lines: up to a third of the rest
 *   4. more of the last lines
 *
 * A cause that is among the first or the last lines is shown there, and not once more.
 */
#ifndef NACRE_VIEW_CHOOSE_H
#define NACRE_VIEW_CHOOSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nacre/record.h>

#include "base/buf.h"
#include "view/collect.h"

#define CHOOSE_CAUSES  24  /* at most so many are shown of one stream */
#define CHOOSE_HEADING 112 /* what a line above a part takes at most, with three long numbers */

/* A cause, with numbers of the whole stream. */
struct chosen_cause {
    const struct cause *cause;
    uint64_t number, end;
    uint64_t offset, end_offset;
};

/* What there is of a stream, and what was chosen of it. */
struct shown {
    struct collect *before; /* from its beginning on, */
    struct collect *after;  /* and what follows a gap; NULL = there is none. Both are borrowed */
    uint64_t lines, bytes;  /* as printed */
    uint64_t line_base, byte_base; /* what to add to the numbers of after */
    uint64_t safe;                 /* how many lines are safe */

    size_t limit;        /* bytes of one line */
    size_t first;        /* so many lines of before->first */
    size_t last;         /* the lines of choose_tail()->last from this one on */
    struct found *found; /* where causes at hand were found; owned, see choose_done() */
    struct chosen_cause causes[CHOOSE_CAUSES];
    size_t cause_count;
    uint64_t degrees[SALIENCE_CAUSE + 1]; /* causes of each degree that are not shown otherwise */
};

void choose_done(struct shown *s);

/* Whether all of the stream is at hand, nothing missing and nothing cut. */
bool choose_is_complete(const struct shown *s);

/* The cost of all lines of a complete stream, uncut. */
size_t choose_whole_cost(const struct shown *s);
void choose_whole(struct shown *s);

/* Chooses for a room of so many bytes. compact: nothing but the safe lines. 0 or -ENOMEM. */
int choose(struct shown streams[2], size_t room, bool compact);

/* Where the last lines are. */
struct collect *choose_tail(const struct shown *s);

/* How many raw lines, and bytes, the first lines and the last ones that are shown stand for. */
uint64_t choose_first_lines(const struct shown *s);
uint64_t choose_first_bytes(const struct shown *s);
uint64_t choose_last_lines(const struct shown *s);
uint64_t choose_last_bytes(const struct shown *s);

/* The number of the first line that is shown of the last ones. */
uint64_t choose_last_number(const struct shown *s);

/* How many causes there are of the degrees of which some are shown. */
uint64_t choose_cause_total(const struct shown *s);

/* Appends line i, cut and framed, with its newline; and what that takes. */
int choose_write_line(struct buf *out, const struct lines *lines, size_t i, size_t limit);
size_t choose_line_cost(const struct lines *lines, size_t i, size_t limit);

/* How many of the lines that are shown are cut, and the first and the last of those that are among
 * the last lines; 0 if none is. */
uint64_t choose_cut_lines(const struct shown *s, uint64_t *ret_from, uint64_t *ret_to);

#endif
