/* What the gate reads of strangers: addresses, requests of HTTP and SOCKS, bodies, ClientHellos;
 * each cut at every byte. */
#include "unit.h"

#include <arpa/inet.h>

/* The gate is a program of its own. */
#include "gate/address.c"
#include "gate/client_hello.c"
#include "gate/http_head.c"
#include "http/http_body.c"
#include "http/http_lines.c"
#undef VERSION
#include "gate/socks.c"

/* -- Addresses ------------------------------------------------------------------------------------
 */

static const struct {
    const char *text;
    const char *what; /* NULL: of the public internet */
} addresses[] = {
    {"8.8.8.8", NULL},
    {"9.255.255.255", NULL},
    {"10.0.0.0", "private"},
    {"10.255.255.255", "private"},
    {"11.0.0.0", NULL},
    {"0.0.0.0", "unspecified"},
    {"0.1.2.3", "unspecified"},
    {"100.63.255.255", NULL},
    {"100.64.0.0", "carrier-grade NAT"},
    {"100.127.255.255", "carrier-grade NAT"},
    {"100.128.0.0", NULL},
    {"127.0.0.1", "loopback"},
    {"127.255.255.254", "loopback"},
    {"169.254.169.254", "link-local"},
    {"172.15.255.255", NULL},
    {"172.16.0.1", "private"},
    {"172.31.255.255", "private"},
    {"172.32.0.0", NULL},
    {"192.0.0.8", "reserved"},
    {"192.0.2.1", "reserved"},
    {"192.168.1.1", "private"},
    {"192.169.0.0", NULL},
    {"198.18.0.1", "reserved"},
    {"198.19.255.255", "reserved"},
    {"198.51.100.1", "reserved"},
    {"203.0.113.9", "reserved"},
    {"223.255.255.255", NULL},
    {"224.0.0.1", "multicast"},
    {"239.255.255.255", "multicast"},
    {"240.0.0.1", "reserved"},
    {"255.255.255.255", "reserved"},
    {"2606:4700::1", NULL},
    {"2a00:1450:4001::200e", NULL},
    {"::", "unspecified"},
    {"::1", "loopback"},
    {"::127.0.0.1", "loopback"},
    {"::8.8.8.8", NULL},
    {"::ffff:10.0.0.1", "private"},
    {"::ffff:8.8.8.8", NULL},
    {"::ffff:0:169.254.169.254", "link-local"},
    {"64:ff9b::127.0.0.1", "loopback"},
    {"64:ff9b::8.8.8.8", NULL},
    {"64:ff9b:1::1", "private"},
    {"2002:a00:1::1", "private"},
    {"2002:808:808::1", NULL},
    {"2001::1", "reserved"},
    {"2001:db8::1", "reserved"},
    {"3fff::1", "reserved"},
    {"fc00::1", "private"},
    {"fdff::1", "private"},
    {"fe80::1", "link-local"},
    {"febf::1", "link-local"},
    {"fec0::1", "private"},
    {"ff02::1", "multicast"},
    {"100::1", "reserved"},
    {"4000::1", "reserved"},
    {"2606::5efe:10.0.0.1", "private"},
    {"2606::200:5efe:127.0.0.1", "loopback"},
    {"2606::5efe:8.8.8.8", NULL},
};

static void addresses_have_a_class(void **state)
{
    (void)state;
    struct net_host host;
    for (size_t i = 0; i < ARRAY_SIZE(addresses); i++) {
        const char *text = addresses[i].text;
        assert_true(net_host_parse(text, strlen(text), &host));
        const char *what = address_class(host.address);
        if (!what != !addresses[i].what || (what && strcmp(what, addresses[i].what) != 0))
            fail_msg("%s is %s", text, what ? what : "public");
    }
}

/* -- HTTP
 * ------------------------------------------------------------------------------------------ */

#define LOGIN "Proxy-Authorization: Basic MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY6eA==\r\n"

static const char whole[] =
    "POST http://Example.org:8080/a?b HTTP/1.1\r\nhost: example.org:8080\r\n"
    "X-Y:z\r\nContent-Length: 5\r\nConnection: close, te\r\nTE: x\r\n" LOGIN "\r\nhello";

