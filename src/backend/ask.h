/*
 * One request to a keeper, and what it says to it, without standing still: poll the socket, and
 * step. A keeper may be gone, busy or stopped. One that is stopped is woken, at once and once more
 * when it has not answered in time; after twice that time it is deaf. Returns >= 0 or -errno.
 */
#ifndef NACRE_BACKEND_ASK_H
#define NACRE_BACKEND_ASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "run/rundir.h"

struct ask {
    int sock; /* to be polled */
    int64_t wait_ms;
    int64_t deadline_ns; /* when to step it although the socket is silent */
    bool woken;
};

#define ASK_NONE       \
    (struct ask)       \
    {                  \
        .sock = -EBADF \
    }

/* Sends a request. -ECONNREFUSED: there is no keeper any more; -EAGAIN: too many wait for it. state
 * is that of the run, here and below. To be ended in any case. */
int ask_begin(struct ask *a, const struct run *run, const struct run_state *state,
              const void *message, size_t size);

/* Another message is to follow, within wait_ms. */
void ask_expect(struct ask *a, int64_t wait_ms);

/* The size of the message that came; 0 = the keeper is gone, -EAGAIN = not yet, -ETIMEDOUT = it is
 * deaf. */
ssize_t ask_step(struct ask *a, const struct run_state *state, void *buf, size_t size);
void ask_end(struct ask *a);

#endif
