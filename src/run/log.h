/*
 * The log of a run: every byte of both streams in the order the keeper read them, under logical
 * offsets that never change.
 *
 *   log     the head: bytes as read, append-only, up to half the quota with its spans
 *   spans   the head's spans: an array of struct span
 *   tail    what comes after: a ring of ring_size bytes, then a ring of span_cap spans
 *
 * A span says that from its offset on, up to the next span's, the bytes came from one stream, and
 * what had been counted before. Spans are immutable, so that any reader can find an offset, a
 * line or a moment by bisection. What the ring overwrites is dropped by whole spans, after the new
 * start was published; dropped counts are therefore exact.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "run/state.h"

struct span {
    uint64_t offset;
    uint64_t when;      /* microseconds since the start, doubled, plus the stream */
    uint64_t out_bytes; /* of stdout before this span; the rest up to offset is stderr's */
    uint64_t out_newlines;
    uint64_t err_newlines;
};

FORMAT_PIN(5, struct span, 40);

#define LOG_CHUNK     ((size_t)64 * 1024) /* one read, and the longest span */
#define LOG_SPAN_US   10000               /* a pause this long begins a new span */
#define LOG_QUOTA_MIN ((uint64_t)256 * 1024)

/* The writer's side. Nothing is allocated after logw_init() but the ring's mapping. */
struct logw {
    int dir;
    int log_fd;
    int spans_fd;
    struct log_index *index; /* borrowed: part of the keeper's state */
    int (*publish)(void *userdata);
    void *userdata;
    /* Every byte that comes, before it is forgotten; NULL = nobody listens. */
    void (*hear)(void *userdata, nacre_stream stream, const char *data, size_t size);
    uint64_t half; /* of the quota */
    uint64_t head_bytes[2];
    uint64_t head_newlines[2];
    bool unmapped;           /* the ring is written by pwrite: for a process that must not fault */
    int tail_fd;             /* -EBADF = none yet */
    char *ring;              /* else mapped; NULL = none yet */
    struct span *ring_spans; /* in the mapping, or of its own; NULL = none yet */
    struct span last;
    bool head_closed;
    bool have_span;
    int64_t retry_us; /* when to try to make a ring again */
    size_t chunk;     /* LOG_CHUNK, or less for a small ring */
};

/* The files must be open; publish is called when readers must learn of index before a byte of
 * the ring is overwritten. */
void logw_init(struct logw *w, int dir, int log_fd, int spans_fd, struct log_index *index,
               uint64_t quota);

/*
 * Reads once from a pipe into the log. Returns the bytes read, 0 at end of file, or -errno of the
 * read (-EAGAIN). What cannot be stored is counted as dropped; that is no error.
 */
ssize_t logw_pull(struct logw *w, int fd, nacre_stream stream, int64_t now_us);

/*
 * Takes in bytes that were read elsewhere. Nothing of the process is at risk if the files are cut
 * meanwhile, provided that unmapped was set before the first of them.
 */
void logw_append(struct logw *w, nacre_stream stream, int64_t now_us, const char *data,
                 size_t size);

/*
 * Bytes of stdout that nobody saw: the next one has an offset that is higher by that much. A log
 * has one gap, so what lies between the head and here is dropped with them.
 */
void logw_skip(struct logw *w, uint64_t size, int cause);

/* The ring's memory turned out to be unusable: forget it, count what was in it as dropped. */
void logw_lose_ring(struct logw *w, int cause);

/* Whether the files of the head are as long as they must be; and if not: what was in it is counted
 * as dropped. */
bool logw_head_is_whole(const struct logw *w);
void logw_lose_head(struct logw *w, int cause);

/* Has a mapped ring live in another file, which is empty, and the log's from then on. */
int logw_move_ring(struct logw *w, int fd);

/* Nothing more will be written: gives its memory back. */
void logw_done(struct logw *w);

/* Where the ring is mapped, for a fault handler; size 0 = nowhere. */
size_t logw_ring_size(const struct logw *w);

/* Number of newlines, vectorised. */
size_t log_count_newlines(const char *data, size_t size);

/* A reader's side: any number of them, in any process. */
struct logr {
    int state_fd;
    int log_fd;
    int spans_fd;
    int tail_fd;
    const char *part;      /* the file that an error is about */
    struct span cache[64]; /* consecutive entries */
    uint64_t cache_first;
    size_t cache_count;
    bool cache_tail; /* of the tail's ring, not of the head */
    uint64_t lowest; /* the first span of the ring that the present read relies on */
};

struct log_piece {
    nacre_stream stream;
    uint64_t offset;
    size_t size;
    int64_t when_us; /* since the start */
    uint64_t gap;    /* bytes missing right before offset */
};

/* Borrows state_fd; the others are opened from dir as they are needed. */
int logr_init(struct logr *r, int dir, int state_fd);
void logr_done(struct logr *r);

/* Whether files that it reads have lost their names: there may be others in their place. */
bool logr_is_gone(const struct logr *r);

/*
 * Reads bytes of one of the streams wanted at *cursor or after it; advances *cursor past what was
 * looked at. Returns their number, 0 if there is nothing more, -EBADMSG if the index contradicts
 * itself, or -errno. Where the files contradict the index, what should be there is a gap.
 */
ssize_t logr_read(struct logr *r, int dir, uint64_t *cursor, unsigned streams, void *buf,
                  size_t size, struct log_piece *ret_piece);

/* The same by a state that was just read; it is read again only if the keeper has overtaken it. */
ssize_t logr_read_at(struct logr *r, int dir, struct run_state *state, uint64_t *cursor,
                     unsigned streams, void *buf, size_t size, struct log_piece *ret_piece);

/* After a crash of the keeper: takes in what the head's files have beyond the index. */
int log_recover(int dir, struct log_index *index);
