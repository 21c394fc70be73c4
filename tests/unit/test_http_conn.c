/* A connection of a client to a server of ours: requests cut at every byte, answers in their order,
 * tickets, half-closed clients, and what time ends. */
#include "unit.h"

#include <sys/epoll.h>
#include <sys/socket.h>

/* Only the programs have it. */
#include "http/http_body.c"
#include "http/http_conn.c"
#include "http/http_lines.c"
#include "http/http_request.c"

static const struct http_limits small = {100, 1000, 1000, 2000, 3000};

struct pair {
    struct http_conn c;
    int client;
};

static void open_pair(struct pair *p)
{
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    http_conn_init(&p->c, fds[0], &small, "");
    p->client = fds[1];
}

static void close_pair(struct pair *p)
{
    http_conn_done(&p->c);
    close(p->client);
}

static bool say_to(struct pair *p, const char *text, size_t size)
{
    assert_int_equal(send(p->client, text, size, MSG_NOSIGNAL), size);
    return http_conn_turn(&p->c, EPOLLIN);
}

static void assert_heard(struct pair *p, const char *begin, const char *end)
{
    char text[4096];
    ssize_t n = recv(p->client, text, sizeof text - 1, 0);
    assert_true(n > 0);
    text[n] = '\0';
    assert_int_equal(strncmp(text, begin, strlen(begin)), 0);
    assert_true((size_t)n >= strlen(end));
    assert_string_equal(text + n - strlen(end), end);
}

static const char asked[] = "POST /mcp/x?cwd=/a&b=c HTTP/1.1\r\nHost: h:1\r\nX: y\r\n"
                            "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";

static void requests_are_whole_at_their_last_byte(void **state)
{
    (void)state;
    size_t size = sizeof asked - 1;
    for (size_t cut = 1; cut < size; cut++) {
        struct pair p;
        open_pair(&p);
        assert_false(say_to(&p, asked, cut));
        assert_true(say_to(&p, asked + cut, size - cut));
        const struct http_request *q = &p.c.request;
        assert_int_equal(q->method, HTTP_POST);
        assert_true(is_spelled(q->path, "/mcp/x") && is_spelled(q->query, "cwd=/a&b=c"));
        assert_true(is_spelled(http_request_parameter(q, "cwd"), "/a"));
        assert_true(is_spelled(http_request_parameter(q, "b"), "c"));
        assert_null(http_request_parameter(q, "a").at);
        assert_true(is_spelled(http_request_field(q, "x"), "y"));
        assert_int_equal(p.c.body.len, 5);
        assert_memory_equal(p.c.body.data, "abcde", 5);
        http_answer(&p.c, 200, NULL, "yes", 3);
        assert_heard(&p, "HTTP/1.1 200 OK\r\n", "Content-Length: 3\r\n\r\nyes");
        assert_int_equal(p.c.state, HTTP_AT_HEAD);
        close_pair(&p);
    }
}

static void one_is_answered_after_the_other(void **state)
{
    (void)state;
    struct pair p;
    static const char two[] =
        "GET /a HTTP/1.1\r\nHost: h\r\n\r\nHEAD /b HTTP/1.1\r\nHost: h\r\n\r\n";
    open_pair(&p);
    assert_true(say_to(&p, two, sizeof two - 1));
    assert_true(is_spelled(p.c.request.path, "/a"));
    assert_false(http_conn_next(&p.c));
    http_answer(&p.c, 200, NULL, "1", 1);
    assert_true(http_conn_next(&p.c));
    assert_true(is_spelled(p.c.request.path, "/b"));
    http_answer(&p.c, 200, NULL, "two", 3);
    assert_false(http_conn_next(&p.c));
    assert_heard(&p, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1HTTP",
                 "Content-Length: 3\r\n\r\n");
    close_pair(&p);
}

static void tickets_tell_what_has_left(void **state)
{
    (void)state;
    struct pair p;
    uint64_t ticket = 0;
    int little = 4096;
    char *much = calloc(1, 900);
    struct http_limits large = small;
    large.queue_max = 1 << 22;
    open_pair(&p);
    p.c.limits = &large;
    setsockopt(p.c.fd, SOL_SOCKET, SO_SNDBUF, &little, sizeof little);
    assert_true(say_to(&p, "GET / HTTP/1.1\r\nHost: h\r\n\r\n", 27));
    http_stream_begin(&p.c, 200, NULL);
    while (http_queued(&p.c) == 0)
        http_stream_write(&p.c, much, 900, &ticket);
    assert_false(http_has_left(&p.c, ticket));
    assert_true(http_conn_events(&p.c) & EPOLLOUT);
    char sink[4096];
    while (!http_has_left(&p.c, ticket)) {
        assert_true(recv(p.client, sink, sizeof sink, 0) > 0);
        http_conn_turn(&p.c, EPOLLOUT);
    }
    p.c.limits = &small;
    while (p.c.state == HTTP_STREAMS)
        http_stream_write(&p.c, much, 900, NULL);
    assert_int_equal(p.c.state, HTTP_CLOSED); /* it left too much unread */
    free(much);
    close_pair(&p);
}

static void who_stops_sending_is_answered(void **state)
{
    (void)state;
    struct pair p;
    open_pair(&p);
    assert_int_equal(send(p.client, "GET / HTTP/1.0\r\nHost: h\r\n\r\n", 27, 0), 27);
    shutdown(p.client, SHUT_WR);
    assert_true(http_conn_turn(&p.c, EPOLLIN | EPOLLRDHUP));
    assert_true(p.c.half_closed);
    assert_false(http_conn_events(&p.c) & (EPOLLIN | EPOLLRDHUP));
    http_answer(&p.c, 200, NULL, "late", 4);
    assert_heard(&p, "HTTP/1.1 200 OK\r\n", "Connection: close\r\n\r\nlate");
    assert_int_equal(p.c.state, HTTP_LINGERS);
    http_conn_turn(&p.c, EPOLLHUP);
    assert_int_equal(p.c.state, HTTP_CLOSED);
    close_pair(&p);
}

static void time_ends_what_is_slow(void **state)
{
    (void)state;
    struct pair p;
    int64_t now = clock_mono_ns();
    open_pair(&p);
    assert_false(say_to(&p, "GET /", 5));
    http_conn_tick(&p.c, now);
    assert_int_equal(p.c.state, HTTP_AT_HEAD);
    http_conn_tick(&p.c, now + 3 * NS_PER_S);
    assert_heard(&p, "HTTP/1.1 408 ", "did not come in time.\n");
    assert_int_equal(p.c.state, HTTP_LINGERS);
    http_conn_tick(&p.c, now + 9 * NS_PER_S);
    assert_int_equal(p.c.state, HTTP_CLOSED);
    close_pair(&p);
    open_pair(&p);
    http_conn_tick(&p.c, now + 9 * NS_PER_S);
    assert_int_equal(p.c.state, HTTP_CLOSED); /* it never said anything, and is told nothing */
    close_pair(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_whole_at_their_last_byte),
        cmocka_unit_test(one_is_answered_after_the_other),
        cmocka_unit_test(tickets_tell_what_has_left),
        cmocka_unit_test(who_stops_sending_is_answered),
        cmocka_unit_test(time_ends_what_is_slow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
