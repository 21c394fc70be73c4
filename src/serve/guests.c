/* Connections: what they ask for, and what epoll is to tell of them. */
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "serve/house.h"
#include "sys/fd.h"

/* What every answer says to a browser, should one ever show it. */
#define GUARDS                                      \
    "X-Content-Type-Options: nosniff\r\n"           \
    "Referrer-Policy: no-referrer\r\n"              \
    "Cross-Origin-Resource-Policy: same-origin\r\n" \
    "Cross-Origin-Opener-Policy: same-origin\r\n"

static const char usual_fields[] = GUARDS "Cache-Control: no-store\r\n";
/* A file of the page may be kept, if it is asked each time whether it is still the same. */
static const char file_fields[] = GUARDS "Cache-Control: no-cache\r\n";

void guest_come(struct house *h, int fd)
{
    struct guest *g = h->guest_count < GUESTS_MAX && h->stranger_count < STRANGERS_MAX
                          ? calloc(1, sizeof *g)
                          : NULL;
    if (!g) {
        close(fd);
        return;
    }
    http_conn_init(&g->http, fd, &h->limits, usual_fields);
    g->house = h;
    g->next = h->guests;
    h->guests = g;
    h->guest_count++;
    h->stranger_count++;
    g->events = http_conn_events(&g->http);
    struct epoll_event event = {.events = g->events, .data.ptr = g};
    if (epoll_ctl(h->epoll, EPOLL_CTL_ADD, fd, &event) < 0)
        http_hang_up(&g->http);
}

/* -- Routes ----------------------------------------------------------------------------------- */

static void answer_health(struct guest *g, const char *rest)
{
    (void)rest;
    bool asks = g->http.request.method == HTTP_GET || g->http.request.method == HTTP_HEAD;
    if (asks)
        http_answer(&g->http, 204, NULL, NULL, 0);
    else
        http_answer(&g->http, 405, "Allow: GET, HEAD\r\n", NULL, 0);
}

/* Clients that were refused look there for somebody who gives out tokens. */
static void answer_nothing(struct guest *g, const char *rest)
{
    (void)rest;
    http_answer(&g->http, 404, NULL, NULL, 0);
}

/* -- The page --------------------------------------------------------------------------------- */

static void answer_file(struct guest *g, const char *rest)
{
    (void)rest;
    const struct http_request *q = &g->http.request;
    const struct web_file *file = page_file(q->path);
    if (q->method != HTTP_GET && q->method != HTTP_HEAD)
        http_answer(&g->http, 405, "Allow: GET, HEAD\r\n", NULL, 0);
    else if (!file)
        http_answer(&g->http, 404, NULL, NULL, 0);
    else {
        g->http.fields = file_fields;
        page_answer_file(&g->http, file);
        g->http.fields = usual_fields;
    }
}

/* A code for a pass. Guesses are counted as wrong tokens are. */
static void answer_login(struct guest *g, const char *rest)
{
    (void)rest;
    struct admit *a = &g->house->admit;
    const char *why = "the code was used, or is too old; open the page again";
    struct token token;
    enum right right = RIGHT_NONE;
    int status = g->http.request.method != HTTP_POST ? 405 : admit_try(a, &why);
    if (status == 0)
        right = passes_redeem(&a->passes, g->http.body.data ? g->http.body.data : "",
                              g->http.body.len, &token);
    if (status == 0 && right == RIGHT_NONE)
        status = admit_fail(a);
    if (status != 0) {
        http_refuse(&g->http, status, NULL, why);
        return;
    }
    char text[160];
    int n = snprintf(text, sizeof text, "{\"token\":\"%s\",\"acts\":%s}\n", token.text,
                     right == RIGHT_ACT ? "true" : "false");
    http_answer(&g->http, 200, "Content-Type: application/json\r\n", text, (size_t)n);
}

static void answer_api(struct guest *g, const char *rest)
{
    (void)rest;
    page_answer(g->house->page, &g->http, g->right == RIGHT_ACT);
    guest_touch(g);
}

static const struct route {
    const char *path;
    bool has_rest; /* it goes on */
    enum admit_need need;
    bool for_page;
    void (*answer)(struct guest *g, const char *rest);
} routes[] = {
    {"/mcp", false, ADMIT_TOKEN, false, endpoint_ask},
    {"/mcp/", true, ADMIT_TOKEN, false, endpoint_ask},
    {"/healthz", false, ADMIT_NOTHING, false, answer_health},
    {"/.well-known/", true, ADMIT_NOTHING, false, answer_nothing},
    {"/", false, ADMIT_NOTHING, true, answer_file},
    {"/app/", true, ADMIT_NOTHING, true, answer_file},
    {"/api/login", false, ADMIT_NOTHING, true, answer_login},
    {"/api/", true, ADMIT_PASS, true, answer_api},
};

static const struct route *find_route(const struct house *h, struct stretch path)
{
    for (size_t i = 0; i < ARRAY_SIZE(routes); i++) {
        size_t size = strlen(routes[i].path);
        if (routes[i].for_page && !h->page)
            continue;
        if (routes[i].has_rest ? path.size > size : path.size == size)
            if (memcmp(path.at, routes[i].path, size) == 0)
                return &routes[i];
    }
    return NULL;
}

