/* Messages: lines out of a stream, what they say, and the queue in front of who does not read. */
#include "unit.h"

#include <poll.h>
#include <sys/socket.h>

#include "rpc/message.h"
#include "rpc/rpc_lines.h"

/* -- The reader ------------------------------------------------------------------------------- */

struct stream {
    int in, out;
    struct rpc_reader reader;
};

static void open_stream(struct stream *s, size_t max)
{
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    s->in = fds[1];
    s->out = fds[0];
    rpc_reader_init(&s->reader, s->out, max);
}

static void close_stream(struct stream *s)
{
    rpc_reader_done(&s->reader);
    close(s->in);
    close(s->out);
}

static void feed(struct stream *s, const char *text)
{
    assert_int_equal(write(s->in, text, strlen(text)), strlen(text));
    assert_int_equal(rpc_reader_fill(&s->reader), strlen(text));
}

static void expect(struct stream *s, const char *text)
{
    const char *line;
    size_t size;
    assert_int_equal(rpc_reader_next(&s->reader, &line, &size), 1);
    assert_int_equal(size, strlen(text));
    assert_memory_equal(line, text, size);
}

static void expect_result(struct stream *s, int result)
{
    const char *line;
    size_t size;
    assert_int_equal(rpc_reader_next(&s->reader, &line, &size), result);
}

static void lines_come_whole(void **state)
{
    (void)state;
    struct stream s;
    open_stream(&s, 100);
    feed(&s, "one\r\n\n\ntw");
    expect(&s, "one");
    expect_result(&s, 0);
    feed(&s, "o\nthree\nfo");
    expect(&s, "two");
    expect(&s, "three");
    expect_result(&s, 0);
    feed(&s, "ur\n");
    expect(&s, "four");
    expect_result(&s, 0);
    close(s.in);
    assert_int_equal(rpc_reader_fill(&s.reader), 0);
    s.in = open("/dev/null", O_WRONLY | O_CLOEXEC);
    close_stream(&s);
}

static void limit_is_exact(void **state)
{
    (void)state;
    struct stream s;
    open_stream(&s, 5);
    feed(&s, "12345\n123456\n12\n");
    expect(&s, "12345");
    expect_result(&s, -E2BIG);
    expect(&s, "12");
    expect_result(&s, 0);
    close_stream(&s);
}

static void long_lines_cost_nothing(void **state)
{
    (void)state;
    struct stream s;
    static char block[60001];
    memset(block, 'x', sizeof block - 1);
    open_stream(&s, 1000);
    for (int i = 0; i < 200; i++) {
        feed(&s, block);
        expect_result(&s, 0);
        assert_true(s.reader.in.cap <= 200000);
    }
    feed(&s, "end\nnext\n");
    expect_result(&s, -E2BIG);
    expect(&s, "next");
    expect_result(&s, 0);
    close_stream(&s);
}

/* -- Reading ---------------------------------------------------------------------------------- */

static int read_text(const char *text, struct rpc_message *m, struct rpc_fault *fault,
                     json_t **ret_value)
{
    *ret_value = rpc_decode(text, strlen(text), fault);
    return *ret_value ? rpc_read(*ret_value, m, fault) : fault->code;
}

static void faults_have_their_codes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int code;
    } cases[] = {
        {"{", RPC_PARSE_ERROR},
        {"nonsense", RPC_PARSE_ERROR},
        {"{\"a\":\"\xff\"}", RPC_PARSE_ERROR},
        {"{} {}", RPC_PARSE_ERROR},
        {"{\"a\":1,\"a\":2}", RPC_INVALID_REQUEST},
        {"1", RPC_INVALID_REQUEST},
        {"[]", RPC_INVALID_REQUEST},
        {"{}", RPC_INVALID_REQUEST},
        {"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"x\"}", RPC_INVALID_REQUEST},
        {"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"x\"}", RPC_INVALID_REQUEST},
        {"{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"x\"}", RPC_INVALID_REQUEST},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":2}", RPC_INVALID_REQUEST},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\\u0000b\"}", RPC_INVALID_REQUEST},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":3}", RPC_INVALID_REQUEST},
        {"{\"jsonrpc\":\"2.0\",\"id\":1}", RPC_INVALID_REQUEST},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{},\"error\":{}}", RPC_INVALID_REQUEST},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rpc_message m;
        struct rpc_fault fault = {0};
        json_t *value;
        assert_true(read_text(cases[i].text, &m, &fault, &value) < 0);
        assert_int_equal(fault.code, cases[i].code);
        assert_true(strlen(fault.text) > 10);
        json_decref(value);
    }
}

