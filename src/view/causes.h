/*
 * The lines of a stream that look like the cause of something, of which there may be any number:
 * the first ones and the last ones of each degree are kept, all of them are counted.
 */
#ifndef NACRE_VIEW_CAUSES_H
#define NACRE_VIEW_CAUSES_H

#include <stddef.h>
#include <stdint.h>

#include "view/lines.h"
#include "view/salience.h"

#define CAUSES_KEPT 16  /* of the first, and as many of the last ones */
#define CAUSE_MAX   240 /* bytes of one; longer ones are cut in the middle */

struct cause {
    uint64_t number, end; /* the raw lines it stands for: end is the first one behind them */
    uint64_t offset, end_offset;
    enum salience salience;
    uint64_t lost; /* bytes left out of its text */
    size_t size;
    char text[CAUSE_MAX];
};

struct causes {
    enum salience announced;
    uint64_t count[SALIENCE_CAUSE + 1];
    struct cause first[SALIENCE_CAUSE + 1][CAUSES_KEPT];
    struct cause last[SALIENCE_CAUSE + 1][CAUSES_KEPT]; /* a ring: number n is at n % KEPT */
};

void causes_clear(struct causes *c);

/* The salience of a line in its place: after a message that ends with a colon, the next line that
 * is not empty says at least as much. *announced carries that from line to line. */
enum salience causes_judge(const struct salience_filter *filter, enum salience *announced,
                           const char *text, size_t size);

/* A line that may be one. */
struct cause_line {
    const char *text;
    size_t size;
    uint64_t lost;
    uint64_t number, end;
    uint64_t offset, end_offset;
};

/* Looks at a line, which comes after those it looked at before. */
void causes_take(struct causes *c, const struct salience_filter *filter,
                 const struct cause_line *line);

/* Looks at line i, the one after the last it looked at; the next line, or the end of what was read,
 * begins at end. */
void causes_look(struct causes *c, const struct salience_filter *filter, const struct lines *lines,
                 size_t i, uint64_t end, uint64_t end_offset);

/* The k-th of those of a degree that were kept, in the order of the lines. NULL behind the last. */
const struct cause *causes_get(const struct causes *c, enum salience salience, size_t k);

#endif
