/* One client: how it begins, goes on, and ends. */
#include <poll.h>
#include <stdlib.h>

#include "base/defs.h"
#include "mcp/peer.h"

void mcp_peer_init(struct mcp_peer *p, const struct mcp_table *table, nacre_session *session)
{
    *p = (struct mcp_peer){
        .table = table, .session = session, .level = LOG_INFO, .bell = -EBADF, .asking = -EBADF};
}

nacre_session *mcp_peer_end(struct mcp_peer *p)
{
    p->ended = true;
    mcp_calls_end(p);
    mcp_batches_end(p);
    mcp_events_end(p);
    mcp_seal_done(&p->seal);
    return TAKE_PTR(p->session);
}

/* While it has to read, its calls are not stepped. What is not to be listened to has no descriptor.
 */
size_t mcp_peer_poll(struct mcp_peer *p, struct pollfd *fds)
{
    fds[0] = (struct pollfd){.fd = p->paused ? -1 : mcp_events_fd(p), .events = POLLIN};
    fds[1] = (struct pollfd){.fd = p->paused ? -1 : p->asking, .events = POLLIN};
    return MCP_POLL_FIRST + (p->paused ? 0 : mcp_calls_poll(p, fds + MCP_POLL_FIRST));
}

int64_t mcp_peer_deadline(const struct mcp_peer *p)
{
    int64_t deadline = mcp_events_deadline(p);
    return p->paused ? deadline : MIN(deadline, mcp_calls_deadline(p));
}

/* An end is told to people before an answer brings it to the model. */
void mcp_peer_step(struct mcp_peer *p, const struct pollfd *fds, size_t count)
{
    if (fds[0].revents && !p->ended)
        mcp_events_step(p);
    if (fds[1].revents && !p->ended)
        nacre_asking_step(p->session, NULL);
    mcp_calls_step(p, fds + MCP_POLL_FIRST, count - MCP_POLL_FIRST);
}

bool mcp_peer_is_busy(const struct mcp_peer *p)
{
    return p->calls || mcp_listens(p);
}

void mcp_peer_forget(struct mcp_peer *p, struct mcp_stream *stream)
{
    mcp_batches_forget(p, stream);
    mcp_listen_forget(p, stream);
    mcp_calls_forget(p, stream);
    if (p->main == stream)
        p->main = NULL;
}
