/*
 * An exchange with the keeper of a run, as the beginning of an operation. A keeper may be gone,
 * busy or stopped. If it is gone, what it left is swept. If it is stopped it is woken, at once and
 * once more when it has not answered in time; after twice that time, or if it is stopped again and
 * again, it is deaf.
 */
#pragma once

#include <nacre/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "backend/op.h"
#include "home/door.h"
#include "home/home.h"
#include "home/sweep.h"

struct ask {
    nacre_op op;
    struct run run;
    struct run_state state; /* when it was last looked at */
    struct sweeping sweeping;
    struct door door;
    bool swept; /* there was no keeper any more */
    int sock;
    int64_t wait_ms;
    int64_t until_ns; /* it is waited for */
    int64_t look_ns;  /* it is looked at next */
    int held;         /* it was stopped at so many looks */
    bool woken;
    int64_t door_ns; /* until then a closed door is knocked at */
};

#define ASK_KNOCK_MS 5
#define ASK_DOOR_MS  1500 /* a keeper that lives opens its door within this */

/* size is that of the operation, which begins with it; it is zeroed. On success *ret is the
 * caller's to end: ask_end() frees it. */
int ask_new(nacre_home *h, const nacre_id *id, size_t size, const nacre_op *op, struct ask **ret,
            nacre_error *err);
void ask_end(nacre_op *op);

/* The state of the run: 1 = it is there, 0 = what its keeper left is still being swept. */
int ask_look(struct ask *a, nacre_error *err);

/* A keeper that answers nothing: SIGKILL, and to be looked at from here on. 1 = it was over
 * already. */
int ask_force(struct ask *a, nacre_error *err);

/* NACRE_EUNSUPPORTED if what runs has no keeper to ask, because it runs elsewhere. */
int ask_check_reach(const struct ask *a, nacre_error *err);

/* Sends a request, by a connection that is made if there is none. -ECONNREFUSED: there is no keeper
 * any more; -EAGAIN: too many wait for it. An answer is expected from here on. */
int ask_send(struct ask *a, const void *message, size_t size);

/* Whether the door was shut, by what a send came to, and is to be tried again in a moment: it is
 * about to be final, or has too many visitors. The next look tells. */
bool ask_is_shut(struct ask *a, int e);

/* Another answer is to follow, within wait_ms; below 0 = whenever it does. */
void ask_expect(struct ask *a, int64_t wait_ms);

/* The size of the message that came; 0 = the keeper is gone, -EAGAIN = not yet, -ETIMEDOUT = it is
 * deaf. */
ssize_t ask_hear(struct ask *a, void *buf, size_t size);
void ask_hang_up(struct ask *a);
