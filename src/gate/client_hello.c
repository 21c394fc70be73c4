#include "gate/client_hello.h"

#include <string.h>

#include "base/defs.h"

#define CLIENT_HELLO    1
#define EXT_SERVER_NAME 0
#define NAME_HOST       0
#define RECORD_HEAD     5
#define RECORD_MAX      16384
#define MESSAGE_HEAD    4

/* What is left of a part; once it was too short it stays `bad`. */
struct tls_part {
    const uint8_t *at;
    size_t left;
    bool bad;
};

static size_t take_number(struct tls_part *p, size_t bytes)
{
    size_t value = 0;
    if (p->bad || p->left < bytes) {
        *p = (struct tls_part){.bad = true};
        return 0;
    }
    for (size_t i = 0; i < bytes; i++)
        value = value << 8 | p->at[i];
    p->at += bytes;
    p->left -= bytes;
    return value;
}

static struct tls_part take_part(struct tls_part *p, size_t size)
{
    struct tls_part inner = {p->at, size, false};
    if (p->bad || p->left < size) {
        p->bad = true;
        return (struct tls_part){.bad = true};
    }
    p->at += size;
    p->left -= size;
    return inner;
}

/* A part with its length before it. */
static struct tls_part take_vector(struct tls_part *p, size_t length_bytes)
{
    return take_part(p, take_number(p, length_bytes));
}

/* -- Records ------------------------------------------------------------------------------------
 */

/* Puts the handshake together from its records: 1 when it is whole, 0, or -EPROTO. */
static int join(const uint8_t *data, size_t size, uint8_t *message, size_t *ret_size)
{
    size_t have = 0, want = MESSAGE_HEAD;
    for (size_t at = 0; at < size;) {
        const uint8_t *head = data + at;
        size_t left = size - at;
        if (head[0] != TLS_HANDSHAKE || (left > 1 && head[1] != 3) || (left > 2 && head[2] > 4))
            return -EPROTO;
        if (left < RECORD_HEAD)
            return 0;
        size_t length = (size_t)head[3] << 8 | head[4];
        if (length == 0 || length > RECORD_MAX)
            return -EPROTO;
        size_t here = MIN(length, left - RECORD_HEAD), n = MIN(here, TLS_HELLO_SIZE - have);
        memcpy(message + have, head + RECORD_HEAD, n);
        have += n;
        if (have > 0 && message[0] != CLIENT_HELLO)
            return -EPROTO;
        if (have >= MESSAGE_HEAD)
            want = MESSAGE_HEAD + ((size_t)message[1] << 16 | (size_t)message[2] << 8 | message[3]);
        if (want > TLS_HELLO_SIZE)
            return -EPROTO;
        if (have >= want && want > MESSAGE_HEAD) {
            *ret_size = want;
            return 1;
        }
        if (have >= MESSAGE_HEAD && want == MESSAGE_HEAD)
            return -EPROTO;
        at += RECORD_HEAD + here;
    }
    return 0;
}

/* -- The message ---------------------------------------------------------------------------------
 */

/* A list of one name of one kind. */
static int read_name(struct tls_part list, struct client_hello *ret)
{
    struct tls_part names = take_vector(&list, 2);
    size_t kind = take_number(&names, 1);
    struct tls_part name = take_vector(&names, 2);
    if (list.bad || names.bad || list.left > 0 || names.left > 0 || kind != NAME_HOST || ret->named)
        return -EPROTO;
    ret->named = true;
    bool odd = memchr(name.at, ':', name.left) || memchr(name.at, '[', name.left);
    return !odd && net_host_parse((const char *)name.at, name.left, &ret->host) ? 0 : -EPROTO;
}

static int read_extensions(struct tls_part all, struct client_hello *ret)
{
    int r = 0;
    while (r == 0 && all.left > 0 && !all.bad) {
        size_t type = take_number(&all, 2);
        struct tls_part content = take_vector(&all, 2);
        if (!all.bad && type == EXT_SERVER_NAME)
            r = read_name(content, ret);
    }
    return all.bad ? -EPROTO : r;
}

static int read_message(struct tls_part p, struct client_hello *ret)
{
    size_t version = take_number(&p, 2);
    take_part(&p, 32);
    struct tls_part session = take_vector(&p, 1), ciphers = take_vector(&p, 2);
    struct tls_part compression = take_vector(&p, 1);
    if (p.bad || version >> 8 != 3 || session.left > 32 || ciphers.left < 2 ||
        ciphers.left % 2 != 0 || compression.left == 0)
        return -EPROTO;
    if (p.left == 0)
        return 0;
    struct tls_part extensions = take_vector(&p, 2);
    return p.bad || p.left > 0 ? -EPROTO : read_extensions(extensions, ret);
}

int client_hello_read(const uint8_t *data, size_t size, struct client_hello *ret)
{
    static uint8_t message[TLS_HELLO_SIZE];
    size_t length = 0;
    *ret = (struct client_hello){0};
    int r = join(data, size, message, &length);
    if (r <= 0)
        return r;
    r = read_message((struct tls_part){message + MESSAGE_HEAD, length - MESSAGE_HEAD, false}, ret);
    return r < 0 ? r : 1;
}
