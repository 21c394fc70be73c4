/*
 * What is new in a shell's output: rendered lines in the order they were printed. Lines are whole:
 * one that was unfinished when it was shown is looked at again from its beginning, and shown again
 * only if it changed. Memory is bounded by what is read at once.
 */
#pragma once

#include <stdbool.h>

#include <nacre/record.h>
#include <nacre/view.h>

#include "base/buf.h"
#include "view/summary.h"

#define READ_UNREAD_MAX ((uint64_t)16 << 20)
#define READ_OPEN       ((uint64_t)64 * 1024) /* an unfinished line that is longer is not shown again */

/* Of more than unread bytes (up to READ_UNREAD_MAX) only both ends are read. Appends the view,
 * never more than summary_budget() bytes, and moves the position behind it. Returns as
 * summary_write() does; the position is only moved on success. */
int view_read(struct buf *out, const nacre_record *record, nacre_position *position,
              const nacre_view_options *options, uint64_t unread, summary_read_fn *read, void *self,
              bool *ret_new);

/* Appends the whole output of a run, both streams in the order they were read, if it has room;
 * nothing if not. */
int view_merged(struct buf *out, const nacre_record *record, size_t room, summary_read_fn *read,
                void *self, bool *ret_fits);
