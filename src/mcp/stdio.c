/* The client on stdin and stdout: one peer, one stream, one poll(). */
#include <malloc.h>
#include <poll.h>

#include "base/clock.h"
#include "base/err.h"
#include "mcp/mcp.h"
#include "mcp/peer.h"
#include "rpc/rpc_lines.h"
#include "sys/end_signals.h"

#define HEAP_REST   (1 << 20) /* bytes that are kept when an answer was given, for the next one */
#define FLUSH_MS    500 /* for what is written already, when the client has said its last word */
#define QUEUE_MAX   ((size_t)96 << 20)
#define QUEUE_PAUSE ((size_t)1 << 20) /* beyond this the client is not served on */

enum { AT_SIGNALS, AT_OUT, AT_IN, AT_PEER };

struct stdio {
    struct mcp_stream stream; /* first, so that a stream is what it belongs to */
    struct mcp_peer peer;
    struct rpc_reader reader;
    struct rpc_writer writer;
    int signals; /* a signalfd */
};

/* -- The stream ------------------------------------------------------------------------------- */

static void note_queue(struct stdio *t)
{
    t->peer.paused = t->writer.queued > QUEUE_PAUSE;
}

static int send_line(struct mcp_stream *stream, struct buf *message, enum mcp_sort sort UNUSED,
                     uint64_t *ret_ticket)
{
    struct stdio *t = (struct stdio *)stream;
    int r = rpc_writer_send(&t->writer, message, ret_ticket);
    if (r < 0)
        t->peer.ended = true;
    note_queue(t);
    return r;
}

static int has_line_left(const struct mcp_stream *stream, uint64_t ticket)
{
    const struct stdio *t = (const struct stdio *)stream;
    return t->writer.error == 0 && rpc_writer_has_left(&t->writer, ticket);
}

static bool drop_line(struct mcp_stream *stream, uint64_t ticket)
{
    struct stdio *t = (struct stdio *)stream;
    bool dropped = rpc_writer_drop(&t->writer, ticket);
    note_queue(t);
    return dropped;
}

/* The others go on. */
static void cancel_line(struct mcp_stream *stream UNUSED)
{
}

static const struct mcp_stream_ops stdio_ops = {send_line, has_line_left, drop_line, cancel_line};

static void flush(struct stdio *t)
{
    if (rpc_writer_flush(&t->writer) < 0)
        t->peer.ended = true;
    note_queue(t);
}

/* -- The client ------------------------------------------------------------------------------- */

static void report_long_line(struct stdio *t)
{
    struct mcp_request q = {.peer = &t->peer, .stream = &t->stream};
    mcp_fail(&q, RPC_INVALID_REQUEST, "Invalid Request: the message is longer than %zu bytes",
             t->reader.max);
}

static bool is_heard(const struct stdio *t)
{
    return !t->peer.paused && !mcp_calls_are_full(&t->peer);
}

/* Lines that are there, until the client has to read first, or calls have to end. What is left
 * waits in the reader. */
static void take_waiting_lines(struct stdio *t)
{
    const char *line;
    size_t size;
    while (!t->peer.ended && is_heard(t)) {
        int r = rpc_reader_next(&t->reader, &line, &size);
        if (r == 0)
            return;
        if (r < 0)
            report_long_line(t);
        else
            mcp_take_line(&t->peer, &t->stream, line, size);
    }
}

static void hear_client(struct stdio *t)
{
    int r = rpc_reader_fill(&t->reader);
    if (r == 0 || (r < 0 && r != -EAGAIN))
        t->peer.ended = true;
    else
        take_waiting_lines(t);
}

/* -- The loop --------------------------------------------------------------------------------- */

/* While the client does not read, it is not heard; nor while too many calls wait for their turn.
 * Then only whether it is still there is asked for. */
static size_t fill_poll(struct stdio *t, struct pollfd *fds)
{
    fds[AT_SIGNALS] = (struct pollfd){.fd = t->signals, .events = POLLIN};
    fds[AT_OUT] = (struct pollfd){.fd = rpc_writer_fd(&t->writer),
                                  .events = t->writer.queued > 0 ? POLLOUT : 0};
    fds[AT_IN] = (struct pollfd){.fd = t->reader.fd, .events = is_heard(t) ? POLLIN : POLLRDHUP};
    return AT_PEER + mcp_peer_poll(&t->peer, fds + AT_PEER);
}

static void turn(struct stdio *t)
{
    struct pollfd fds[AT_PEER + MCP_POLL_MAX];
    size_t count = fill_poll(t, fds);
    bool was_paused = t->peer.paused, was_heard = is_heard(t);
    if (poll(fds, count, clock_left_ms(mcp_peer_deadline(&t->peer))) < 0)
        return;
    if (fds[AT_SIGNALS].revents || (fds[AT_OUT].revents & (POLLERR | POLLNVAL))) {
        t->peer.ended = true;
        return;
    }
    if (fds[AT_OUT].revents)
        flush(t);
    if (!was_heard)
        t->peer.ended |= fds[AT_IN].revents != 0;
    if (!was_paused)
        mcp_peer_step(&t->peer, fds + AT_PEER, count - AT_PEER);
    if (!was_heard)
        take_waiting_lines(t);
    else if (fds[AT_IN].revents && !t->peer.ended)
        hear_client(t);
}

/* -- Life ------------------------------------------------------------------------------------- */

/* What was answered before the client left is still written, if it reads on. */
static void flush_answers(struct stdio *t)
{
    int64_t deadline = clock_deadline(FLUSH_MS);
    while (t->writer.queued > 0 && rpc_writer_flush(&t->writer) == 0 && t->writer.queued > 0) {
        struct pollfd fd = {.fd = rpc_writer_fd(&t->writer), .events = POLLOUT};
        if (poll(&fd, 1, clock_left_ms(deadline)) <= 0 || clock_left_ms(deadline) == 0)
            return;
    }
}

static int serve_client(struct stdio *t, const struct mcp_options *options, nacre_session *session,
                        nacre_error *err)
{
    t->stream.ops = &stdio_ops;
    mcp_peer_init(&t->peer, &mcp_shells, session);
    t->peer.main = &t->stream;
    t->peer.log = options->log;
    t->peer.fault = options->fault;
    rpc_reader_init(&t->reader, STDIN_FILENO, RPC_LINE_MAX);
    rpc_writer_init(&t->writer, STDOUT_FILENO, QUEUE_MAX);
    while (!t->peer.ended)
        turn(t);
    mcp_listeners_end(&t->peer);
    flush_answers(t);
    int left = nacre_close(mcp_peer_end(&t->peer), err);
    rpc_writer_done(&t->writer);
    rpc_reader_done(&t->reader);
    return left > 0 ? NACRE_EBACKEND : left;
}

int mcp_serve(const struct mcp_options *options, nacre_error *reterr)
{
    struct stdio t = {0};
    nacre_session *session;
    nacre_options of_session = NACRE_OPTIONS_INIT;
    of_session.name = options->name;
    of_session.settings = options->settings;
    of_session.ask = mcp_ask;
    of_session.ask_userdata = &t.peer;
    t.signals = end_signals_catch();
    if (t.signals < 0)
        return err_sys(reterr, NACRE_ELIMIT, -t.signals, "signalfd", "cannot listen to signals");
    /* Giving the heap's end back after each answer costs the next one the pages. */
    mallopt(M_TRIM_THRESHOLD, HEAP_REST);
    int r = nacre_open(&of_session, &session, reterr);
    if (r == 0)
        r = serve_client(&t, options, session, reterr);
    close_fd(&t.signals);
    return r;
}
