/* Operations of a backend, awaited as the contract says it. */
#ifndef TESTS_ACP_OP_H
#define TESTS_ACP_OP_H

#include "harness/harness.h"

#include <poll.h>

/* Steps it to its end, which is to be a good one, and ends it; what it came to is copied, if it is
 * wanted. */
static void finish_op(nacre_op *op, void *ret, size_t ret_size)
{
    int r;
    while ((r = op->step(op, ERR)) == 0) {
        struct pollfd poller = {.fd = op->fd, .events = (short)op->events};
        int64_t left = op->wake_ns / 1000000 - now_ms();
        poll(&poller, 1, op->wake_ns == INT64_MAX ? -1 : left < 0 ? 0 : (int)left + 1);
    }
    CHECK_EQ_INT(1, r);
    if (ret)
        memcpy(ret, op->result, ret_size);
    op->end(op);
}

static inline nacre_id start_by_verb(const nacre_backend *backend, const nacre_command *command)
{
    nacre_started started;
    nacre_op *op;
    CHECK_OK(backend->ops->start(backend->self, command, &op, ERR));
    finish_op(op, &started, sizeof started);
    return started.id;
}

/* Until the end of what has exited. */
static inline void look_by_verb(const nacre_backend *backend, const nacre_id *id)
{
    nacre_op *op;
    CHECK_OK(backend->ops->look(backend->self, id, &op, ERR));
    finish_op(op, NULL, 0);
}

#endif
