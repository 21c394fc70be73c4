#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"

void buf_done(struct buf *b)
{
    free(b->data);
    *b = (struct buf){.max = b->max};
}

static int buf_grow(struct buf *b, size_t extra)
{
    must(b->len <= b->max && (b->data ? b->len < b->cap : b->len == 0));
    if (extra > b->max - b->len)
        return -E2BIG;
    size_t need = b->len + extra + 1;
    if (need <= b->cap)
        return 0;
    size_t cap = MAX(MAX(need, b->cap * 2), (size_t)256);
    char *data = realloc(b->data, cap);
    if (!data)
        return -ENOMEM;
    b->data = data;
    b->cap = cap;
    b->data[b->len] = '\0';
    return 0;
}

int buf_append(struct buf *b, const void *data, size_t size)
{
    int r = buf_grow(b, size);
    if (r < 0)
        return r;
    if (size > 0)
        memcpy(b->data + b->len, data, size);
    b->len += size;
    b->data[b->len] = '\0';
    return 0;
}

int buf_str(struct buf *b, const char *s)
{
    return buf_append(b, s, strlen(s));
}

int buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    int r = n < 0 ? -EINVAL : buf_grow(b, (size_t)n);
    if (r == 0) {
        vsnprintf(b->data + b->len, (size_t)n + 1, fmt, again);
        b->len += (size_t)n;
    }
    va_end(again);
    return r;
}

char *buf_take(struct buf *b)
{
    if (buf_grow(b, 0) < 0)
        return NULL;
    char *data = TAKE_PTR(b->data);
    buf_done(b);
    return data;
}