static void a_head_is_read(void **state)
{
    (void)state;
    struct http_head head;
    const char *why;
    assert_int_equal(http_head_read(whole, sizeof whole - 1, &head, &why), 1);
    assert_int_equal(head.size, sizeof whole - 1 - strlen("hello"));
    assert_int_equal(head.form, HTTP_ABSOLUTE);
    assert_string_equal(head.host.name, "example.org");
    assert_int_equal(head.port, 8080);
    assert_int_equal(head.length, 5);
    assert_true(head.has_asker);
    assert_string_equal(nacre_id_format(&head.asker).s, "0123456789abcdef0123456789abcdef");
    char out[512];
    ssize_t size = http_head_write(&head, whole, &head.host, head.port, out, sizeof out - 1);
    assert_true(size > 0);
    out[size] = '\0';
    assert_string_equal(out, "POST /a?b HTTP/1.1\r\nHost: example.org:8080\r\nX-Y: z\r\n"
                             "Content-Length: 5\r\nConnection: close\r\n\r\n");
    for (size_t room = 0; room <= (size_t)size; room++)
        assert_int_equal(http_head_write(&head, whole, &head.host, head.port, out, room), -E2BIG);
}

static void a_head_is_cut(void **state)
{
    (void)state;
    struct http_head head;
    const char *why;
    for (size_t i = 0; i < sizeof whole - 1 - strlen("hello"); i++) {
        char *copy = malloc(i + 1);
        memcpy(copy, whole, i);
        assert_int_equal(http_head_read(copy, i, &head, &why), 0);
        free(copy);
    }
}

/* Each byte becomes each other one: what is read then is still a host that was written there. */
static void a_head_is_changed(void **state)
{
    (void)state;
    struct http_head head;
    const char *why;
    char copy[sizeof whole];
    for (size_t i = 0; i < sizeof whole - 1; i++)
        for (int c = 0; c < 256; c++) {
            memcpy(copy, whole, sizeof whole);
            copy[i] = (char)c;
            int r = http_head_read(copy, sizeof whole - 1, &head, &why);
            assert_true(r == 0 || r == 1 || (r == -EPROTO && why));
            assert_true(r != 1 || net_host_is_same(&head.host, &head.host_field) || i < 70);
        }
}

static void logins_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *login;
        bool known;
    } rows[] = {
        {"Basic MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY6eA==", true},
        {"basic  MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY6", true},
        {"Basic MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY", true},
        {"Basic MDEyMzQ1Njc4OUFCQ0RFRjAxMjM0NTY3ODlhYmNkZWY6eA==", false},
        {"Bearer MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY6eA==", false},
        {"Basic", false},
        {"Basic ====", false},
        {"Basic MDEy MzQ1", false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct http_head head;
        const char *why;
        char text[256];
        int n =
            snprintf(text, sizeof text, "CONNECT a:443 HTTP/1.1\r\nProxy-Authorization: %s\r\n\r\n",
                     rows[i].login);
        assert_int_equal(http_head_read(text, (size_t)n, &head, &why), 1);
        assert_int_equal(head.has_asker, rows[i].known);
    }
}

/* -- Bodies
 * ---------------------------------------------------------------------------------------- */

static struct http_body body_of(bool chunked, uint64_t length)
{
    struct http_body body;
    body_init(&body, chunked, length, true);
    return body;
}

/* What was between the frames. */
static size_t unframe(const char *data, size_t size, char *to)
{
    size_t done = 0;
    for (size_t at = 0; at < size;) {
        char *end;
        size_t n = strtoul(data + at, &end, 16);
        at = (size_t)(end - data) + 2;
        memcpy(to + done, data + at, n);
        done += n;
        at += n + 2;
    }
    return done;
}

static void chunks_in_pieces(void **state)
{
    (void)state;
    static const char in[] =
        "5\r\nhello\r\n00A\r\n0123456789\r\n0\r\nX: y\r\nZ:\r\n\r\nGET / HTTP/1.1";
    char out[1024], part[sizeof in + BODY_FRAMES], text[256];
    for (size_t step = 1; step < sizeof in; step++) {
        struct http_body body = body_of(true, 0);
        size_t done = 0;
        for (size_t at = 0; at < sizeof in - 1; at += step) {
            ssize_t n = body_take(&body, in + at, MIN(step, sizeof in - 1 - at), part, NULL);
            assert_true(n >= 0);
            memcpy(out + done, part, (size_t)n);
            done += (size_t)n;
        }
        assert_int_equal(body.state, BODY_OVER);
        assert_memory_equal(out + done - 5, "0\r\n\r\n", 5);
        assert_int_equal(unframe(out, done, text), 15);
        assert_memory_equal(text, "hello0123456789", 15);
    }
}

