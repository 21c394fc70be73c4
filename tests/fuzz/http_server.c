/*
 * Arbitrary bytes as requests to a server of ours, over a real connection: the first byte says in
 * pieces of which size they come, and how they are answered. Whatever comes, each request is whole
 * when it is asked, answers come in order and one for each, and a connection that was refused ends.
 */
#include "fuzz.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/http_conn.h"

#define BODY_MAX 2000

static const struct http_limits limits = {BODY_MAX, 1 << 20, 1000, 1000, 1000};

/* What was asked is as HTTP has it, and lies where it came. */
static void check_request(const struct http_conn *c)
{
    const struct http_request *q = &c->request;
    MUST(c->state == HTTP_ASKED && q->size > 0 && q->size <= HTTP_REQUEST_HEAD_MAX);
    MUST(q->path.size > 0 && q->path.at[0] == '/');
    MUST(q->path.at > c->in.data && q->path.at + q->path.size <= c->in.data + q->size);
    MUST(http_request_count(q, "Host") == 1);
    MUST(c->body.len <= BODY_MAX);
    MUST(q->chunked || c->body.len == q->length);
    for (size_t i = 0; i < q->count; i++) {
        struct http_field field = http_request_at(q, i);
        MUST(is_token(field.name) && !memchr(field.value.at, '\n', field.value.size));
    }
}

static void answer_request(struct http_conn *c, unsigned how)
{
    check_request(c);
    if (how % 3 == 0) {
        http_answer(c, 200, NULL, "yes", 3);
    } else if (how % 3 == 1) {
        http_stream_begin(c, 200, NULL);
        http_stream_write(c, "one", 3, NULL);
        http_stream_end(c);
    } else {
        http_refuse(c, 404, NULL, "no");
    }
}

static void turn(struct http_conn *c, uint32_t events, unsigned how)
{
    if (c->state == HTTP_CLOSED)
        return;
    if (http_conn_turn(c, events & (http_conn_events(c) | EPOLLHUP)))
        answer_request(c, how);
    while (c->state != HTTP_CLOSED && http_conn_next(c))
        answer_request(c, how);
}

static void read_all(int fd)
{
    char answers[65536];
    while (recv(fd, answers, sizeof answers, MSG_DONTWAIT) > 0)
        ;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int fds[2];
    struct http_conn c;
    unsigned how = size > 0 ? data[0] : 0;
    size_t step = how / 3 + 1;
    MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) == 0);
    http_conn_init(&c, fds[0], &limits, "");
    for (size_t at = 1; at < size && c.state != HTTP_CLOSED; at += step) {
        size_t n = size - at < step ? size - at : step;
        if (send(fds[1], data + at, n, MSG_NOSIGNAL) != (ssize_t)n)
            break;
        turn(&c, EPOLLIN | EPOLLOUT, how);
        read_all(fds[1]);
    }
    shutdown(fds[1], SHUT_WR);
    for (int i = 0; i < 8; i++) {
        turn(&c, EPOLLIN | EPOLLOUT | EPOLLRDHUP, how);
        read_all(fds[1]);
    }
    http_conn_tick(&c, INT64_MAX);
    read_all(fds[1]);
    turn(&c, EPOLLOUT | EPOLLHUP, how);
    MUST(c.state == HTTP_CLOSED);
    http_conn_done(&c);
    close(fds[1]);
    return 0;
}
