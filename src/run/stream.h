/*
 * One stream of a log, read forward in big blocks: few system calls, the other stream's bytes
 * taken out, and the line numbers at both ends taken from the spans instead of counted.
 */
#pragma once

#include "run/log.h"

struct log_stream {
    struct logr reader;
    int dir; /* borrowed, as is the state's descriptor */
    nacre_stream stream;
    uint64_t cursor;   /* in the log */
    uint64_t end;      /* offsets from here on are not read */
    uint64_t position; /* in the stream: where a byte follows the last one without a gap */
};

/* Where in the log a part of a block comes from, and when it was read there. */
struct log_mark {
    size_t at; /* index in the block */
    uint64_t offset;
    int64_t when_us; /* since the start */
};

struct log_block {
    /* Given: room for bytes and for marks, at least one of each. */
    char *data;
    size_t room;
    struct log_mark *marks;
    size_t mark_room;

    /* Filled. */
    size_t size;
    size_t mark_count;
    uint64_t newlines;     /* of the stream before the first byte */
    uint64_t end_newlines; /* and before the one that would follow the last */
    uint64_t gap;          /* bytes of the stream missing right before the first */
};

/* Returns 0 or -errno. */
int log_stream_init(struct log_stream *s, int dir, int state_fd, nacre_stream stream, uint64_t end);
void log_stream_done(struct log_stream *s);

/*
 * Goes on near the later of a line (1 = the first) and a moment: at or before the first byte of
 * that line, and at or before the last byte of the stream that is older than the moment. Both
 * are found by bisection.
 */
int log_stream_seek(struct log_stream *s, uint64_t line, int64_t since_us);

/*
 * Fills a block. A gap only ever stands right before one. Size 0 means there is no more at
 * present. Returns 0, -EBADMSG if the files contradict each other, or -errno.
 */
int log_stream_read(struct log_stream *s, struct log_block *block);
