/*
 * Messages from a stream: one per line. A line has a limit; a longer one is passed over up to its
 * end in constant memory, and reported once. The descriptor is borrowed and may block: read it when
 * poll() says so.
 */
#ifndef NACRE_RPC_READER_H
#define NACRE_RPC_READER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

#define RPC_LINE_MAX ((size_t)8 << 20)

struct rpc_reader {
    int fd;
    size_t max;
    struct buf in;
    size_t at;     /* what is before it was handed out */
    size_t looked; /* no newline between at and here */
    bool skipping; /* the rest of a line that is too long */
    bool too_long; /* one was passed over, and not reported yet */
};

void rpc_reader_init(struct rpc_reader *r, int fd, size_t max);
void rpc_reader_done(struct rpc_reader *r);

/* Reads once. The number of bytes, 0 at the end of the stream, or -errno. */
int rpc_reader_fill(struct rpc_reader *r);

/*
 * The next whole line, without its end: 1. *ret_line is valid until the next call of any function.
 * 0 = there is none yet; -E2BIG = one was too long and is gone. Empty lines are passed over. What
 * follows the last newline of a stream is no message.
 */
int rpc_reader_next(struct rpc_reader *r, const char **ret_line, size_t *ret_size);

#endif
