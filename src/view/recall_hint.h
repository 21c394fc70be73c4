/* What a view left out: how much, and the call or the command that brings it back. */
#pragma once

#include <stdint.h>

#include <nacre/id.h>
#include <nacre/record.h>
#include <nacre/view.h>

#include "base/buf.h"

/* Lines of a stream, both ends included; from 0 = none. */
struct recall_range {
    uint64_t from, to;
};

const char *recall_stream(nacre_stream stream);

/* Appends the line that stands for a stream which is none of a text, of at most so many bytes. */
#define RECALL_BINARY_MAX 64
int recall_binary(struct buf *out, nacre_stream stream, uint64_t bytes);

/* Appends "<before>stderr 3 lines (17 bytes), stdout ...": the streams of which there is any. */
int recall_amounts(struct buf *out, const char *before, const uint64_t lines[2],
                   const uint64_t bytes[2]);

/* Appends ". Get it back with: ..." for the ranges of stdout and stderr, in this order; nothing if
 * both are none. */
int recall_hint(struct buf *out, const nacre_id *id, const struct recall_range ranges[2],
                nacre_audience audience);

/* Appends a call that searches what a run printed. */
int recall_search_hint(struct buf *out, const nacre_id *id, const char *pattern,
                       nacre_audience audience);
