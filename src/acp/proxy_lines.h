/* Whole lines out of a stream, byte by byte as they came: for who passes them on. */
#pragma once

#include <stddef.h>

#include "base/buf.h"

#define ACP_LINE_MAX ((size_t)64 << 20)

struct acp_lines {
    int fd; /* borrowed; read when poll() says so */
    struct buf in;
    size_t at;     /* what is before it was handed out */
    size_t looked; /* no newline between at and here */
};

void acp_lines_init(struct acp_lines *l, int fd);
void acp_lines_done(struct acp_lines *l);

/* Reads once. The number of bytes, 0 at the end of the stream, or -errno; -E2BIG if a line is over
 * ACP_LINE_MAX. */
int acp_lines_fill(struct acp_lines *l);

/* 1 and the next line without its newline, valid until the next fill; 0 if there is none. */
int acp_lines_next(struct acp_lines *l, const char **ret_line, size_t *ret_size);

/* What follows the last newline; valid as long. */
size_t acp_lines_rest(const struct acp_lines *l, const char **ret_rest);
