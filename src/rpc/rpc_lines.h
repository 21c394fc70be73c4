/*
 * Messages from a stream and to one, each on a line of its own.
 *
 * Reading: a line has a limit; a longer one is passed over up to its end in constant memory, and
 * reported once. The descriptor is borrowed and may block: read it when poll() says so.
 *
 * Writing never blocks: what the other side does not read yet waits in a queue with a ceiling. Each
 * message has a ticket, with which one can ask whether it has left, or take it back while nothing
 * of it has.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* -- Writing ----------------------------------------------------------------------------------- */

struct rpc_chunk;

struct rpc_writer {
    int fd;     /* what is written to */
    int own_fd; /* the same opened again for us alone, or -EBADF */
    bool is_socket;
    size_t max;    /* of the queue, in bytes */
    size_t queued; /* not written yet */
    uint64_t next; /* ticket */
    struct rpc_chunk *first, **last;
    int error; /* -errno; nothing is written any more */
};

/*
 * fd is borrowed. Others may have it too, so its flags stay as they are: a pipe is opened once
 * more, a socket is asked not to wait with each send. What is neither (a file, a terminal) is
 * written to as it is.
 */
void rpc_writer_init(struct rpc_writer *w, int fd, size_t max);
void rpc_writer_done(struct rpc_writer *w);

/*
 * Takes the bytes of message, which is empty afterwards, as one line, and writes what can be
 * written at once. *ret_ticket may be NULL. 0, -ENOMEM, -ENOBUFS if the queue is full, or the error
 * of the stream.
 */
int rpc_writer_send(struct rpc_writer *w, struct buf *message, uint64_t *ret_ticket);

/* Writes as much as can be written: when poll() says so. 0 or the error of the stream. */
int rpc_writer_flush(struct rpc_writer *w);

/* Whether all of a message has been written. */
bool rpc_writer_has_left(const struct rpc_writer *w, uint64_t ticket);

/* Takes a message back; false if a part of it, or all, has been written. */
bool rpc_writer_drop(struct rpc_writer *w, uint64_t ticket);

/* The descriptor to poll. */
int rpc_writer_fd(const struct rpc_writer *w);
