/* A host of terminals alone: one loop over its input, its output and what it waits for. */
#include "acp/serve.h"

#include <poll.h>
#include <string.h>

#include "acp/client.h"
#include "acp/serve_wire.h"
#include "base/err.h"
#include "rpc/message.h"
#include "rpc/rpc_lines.h"

#define DRAIN_MS 2000

struct acp_server {
    nacre_acp_host *host;
    struct rpc_reader in;
    struct rpc_writer out;
    bool ended; /* nothing more comes in */
};

static void send_out(const char *message, size_t size, void *userdata)
{
    struct acp_server *s = userdata;
    wire_send(&s->out, message, size);
}

static void send_fault(struct acp_server *s, const json_t *id, int code, const char *text)
{
    struct buf answer cleanup_buf = BUF_UP_TO(RPC_MESSAGE_MAX);
    if (rpc_append_error(&answer, id, code, text, NULL) == 0)
        wire_send(&s->out, answer.data, answer.len);
}

static int serve_line(struct acp_server *s, const char *line, size_t size, nacre_error *err)
{
    struct rpc_fault fault;
    struct rpc_message m = {0};
    json_auto_t *value = rpc_decode(line, size, &fault);
    int r = 0;
    if (!value || rpc_read(value, &m, &fault) < 0)
        send_fault(s, m.id, fault.code, fault.text);
    else if ((r = acp_host_take(s->host, &m, err)) == 0 && m.kind == RPC_REQUEST)
        send_fault(s, m.id, RPC_NO_METHOD, "Method not found: only terminal/... is served here");
    return MIN(r, 0);
}

static int serve_lines(struct acp_server *s, nacre_error *err)
{
    const char *line;
    size_t size;
    int r = 0, found;
    while (r == 0 && (found = rpc_reader_next(&s->in, &line, &size)) != 0) {
        if (found < 0)
            send_fault(s, NULL, RPC_INVALID_REQUEST, "Invalid Request: the message is over 8 MiB");
        else
            r = serve_line(s, line, size, err);
    }
    return r;
}

/* 1 = go on, 0 = the end. What was asked to start is answered before. */
static int serve_step(struct acp_server *s, int stop_fd, nacre_error *err)
{
    struct pollfd polls[] = {
        {.fd = wire_has_room(&s->out) && !s->ended ? s->in.fd : -1, .events = POLLIN},
        {.fd = s->out.queued > 0 ? rpc_writer_fd(&s->out) : -1, .events = POLLOUT},
        {.fd = nacre_acp_host_fd(s->host), .events = POLLIN},
        {.fd = stop_fd, .events = POLLIN},
    };
    if (RETRY(poll(polls, ARRAY_SIZE(polls), -1)) < 0)
        return err_sys(err, NACRE_EIO, errno, "poll", "cannot wait for messages");
    if (polls[3].revents)
        return 0;
    if (polls[1].revents)
        rpc_writer_flush(&s->out);
    int r = polls[2].revents ? nacre_acp_host_dispatch(s->host, err) : 0;
    if (r == 0 && polls[0].revents) {
        s->ended = rpc_reader_fill(&s->in) <= 0;
        r = serve_lines(s, err);
    }
    return r < 0 ? r : s->out.error == 0 && (!s->ended || acp_host_is_starting(s->host));
}

int acp_serve(nacre_session *session, int in, int out, int stop_fd, nacre_error *err)
{
    struct acp_server s = {0};
    nacre_acp_host_options options = NACRE_ACP_HOST_OPTIONS_INIT;
    options.send = send_out;
    options.userdata = &s;
    int r = nacre_acp_host_open(session, &options, &s.host, err);
    if (r < 0)
        return r;
    rpc_reader_init(&s.in, in, RPC_LINE_MAX);
    rpc_writer_init(&s.out, out, WIRE_QUEUE_MAX);
    do
        r = serve_step(&s, stop_fd, err);
    while (r > 0);
    wire_drain(&s.out, DRAIN_MS);
    nacre_acp_host_close(s.host);
    rpc_reader_done(&s.in);
    rpc_writer_done(&s.out);
    return r;
}