static void note_admitted(struct guest *g)
{
    if (!g->admitted)
        g->house->stranger_count--;
    g->admitted = true;
}

static void answer_guest(struct guest *g)
{
    const struct http_request *q = &g->http.request;
    const struct route *route = find_route(g->house, q->path);
    const char *fields, *why;
    char rest[NAME_MAX_SIZE + 2];
    enum admit_need need = route ? route->need : ADMIT_TOKEN;
    int status =
        admit_check(&g->house->admit, q, need, route && route->for_page, &g->right, &fields, &why);
    if (status != 0) {
        http_refuse(&g->http, status, fields, why);
        return;
    }
    if (need != ADMIT_NOTHING)
        note_admitted(g);
    size_t skip = route ? strlen(route->path) : 0;
    if (!route || q->path.size - skip >= sizeof rest) {
        http_answer(&g->http, 404, NULL, NULL, 0);
        return;
    }
    snprintf(rest, sizeof rest, "%.*s", (int)(q->path.size - skip), q->path.at + skip);
    route->answer(g, rest);
}

/* -- Turns ------------------------------------------------------------------------------------ */

static void tell_epoll(struct guest *g)
{
    uint32_t wanted = http_conn_events(&g->http);
    struct epoll_event event = {.events = wanted, .data.ptr = g};
    if (g->http.state == HTTP_CLOSED || wanted == g->events)
        return;
    if (epoll_ctl(g->house->epoll, EPOLL_CTL_MOD, g->http.fd, &event) == 0)
        g->events = wanted;
}

/* A browser that stops sending is gone; what it waits for as one answer is done all the same. */
static void release_page(struct guest *g)
{
    if (g->http.later && g->http.half_closed && g->http.state == HTTP_STREAMS)
        http_hang_up(&g->http);
    if (g->http.later && g->http.state == HTTP_CLOSED)
        page_gone(&g->http);
}

/* Its answer has left, or it hung up. */
static void release_reply(struct guest *g)
{
    struct reply *t = g->reply;
    if (!t)
        return;
    struct member *m = t->member;
    bool gone = g->http.state == HTTP_CLOSED;
    if (!gone && (t->number == 0 || !t->over || !reply_is_done(t)))
        return;
    if (gone && t->modern && !t->over)
        reply_free(t);
    else
        reply_detach(t);
    if (gone && !m->main.guest)
        m->deserted_ns = clock_mono_ns();
    member_go_on(m);
}

/* A client that will send no more may still read, or be gone: only writing to it tells. */
static void probe(struct guest *g)
{
    struct reply *t = g->reply;
    if (!t || !g->http.half_closed || g->http.probed)
        return;
    g->http.probed = true;
    reply_stream(t);
    if (t->streams)
        http_stream_write(&g->http, ":\n\n", 3, NULL);
}

static void settle(struct guest *g)
{
    probe(g);
    release_page(g);
    release_reply(g);
    while (!g->reply && !g->http.later && http_queued(&g->http) == 0 && http_conn_next(&g->http)) {
        answer_guest(g);
        release_reply(g);
    }
    tell_epoll(g);
}

void guest_touch(struct guest *g)
{
    if (g->touched)
        return;
    g->touched = true;
    g->next_touched = g->house->touched;
    g->house->touched = g;
}

void guests_settle(struct house *h)
{
    while (h->touched) {
        struct guest *g = h->touched;
        h->touched = g->next_touched;
        g->touched = false;
        settle(g);
    }
}

void guest_turn(struct guest *g, uint32_t events)
{
    if (g->http.state == HTTP_CLOSED)
        return;
    if (http_conn_turn(&g->http, events))
        answer_guest(g);
    guest_touch(g);
}

void guests_tick(struct house *h, int64_t now_ns)
{
    for (struct guest *g = h->guests; g; g = g->next) {
        http_conn_tick(&g->http, now_ns);
        guest_touch(g);
    }
}

static void free_guest(struct guest *g)
{
    struct house *h = g->house;
    if (!g->admitted)
        h->stranger_count--;
    h->guest_count--;
    /* To close it is not enough: while a child is being started it has a copy, and epoll would go
     * on to tell of it. */
    epoll_ctl(h->epoll, EPOLL_CTL_DEL, g->http.fd, NULL);
    http_conn_done(&g->http);
    free(g);
}

/* Only now, since an event of the same batch may have named them. */
void guests_sweep(struct house *h)
{
    guests_settle(h);
    for (struct guest **at = &h->guests; *at;) {
        struct guest *g = *at;
        if (g->http.state == HTTP_CLOSED) {
            *at = g->next;
            free_guest(g);
        } else {
            at = &g->next;
        }
    }
}

void guests_leave(struct house *h)
{
    for (struct guest *g = h->guests; g; g = g->next) {
        http_hang_up(&g->http);
        guest_touch(g);
    }
    guests_settle(h);
    guests_sweep(h);
}
