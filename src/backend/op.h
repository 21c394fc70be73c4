/* Operations: what takes time, in steps. The contract is in <nacre/backend.h>. */
#pragma once

#include <nacre/backend.h>
#include <poll.h>

/* The beginning of a structure that is an operation. */
#define OP_INIT(step_, end_)                                                        \
    {                                                                               \
        .size = sizeof(nacre_op), .fd = -1, .events = POLLIN, .wake_ns = INT64_MAX, \
        .step = (step_), .end = (end_)                                              \
    }

/*
 * The one loop of the library that waits: steps an operation until it is done, has failed, or
 * timeout_ms (< 0 = no limit) are over. 1, the code, or 0.
 */
int op_wait(nacre_op *op, int64_t timeout_ms, nacre_error *err);

/* The same to its end, which is awaited however long it takes, and frees it: 0 or the code. What it
 * came to is of ret_size bytes, and copied to ret if that is not NULL. */
int op_finish(nacre_op *op, void *ret, size_t ret_size, nacre_error *err);

/* Ends *op, if there is one, and leaves NULL behind. */
static inline void op_end(nacre_op **op)
{
    if (*op)
        (*op)->end(*op);
    *op = NULL;
}

#define cleanup_op __attribute__((cleanup(op_end)))

/* Steps an operation that another one waits for, which has to wait for the same then. */
static inline int op_step_inner(nacre_op *outer, nacre_op *inner, nacre_error *err)
{
    int r = inner->step(inner, err);
    outer->fd = inner->fd;
    outer->events = inner->events;
    outer->wake_ns = inner->wake_ns;
    return r;
}

/* One that is done already, with nothing to tell. NULL if out of memory. */
nacre_op *op_done(void);
