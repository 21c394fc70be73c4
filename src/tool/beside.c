#include "tool/beside.h"

#include <sys/epoll.h>

#include "backend/op.h"
#include "base/defs.h"
#include "base/err.h"
#include "sys/fd.h"

/* One that is there already stays; what was closed has left by itself. */
static void listen_to_fd(const struct beside *b, int fd)
{
    struct epoll_event event = {.events = EPOLLIN};
    if (fd >= 0)
        epoll_ctl(b->epoll, EPOLL_CTL_ADD, fd, &event);
}

int beside_begin(struct beside *b, nacre_op *op, int other, nacre_error *err)
{
    *b = (struct beside){.op = op, .epoll = fd_lift_consume(epoll_create1(EPOLL_CLOEXEC))};
    if (b->epoll < 0) {
        beside_end(b);
        return err_sys(err, NACRE_ELIMIT, errno, "wait", "no descriptor left to wait");
    }
    listen_to_fd(b, other);
    return 0;
}

int beside_step(struct beside *b, nacre_error *err)
{
    int r = b->op->step(b->op, err);
    if (r == 0)
        listen_to_fd(b, b->op->fd);
    return r;
}

int beside_fd(const struct beside *b)
{
    return b->epoll;
}

int64_t beside_wake_ns(const struct beside *b)
{
    return b->op->wake_ns;
}

void beside_end(struct beside *b)
{
    if (b->op)
        close_fd(&b->epoll);
    op_end(&b->op);
}
