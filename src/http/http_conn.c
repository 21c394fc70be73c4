#include "http/http_conn.h"

#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/clock.h"

#define PIECE      16384
#define KEEP_MAX   4096 /* an empty buffer larger than this is given back */
#define LINGER_MS  1000
#define LINGER_MAX 65536 /* bytes that are thrown away meanwhile */
#define HEAD_ROOM  2048  /* of an answer's head, further fields not counted */

static const struct {
    int status;
    const char *words;
} reason_phrases[] = {
    {200, "OK"},
    {202, "Accepted"},
    {204, "No Content"},
    {304, "Not Modified"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {406, "Not Acceptable"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {413, "Content Too Large"},
    {415, "Unsupported Media Type"},
    {417, "Expectation Failed"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {503, "Service Unavailable"},
    {505, "HTTP Version Not Supported"},
};

static const char *reason_of(int status)
{
    for (size_t i = 0; i < ARRAY_SIZE(reason_phrases); i++)
        if (reason_phrases[i].status == status)
            return reason_phrases[i].words;
    return "";
}

/* -- Life ------------------------------------------------------------------------------------- */

void http_conn_init(struct http_conn *c, int fd, const struct http_limits *limits,
                    const char *fields)
{
    *c = (struct http_conn){.fd = fd, .limits = limits, .fields = fields};
    c->in = BUF_UP_TO(HTTP_REQUEST_HEAD_MAX + PIECE + 1);
    c->body = BUF_UP_TO(limits->body_max + PIECE + 1);
    c->out = BUF_UP_TO(SIZE_MAX / 2);
    c->deadline_ns = clock_deadline(limits->head_ms);
}

void http_hang_up(struct http_conn *c)
{
    c->state = HTTP_CLOSED;
}

void http_conn_done(struct http_conn *c)
{
    http_hang_up(c);
    /* A child that is just being started may still have a copy. */
    shutdown(c->fd, SHUT_RDWR);
    close_fd(&c->fd);
    buf_done(&c->in);
    buf_done(&c->body);
    buf_done(&c->out);
}

size_t http_queued(const struct http_conn *c)
{
    return c->out.len - c->sent;
}

uint64_t http_ticket(const struct http_conn *c)
{
    return c->taken + http_queued(c);
}

bool http_has_left(const struct http_conn *c, uint64_t ticket)
{
    return c->taken >= ticket;
}

uint32_t http_conn_events(const struct http_conn *c)
{
    bool reads = c->state == HTTP_AT_HEAD || c->state == HTTP_AT_BODY || c->state == HTTP_LINGERS;
    uint32_t events = http_queued(c) > 0 ? EPOLLOUT : 0;
    if (reads && !c->half_closed)
        events |= EPOLLIN;
    return c->half_closed ? events : events | EPOLLRDHUP;
}

/* -- Writing ---------------------------------------------------------------------------------- */

static void give_back(struct buf *b)
{
    b->len = 0;
    if (b->cap > KEEP_MAX)
        buf_done(b);
    else if (b->data)
        b->data[0] = '\0';
}

static void flush_out(struct http_conn *c)
{
    while (c->state != HTTP_CLOSED && c->sent < c->out.len) {
        ssize_t n = RETRY(
            send(c->fd, c->out.data + c->sent, c->out.len - c->sent, MSG_DONTWAIT | MSG_NOSIGNAL));
        if (n < 0 && errno == EAGAIN)
            return;
        if (n < 0) {
            http_hang_up(c);
            return;
        }
        c->sent += (size_t)n;
        c->taken += (uint64_t)n;
    }
    if (c->out.len > 0)
        give_back(&c->out);
    c->sent = 0;
}

/* What was written already makes room, when it is worth moving the rest. */
static void drop_sent(struct http_conn *c)
{
    if (c->sent < PIECE || c->sent < c->out.len / 2)
        return;
    c->out.len -= c->sent;
    memmove(c->out.data, c->out.data + c->sent, c->out.len + 1);
    c->sent = 0;
}

static void put_out(struct http_conn *c, const char *data, size_t size)
{
    if (c->state == HTTP_CLOSED)
        return;
    drop_sent(c);
    if (buf_append(&c->out, data, size) < 0)
        http_hang_up(c);
}

static void put_words(struct http_conn *c, const char *text)
{
    put_out(c, text, strlen(text));
}

/* length: of the body, or -1 of a stream. */
static void put_answer_head(struct http_conn *c, int status, const char *fields, int64_t length)
{
    char line[128];
    snprintf(line, sizeof line, "HTTP/1.1 %d %s\r\n", status, reason_of(status));
    put_words(c, line);
    put_words(c, c->fields);
    if (fields)
        put_words(c, fields);
    *line = '\0';
    if (length < 0 && c->writes_chunks)
        snprintf(line, sizeof line, "Transfer-Encoding: chunked\r\n");
    else if (length >= 0 && status != 204 && status != 304)
        snprintf(line, sizeof line, "Content-Length: %lld\r\n", (long long)length);
    put_words(c, line);
    put_words(c, c->closes ? "Connection: close\r\n\r\n" : "\r\n");
}

/* All is said; or there is more to write, for a client that reads. */
static void say_last(struct http_conn *c)
{
    bool all = http_queued(c) == 0;
    if (c->state != HTTP_LINGERS)
        return;
    if (all)
        shutdown(c->fd, SHUT_WR);
    c->deadline_ns = clock_deadline(all ? LINGER_MS : c->limits->idle_ms);
}

static void begin_linger(struct http_conn *c)
{
    if (c->state == HTTP_CLOSED)
        return;
    c->state = HTTP_LINGERS;
    flush_out(c);
    say_last(c);
}

/* The answer is whole. */
static void finish_answer(struct http_conn *c)
{
    give_back(&c->body);
    c->probed = false;
    if (c->closes || c->half_closed) {
        begin_linger(c);
        return;
    }
    flush_out(c);
    if (c->state == HTTP_CLOSED)
        return;
    c->state = HTTP_AT_HEAD;
    c->deadline_ns = clock_deadline(c->limits->idle_ms);
}

void http_answer(struct http_conn *c, int status, const char *fields, const char *body, size_t size)
{
    put_answer_head(c, status, fields, (int64_t)size);
    if (size > 0 && c->request.method != HTTP_HEAD)
        put_out(c, body, size);
    finish_answer(c);
}

void http_refuse(struct http_conn *c, int status, const char *fields, const char *why)
{
    char text[256], all[HEAD_ROOM];
    int n = snprintf(text, sizeof text, "%s.\n", why);
    snprintf(all, sizeof all, "Content-Type: text/plain; charset=utf-8\r\n%s",
             fields ? fields : "");
    c->closes = true;
    http_answer(c, status, all, text, MIN((size_t)n, sizeof text - 1));
}

/* A stream may go on for hours; what was asked is of no use any more. */
static void forget_request(struct http_conn *c)
{
    buf_done(&c->body);
    if (c->in.len > c->request.size)
        return;
    buf_done(&c->in);
    c->request.data = NULL;
    c->request.path = c->request.query = (struct stretch){NULL, 0};
    c->request.size = c->request.count = 0;
}

void http_stream_begin(struct http_conn *c, int status, const char *fields)
{
    c->writes_chunks = c->request.minor == 1;
    c->closes = c->closes || !c->writes_chunks;
    put_answer_head(c, status, fields, -1);
    if (c->state != HTTP_CLOSED)
        c->state = HTTP_STREAMS;
    forget_request(c);
    flush_out(c);
}

void http_stream_write(struct http_conn *c, const char *data, size_t size, uint64_t *ret_ticket)
{
    char frame[24];
    if (c->state != HTTP_STREAMS || size == 0)
        return;
    if (http_queued(c) == 0)
        c->deadline_ns = clock_deadline(c->limits->idle_ms);
    if (http_queued(c) + size > c->limits->queue_max) {
        http_hang_up(c);
        return;
    }
    snprintf(frame, sizeof frame, "%zx\r\n", size);
    if (c->writes_chunks)
        put_words(c, frame);
    put_out(c, data, size);
    if (c->writes_chunks)
        put_words(c, "\r\n");
    if (ret_ticket)
        *ret_ticket = http_ticket(c);
    flush_out(c);
}

void http_stream_end(struct http_conn *c)
{
    if (c->state != HTTP_STREAMS)
        return;
    if (c->writes_chunks)
        put_words(c, "0\r\n\r\n");
    finish_answer(c);
}

/* -- Reading ---------------------------------------------------------------------------------- */

static void drop_in(struct http_conn *c, size_t size)
{
    c->in.len -= size;
    if (c->in.len == 0)
        give_back(&c->in);
    else
        memmove(c->in.data, c->in.data + size, c->in.len + 1);
}

static void begin_body(struct http_conn *c)
{
    c->state = HTTP_AT_BODY;
    c->deadline_ns = clock_deadline(c->limits->body_ms);
    c->closes = c->request.closes;
    body_init(&c->framing, c->request.chunked, c->request.length, false);
    if (c->request.length > c->limits->body_max) {
        http_refuse(c, 413, NULL, "the body is too long");
        return;
    }
    if (c->request.expects_continue) {
        put_words(c, "HTTP/1.1 100 Continue\r\n\r\n");
        flush_out(c);
    }
}

/* The head stays where it is as long as the request is not answered: its fields are borrowed. What
 * follows it is the body's. */
static void read_head(struct http_conn *c)
{
    const char *why;
    int status = http_request_read(c->in.data, c->in.len, &c->request, &why);
    if (status == 0)
        begin_body(c);
    else if (status > 0)
        http_refuse(c, status, NULL, why);
}

/* The head may have moved while the body came; its fields are borrowed. */
static void begin_answer(struct http_conn *c)
{
    const char *why;
    http_request_read(c->in.data, c->in.len, &c->request, &why);
    c->state = HTTP_ASKED;
}

static void read_body(struct http_conn *c)
{
    char piece[PIECE + BODY_FRAMES];
    size_t at = c->request.size;
    while (c->state == HTTP_AT_BODY && c->framing.state != BODY_OVER && at < c->in.len) {
        size_t used = 0, size = MIN(c->in.len - at, (size_t)PIECE);
        ssize_t n = body_take(&c->framing, c->in.data + at, size, piece, &used);
        at += used;
        if (n < 0)
            http_refuse(c, 400, NULL, "the chunks of the body are not whole");
        else if (buf_append(&c->body, piece, (size_t)n) < 0 || c->body.len > c->limits->body_max)
            http_refuse(c, 413, NULL, "the body is too long");
    }
    if (c->state != HTTP_AT_BODY)
        return;
    /* What is left behind the head belongs to the next request. */
    size_t taken = at - c->request.size;
    memmove(c->in.data + c->request.size, c->in.data + at, c->in.len - at + 1);
    c->in.len -= taken;
    if (c->framing.state == BODY_OVER)
        begin_answer(c);
}

static bool read_on(struct http_conn *c)
{
    if (c->state == HTTP_AT_HEAD && c->request.size > 0) {
        drop_in(c, c->request.size);
        c->request = (struct http_request){0};
    }
    if (c->state == HTTP_AT_HEAD && c->in.len > 0)
        read_head(c);
    if (c->state == HTTP_AT_BODY)
        read_body(c);
    return c->state == HTTP_ASKED;
}

bool http_conn_next(struct http_conn *c)
{
    if (c->state != HTTP_AT_HEAD || c->request.size == 0 || c->in.len <= c->request.size)
        return false;
    c->deadline_ns = clock_deadline(c->limits->head_ms);
    return read_on(c);
}

static void throw_away(struct http_conn *c)
{
    char piece[PIECE];
    size_t all = 0;
    while (all < LINGER_MAX) {
        ssize_t n = RETRY(recv(c->fd, piece, sizeof piece, MSG_DONTWAIT));
        if (n == 0 || (n < 0 && errno != EAGAIN))
            http_hang_up(c);
        if (n <= 0)
            return;
        all += (size_t)n;
    }
}

/* One read. While a body comes, room is only needed for one piece of it. */
static bool hear_client_bytes(struct http_conn *c)
{
    char piece[PIECE];
    bool fresh = c->in.len == c->request.size;
    ssize_t n = RETRY(recv(c->fd, piece, sizeof piece, MSG_DONTWAIT));
    if (n < 0 && errno == EAGAIN)
        return false;
    if (n <= 0 || buf_append(&c->in, piece, (size_t)n) < 0) {
        http_hang_up(c);
        return false;
    }
    if (c->state == HTTP_AT_HEAD && fresh)
        c->deadline_ns = clock_deadline(c->limits->head_ms);
    return read_on(c);
}

bool http_conn_turn(struct http_conn *c, uint32_t events)
{
    bool asked = false;
    if (events & EPOLLOUT) {
        flush_out(c);
        say_last(c);
        if (c->state == HTTP_STREAMS || (c->state == HTTP_AT_HEAD && http_queued(c) > 0))
            c->deadline_ns = clock_deadline(c->limits->idle_ms);
    }
    if (c->state == HTTP_LINGERS && (events & (EPOLLIN | EPOLLRDHUP)))
        throw_away(c);
    else if ((c->state == HTTP_AT_HEAD || c->state == HTTP_AT_BODY) && (events & EPOLLIN))
        asked = hear_client_bytes(c);
    if (events & (EPOLLERR | EPOLLHUP))
        http_hang_up(c);
    else if ((events & EPOLLRDHUP) && c->state != HTTP_CLOSED)
        c->half_closed = c->state >= HTTP_ASKED;
    return asked && c->state == HTTP_ASKED;
}

void http_conn_tick(struct http_conn *c, int64_t now_ns)
{
    bool reads = c->state == HTTP_AT_HEAD || c->state == HTTP_AT_BODY;
    bool writes = c->state == HTTP_STREAMS && http_queued(c) > 0;
    if (now_ns < c->deadline_ns || !(reads || writes || c->state == HTTP_LINGERS))
        return;
    if (reads && c->in.len > c->request.size)
        http_refuse(c, 408, NULL, "the request did not come in time");
    else
        http_hang_up(c);
}