static void chunks_that_are_none(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "g",
        "\r\n",
        "-1\r\n",
        "5 \r\n",
        "5;a=b\r\n",
        "5\n",
        "1\r\nab",
        "1\r\na\rb",
        "1\r\na\r\n\r\n",
        "0\r\n\n",
        "0\r\nX: y\n\r\n",
        "0x1\r\n",
        "5\rx",
        "0\r\n\rx",
        "1111111111111111\r\n",
    };
    char out[256];
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct http_body body = body_of(true, 0);
        if (body_take(&body, rows[i], strlen(rows[i]), out, NULL) != -EPROTO)
            fail_msg("row %zu is taken for chunks", i);
    }
    struct http_body body = body_of(true, 0);
    assert_true(body_take(&body, "0\r\n", 3, out, NULL) >= 0);
    int r = 0;
    for (int i = 0; i < 9000 && r == 0; i++)
        r = (int)body_take(&body, "x", 1, out, NULL);
    assert_int_equal(r, -EPROTO);
}

static void bodies_with_a_length(void **state)
{
    (void)state;
    char out[256];
    struct http_body body = body_of(false, 5);
    assert_int_equal(body_take(&body, "hel", 3, out, NULL), 3);
    assert_int_equal(body_take(&body, "loGET", 5, out, NULL), 2);
    assert_memory_equal(out, "lo", 2);
    assert_int_equal(body.state, BODY_OVER);
    assert_int_equal(body_take(&body, "GET", 3, out, NULL), 0);
    body = body_of(false, 0);
    assert_int_equal(body_take(&body, "GET", 3, out, NULL), 0);
}

/* -- SOCKS
 * ----------------------------------------------------------------------------------------- */

static void socks_words(void **state)
{
    (void)state;
    static const uint8_t greeting[] = {5, 3, 0, 1, 2};
    static const uint8_t login[] = "\1\x20"
                                   "0123456789abcdef0123456789abcdef\1x";
    static const uint8_t request[] = "\5\1\0\3\x0b"
                                     "Example.org\1\xbb";
    enum socks_method method;
    struct socks_request asked;
    nacre_id id;
    bool known;
    for (size_t i = 0; i < sizeof greeting; i++)
        assert_int_equal(socks_greeting(greeting, i, &method), 0);
    assert_int_equal(socks_greeting(greeting, sizeof greeting, &method), sizeof greeting);
    assert_int_equal(method, SOCKS_LOGIN);
    assert_int_equal(socks_greeting(greeting, sizeof greeting - 1, &method), 0);
    assert_int_equal(socks_greeting((const uint8_t *)"\5\1\0", 3, &method), 3);
    assert_int_equal(method, SOCKS_OPEN);
    for (size_t i = 0; i < sizeof login - 1; i++)
        assert_int_equal(socks_login(login, i, &known, &id), 0);
    assert_int_equal(socks_login(login, sizeof login - 1, &known, &id), sizeof login - 1);
    assert_true(known);
    assert_int_equal(socks_login((const uint8_t *)"\1\0\0", 3, &known, &id), 3);
    assert_false(known);
    for (size_t i = 0; i < sizeof request - 1; i++)
        assert_int_equal(socks_request(request, i, &asked), 0);
    assert_int_equal(socks_request(request, sizeof request, &asked), sizeof request - 1);
    assert_int_equal(asked.reply, SOCKS_GRANTED);
    assert_string_equal(asked.host.name, "example.org");
    assert_int_equal(asked.port, 443);
    assert_int_equal(socks_request((const uint8_t *)"\5\1\0\1\x7f\0\0\1\0P", 10, &asked), 10);
    assert_string_equal(asked.host.name, "127.0.0.1");
    assert_int_equal(socks_request((const uint8_t *)"\5\1\1", 3, &asked), -EPROTO);
    assert_int_equal(socks_request((const uint8_t *)"\4", 1, &asked), -EPROTO);
}

/* -- TLS
 * ------------------------------------------------------------------------------------------- */

struct bytes {
    uint8_t data[4096];
    size_t size;
};

static void add(struct bytes *b, const void *data, size_t size)
{
    memcpy(b->data + b->size, data, size);
    b->size += size;
}

static void add_number(struct bytes *b, size_t value, int bytes)
{
    for (int i = bytes - 1; i >= 0; i--)
        b->data[b->size++] = (uint8_t)(value >> 8 * i);
}

static void add_vector(struct bytes *b, const struct bytes *inner, int length_bytes)
{
    add_number(b, inner->size, length_bytes);
    add(b, inner->data, inner->size);
}

static struct bytes server_name(const char *name, size_t size)
{
    struct bytes entry = {0}, list = {0}, extension = {0};
    add_number(&entry, 0, 1);
    add_number(&entry, size, 2);
    add(&entry, name, size);
    add_vector(&list, &entry, 2);
    add_number(&extension, 0, 2);
    add_vector(&extension, &list, 2);
    return extension;
}

