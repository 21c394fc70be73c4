/* The page: its life, its turns, and which request is whose. */
#include "page/page.h"

#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#include "backend/op.h"
#include "base/clock.h"
#include "base/err.h"
#include "session/session.h"
#include "sys/fd.h"
#include "sys/host.h"

#define IDLE_MS 600000 /* nobody looks: all is forgotten until somebody does */
#define EVENTS  64

/* -- Visits ----------------------------------------------------------------------------------- */

void *visit_new(struct live_page *p, struct http_conn *c, const struct visit_ops *ops, size_t size)
{
    struct page_visit *v = calloc(1, size);
    if (!v) {
        answer_error(c, 503, "out of memory");
        return NULL;
    }
    *v = (struct page_visit){.ops = ops, .next = p->visits, .page = p, .http = c};
    p->visits = v;
    c->later = v;
    return v;
}

void visit_over(struct page_visit *v)
{
    struct live_page *p = v->page;
    struct http_conn *c = v->http;
    UNLINK(p->visits, v);
    c->later = NULL;
    v->ops->end(v);
    p->options->touched(c);
}

void page_gone(struct http_conn *c)
{
    visit_over(c->later);
}

/* -- Life ------------------------------------------------------------------------------------- */

int page_new(const struct page_options *options, struct live_page **ret_page)
{
    unsigned char bytes[8];
    struct live_page *p = calloc(1, sizeof *p);
    if (!p)
        return -ENOMEM;
    p->options = options;
    p->inotify = -EBADF;
    p->epoll = fd_lift_consume(epoll_create1(EPOLL_CLOEXEC));
    int r = p->epoll < 0 ? p->epoll : host_random(bytes, sizeof bytes);
    for (size_t i = 0; r == 0 && i < sizeof bytes; i++)
        snprintf(p->boot + 2 * i, 3, "%02x", bytes[i]);
    if (r < 0)
        page_free(p);
    else
        *ret_page = p;
    return r;
}

/* Nobody has looked for long. */
static void close_page(struct live_page *p)
{
    follows_end(p);
    asked_end(p);
    shown_forget(p);
    hear_close(p);
    struct page_news *all[] = {&p->sessions, &p->usage, &p->notes, &p->asks};
    for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
        free(all[i]->text);
        *all[i] = (struct page_news){0};
    }
    if (p->session)
        nacre_close(p->session, NULL);
    p->session = NULL;
}

void page_free(struct live_page *p)
{
    if (!p)
        return;
    while (p->visits) {
        struct page_visit *v = p->visits;
        http_hang_up(v->http);
        visit_over(v);
    }
    close_page(p);
    close_fd(&p->epoll);
    free(p);
}

bool page_open(struct live_page *p, struct http_conn *c)
{
    nacre_options options = NACRE_OPTIONS_INIT;
    nacre_error err = NACRE_ERROR_INIT;
    p->idle_ns = clock_deadline(IDLE_MS);
    if (p->session)
        return true;
    options.settings = p->options->settings;
    options.person = 1;
    options.single = 1;
    options.name = "";
    int r = nacre_open(&options, &p->session, &err);
    if (r == 0) {
        p->turn++;
        p->look_ns = p->sample_ns = INT64_MAX;
        r = shown_load(p, &err);
    }
    if (r < 0) {
        answer_failure(c, r, &err);
        close_page(p);
        return false;
    }
    p->looked_at_all_ns = clock_mono_ns();
    p->sample_ns = 0;
    p->asks_stale = true;
    hear_open(p);
    return true;
}

/* -- Turns ------------------------------------------------------------------------------------ */

size_t page_poll_count(const struct live_page *p)
{
    size_t count = 1;
    if (!p->session)
        return 0;
    count += p->asking != NULL;
    for (const struct page_visit *v = p->visits; v; v = v->next)
        count += v->op != NULL;
    return count;
}

void page_poll(const struct live_page *p, struct pollfd *fds)
{
    *fds++ = (struct pollfd){.fd = p->epoll, .events = POLLIN};
    if (p->asking)
        *fds++ = (struct pollfd){.fd = p->asking->fd, .events = (short)p->asking->events};
    for (const struct page_visit *v = p->visits; v; v = v->next)
        if (v->op)
            *fds++ = (struct pollfd){.fd = v->op->fd, .events = (short)v->op->events};
}

int64_t page_deadline(const struct live_page *p)
{
    if (!p->session)
        return INT64_MAX;
    int64_t deadline = p->sample_ns;
    if (p->viewer_count == 0)
        deadline = MIN(deadline, p->idle_ns);
    else
        deadline = MIN(deadline, MIN(shown_deadline(p), asked_deadline(p)));
    deadline = MIN(deadline, follows_deadline(p));
    for (const struct page_visit *v = p->visits; v; v = v->next)
        deadline = MIN(deadline, v->ops->deadline(v));
    return deadline;
}

static void hear_page(struct live_page *p)
{
    struct epoll_event events[EVENTS];
    int n = epoll_wait(p->epoll, events, EVENTS, 0);
    bool heard = false;
    for (int i = 0; i < n; i++)
        if (events[i].data.ptr == p)
            heard = true;
        else
            follow_hear(events[i].data.ptr);
    if (heard)
        hear_step(p);
}

