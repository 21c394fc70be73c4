/*
 * Backends: where shells run. A session goes through one table of functions; the seed contract
 * is five of them. `local` (a keeper per shell, on this machine) and `noop` (refuses everything,
 * for tests) come with the library; others can be added without touching anything above.
 *
 * The errors of the seed contract: NACRE_ENOTFOUND, NACRE_EBACKEND, NACRE_EPERM.
 */
#ifndef NACRE_BACKEND_H
#define NACRE_BACKEND_H

#include <stddef.h>
#include <stdint.h>

#include <nacre/command.h>
#include <nacre/error.h>
#include <nacre/id.h>
#include <nacre/reader.h>
#include <nacre/record.h>
#include <nacre/version.h>
#include <nacre/watch.h>

NACRE_BEGIN_DECLS

#define NACRE_BACKEND_VERSION 1u

struct nacre_kill_options;
struct nacre_kill_result;

/*
 * Every function may be called from several threads at once. Those marked optional may be NULL;
 * the session then answers NACRE_EUNSUPPORTED. reterr is never NULL here.
 */
typedef struct nacre_backend_ops {
    unsigned version; /* NACRE_BACKEND_VERSION; functions beyond size are taken as NULL */
    size_t size;      /* sizeof(nacre_backend_ops) */
    const char *name;

    /* The five verbs; their contracts are those of nacre_start(), nacre_read(), nacre_wait() for
     * one shell, nacre_kill() and nacre_release(). */
    int (*create)(void *self, const nacre_command *command, nacre_id *ret_id,
                  nacre_watch **ret_watch, nacre_error *reterr);
    int64_t (*output)(void *self, const nacre_id *id, uint64_t *cursor, unsigned streams, void *buf,
                      size_t size, nacre_piece *ret_piece, nacre_error *reterr);
    int (*wait_for_exit)(void *self, const nacre_id *id, int64_t timeout_ms, nacre_error *reterr);
    int (*kill)(void *self, const nacre_id *id, const struct nacre_kill_options *options,
                struct nacre_kill_result *ret_result, nacre_error *reterr);
    int (*release)(void *self, const nacre_id *id, nacre_error *reterr);

    int (*get)(void *self, const nacre_id *id, nacre_record *ret_record, nacre_error *reterr);

    /* Optional. */
    int (*watch)(void *self, const nacre_id *id, uint64_t offset, nacre_watch **ret_watch,
                 nacre_error *reterr);
    int64_t (*input)(void *self, const nacre_id *id, const void *data, size_t size, int eof,
                     int64_t timeout_ms, nacre_error *reterr);
    int (*find)(void *self, const char *prefix, nacre_id *ret_id, nacre_error *reterr);
    int (*list)(void *self, int only_alive, int (*fn)(const nacre_record *record, void *userdata),
                void *userdata, nacre_error *reterr);
    int (*remove)(void *self, const nacre_id *id, nacre_error *reterr);

    /* Ends whatever the backend still runs for the session that closes, and returns the number
     * of survivors; with forked != 0 only frees memory. Optional. */
    int (*close)(void *self, int forked, nacre_error *reterr);

    /* All optional. A descriptor that is readable when background shells have ended or stopped
     * lingering, below 0 if there is none; and one of them after the other: 1, or 0 if there is
     * none. Rings may be lost; the session looks for itself every now and then. */
    int (*bell)(void *self);
    int (*rung)(void *self, nacre_id *ret_id);
    /* Like get, but cheap: without strings and without the processes that are alive. */
    int (*peek)(void *self, const nacre_id *id, nacre_record *ret_record, nacre_error *reterr);
    /* From now on (1) it is a background shell, and survives its session. */
    int (*change)(void *self, const nacre_id *id, int background, int keep, nacre_error *reterr);
    /* The session that started it, and whether the process of that session lives. */
    int (*owner)(void *self, const nacre_id *id, nacre_id *ret_session, int *ret_alive,
                 nacre_error *reterr);

    /* Optional: without it nacre_reader_open() reads by means of output. */
    int (*reader)(void *self, const nacre_id *id, const nacre_reader_options *options,
                  nacre_reader **ret_reader, nacre_error *reterr);

    /* Optional: the contract is that of nacre_get_usage(). */
    int (*usage)(void *self, const nacre_id *id, nacre_usage *ret_usage, nacre_error *reterr);

    /* Optional: likewise nacre_signal(). */
    int (*signal)(void *self, const nacre_id *id, int signal, nacre_error *reterr);
} nacre_backend_ops;

typedef struct nacre_backend {
    const nacre_backend_ops *ops;
    void *self;
} nacre_backend;

/*
 * What a backend's watches do; the contracts are those of nacre_watch_fd(), nacre_watch_next(),
 * nacre_watch_record() and nacre_watch_close(). A waiter calls next at least once a second, also
 * when the fd is silent.
 */
typedef struct nacre_watch_ops {
    unsigned version; /* NACRE_BACKEND_VERSION */
    size_t size;      /* sizeof(nacre_watch_ops) */
    int (*fd)(void *self);
    int (*next)(void *self, void *buf, size_t size, nacre_event *ret_event, nacre_error *reterr);
    void (*skip_output)(void *self);
    int (*record)(void *self, nacre_record *ret_record, nacre_error *reterr);
    void (*close)(void *self);
} nacre_watch_ops;

/* What a backend's readers do; the contracts are those of nacre_reader_read() and
 * nacre_reader_close(). */
typedef struct nacre_reader_ops {
    unsigned version; /* NACRE_BACKEND_VERSION */
    size_t size;      /* sizeof(nacre_reader_ops) */
    int (*read)(void *self, nacre_block *block, nacre_error *reterr);
    void (*close)(void *self);
} nacre_reader_ops;

/* Makes a reader. NULL if out of memory, or if ops is of another version: self is not closed. */
NACRE_API nacre_reader *nacre_reader_new(const nacre_reader_ops *ops, void *self);

/* Makes a watch. NULL if out of memory, or if ops is of another version: self is not closed. */
NACRE_API nacre_watch *nacre_watch_new(const nacre_watch_ops *ops, void *self);

/* The backend that refuses everything with NACRE_EPERM. Valid forever. */
NACRE_API const nacre_backend *nacre_backend_noop(void);

NACRE_END_DECLS

#endif