/* The message, with these extensions; NULL = without a place for them. */
static struct bytes hello_of(const struct bytes *extensions)
{
    struct bytes body = {0}, message = {0};
    add_number(&body, 0x0303, 2);
    body.size += 32;
    add_number(&body, 0, 1);
    add_number(&body, 2, 2);
    add_number(&body, 0x1301, 2);
    add_number(&body, 1, 1);
    add_number(&body, 0, 1);
    if (extensions)
        add_vector(&body, extensions, 2);
    add_number(&message, 1, 1);
    add_vector(&message, &body, 3);
    return message;
}

static struct bytes in_records(const struct bytes *message, size_t step)
{
    struct bytes records = {0};
    for (size_t at = 0; at < message->size; at += step) {
        size_t n = MIN(step, message->size - at);
        add_number(&records, TLS_HANDSHAKE, 1);
        add_number(&records, 0x0301, 2);
        add_number(&records, n, 2);
        add(&records, message->data + at, n);
    }
    return records;
}

static int read_hello(const struct bytes *extensions, struct client_hello *ret)
{
    struct bytes message = hello_of(extensions), records = in_records(&message, 4096);
    return client_hello_read(records.data, records.size, ret);
}

static void a_hello_is_cut(void **state)
{
    (void)state;
    struct client_hello hello;
    struct bytes name = server_name("Example.org", 11), other = {0}, both = {0};
    add_number(&other, 0xfe0d, 2);
    add_number(&other, 3, 2);
    add(&other, "abc", 3);
    add(&both, other.data, other.size);
    add(&both, name.data, name.size);
    struct bytes message = hello_of(&both);
    for (size_t step = 1; step <= message.size; step++) {
        struct bytes records = in_records(&message, step);
        assert_int_equal(client_hello_read(records.data, records.size, &hello), 1);
        assert_true(hello.named);
        assert_string_equal(hello.host.name, "example.org");
        for (size_t i = 0; i < records.size; i++)
            assert_int_equal(client_hello_read(records.data, i, &hello), 0);
        records.data[records.size] = 0x99; /* what comes behind it is not looked at */
        assert_int_equal(client_hello_read(records.data, records.size + 1, &hello), 1);
    }
}

static void hellos_that_are_none(void **state)
{
    (void)state;
    struct client_hello hello;
    struct bytes name = server_name("a", 1), twice = {0}, none = {0};
    assert_int_equal(read_hello(NULL, &hello), 1);
    assert_false(hello.named);
    assert_int_equal(read_hello(&none, &hello), 1);
    assert_int_equal(read_hello(&name, &hello), 1);
    add(&twice, name.data, name.size);
    add(&twice, name.data, name.size);
    assert_int_equal(read_hello(&twice, &hello), -EPROTO);
    struct bytes odd = server_name("a\0b", 3);
    assert_int_equal(read_hello(&odd, &hello), -EPROTO);
    odd = server_name("", 0);
    assert_int_equal(read_hello(&odd, &hello), -EPROTO);
    odd = server_name("a:1", 3);
    assert_int_equal(read_hello(&odd, &hello), -EPROTO);
    /* Each length one too long or too short, and each other type of record or message. */
    struct bytes message = hello_of(&name), records = in_records(&message, 4096);
    static const size_t lengths[] = {0, 1, 5, 8, 43, 45, 48, 51, 55, 57, 60};
    for (size_t i = 0; i < ARRAY_SIZE(lengths); i++)
        for (int by = -1; by <= 1; by += 2) {
            struct bytes bad = records;
            bad.data[lengths[i]] = (uint8_t)(bad.data[lengths[i]] + by);
            assert_int_not_equal(client_hello_read(bad.data, bad.size, &hello), 1);
        }
    assert_int_equal(client_hello_read((const uint8_t *)"\x16\3\1\0\0", 5, &hello), -EPROTO);
    assert_int_equal(client_hello_read((const uint8_t *)"\x16\3\1\x40\1", 5, &hello), -EPROTO);
    assert_int_equal(client_hello_read((const uint8_t *)"\x16\3\1\0\4\1\1\0\0", 9, &hello),
                     -EPROTO);
    assert_int_equal(client_hello_read((const uint8_t *)"GET ", 4, &hello), -EPROTO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_have_a_class),
        cmocka_unit_test(a_head_is_read),
        cmocka_unit_test(a_head_is_cut),
        cmocka_unit_test(a_head_is_changed),
        cmocka_unit_test(logins_are_read),
        cmocka_unit_test(chunks_in_pieces),
        cmocka_unit_test(chunks_that_are_none),
        cmocka_unit_test(bodies_with_a_length),
        cmocka_unit_test(socks_words),
        cmocka_unit_test(a_hello_is_cut),
        cmocka_unit_test(hellos_that_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
