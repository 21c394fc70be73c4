/* The body of a request: how far it goes, so that nothing behind it is taken for a part of it. It
 * is passed on as it came, in frames of our own, or read: its payload alone. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define BODY_FRAMES 64 /* the most that a stretch grows when it is passed on */

enum body_state {
    BODY_BYTES, /* so many are left */
    BODY_SIZE,  /* chunked: the digits of a size */
    BODY_SIZE_LF,
    BODY_CHUNK,
    BODY_CHUNK_CR,
    BODY_CHUNK_LF,
    BODY_LINE, /* the fields behind the last chunk, which are not passed on */
    BODY_IN_LINE,
    BODY_LINE_LF,
    BODY_LAST_LF,
    BODY_OVER,
};

struct http_body {
    enum body_state state;
    uint64_t left;
    unsigned digits;
    unsigned trailer; /* bytes of the fields at the end */
    bool passed_on;   /* chunks are written with frames */
};

void body_init(struct http_body *b, bool chunked, uint64_t length, bool passed_on);

/* Takes what came up to the end of the body, *ret_used bytes, and writes what it is to `to`, which
 * has room for BODY_FRAMES bytes more than came. Returns the size of that, or -EPROTO. ret_used may
 * be NULL. */
ssize_t body_take(struct http_body *b, const char *data, size_t size, char *to, size_t *ret_used);
