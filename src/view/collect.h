/*
 * What is kept of one stretch of a stream while it goes by: its first lines, its last lines, and of
 * all between them the ones that look like a cause. Memory depends on how much shall be kept, not
 * on how long the stretch is.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "screen/render.h"
#include "text/strange.h"
#include "view/causes.h"
#include "view/lines.h"

#define COLLECT_MOST ((size_t)4 << 20) /* cost of the last lines, however many shall stay */

struct collect_options {
    size_t keep;     /* cost of what stays of either end, at least */
    size_t least;    /* lines that stay of the end, however long they are, up to COLLECT_MOST */
    size_t line_max; /* as for a render */
    bool torn;       /* nobody knows what stood right before it */
    const struct salience_filter *filter; /* borrowed */
};

struct collect {
    struct render *render;
    struct collect_options options;
    struct lines first;       /* up to keep, */
    bool first_full;          /* and there are more */
    struct lines last;        /* at least keep, and so many lines, if there are */
    uint64_t evicted;         /* lines that are no longer in last */
    struct causes causes;     /* among all of its lines */
    uint64_t bytes, newlines; /* raw, all of it */
    bool unfinished;          /* no newline at its end */
    struct strange_sample sample;
};

/* 0 or -ENOMEM. */
int collect_new(const struct collect_options *options, struct collect **ret);
void collect_free(struct collect *c);

/* 0 or -ENOMEM. The causes are all there when it is finished, once. */
int collect_feed(struct collect *c, const char *data, size_t size);
int collect_finish(struct collect *c);
