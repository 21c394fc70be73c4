#include "backend/op.h"

#include <string.h>

#include "base/clock.h"
#include "base/defs.h"

int op_wait(nacre_op *op, int64_t timeout_ms, nacre_error *err)
{
    int64_t deadline = clock_deadline(timeout_ms);
    int r;
    while ((r = op->step(op, err)) == 0 && clock_left_ms(deadline) != 0) {
        struct pollfd poller = {.fd = op->fd, .events = (short)op->events};
        poll(&poller, 1, clock_left_ms(MIN(op->wake_ns, deadline)));
    }
    return r;
}

int op_finish(nacre_op *op, void *ret, size_t ret_size, nacre_error *err)
{
    int r = op_wait(op, -1, err);
    if (r > 0 && ret)
        memcpy(ret, op->result, ret_size);
    op->end(op);
    return MIN(r, 0);
}

static int step_done(nacre_op *op UNUSED, nacre_error *err UNUSED)
{
    return 1;
}

static void end_done(nacre_op *op)
{
    free(op);
}

nacre_op *op_done(void)
{
    nacre_op *op = malloc(sizeof *op);
    if (op)
        *op = (nacre_op)OP_INIT(step_done, end_done);
    return op;
}
