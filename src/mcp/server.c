/* The loop of the server, and how it begins and ends. */
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>

#include "base/clock.h"
#include "base/err.h"
#include "mcp/server.h"
#include "sys/fd.h"

#define HEAP_REST (1 << 20) /* bytes that are kept when an answer was given, for the next one */
#define FLUSH_MS  500 /* for what is written already, when the client has said its last word */

enum { AT_SIGNALS, AT_OUT, AT_IN, AT_BELL, AT_CALLS };

bool mcp_is_paused(const struct mcp_server *s)
{
    return s->writer.queued > MCP_QUEUE_PAUSE;
}

/* -- The client ------------------------------------------------------------------------------- */

static void report_long_line(struct mcp_server *s)
{
    struct mcp_request q = {.server = s};
    mcp_fail(&q, RPC_INVALID_REQUEST, "Invalid Request: the message is longer than %zu bytes",
             s->reader.max);
}

/* Lines that are there, until the client has to read first, or calls have to end. What is left
 * waits in the reader. */
static void take_waiting_lines(struct mcp_server *s)
{
    const char *line;
    size_t size;
    while (!s->ended && !mcp_is_paused(s) && !mcp_calls_are_full(s)) {
        int r = rpc_reader_next(&s->reader, &line, &size);
        if (r == 0)
            return;
        if (r < 0)
            report_long_line(s);
        else
            mcp_take_line(s, line, size);
    }
}

static void hear_client(struct mcp_server *s)
{
    int r = rpc_reader_fill(&s->reader);
    if (r == 0 || (r < 0 && r != -EAGAIN))
        s->ended = true;
    else
        take_waiting_lines(s);
}

/* -- The loop --------------------------------------------------------------------------------- */

static int timeout_of(struct mcp_server *s)
{
    int64_t deadline = mcp_events_deadline(s);
    if (!mcp_is_paused(s))
        deadline = MIN(deadline, mcp_calls_deadline(s));
    return clock_left_ms(deadline);
}

static bool is_heard(const struct mcp_server *s)
{
    return !mcp_is_paused(s) && !mcp_calls_are_full(s);
}

/* What is not to be listened to has no descriptor. While the client does not read, it is neither
 * heard nor are its calls stepped; while too many calls wait for their turn, it is not heard. Then
 * only whether it is still there is asked for. */
static size_t fill_poll(struct mcp_server *s, struct pollfd *fds)
{
    bool paused = mcp_is_paused(s);
    fds[AT_SIGNALS] = (struct pollfd){.fd = s->signals, .events = POLLIN};
    fds[AT_OUT] = (struct pollfd){.fd = rpc_writer_fd(&s->writer),
                                  .events = s->writer.queued > 0 ? POLLOUT : 0};
    fds[AT_IN] = (struct pollfd){.fd = s->reader.fd, .events = is_heard(s) ? POLLIN : POLLRDHUP};
    fds[AT_BELL] = (struct pollfd){.fd = paused ? -1 : mcp_events_fd(s), .events = POLLIN};
    return AT_CALLS + (paused ? 0 : mcp_calls_poll(s, fds + AT_CALLS));
}

static void turn(struct mcp_server *s)
{
    struct pollfd fds[AT_CALLS + MCP_CALLS_MAX];
    size_t count = fill_poll(s, fds);
    bool was_paused = mcp_is_paused(s), was_heard = is_heard(s);
    if (poll(fds, count, timeout_of(s)) < 0)
        return;
    if (fds[AT_SIGNALS].revents || (fds[AT_OUT].revents & (POLLERR | POLLNVAL))) {
        s->ended = true;
        return;
    }
    if (fds[AT_OUT].revents && rpc_writer_flush(&s->writer) < 0)
        s->ended = true;
    if (!was_heard)
        s->ended |= fds[AT_IN].revents != 0;
    if (was_paused) {
        take_waiting_lines(s);
        return;
    }
    /* An end is told to people before an answer brings it to the model. */
    if (fds[AT_BELL].revents && !s->ended)
        mcp_events_step(s);
    mcp_calls_step(s, fds + AT_CALLS, count - AT_CALLS);
    if (!was_heard)
        take_waiting_lines(s);
    else if (fds[AT_IN].revents && !s->ended)
        hear_client(s);
}

/* -- Life ------------------------------------------------------------------------------------- */

static int catch_signals(nacre_error *err)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigaction(SIGPIPE, &ignore, NULL);
    sigprocmask(SIG_BLOCK, &set, NULL);
    int fd = fd_lift_consume(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    return fd < 0 ? err_sys(err, NACRE_ELIMIT, -fd, "signalfd", "cannot listen to signals") : fd;
}

/* What was answered before the client left is still written, if it reads on. */
static void flush_answers(struct mcp_server *s)
{
    int64_t deadline = clock_deadline(FLUSH_MS);
    while (s->writer.queued > 0 && rpc_writer_flush(&s->writer) == 0 && s->writer.queued > 0) {
        struct pollfd fd = {.fd = rpc_writer_fd(&s->writer), .events = POLLOUT};
        if (poll(&fd, 1, clock_left_ms(deadline)) <= 0 || clock_left_ms(deadline) == 0)
            return;
    }
}

static int close_session(struct mcp_server *s, nacre_error *err)
{
    mcp_calls_end(s);
    mcp_batches_end(s);
    mcp_events_end(s);
    int left = nacre_close(s->session, err);
    return left > 0 ? NACRE_EBACKEND : left;
}

int mcp_serve(const struct mcp_options *options, nacre_error *reterr)
{
    struct mcp_server s = {.log = options->log, .level = LOG_INFO, .bell = -EBADF};
    nacre_options of_session = NACRE_OPTIONS_INIT;
    of_session.name = options->name;
    of_session.settings = options->settings;
    s.signals = catch_signals(reterr);
    if (s.signals < 0)
        return s.signals;
    /* Giving the heap's end back after each answer costs the next one the pages. */
    mallopt(M_TRIM_THRESHOLD, HEAP_REST);
    int r = nacre_open(&of_session, &s.session, reterr);
    if (r == 0) {
        rpc_reader_init(&s.reader, STDIN_FILENO, RPC_LINE_MAX);
        rpc_writer_init(&s.writer, STDOUT_FILENO, MCP_QUEUE_MAX);
        while (!s.ended)
            turn(&s);
        mcp_listeners_end(&s);
        flush_answers(&s);
        r = close_session(&s, reterr);
        rpc_writer_done(&s.writer);
        rpc_reader_done(&s.reader);
    }
    close_fd(&s.signals);
    return r;
}
