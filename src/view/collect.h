/*
 * What is kept of one stretch of a stream while it goes by: its first lines, its last lines, and of
 * all between them the ones that look like a cause. Memory depends on how much shall be kept, not
 * on how long the stretch is.
 */
#ifndef NACRE_VIEW_COLLECT_H
#define NACRE_VIEW_COLLECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "view/causes.h"
#include "view/lines.h"
#include "view/render.h"

#define COLLECT_LEAST 64 /* lines that stay of the end, however long they are */

struct collect {
    struct render *render;
    size_t keep;              /* cost of what stays of either end, at least */
    bool begins_torn;         /* nobody knows what stood right before it */
    struct lines first;       /* up to keep, */
    bool first_full;          /* and there are more */
    struct lines last;        /* at least keep and COLLECT_LEAST lines, if there are */
    uint64_t evicted;         /* lines that are no longer in last */
    struct causes causes;     /* among those of them that are not in first, either */
    uint64_t bytes, newlines; /* raw, all of it */
    bool unfinished;          /* no newline at its end */
    const struct salience_filter *filter;
};

/* Keeps either end up to a cost in bytes; line_max as for a render. Borrows the filter. 0 or
 * -ENOMEM. */
int collect_new(size_t keep, size_t line_max, bool begins_torn,
                const struct salience_filter *filter, struct collect **ret);
void collect_free(struct collect *c);

/* 0 or -ENOMEM. */
int collect_feed(struct collect *c, const char *data, size_t size);
int collect_finish(struct collect *c);

/* Looks for causes among the lines that are still at hand: those of first from one on, and those of
 * last up to one. Each line is looked at once. */
void collect_look(const struct collect *c, size_t first, size_t last, struct causes *at_first,
                  struct causes *at_last);

#endif
