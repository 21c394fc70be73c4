#include "gate/tunnel.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/defs.h"
#include "gate/client_hello.h"
#include "http/http_body.h"

#define STRETCH 65536

/* One direction. What was read waits at `at` until the other side takes it. */
struct way {
    int from;
    int to;
    char *data;
    size_t at;
    size_t size;
    struct http_body *body; /* what comes is one, and goes on only to its end */
    bool ended;             /* nothing more comes */
    bool shut;              /* and the other side was told so */
};

enum { OUTWARD, INWARD, WAYS };

struct tunnel {
    struct way ways[WAYS];
    bool must_look; /* whether the client begins with TLS is not known yet */
    bool hung[WAYS];
};

/* Written to before they are read, so that they take no memory until then. */
static char outward[STRETCH + BODY_FRAMES];
static char inward[STRETCH];
static char raw[STRETCH];

/* -- The name in TLS
 * ---------------------------------------------------------------------------------- */

static bool is_named_right(struct visit *v, const struct client_hello *hello)
{
    if (!hello->named && v->host.kind == HOST_ADDRESS)
        return true;
    if (!hello->named)
        visit_block(v, "the TLS of the client names no host (SNI)");
    else if (!net_host_is_same(&hello->host, &v->host))
        visit_block(v, "SNI says %.100s", hello->host.name);
    else
        return true;
    return false;
}

/* Nothing is passed on before all of it was read. */
static bool look_at_tls(struct visit *v)
{
    struct client_hello hello;
    int r;
    v->voice = VOICE_TLS;
    while ((r = client_hello_read((const uint8_t *)v->data, v->size, &hello)) == 0) {
        int got = visit_fill(v);
        if (got <= 0) {
            visit_refuse_read(v, got);
            return false;
        }
    }
    if (r < 0)
        visit_block(v, "what the client began with is no TLS that the gate can read");
    return r > 0 && is_named_right(v, &hello);
}

/* -- Both ways
 * ------------------------------------------------------------------------------------------ */

/* 1 = go on; or it is over. */
static int take_from(struct way *w)
{
    ssize_t n = recv(w->from, w->body ? raw : w->data, STRETCH, MSG_DONTWAIT);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 1 : -errno;
    w->ended = n == 0;
    w->at = 0;
    if (w->body)
        n = body_take(w->body, raw, (size_t)n, w->data, NULL);
    w->size = n < 0 ? 0 : (size_t)n;
    return n < 0 ? (int)n : 1;
}

static int give_out(struct way *w)
{
    if (w->at < w->size) {
        ssize_t n = send(w->to, w->data + w->at, w->size - w->at, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0)
            return errno == EAGAIN || errno == EINTR ? 1 : -errno;
        w->at += (size_t)n;
    }
    if (w->at == w->size && w->ended && !w->shut) {
        shutdown(w->to, SHUT_WR);
        w->shut = true;
    }
    return 1;
}

/* What a client begins with on any port may be TLS. */
static bool look_at_first(struct visit *v, struct tunnel *t)
{
    struct way *w = &t->ways[OUTWARD];
    char first = 0;
    if (v->size > 0)
        first = v->data[0];
    else if (recv(v->client, &first, 1, MSG_PEEK | MSG_DONTWAIT) < 0)
        return errno == EAGAIN || errno == EINTR;
    t->must_look = false;
    if (first != TLS_HANDSHAKE)
        return true;
    visit_allow_time(v);
    if (!look_at_tls(v))
        return false;
    w->data = v->data;
    w->size = v->size;
    return true;
}

/* A way is either full, or reads on. */
static void wait_for_both(const struct tunnel *t, struct pollfd polled[WAYS])
{
    for (int i = 0; i < WAYS; i++) {
        const struct way *in = &t->ways[i], *out = &t->ways[1 - i];
        short events = 0;
        if (in->at == in->size && !in->ended)
            events |= POLLIN;
        if (out->at < out->size)
            events |= POLLOUT;
        polled[i] = (struct pollfd){.fd = events || !t->hung[i] ? in->from : -1, .events = events};
    }
}