static void messages_are_told_apart(void **state)
{
    (void)state;
    struct rpc_message m;
    struct rpc_fault fault;
    json_t *value;
    assert_int_equal(read_text("{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"x\",\"params\":{}}",
                               &m, &fault, &value),
                     0);
    assert_int_equal(m.kind, RPC_REQUEST);
    assert_string_equal(m.method, "x");
    assert_string_equal(json_string_value(m.id), "a");
    assert_true(json_is_object(m.params));
    json_decref(value);
    assert_int_equal(read_text("{\"jsonrpc\":\"2.0\",\"method\":\"x\"}", &m, &fault, &value), 0);
    assert_int_equal(m.kind, RPC_NOTIFICATION);
    json_decref(value);
    assert_int_equal(read_text("{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":1}", &m, &fault, &value),
                     0);
    assert_int_equal(m.kind, RPC_RESPONSE);
    assert_int_equal(json_integer_value(m.result), 1);
    json_decref(value);
}

/* A fault knows whom to answer, if it was said. */
static void faults_keep_the_id(void **state)
{
    (void)state;
    struct rpc_message m;
    struct rpc_fault fault;
    json_t *value;
    assert_true(read_text("{\"id\":7,\"method\":\"x\"}", &m, &fault, &value) < 0);
    assert_int_equal(json_integer_value(m.id), 7);
    json_decref(value);
}

static void depth_has_a_limit(void **state)
{
    (void)state;
    struct rpc_fault fault;
    size_t size = 100000;
    char *text = malloc(size);
    memset(text, '[', size);
    assert_null(rpc_decode(text, size, &fault));
    assert_int_equal(fault.code, RPC_PARSE_ERROR);
    free(text);
}

/* -- Writing ---------------------------------------------------------------------------------- */

