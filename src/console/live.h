/*
 * One shell in the foreground: its output is copied as it comes, and the signals that mean "stop"
 * end its whole tree. The tree is ended by a thread, so that what it still prints is shown, and
 * a second Ctrl-C is heard.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <nacre/nacre.h>

#define LIVE_CHUNK 65536

struct ender {
    pthread_t thread;
    bool started, done;
    int done_fd; /* readable when it is done */
    nacre_session *session;
    nacre_id id;
    nacre_kill_options options;
    nacre_kill_result result;
    nacre_error error;
};

struct live {
    nacre_session *session; /* borrowed */
    nacre_id id;            /* to be filled in before live_follow(), like the watch, */
    nacre_watch *watch;     /* which is owned */
    bool copying;           /* output goes to stdout and stderr */

    int signal;      /* that stopped it, or SIGPIPE if nobody reads the output any more; or 0 */
    int write_errno; /* the output could not be written for another reason; or 0 */

    int readers[2]; /* descriptors whose readers may go away; -1 = none */

    int signal_fd;
    bool settled, ended; /* events of the watch */
    bool idle;           /* there is nothing to read now */
    bool gave_up;        /* the last output did not come, or nobody took it */
    struct ender ender;

    uint64_t missed; /* bytes in gaps before what was copied, */
    uint64_t next;   /* which ends at this offset of the log */

    int target; /* what is still to be written, and where */
    size_t size, written;
    char data[LIVE_CHUNK];
};

/* Blocks the signals that stop and collects them; those that were ignored stay so. */
int live_init(struct live *l, nacre_session *session, bool copying);
void live_done(struct live *l);

/* Goes on until an answer can be given; if something stops it, until the tree has been ended.
 * A nacre_code. */
int live_follow(struct live *l, nacre_error *reterr);

/* How many bytes could not be copied because the log no longer had them. */
uint64_t live_missed(const struct live *l, const nacre_record *record);

/* Somebody else has seen all of it, and an answer may be given; or a signal came that ends it. */
void live_seen(struct live *l, uint64_t missed, uint64_t next, int signal);

/* Ends what is left of the tree, quietly. The result is in l->ender. */
int live_end(struct live *l, nacre_error *reterr);