static int move(struct visit *v, struct tunnel *t, struct way *w, short events)
{
    int r = 1;
    if (w->at == w->size && !w->ended && (events & (POLLIN | POLLHUP | POLLERR))) {
        if (w == &t->ways[OUTWARD] && t->must_look) {
            if (!look_at_first(v, t))
                return 0;
        } else {
            r = take_from(w);
        }
    }
    r = r > 0 ? give_out(w) : r;
    if (r == 0 || r == 1 || r == -EPROTO || !w->body)
        return r;
    /* A server may answer without hearing a request to its end. */
    w->ended = w->shut = true;
    w->at = w->size = 0;
    return 1;
}

/* An answer to one request is all there is; else each side may end before the other. */
static bool is_over(const struct tunnel *t)
{
    return t->ways[INWARD].shut && (t->ways[OUTWARD].shut || t->ways[OUTWARD].body);
}

static void relay(struct visit *v, struct tunnel *t)
{
    struct pollfd polled[WAYS];
    int r = 1;
    while (r > 0 && !is_over(t)) {
        wait_for_both(t, polled);
        if (RETRY(poll(polled, WAYS, -1)) < 0)
            return;
        for (int i = 0; i < WAYS && r > 0; i++) {
            bool lost = i == OUTWARD && (polled[i].revents & POLLERR);
            r = lost ? 0 : move(v, t, &t->ways[i], polled[i].revents);
            t->hung[i] |= (polled[i].revents & (POLLHUP | POLLERR)) != 0;
        }
    }
}

static struct tunnel tunnel_of(struct visit *v)
{
    return (struct tunnel){
        .ways = {[OUTWARD] = {.from = v->client, .to = v->server, .data = outward},
                 [INWARD] = {.from = v->server, .to = v->client, .data = inward}},
    };
}

/* -- What is in it
 * -------------------------------------------------------------------------------------- */

void tunnel_request(struct visit *v, const struct http_head *head)
{
    static char head_of_ours[HTTP_HEAD_MAX + HOST_TEXT_SIZE + 256];
    struct tunnel t = tunnel_of(v);
    struct http_body body;
    ssize_t size =
        http_head_write(head, v->data, &v->host, v->port, head_of_ours, sizeof head_of_ours);
    if (size < 0)
        return visit_refuse_read(v, -E2BIG);
    if (visit_send(v, v->server, head_of_ours, (size_t)size) < 0)
        return visit_refuse(v, OUT_UNREACHED, "%s closed the connection", v->host.name);
    visit_use_up(v, head->size);
    body_init(&body, head->chunked, head->length, true);
    struct way *w = &t.ways[OUTWARD];
    w->body = &body;
    ssize_t n = body_take(&body, v->data, v->size, outward, NULL);
    w->size = n < 0 ? 0 : (size_t)n;
    if (n < 0)
        return;
    relay(v, &t);
    visit_say_goodbye(v);
}

/* The head of a request in a tunnel, as a server would get it. */
static void run_web(struct visit *v)
{
    struct http_head head;
    const char *why;
    char other[HOST_TEXT_SIZE];
    int r;
    v->voice = VOICE_HTTP;
    while ((r = http_head_read(v->data, v->size, &head, &why)) == 0) {
        int got = visit_fill(v);
        if (got <= 0)
            return visit_refuse_read(v, got);
    }
    if (r < 0)
        return visit_refuse(v, OUT_ODD, "%s", why);
    if (head.form != HTTP_ORIGIN)
        return visit_refuse(v, OUT_ODD, "in a tunnel a server is asked, for /path");
    net_host_write(&head.host_field, head.host_field_port, other);
    if (head.has_host_field &&
        !(net_host_is_same(&head.host_field, &v->host) && head.host_field_port == v->port))
        return visit_block(v, "Host says %.100s", other);
    tunnel_request(v, &head);
}

/* Whatever it is; if the port does not say what, its first byte does. */
static void run_any(struct visit *v, bool looked)
{
    struct tunnel t = tunnel_of(v);
    t.must_look = !looked;
    if (!looked && v->size > 0 && !look_at_first(v, &t))
        return;
    t.ways[OUTWARD].data = v->data;
    t.ways[OUTWARD].size = v->size;
    relay(v, &t);
}

void tunnel_run(struct visit *v)
{
    v->voice = VOICE_NONE;
    if (v->port != 80 && v->port != 443)
        return run_any(v, false);
    while (v->size == 0) {
        int got = visit_fill(v);
        if (got <= 0)
            return visit_refuse_read(v, got);
    }
    if (v->port == 80 && v->data[0] != TLS_HANDSHAKE)
        run_web(v);
    else if (look_at_tls(v))
        run_any(v, true);
}
