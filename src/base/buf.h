/*
 * A growing buffer with a ceiling given at birth.
 *
 * Invariants: data is NULL or has cap bytes, len < cap, data[len] is NUL, len <= max. After a
 * failed append the buffer is as it was. Every appending function returns 0, -ENOMEM, or
 * -E2BIG when the ceiling would be passed.
 */
#pragma once

#include "base/defs.h"

struct buf {
    char *data;
    size_t len;
    size_t cap;
    size_t max;
};

#define BUF_UP_TO(ceiling) ((struct buf){.max = (ceiling)})

void buf_done(struct buf *b);
int buf_append(struct buf *b, const void *data, size_t size);
int buf_str(struct buf *b, const char *s);
int buf_printf(struct buf *b, const char *fmt, ...) PRINTF(2, 3);

/* The bytes as a string the caller frees; the buffer is empty afterwards. NULL if out of memory. */
char *buf_take(struct buf *b);

#define cleanup_buf __attribute__((cleanup(buf_done)))
