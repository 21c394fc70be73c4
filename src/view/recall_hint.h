/* How to get back what a view left out: the call or the command that brings it. */
#ifndef NACRE_VIEW_RECALL_HINT_H
#define NACRE_VIEW_RECALL_HINT_H

#include <stdint.h>

#include <nacre/id.h>
#include <nacre/view.h>

#include "base/buf.h"

/* Lines of a stream, both ends included; from 0 = none. */
struct recall_range {
    uint64_t from, to;
};

/* Appends ". Get it back with: ..." for the ranges of stdout and stderr, in this order; nothing if
 * both are none. */
int recall_hint(struct buf *out, const nacre_id *id, const struct recall_range ranges[2],
                nacre_audience audience);

#endif