static void check_string(const char *text, size_t size)
{
    struct buf b = BUF_UP_TO(1 << 20);
    assert_int_equal(rpc_append_string(&b, text, size), 0);
    json_t *value = json_loadb(b.data, b.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    assert_non_null(value);
    assert_int_equal(json_string_length(value), size);
    assert_memory_equal(json_string_value(value), text, size);
    json_decref(value);
    buf_done(&b);
}

/* Every character at every place of a word of eight bytes, read back by a reader of others. */
static void strings_are_read_back(void **state)
{
    (void)state;
    for (int c = 0; c < 128; c++)
        for (size_t length = 0; length < 20; length++)
            for (size_t at = 0; at < length; at++) {
                char text[20];
                memset(text, 'a', sizeof text);
                text[at] = (char)c;
                check_string(text, length);
            }
    static const char wide[] = "gr\xc3\xbc\xc3\x9f \xe2\x80\x94 \xf0\x9f\x90\x9a \"\\\x01\n";
    check_string(wide, sizeof wide - 1);
    check_string("", 0);
}

/* Longer than what is escaped at once, and anything next to anything. */
static void long_strings_are_read_back(void **state)
{
    (void)state;
    struct unit_random random = {17};
    char text[5000];
    for (int round = 0; round < 200; round++) {
        uint64_t special = 1 + unit_below(&random, 40);
        size_t size = unit_below(&random, sizeof text + 1);
        for (size_t i = 0; i < size; i++)
            text[i] = unit_below(&random, special) ? (char)(' ' + unit_below(&random, 95))
                                                   : (char)unit_below(&random, 32);
        check_string(text, size);
    }
    memset(text, 1, sizeof text);
    check_string(text, sizeof text);
}

static void errors_are_messages(void **state)
{
    (void)state;
    struct buf b = BUF_UP_TO(1000);
    json_t *id = json_integer(9007199254740993), *data = json_string("d");
    assert_int_equal(rpc_append_error(&b, id, -32601, "no \"x\"", data), 0);
    assert_string_equal(b.data, "{\"jsonrpc\":\"2.0\",\"id\":9007199254740993,\"error\":{\"code\":"
                                "-32601,\"message\":\"no \\\"x\\\"\",\"data\":\"d\"}}");
    buf_done(&b);
    assert_int_equal(rpc_append_error(&b, NULL, -32700, "x", NULL), 0);
    assert_string_equal(b.data,
                        "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":"
                        "\"x\"}}");
    buf_done(&b);
    assert_int_equal(rpc_append_error_without_id(&b, -32700, "x\n"), 0);
    assert_string_equal(b.data,
                        "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32700,\"message\":\"x\\\\n\"}}");
    buf_done(&b);
    json_decref(id);
    json_decref(data);
}

/* -- The writer ------------------------------------------------------------------------------- */

static int send_bytes(struct rpc_writer *w, size_t size, uint64_t *ret_ticket)
{
    struct buf b = BUF_UP_TO(1 << 22);
    for (size_t i = 1; i < size; i++)
        assert_int_equal(buf_append(&b, "m", 1), 0);
    int r = rpc_writer_send(w, &b, ret_ticket);
    buf_done(&b);
    return r;
}

/* What is in a pipe or socket, as far as it is there now. */
static size_t drain(int fd)
{
    static char block[65536];
    size_t total = 0;
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    while (poll(&ready, 1, 0) > 0 && (ready.revents & POLLIN)) {
        ssize_t n = read(fd, block, sizeof block);
        if (n <= 0)
            break;
        total += (size_t)n;
    }
    return total;
}

static void check_queue(int in, int out)
{
    struct rpc_writer w;
    uint64_t first, second, third;
    rpc_writer_init(&w, in, 3 << 20);
    assert_int_equal(send_bytes(&w, 1 << 20, &first), 0);
    assert_false(rpc_writer_has_left(&w, first));
    assert_int_equal(fcntl(in, F_GETFL) & O_NONBLOCK, 0);
    assert_int_equal(send_bytes(&w, 1 << 20, &second), 0);
    assert_int_equal(send_bytes(&w, 1000, &third), 0);
    assert_int_equal(send_bytes(&w, 2 << 20, NULL), -ENOBUFS);
    assert_false(rpc_writer_drop(&w, first));
    assert_true(rpc_writer_drop(&w, second));
    size_t total = 0;
    while (w.queued > 0) {
        total += drain(out);
        assert_int_equal(rpc_writer_flush(&w), 0);
    }
    total += drain(out);
    assert_int_equal(total, (1 << 20) + 1000);
    assert_true(rpc_writer_has_left(&w, first));
    assert_true(rpc_writer_has_left(&w, third));
    assert_int_equal(send_bytes(&w, 10, &first), 0);
    assert_true(rpc_writer_has_left(&w, first));
    rpc_writer_done(&w);
}

/* Nobody reads, and nothing blocks. The flags of the descriptor are those that it had. */
static void queue_in_front_of_a_pipe(void **state)
{
    (void)state;
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    check_queue(fds[1], fds[0]);
    close(fds[0]);
    close(fds[1]);
}

static void queue_in_front_of_a_socket(void **state)
{
    (void)state;
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    check_queue(fds[1], fds[0]);
    close(fds[0]);
    close(fds[1]);
}

static void nobody_reads_any_more(void **state)
{
    (void)state;
    int fds[2];
    struct rpc_writer w;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    rpc_writer_init(&w, fds[1], 1000);
    close(fds[0]);
    assert_int_equal(send_bytes(&w, 10, NULL), -EPIPE);
    assert_int_equal(send_bytes(&w, 10, NULL), -EPIPE);
    rpc_writer_done(&w);
    close(fds[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_come_whole),           cmocka_unit_test(limit_is_exact),
        cmocka_unit_test(long_lines_cost_nothing),    cmocka_unit_test(faults_have_their_codes),
        cmocka_unit_test(messages_are_told_apart),    cmocka_unit_test(faults_keep_the_id),
        cmocka_unit_test(depth_has_a_limit),          cmocka_unit_test(strings_are_read_back),
        cmocka_unit_test(long_strings_are_read_back), cmocka_unit_test(errors_are_messages),
        cmocka_unit_test(queue_in_front_of_a_pipe),   cmocka_unit_test(queue_in_front_of_a_socket),
        cmocka_unit_test(nobody_reads_any_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
