/* What the two ways of reading a log share: finding spans, and the bytes behind them. */
#pragma once

#include "run/log.h"

/* The part of the log an offset is in: its spans are numbered first to last - 1. */
struct log_part {
    bool tail;
    uint64_t first;
    uint64_t last;
    uint64_t end; /* the offset behind it */
};

struct log_part logr_part(const struct log_index *x, uint64_t offset);

/* Whether the numbers of an index can be true together. */
bool logr_is_sane(const struct log_index *x);

/* Opens `tail`, if it is not open yet. */
int logr_open_tail(struct logr *r, int dir);

/* The span with that number. 0, -EBADMSG or -errno. */
int logr_span(struct logr *r, const struct log_index *x, const struct log_part *part,
              uint64_t number, struct span *ret_span);

/* The number of the last span that begins at or before an offset, by bisection. */
int logr_find(struct logr *r, const struct log_index *x, const struct log_part *part,
              uint64_t offset, uint64_t *ret_number);

/* Reads bytes at an offset: fewer where the ring ends, 0 if the file does. */
ssize_t logr_bytes(struct logr *r, const struct log_index *x, bool tail, uint64_t offset, void *buf,
                   size_t size);

/* Whether what was read since r->lowest was set to UINT64_MAX, at this offset and after it, may
 * have been overwritten meanwhile. */
bool logr_is_overtaken(const struct logr *r, const struct log_index *before, uint64_t offset);

static inline nacre_stream span_stream(const struct span *span)
{
    return span->when & 1 ? NACRE_STDERR : NACRE_STDOUT;
}
