/*
 * Words to the command of a running shell: bytes for its stdin, the end of that, signals. Nothing
 * here waits: one word is under way at a time; poll the descriptor for reading, and step. A pipe
 * that is full takes its time. What was not taken when the feed is closed is never written. Step it
 * every FEED_LOOK_MS, too: a keeper that was stopped is woken then.
 */
#ifndef NACRE_BACKEND_FEED_H
#define NACRE_BACKEND_FEED_H

#include <nacre/error.h>
#include <nacre/id.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "run/rundir.h"

#define FEED_LOOK_MS 300

struct feed {
    int sock; /* to the keeper, to be polled */
    nacre_id id;
    struct run_state state; /* as it was at the beginning */
    int signal;             /* the word is this one, or 0 */
    const char *data;       /* or this, borrowed, */
    size_t size;
    size_t taken;
    bool eof;
};

#define FEED_NONE   \
    {               \
        .sock = -1, \
    }

/* NACRE_ECLOSED if the shell is over. */
int feed_open(const struct run *run, struct feed *ret, nacre_error *err);
void feed_close(struct feed *f);

/* A word; the one before must be done. */
int feed_write(struct feed *f, const void *data, size_t size, bool eof, nacre_error *err);
int feed_signal(struct feed *f, int signal, nacre_error *err);

/* 1 = the word is done, 0 = not yet. NACRE_ECLOSED: nobody takes it; of bytes, those taken were. */
int feed_step(struct feed *f, nacre_error *err);

/* See nacre_signal() and nacre_input(): these wait. */
int signal_run(const struct run *run, int signal, nacre_error *err);
int64_t input_run(const struct run *run, const void *data, size_t size, int eof, int64_t timeout_ms,
                  nacre_error *err);

#endif
