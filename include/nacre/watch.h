/*
 * Watches: what happens to one shell, as it happens. A watch is one file descriptor for the
 * host's own loop, or a blocking follow. It never takes anything away from other readers.
 *
 * A watch belongs to one thread at a time.
 */
#ifndef NACRE_WATCH_H
#define NACRE_WATCH_H

#include <stddef.h>
#include <stdint.h>

#include <nacre/error.h>
#include <nacre/record.h>
#include <nacre/version.h>

NACRE_BEGIN_DECLS

typedef struct nacre_watch nacre_watch;

/* A stretch of output: bytes of one stream that were read together. */
typedef struct nacre_piece {
    nacre_stream stream;
    uint64_t offset;    /* in the log; offsets never change */
    size_t size;        /* bytes */
    int64_t time_ms;    /* since the epoch: when the keeper read it */
    uint64_t gap_bytes; /* > 0: that many bytes right before offset are no longer in the log */
} nacre_piece;

typedef enum nacre_event_kind {
    NACRE_EVENT_NONE = 0,    /* nothing now: poll the fd */
    NACRE_EVENT_OUTPUT = 1,  /* a piece; its bytes are in the caller's buffer */
    NACRE_EVENT_EXIT = 2,    /* the command has an outcome; all it wrote itself was delivered */
    NACRE_EVENT_SETTLED = 3, /* what `> >(...)` and the like print right after the exit was
                                delivered too; an answer may be given */
    NACRE_EVENT_END = 4      /* the tree is empty and nothing more will come; repeats */
} nacre_event_kind;

typedef struct nacre_event {
    nacre_event_kind kind;
    nacre_piece piece; /* for NACRE_EVENT_OUTPUT */
} nacre_event;

/* The descriptor to poll for reading. It belongs to the watch. */
NACRE_API int nacre_watch_fd(const nacre_watch *watch);

/*
 * The next event, without blocking. Output comes in the order of the log, at most size bytes of
 * one stream at a time, never split because of a character: bytes are bytes here. Call it until
 * it says NONE before polling again; the fd may be readable with nothing new behind it.
 * Each of EXIT and SETTLED comes once; END ends the sequence.
 */
NACRE_API int nacre_watch_next(nacre_watch *watch, void *buf, size_t size, nacre_event *ret_event,
                               nacre_error *reterr);

/* Like nacre_watch_next(), but waits up to timeout_ms (< 0 = for ever) while there is none. */
NACRE_API int nacre_watch_wait(nacre_watch *watch, int64_t timeout_ms, void *buf, size_t size,
                               nacre_event *ret_event, nacre_error *reterr);

/* From now on without OUTPUT events, for who only wants to know how it ends. */
NACRE_API void nacre_watch_skip_output(nacre_watch *watch);

/*
 * The record of the shell as the watch knows it: at least as new as the last event. Cheaper than
 * nacre_get(). NACRE_EBUSY while nothing is known yet.
 */
NACRE_API int nacre_watch_record(nacre_watch *watch, nacre_record *ret_record, nacre_error *reterr);

/* Ends the watch; the shell is not touched. NULL is ignored. */
NACRE_API void nacre_watch_close(nacre_watch *watch);

NACRE_END_DECLS

#endif
