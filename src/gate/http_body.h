/* The body of a request: how far it goes, so that nothing behind it is taken for a part of it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gate/http_head.h"

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
};

void body_init(struct http_body *b, const struct http_head *head);

/* Takes what came and writes what goes on to `to`, which has room for BODY_FRAMES bytes more. What
 * comes after the end is taken, and goes nowhere. Returns the size, or -EPROTO. */
ssize_t body_take(struct http_body *b, const char *data, size_t size, char *to);
