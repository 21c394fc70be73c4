/*
 * The summary of a run: the text a model sees. Whatever the size of the log, it fits a budget and
 * takes memory in proportion to the budget only; what had to be left out is counted exactly. The
 * format and the order of shrinking are in docs/view.md.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <nacre/record.h>
#include <nacre/view.h>
#include <nacre/watch.h>

#include "base/buf.h"
#include "base/defs.h"

/* Of a stream that does not fit, these are shown first, unless the options say otherwise. */
#define SUMMARY_STDERR_LINES 50
#define SUMMARY_STDOUT_LINES 20

/* Reads on from *cursor as nacre_read() does; below 0 is an error. The summary reads one stream
 * after the other, each from 0 on: a piece may then be of many spans, and *cursor is moved behind
 * the last of them. */
typedef int64_t summary_read_fn(void *self, uint64_t *cursor, unsigned streams, void *buf,
                                size_t size, nacre_piece *ret_piece);

/* The bytes an answer may have under these options, which are valid. */
static inline size_t summary_budget(const nacre_view_options *options)
{
    uint64_t bytes = options->tokens > 0 ? options->tokens : options->bytes;
    if (bytes == 0)
        return NACRE_VIEW_BUDGET;
    bytes = MIN(bytes, (uint64_t)NACRE_VIEW_BUDGET_MAX);
    bytes *= options->tokens > 0 ? NACRE_TOKEN_BYTES : 1;
    return MIN(bytes, (uint64_t)NACRE_VIEW_BUDGET_MAX);
}

/*
 * Appends the summary of the run to out: its log as it was when the record was filled, also if
 * it has grown since; never more than summary_budget() bytes. Returns 0, -ENOMEM, -E2BIG if out's
 * ceiling is too low, or what read returned below 0.
 */
int summary_write(struct buf *out, const nacre_record *record, const nacre_view_options *options,
                  summary_read_fn *read, void *self);