void page_step(struct live_page *p)
{
    int64_t now = clock_mono_ns();
    if (!p->session)
        return;
    hear_page(p);
    shown_step(p, now);
    sample_step(p, now);
    asked_step(p, now);
    follows_step(p, now);
    for (struct page_visit *v = p->visits, *next; v; v = next) {
        next = v->next;
        v->ops->step(v, now);
    }
    if (p->viewer_count > 0)
        p->idle_ns = clock_deadline(IDLE_MS);
    else if (now >= p->idle_ns && !p->visits)
        close_page(p);
}

/* -- Requests --------------------------------------------------------------------------------- */

static void answer_state(struct live_page *p, struct http_conn *c, bool acts)
{
    struct buf text cleanup_buf = BUF_UP_TO(SIZE_MAX / 2);
    shown_step(p, clock_mono_ns());
    if (shown_write_all(p, acts, &text) < 0)
        answer_error(c, 503, "out of memory");
    else
        answer_json(c, 200, &text);
}

static void answer_older(struct live_page *p, struct http_conn *c, bool acts UNUSED)
{
    struct buf text cleanup_buf = BUF_UP_TO(SIZE_MAX / 2);
    nacre_error err = NACRE_ERROR_INIT;
    uint64_t before = request_number(&c->request, "before", INT64_MAX);
    int r = shown_write_older(p, (int64_t)MIN(before, (uint64_t)INT64_MAX), &text, &err);
    if (r < 0)
        answer_failure(c, r, &err);
    else
        answer_json(c, 200, &text);
}

static void answer_usage(struct live_page *p, struct http_conn *c, bool acts UNUSED)
{
    struct buf text cleanup_buf = BUF_UP_TO(SIZE_MAX / 2);
    char word[NACRE_ID_DIGITS + 2];
    nacre_id id;
    const struct shown *s = NULL;
    if (request_text(&c->request, "id", word, sizeof word) && nacre_id_parse(word, &id) == 0)
        s = shown_find(p, &id);
    if (!s)
        answer_error(c, 404, "there is no such shell here");
    else if (buf_str(&text, "{\"samples\":") < 0 || sample_write(s, SAMPLES_MAX, &text) < 0 ||
             buf_str(&text, "}") < 0)
        answer_error(c, 503, "out of memory");
    else
        answer_json(c, 200, &text);
}

static void answer_search(struct live_page *p, struct http_conn *c, bool acts UNUSED)
{
    find_ask(p, c);
}

static void answer_watch(struct live_page *p, struct http_conn *c, bool acts UNUSED)
{
    viewer_watch(p, c);
}

static const struct page_route {
    const char *path;
    enum http_method method;
    void (*answer)(struct live_page *p, struct http_conn *c, bool acts);
} page_routes[] = {
    {"/api/state", HTTP_GET, answer_state},   {"/api/events", HTTP_GET, viewer_begin},
    {"/api/watch", HTTP_POST, answer_watch},  {"/api/shells", HTTP_GET, answer_older},
    {"/api/recall", HTTP_GET, answer_search}, {"/api/usage", HTTP_GET, answer_usage},
};

/* /api/shells/ID/..., /api/asks/ID; what is left of the path is behind the id. */
static bool take_id(struct stretch *path, const char *folder, nacre_id *ret)
{
    char text[NACRE_ID_DIGITS + 1];
    size_t skip = strlen(folder);
    if (path->size <= skip || memcmp(path->at, folder, skip) != 0)
        return false;
    *path = (struct stretch){path->at + skip, path->size - skip};
    struct stretch word = cut_at(path, '/');
    snprintf(text, sizeof text, "%.*s", (int)MIN(word.size, sizeof text - 1), word.at);
    return word.size == NACRE_ID_DIGITS && nacre_id_parse(text, ret) == 0;
}

static void answer_change(struct live_page *p, struct http_conn *c, bool acts,
                          const nacre_id *shell, const nacre_id *ask, struct stretch rest)
{
    if (!acts)
        answer_error(c, 403, "this page may look, and change nothing");
    else if (shell)
        deed_ask(p, c, shell, rest);
    else
        asked_answer(p, c, ask);
}

static void answer_by_id(struct live_page *p, struct http_conn *c, bool acts)
{
    nacre_id id;
    struct stretch rest = c->request.path;
    bool shell = take_id(&rest, "/api/shells/", &id);
    bool reads = c->request.method == HTTP_GET;
    bool ask = !shell && take_id(&rest, "/api/asks/", &id) && rest.size == 0;
    if (shell && reads && is_spelled(rest, "output"))
        output_ask(p, c, &id);
    else if (shell && reads && is_spelled(rest, "moment"))
        output_find_moment(p, c, &id);
    else if ((shell || ask) && c->request.method == HTTP_POST)
        answer_change(p, c, acts, shell ? &id : NULL, ask ? &id : NULL, rest);
    else
        http_answer(c, 404, NULL, NULL, 0);
}

void page_answer(struct live_page *p, struct http_conn *c, bool acts)
{
    const struct http_request *q = &c->request;
    struct stretch path = q->path;
    if (!page_open(p, c))
        return;
    for (size_t i = 0; i < ARRAY_SIZE(page_routes); i++) {
        const struct page_route *route = &page_routes[i];
        if (path.size != strlen(route->path) || memcmp(path.at, route->path, path.size) != 0)
            continue;
        if (q->method == route->method)
            route->answer(p, c, acts);
        else
            http_answer(c, 405, route->method == HTTP_GET ? "Allow: GET\r\n" : "Allow: POST\r\n",
                        NULL, 0);
        return;
    }
    answer_by_id(p, c, acts);
}
