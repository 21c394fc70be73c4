/*
 * Backends: where commands run. A session has a home, and every shell is a run of that home:
 * listed, read, searched and told of in the same way, whoever runs it. A backend starts commands,
 * ends them, feeds them, and keeps their run directories true: by a keeper of each shell, as the
 * local backend of the library does, or by mirrors (below), which the process of the session
 * writes.
 *
 * Nothing that a backend does waits. What takes time is an operation: a small machine that whoever
 * began it steps, from a loop of its own or by waiting for it. Everything that waits in the library
 * is one function around such a machine.
 */
#ifndef NACRE_BACKEND_H
#define NACRE_BACKEND_H

#include <stddef.h>
#include <stdint.h>

#include <nacre/command.h>
#include <nacre/error.h>
#include <nacre/id.h>
#include <nacre/reader.h>
#include <nacre/reads.h>
#include <nacre/record.h>
#include <nacre/version.h>
#include <nacre/watch.h>

NACRE_BEGIN_DECLS

#define NACRE_BACKEND_VERSION 2u

/* -- Operations ------------------------------------------------------------------------------- */

/*
 * Something that was begun and takes time. Step it; while it says 0, poll fd until wake_ns,
 * and step it again. It belongs to one thread at a time. Whoever makes one embeds this
 * structure at the beginning of its own.
 */
typedef struct nacre_op nacre_op;
struct nacre_op {
    size_t size; /* sizeof(nacre_op) */
    int fd;      /* what to poll after a step that said 0; below 0 = nothing */
    int events;  /* and for what, as poll() wants it: POLLIN, or 0 = only its end matters; to poll
                    for reading is never wrong */
    int64_t wake_ns; /* of CLOCK_MONOTONIC: when to step although fd is silent; INT64_MAX = never */
    void *result;    /* what it came to, once it is done; whoever began it knows what that is */

    /* Goes on as far as possible without waiting: 1 = it is done, 0 = not yet, or a code: it has
     * failed. After 1 and after a failure it can only be ended. */
    int (*step)(nacre_op *op, nacre_error *reterr);

    /* Frees it, with the result. One that is not done is left as it is: see the verbs. */
    void (*end)(nacre_op *op);
};

/* -- Verbs ------------------------------------------------------------------------------------ */

typedef struct nacre_home nacre_home;
struct nacre_kill_options;

/* The result of a start. */
typedef struct nacre_started {
    nacre_id id;
    nacre_watch *watch; /* from the first byte on, or NULL; who takes it puts NULL here */
} nacre_started;

/*
 * Every function may be called from several threads at once, and none may wait. Those that get an
 * id are asked about mirrors of this backend's only; everything else that has a keeper is reached
 * by the session itself. Those marked optional may be NULL; reterr is never NULL here. On success
 * *ret_op is owned by the caller; what is passed is borrowed until the operation ends. What is done
 * at once and has no result may leave *ret_op alone, which is NULL.
 */
