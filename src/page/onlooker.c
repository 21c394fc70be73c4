/*
 * Viewers: streams of events. Shells, sessions and usage are states: what is waiting to be told is
 * whatever they are when there is room. Output is positions in a log: a viewer for whom too much is
 * waiting gets none, and is told afterwards how far it goes, so that it can ask for what it missed.
 * A slow one slows nobody.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "page/page.h"

#define ALIVE_MS 15000 /* between signs of life */

struct watched {
    nacre_id id;
    bool missed;  /* output was left out, */
    uint64_t end; /* and this far it goes */
};

struct onlooker {
    struct page_visit visit; /* first */
    uint64_t number;
    bool acts;
    bool begun;    /* the state of everything was told */
    uint64_t turn; /* that it has seen all of */
    uint64_t gone; /* likewise, of what went */
    int64_t alive_ns, taken_ns;
    uint64_t taken; /* bytes, when it was looked at last */
    struct watched watched[WATCHED_MAX];
    size_t count;
};

static bool viewer_has_room(const struct onlooker *v)
{
    return http_queued(v->visit.http) < VIEWER_QUEUE_MAX;
}

static void tell_viewer(struct onlooker *v, const char *event, const char *data, size_t size)
{
    struct buf text cleanup_buf = BUF_UP_TO(SIZE_MAX / 2);
    if (buf_printf(&text, "event: %s\ndata: ", event) < 0 || buf_append(&text, data, size) < 0 ||
        buf_str(&text, "\n\n") < 0) {
        http_hang_up(v->visit.http);
        return;
    }
    http_stream_write(v->visit.http, text.data, text.len, NULL);
    v->alive_ns = clock_deadline(ALIVE_MS);
}

/* -- States ----------------------------------------------------------------------------------- */

static void tell_all(struct onlooker *v)
{
    struct live_page *p = v->visit.page;
    struct buf text cleanup_buf = BUF_UP_TO(SIZE_MAX / 2);
    if (shown_write_all(p, v->acts, &text) < 0) {
        http_hang_up(v->visit.http);
        return;
    }
    v->begun = true;
    v->turn = p->turn;
    v->gone = p->gone_count;
    tell_viewer(v, "state", text.data, text.len);
}

static void tell_gone(struct onlooker *v)
{
    struct live_page *p = v->visit.page;
    if (p->gone_count - v->gone > GONE_KEPT) {
        v->begun = false; /* too many: everything is told anew */
        return;
    }
    for (; v->gone < p->gone_count; v->gone++) {
        const struct gone *g = &p->gone[v->gone % GONE_KEPT];
        char text[64];
        int n = snprintf(text, sizeof text, "{\"id\":\"%s\"}", nacre_id_format(&g->id).s);
        tell_viewer(v, "gone", text, (size_t)n);
    }
}

static void tell_news(struct onlooker *v, const char *event, const struct page_news *n)
{
    if (n->text && n->turn > v->turn)
        tell_viewer(v, event, n->text, strlen(n->text));
}

/* What changed since the turn that it has seen; as a whole, so that nothing is told by halves. */
static void tell_changes(struct onlooker *v)
{
    struct live_page *p = v->visit.page;
    tell_gone(v);
    for (size_t i = 0; i < p->shell_count; i++)
        if (p->shells[i]->turn > v->turn)
            tell_viewer(v, "shell", p->shells[i]->text, strlen(p->shells[i]->text));
    tell_news(v, "sessions", &p->sessions);
    tell_news(v, "notes", &p->notes);
    tell_news(v, "asks", &p->asks);
    tell_news(v, "usage", &p->usage);
    v->turn = p->turn;
}

/* -- Output ----------------------------------------------------------------------------------- */

static struct watched *find_watched(struct onlooker *v, const nacre_id *id)
{
    for (size_t i = 0; i < v->count; i++)
        if (nacre_id_equal(&v->watched[i].id, id))
            return &v->watched[i];
    return NULL;
}

static void tell_missed(struct onlooker *v)
{
    for (size_t i = 0; i < v->count; i++) {
        struct watched *w = &v->watched[i];
        struct buf screen cleanup_buf = BUF_UP_TO(SIZE_MAX / 2);
        char text[96];
        if (!w->missed)
            continue;
        w->missed = false;
        int n = snprintf(text, sizeof text, "{\"id\":\"%s\",\"end\":%llu}",
                         nacre_id_format(&w->id).s, (unsigned long long)w->end);
        tell_viewer(v, "gap", text, (size_t)n);
        if (follow_write_screen(v->visit.page, &w->id, &screen) == 0 && screen.len > 0)
            http_stream_write(v->visit.http, screen.data, screen.len, NULL);
    }
}

/* -- Turns ------------------------------------------------------------------------------------ */

static bool takes_nothing(struct onlooker *v, int64_t now_ns)
{
    const struct http_conn *c = v->visit.http;
    if (http_queued(c) == 0 || c->taken != v->taken) {
        v->taken = c->taken;
        v->taken_ns = now_ns;
    }
    return now_ns - v->taken_ns > VIEWER_SLOW_MS * NS_PER_MS;
}

static void step_viewer(struct page_visit *visit, int64_t now_ns)
{
    struct onlooker *v = (struct onlooker *)visit;
    struct live_page *p = visit->page;
    uint64_t before = http_ticket(visit->http);
    if (viewer_has_room(v) && !v->begun)
        tell_all(v);
    if (viewer_has_room(v) && v->turn < p->turn)
        tell_changes(v);
    if (viewer_has_room(v))
        tell_missed(v);
    if (now_ns >= v->alive_ns) {
        v->alive_ns = clock_deadline(ALIVE_MS);
        http_stream_write(visit->http, ":\n\n", 3, NULL);
    }
    if (takes_nothing(v, now_ns))
        http_hang_up(visit->http);
    if (http_ticket(visit->http) != before || visit->http->state == HTTP_CLOSED)
        p->options->touched(visit->http);
}

