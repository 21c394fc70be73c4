/* Messages into queues, and queues to their end. */
#include "acp/serve_wire.h"

#include <poll.h>

#include "base/buf.h"
#include "base/clock.h"
#include "rpc/message.h"

void wire_send(struct rpc_writer *w, const char *message, size_t size)
{
    struct buf line cleanup_buf = BUF_UP_TO(WIRE_QUEUE_MAX);
    int r = buf_append(&line, message, size);
    if (r == 0)
        r = rpc_writer_send(w, &line, NULL);
    if (r < 0 && w->error == 0)
        w->error = r;
}

bool wire_has_room(const struct rpc_writer *w)
{
    return w->error == 0 && w->queued <= WIRE_QUEUE_LOW;
}

void wire_drain(struct rpc_writer *w, int64_t ms)
{
    int64_t deadline = clock_deadline(ms);
    while (w->queued > 0 && w->error == 0 && clock_left_ms(deadline) > 0) {
        struct pollfd poller = {.fd = rpc_writer_fd(w), .events = POLLOUT};
        if (poll(&poller, 1, clock_left_ms(deadline)) > 0)
            rpc_writer_flush(w);
    }
}
