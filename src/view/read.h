/*
 * What is new in a shell's output: rendered lines in the order they were printed. Lines are whole:
 * one that was unfinished when it was shown is looked at again from its beginning, and shown again
 * only if it changed. Memory is bounded: of more than READ_UNREAD bytes only both ends are read.
 */
#ifndef NACRE_VIEW_READ_H
#define NACRE_VIEW_READ_H

#include <stdbool.h>

#include <nacre/record.h>
#include <nacre/view.h>

#include "base/buf.h"
#include "view/summary.h"

#define READ_UNREAD ((uint64_t)1024 * 1024)
#define READ_OPEN   ((uint64_t)64 * 1024) /* an unfinished line that is longer is not shown again */

/* Appends the view, never more than summary_budget() bytes, and moves the position behind it.
 * Returns as summary_write() does; the position is only moved on success. */
int view_read(struct buf *out, const nacre_record *record, nacre_position *position,
              const nacre_view_options *options, summary_read_fn *read, void *self, bool *ret_new);

#endif