static int64_t viewer_deadline(const struct page_visit *visit)
{
    const struct onlooker *v = (const struct onlooker *)visit;
    int64_t slow = v->taken_ns + (VIEWER_SLOW_MS + 1) * NS_PER_MS;
    return http_queued(visit->http) > 0 ? MIN(v->alive_ns, slow) : v->alive_ns;
}

static void end_viewer(struct page_visit *visit)
{
    visit->page->viewer_count--;
    free(visit);
}

static const struct visit_ops viewer_ops = {step_viewer, viewer_deadline, end_viewer};

/* -- Life ------------------------------------------------------------------------------------- */

/* The changes alone, if it knows all else since it listened before. */
static void resume_from(struct onlooker *v, const struct http_request *q)
{
    struct live_page *p = v->visit.page;
    char boot[20];
    uint64_t turn = request_number(q, "after", UINT64_MAX);
    if (!request_text(q, "boot", boot, sizeof boot) || strcmp(boot, p->boot) != 0 || turn > p->turn)
        return;
    v->gone = p->gone_count - MIN(p->gone_count, (uint64_t)GONE_KEPT);
    if (v->gone > 0 && p->gone[v->gone % GONE_KEPT].turn > turn)
        return;
    v->begun = true;
    v->turn = turn;
}

void viewer_begin(struct live_page *p, struct http_conn *c, bool acts)
{
    static uint64_t numbers;
    char text[64];
    if (p->viewer_count >= VIEWERS_MAX) {
        answer_error(c, 503, "too many look on already");
        return;
    }
    struct onlooker *v = visit_new(p, c, &viewer_ops, sizeof *v);
    if (!v)
        return;
    v->number = ++numbers;
    v->acts = acts;
    v->taken_ns = clock_mono_ns();
    p->viewer_count++;
    p->sample_ns = MIN(p->sample_ns, clock_deadline(0));
    resume_from(v, &c->request);
    http_stream_begin(c, 200, STREAM_FIELDS);
    int n = snprintf(text, sizeof text, "{\"stream\":%llu}", (unsigned long long)v->number);
    tell_viewer(v, "hello", text, (size_t)n);
    step_viewer(&v->visit, clock_mono_ns());
}

static struct onlooker *find_viewer(const struct live_page *p, json_int_t number)
{
    for (struct page_visit *v = p->visits; v; v = v->next)
        if (v->ops == &viewer_ops && (json_int_t)((struct onlooker *)v)->number == number)
            return (struct onlooker *)v;
    return NULL;
}

/* One that is new is told first how far the output goes, or what is on its screen. */
static int look_on(struct onlooker *v, const json_t *list)
{
    struct live_page *p = v->visit.page;
    struct watched before[WATCHED_MAX];
    size_t count = v->count;
    memcpy(before, v->watched, sizeof before);
    v->count = 0;
    for (size_t i = 0; i < json_array_size(list) && v->count < WATCHED_MAX; i++) {
        nacre_id id;
        const char *text = json_string_value(json_array_get(list, i));
        const struct shown *s = text && nacre_id_parse(text, &id) == 0 ? shown_find(p, &id) : NULL;
        if (!s || !s->alive || find_watched(v, &id))
            continue;
        v->watched[v->count] = (struct watched){.id = id, .missed = true, .end = s->end};
        for (size_t k = 0; k < count; k++)
            if (nacre_id_equal(&before[k].id, &id))
                v->watched[v->count] = before[k];
        follow_begin(p, &id);
        /* It may be followed already, for somebody who has just left, and further than its state
         * was looked at. */
        v->watched[v->count].end = MAX(v->watched[v->count].end, follow_reached(p, &id));
        v->count++;
    }
    return 0;
}

void viewer_watch(struct live_page *p, struct http_conn *c)
{
    json_t *object = request_object(c);
    if (!object)
        return;
    const json_t *list = json_object_get(object, "shells");
    struct onlooker *v = find_viewer(p, json_integer_value(json_object_get(object, "stream")));
    if (!v)
        answer_error(c, 404, "there is no such stream");
    else if (!json_is_array(list))
        answer_error(c, 400, "shells is to be an array of ids");
    else if (look_on(v, list) == 0)
        http_answer(c, 204, NULL, NULL, 0);
    json_decref(object);
}

bool viewers_look_at(const struct live_page *p, const nacre_id *id)
{
    for (struct page_visit *v = p->visits; v; v = v->next)
        if (v->ops == &viewer_ops && find_watched((struct onlooker *)v, id))
            return true;
    return false;
}

void viewers_tell(struct live_page *p, const nacre_id *id, const char *text, size_t size,
                  uint64_t end)
{
    for (struct page_visit *visit = p->visits; visit; visit = visit->next) {
        struct onlooker *v = (struct onlooker *)visit;
        struct watched *w = visit->ops == &viewer_ops ? find_watched(v, id) : NULL;
        if (!w)
            continue;
        w->end = end;
        if (!viewer_has_room(v) || w->missed) {
            w->missed = true;
            continue;
        }
        http_stream_write(visit->http, text, size, NULL);
        v->alive_ns = clock_deadline(ALIVE_MS);
        p->options->touched(visit->http);
    }
}
