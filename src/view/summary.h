/*
 * The summary of a run: the text a model sees. Whatever the size of the log, it fits a budget and
 * takes memory in proportion to the budget only; what had to be left out is counted exactly.
 */
#ifndef NACRE_VIEW_SUMMARY_H
#define NACRE_VIEW_SUMMARY_H

#include <stddef.h>
#include <stdint.h>

#include <nacre/record.h>
#include <nacre/watch.h>

#include "base/buf.h"

#define SUMMARY_BUDGET       10240 /* bytes of one answer, unless asked otherwise */
#define SUMMARY_STDERR_LINES 50    /* of a stream that does not fit, these are shown first */
#define SUMMARY_STDOUT_LINES 20

/* A ceiling for the buffer: the text is never longer than its budget and this. Only the parts
 * that are never left out (first line, notes, headings) can pass a budget that is very small. */
#define SUMMARY_FRAME_MAX 12288

/* Reads on from *cursor as nacre_read() does; below 0 is an error. */
typedef int64_t summary_read_fn(void *self, uint64_t *cursor, unsigned streams, void *buf,
                                size_t size, nacre_piece *ret_piece);

/*
 * Appends the summary of the run to out: its log as it was when the record was filled, also if
 * it has grown since. Returns 0, -ENOMEM, -E2BIG if out's ceiling is too low, or what read
 * returned below 0.
 */
int summary_write(struct buf *out, const nacre_record *record, size_t budget, summary_read_fn *read,
                  void *self);

#endif
