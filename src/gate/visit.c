#include "gate/visit.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/ascii.h"
#include "base/clock.h"
#include "gate/reach.h"
#include "gate/socks.h"
#include "gate/tunnel.h"

#define CROWDED_MS 2000
#define WHY_SIZE   128

/* -- Bytes ----------------------------------------------------------------------------------------
 */

void visit_allow_time(struct visit *v)
{
    v->until_ns = clock_deadline(v->crowded ? MIN(CROWDED_MS, v->patience_ms) : v->patience_ms);
}

int visit_fill(struct visit *v)
{
    struct pollfd polled = {.fd = v->client, .events = POLLIN};
    if (v->size == sizeof v->data)
        return -E2BIG;
    int r = RETRY(poll(&polled, 1, clock_left_ms(v->until_ns)));
    if (r <= 0)
        return r < 0 ? -errno : -ETIMEDOUT;
    ssize_t n = recv(v->client, v->data + v->size, sizeof v->data - v->size, MSG_DONTWAIT);
    if (n < 0)
        return -errno;
    v->size += (size_t)n;
    return (int)n;
}

void visit_use_up(struct visit *v, size_t size)
{
    v->size -= size;
    memmove(v->data, v->data + size, v->size);
}

int visit_send(struct visit *v, int fd, const void *data, size_t size)
{
    struct pollfd polled = {.fd = fd, .events = POLLOUT};
    const char *at = data;
    while (size > 0) {
        ssize_t n = send(fd, at, size, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return -errno;
        at += n > 0 ? n : 0;
        size -= n > 0 ? (size_t)n : 0;
        if (n < 0 && RETRY(poll(&polled, 1, clock_left_ms(v->until_ns))) == 0)
            return -ETIMEDOUT;
    }
    return 0;
}

/* -- To the host
 * ------------------------------------------------------------------------------------ */

static bool is_allowed(struct visit *v)
{
    static const char spelled[] =
        "an address is allowed only in its usual form, by a rule that is it";
    switch (hosts_judge(v->rules, &v->host, v->port)) {
    case HOSTS_ALLOWED:
        return true;
    case HOSTS_OTHER_PORT:
        visit_block(v, "the rules name this host with other ports; add a rule with port %u",
                    (unsigned)v->port);
        return false;
    case HOSTS_UNNAMED:
        break;
    }
    visit_block(v, "%s",
                v->host.kind == HOST_STRANGE ? spelled
                                             : "no rule of sandbox_network names this host");
    return false;
}

static void refuse_unreached(struct visit *v, int error, const char *why)
{
    const char *name = v->host.name;
    switch (-error) {
    case EPERM:
        visit_block(v, "%s", why);
        break;
    case ENOENT:
        visit_refuse(v, OUT_UNKNOWN, "the name %s has no address; check its spelling", name);
        break;
    case ETIMEDOUT:
        visit_refuse(v, OUT_SLOW, "%s did not answer in time; try again later", name);
        break;
    case ECONNREFUSED:
        visit_refuse(v, OUT_REFUSED, "%s refuses connections on port %u; nothing listens there",
                     name, (unsigned)v->port);
        break;
    case ECANCELED:
        break;
    default:
        visit_refuse(v, OUT_UNREACHED, "%s cannot be reached from this machine: %s", name,
                     strerrordesc_np(-error) ? strerrordesc_np(-error) : "unknown error");
    }
}

/* Where idle time is not limited, an end that is gone without a word is found out by asking. */
static void notice_end(int fd)
{
    int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

static bool reach_allowed(struct visit *v)
{
    char why[WHY_SIZE];
    if (!is_allowed(v))
        return false;
    visit_allow_time(v);
    int r = reach_host(&v->host, v->port, v->client, v->until_ns, why, sizeof why);
    if (r < 0) {
        refuse_unreached(v, r, why);
        return false;
    }
    v->server = r;
    notice_end(v->client);
    notice_end(v->server);
    visit_allow_time(v);
    return true;
}

/* A client for whom there is no place has been heard to the end of its request, to be answered in
 * its own words. */
static bool has_room(struct visit *v)
{
    if (v->crowded)
        visit_refuse(v, OUT_CROWDED, "the gate has as many connections as it can; try again");
    return !v->crowded;
}

/* -- HTTP -----------------------------------------------------------------------------------------
 */

static void connect_for_http(struct visit *v)
{
    static const char yes[] = "HTTP/1.1 200 Connection established\r\n\r\n";
    if (reach_allowed(v) && visit_send(v, v->client, yes, sizeof yes - 1) == 0)
        tunnel_run(v);
}

static void forward(struct visit *v, const struct http_head *head)
{
    char other[HOST_TEXT_SIZE];
    bool same = !head->has_host_field ||
                (net_host_is_same(&head->host_field, &v->host) && head->host_field_port == v->port);
    net_host_write(&head->host_field, head->host_field_port, other);
    if (!same)
        visit_block(v, "Host says %.100s", other);
    else if (reach_allowed(v))
        tunnel_request(v, head);
}

static void hear_http(struct visit *v)
{
    struct http_head head;
    const char *why;
    int r;
    v->voice = VOICE_HTTP;
    while ((r = http_head_read(v->data, v->size, &head, &why)) == 0) {
        int got = visit_fill(v);
        if (got <= 0)
            return visit_refuse_read(v, got);
    }
    if (r < 0)
        return visit_refuse(v, OUT_ODD, "%s", why);
    v->host = head.host;
    v->port = head.port;
    v->has_asker = head.has_asker;
    v->asker = head.asker;
    if (!has_room(v))
        return;
    if (head.form == HTTP_ORIGIN)
        return visit_refuse(v, OUT_ODD, "this is a proxy: ask for http://host/path, or by CONNECT");
    if (head.form == HTTP_ABSOLUTE)
        return forward(v, &head);
    visit_use_up(v, head.size);
    connect_for_http(v);
}

/* -- SOCKS ----------------------------------------------------------------------------------------
 */

enum socks_word {
    WORD_GREETING,
    WORD_LOGIN,
    WORD_REQUEST,
};

struct socks_words {
    enum socks_method method;
    struct socks_request request;
};

/* Hears one of the three words: false if it does not come, or is none. */
static bool hear_socks_word(struct visit *v, enum socks_word word, struct socks_words *ret)
{
    for (;;) {
        const uint8_t *data = (const uint8_t *)v->data;
        ssize_t n = word == WORD_GREETING ? socks_greeting(data, v->size, &ret->method)
                    : word == WORD_LOGIN  ? socks_login(data, v->size, &v->has_asker, &v->asker)
                                          : socks_request(data, v->size, &ret->request);
        if (n > 0)
            visit_use_up(v, (size_t)n);
        if (n < 0)
            visit_refuse(v, OUT_ODD, "this is no SOCKS5");
        if (n != 0)
            return n > 0;
        int got = visit_fill(v);
        if (got <= 0) {
            visit_refuse_read(v, got);
            return false;
        }
    }
}

static bool shake_hands(struct visit *v, struct socks_words *ret)
{
    const uint8_t in[] = {1, 0};
    v->voice = VOICE_SOCKS_GREETING;
    if (!hear_socks_word(v, WORD_GREETING, ret))
        return false;
    if (ret->method == SOCKS_NO_METHOD) {
        visit_refuse(v, OUT_ODD, "the client knows no way to say who it is that the gate knows");
        return false;
    }
    const uint8_t method[] = {5, (uint8_t)ret->method};
    v->voice = VOICE_SOCKS;
    if (visit_send(v, v->client, method, sizeof method) < 0)
        return false;
    return ret->method == SOCKS_OPEN ||
           (hear_socks_word(v, WORD_LOGIN, ret) && visit_send(v, v->client, in, sizeof in) == 0);
}

static void hear_socks(struct visit *v)
{
    static const uint8_t granted[] = {5, SOCKS_GRANTED, 0, 1, 0, 0, 0, 0, 0, 0};
    struct socks_words words;
    if (!shake_hands(v, &words) || !hear_socks_word(v, WORD_REQUEST, &words))
        return;
    const uint8_t reply[] = {5, (uint8_t)words.request.reply, 0, 1, 0, 0, 0, 0, 0, 0};
    v->host = words.request.host;
    v->port = words.request.port;
    if (words.request.reply != SOCKS_GRANTED) {
        visit_send(v, v->client, reply, sizeof reply);
        v->voice = VOICE_NONE;
        return visit_refuse(v, OUT_ODD, "this cannot be asked for");
    }
    if (has_room(v) && reach_allowed(v) && visit_send(v, v->client, granted, sizeof granted) == 0)
        tunnel_run(v);
}

/* -- Which of them
 * ---------------------------------------------------------------------------------- */

void visit_run(struct visit *v)
{
    visit_allow_time(v);
    v->voice = VOICE_HTTP;
    v->server = -EBADF;
    int got = visit_fill(v);
    if (got <= 0)
        return visit_refuse_read(v, got);
    if (v->data[0] == 5)
        hear_socks(v);
    else if (ascii_is_alnum(v->data[0]))
        hear_http(v);
    else if (v->data[0] == 4) {
        v->voice = VOICE_SOCKS_4;
        visit_refuse(v, OUT_ODD, "the gate speaks SOCKS5");
    } else {
        visit_refuse(v, OUT_ODD, "the gate speaks HTTP and SOCKS5");
    }
}
