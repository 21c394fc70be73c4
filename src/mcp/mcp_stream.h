/*
 * A stream: where the answer to a request and its notifications go. Over stdio there is one, for as
 * long as the client is there; over HTTP each request has its own, the answer to one POST. The
 * protocol knows no more of it than this.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

struct mcp_stream;

/* What is sent, for a carrier that says more than the message does. */
enum mcp_sort {
    MCP_NOTE,    /* a notification, or a request of ours */
    MCP_RESULT,  /* an answer: a result, or an error within the protocol */
    MCP_REFUSED, /* the request was not sound: HTTP says 400 */
    MCP_UNKNOWN  /* there is no such method: HTTP says 404 */
};

struct mcp_stream_ops {
    /* Takes the bytes of a message, which is empty afterwards. Never waits. 0, or a code below 0
     * when nothing can be sent there any more. *ret_ticket may be asked after. */
    int (*send)(struct mcp_stream *t, struct buf *message, enum mcp_sort sort,
                uint64_t *ret_ticket);
    /* 1 = all of the message was written; 0 = not yet; below 0 = it never will be. */
    int (*has_left)(const struct mcp_stream *t, uint64_t ticket);
    /* Takes a message back; false if a part of it was written. */
    bool (*drop)(struct mcp_stream *t, uint64_t ticket);
    /* The request that came with it was cancelled: it is not answered. */
    void (*cancel)(struct mcp_stream *t);
};

struct mcp_stream {
    const struct mcp_stream_ops *ops;
    bool own_ids;   /* its request stands alone: another of the same id is another one */
    uint64_t heard; /* the last news to people that it carried */
};

static inline int stream_has_left(const struct mcp_stream *t, uint64_t ticket)
{
    return t->ops->has_left(t, ticket);
}