typedef struct nacre_backend_ops {
    unsigned version; /* NACRE_BACKEND_VERSION; functions beyond size are taken as NULL */
    size_t size;      /* sizeof(nacre_backend_ops) */
    const char *name;

    /* A session uses it from now on; home is valid until close. Optional. */
    int (*open)(void *self, nacre_home *home, nacre_error *reterr);

    /* Where commands run if nothing else is said; NULL = where the host is. Optional. */
    const char *(*cwd)(void *self);

    /* Starts a command: done when it runs. The result is a nacre_started. If it fails there is no
     * id; if it is ended before it is done, nothing of it goes on. See nacre_start(). */
    int (*start)(void *self, const nacre_command *command, nacre_op **ret_op, nacre_error *reterr);

    /* Ends a shell: done when nothing is left of it, or when it is known who is. The result is a
     * nacre_kill_result. Ended before, it goes on by itself. See nacre_kill(). Optional, if there
     * is a signal: without, the session itself sends signals, keeps the deadlines of mirrors, and
     * ends all of them before it closes. */
    int (*kill)(void *self, const nacre_id *id, const struct nacre_kill_options *options,
                nacre_op **ret_op, nacre_error *reterr);

    /* Writes to its stdin: done when all of it was taken. The result, there from the beginning, is
     * a size_t: bytes taken so far. Ended before, the rest is never written. Optional. */
    int (*input)(void *self, const nacre_id *id, const void *data, size_t size, int eof,
                 nacre_op **ret_op, nacre_error *reterr);

    /* See nacre_signal(). No result. Optional. */
    int (*signal)(void *self, const nacre_id *id, int signal, nacre_op **ret_op,
                  nacre_error *reterr);

    /* From now on (1) it is a background shell, and survives its session. No result. Optional: then
     * a background shell is noted in its mirror, and nothing can be kept. */
    int (*change)(void *self, const nacre_id *id, int background, int keep, nacre_op **ret_op,
                  nacre_error *reterr);

    /* Brings its run directory up to date: done when it says what is true now. No result. Optional:
     * a pump is enough then. */
    int (*look)(void *self, const nacre_id *id, nacre_op **ret_op, nacre_error *reterr);

    /* Takes in what there is to take in of a shell, without waiting; with quiet nobody wants to see
     * its output. Returns when it wants to be asked again, in ns of CLOCK_MONOTONIC; INT64_MAX =
     * only when its mirror has changed. Optional. */
    int64_t (*pump)(void *self, const nacre_id *id, int quiet);

    /* A descriptor that is readable when background shells have ended or stopped lingering, below 0
     * if there is none; and one of them after the other: 1, or 0 if there is none. Rings may be
     * lost; the session looks for itself every now and then. Optional. */
    int (*bell)(void *self);
    int (*rung)(void *self, nacre_id *ret_id);

    /* The session that used it closes: what it still runs for it is ended. The result is an int:
     * how many shells could not be. With forked != 0, in a forked child, only memory is freed, and
     * there is no operation. Optional. */
    int (*close)(void *self, int forked, nacre_op **ret_op, nacre_error *reterr);

    /* See nacre_resize(). No result. Optional: then its commands get no terminals. */
    int (*resize)(void *self, const nacre_id *id, int columns, int rows, nacre_op **ret_op,
                  nacre_error *reterr);

    /* Who reads the input of a shell: done once it is one of a set and was for held_ms, or, of an
     * empty set, when it is known. The result is a nacre_reading. See nacre_wait_reading().
     * Optional. */
    int (*reads)(void *self, const nacre_id *id, unsigned set, int64_t held_ms, nacre_op **ret_op,
                 nacre_error *reterr);
} nacre_backend_ops;

typedef struct nacre_backend {
    const nacre_backend_ops *ops;
    void *self;
} nacre_backend;

/* The backend that refuses to start anything, with NACRE_EPERM. Valid forever. */
NACRE_API const nacre_backend *nacre_backend_noop(void);

/* -- Mirrors ---------------------------------------------------------------------------------- */

/*
 * The run of a command that has no keeper here: this process writes down what it hears of it. When
 * the process is gone, whoever looks next finds the shell NACRE_LOST. Thread-safe.
 */
typedef struct nacre_mirror nacre_mirror;

/* What is known of a command that runs elsewhere. Each of the last four comes after the one before
 * it, and does not go away again. */
typedef struct nacre_mirror_news {
    size_t size;
    int background;
    nacre_reason reason; /* why we had it ended, if we had */
    int exit_code;       /* -1 = not known */
    int signal;
    int exited;  /* the command has */
    int final;   /* and all of its output is here: it has an outcome */
    int settled; /* an answer may be given */
    int over;    /* nothing of it is left, and nothing more is written */
} nacre_mirror_news;

#define NACRE_MIRROR_NEWS_INIT                                             \
    {                                                                      \
        sizeof(nacre_mirror_news), 0, NACRE_REASON_NONE, -1, 0, 0, 0, 0, 0 \
    }

/* Checks a command and makes its run, which nobody sees yet. The directory is in *ret_cwd, if not
 * NULL, borrowed from the mirror. */
NACRE_API int nacre_mirror_new(nacre_home *home, const nacre_command *command,
                               nacre_mirror **ret_mirror, const char **ret_cwd,
                               nacre_error *reterr);

NACRE_API nacre_id nacre_mirror_id(const nacre_mirror *mirror);

/* It runs: everybody sees it. */
NACRE_API int nacre_mirror_begin(nacre_mirror *mirror, nacre_error *reterr);

/* Output that came; gap != 0: something before it was never seen. */
NACRE_API void nacre_mirror_write(nacre_mirror *mirror, nacre_stream stream, const void *data,
                                  size_t size, int gap);

/* What is known now; whoever watches is woken. */
NACRE_API void nacre_mirror_note(nacre_mirror *mirror, const nacre_mirror_news *news);

/* Frees it. If it was never begun, nothing of it is left. NULL is ignored. */
NACRE_API void nacre_mirror_free(nacre_mirror *mirror);

NACRE_END_DECLS

#endif
