/* Watches of any backend: the public functions, and waiting in terms of them. */
#include <nacre/watch.h>

#include <nacre/backend.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"

#define SLICE_MS 1000

struct nacre_watch {
    nacre_watch_ops ops;
    void *self;
};

nacre_watch *nacre_watch_new(const nacre_watch_ops *ops, void *self)
{
    if (ops->version != NACRE_BACKEND_VERSION)
        return NULL;
    nacre_watch *watch = calloc(1, sizeof *watch);
    if (!watch)
        return NULL;
    /* A table of an older or newer library: what it does not reach is NULL. */
    memcpy(&watch->ops, ops, MIN(ops->size, sizeof watch->ops));
    watch->self = self;
    return watch;
}

int nacre_watch_fd(const nacre_watch *watch)
{
    return watch->ops.fd(watch->self);
}

int nacre_watch_next(nacre_watch *watch, void *buf, size_t size, nacre_event *ret_event,
                     nacre_error *reterr)
{
    *ret_event = (nacre_event){.kind = NACRE_EVENT_NONE};
    return watch->ops.next(watch->self, buf, size, ret_event, reterr);
}

int nacre_watch_wait(nacre_watch *watch, int64_t timeout_ms, void *buf, size_t size,
                     nacre_event *ret_event, nacre_error *reterr)
{
    int64_t deadline = clock_deadline(timeout_ms);
    for (;;) {
        int r = nacre_watch_next(watch, buf, size, ret_event, reterr);
        if (r < 0 || ret_event->kind != NACRE_EVENT_NONE)
            return r;
        int left = clock_left_ms(deadline);
        if (left == 0)
            return 0;
        struct pollfd poller = {.fd = nacre_watch_fd(watch), .events = POLLIN};
        if (poll(&poller, 1, left < 0 ? SLICE_MS : MIN(left, SLICE_MS)) < 0 && errno != EINTR)
            return err_sys(reterr, NACRE_EIO, errno, "poll", "cannot wait");
    }
}

void nacre_watch_skip_output(nacre_watch *watch)
{
    if (watch->ops.skip_output)
        watch->ops.skip_output(watch->self);
}

int nacre_watch_record(nacre_watch *watch, nacre_record *ret_record, nacre_error *reterr)
{
    return watch->ops.record(watch->self, ret_record, reterr);
}

void nacre_watch_close(nacre_watch *watch)
{
    if (!watch)
        return;
    watch->ops.close(watch->self);
    free(watch);
}
