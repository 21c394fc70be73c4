/* What is answered to one request, as a stream that the protocol writes to. One message at once is
 * JSON; what takes longer, or tells of itself, is a stream of events. In the legacy era events are
 * kept, so that a client that lost its connection hears them once more; in the modern one who hangs
 * up does not want to know. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "serve/house.h"

#define RETRY_MS 1000

static const char json_fields[] = "Content-Type: application/json\r\n";
static const char event_fields[] = "Content-Type: text/event-stream\r\nX-Accel-Buffering: no\r\n";

/* -- Events ----------------------------------------------------------------------------------- */

static void note_left(struct event *e)
{
    struct reply *t = e->reply;
    if (e->given && t->guest && e->number > t->left && http_has_left(&t->guest->http, e->ticket))
        t->left = e->number;
}

static void free_event(struct member *m, struct event **at)
{
    struct event *e = *at;
    note_left(e);
    *at = e->next;
    if (m->last_event == &e->next)
        m->last_event = at;
    m->event_count--;
    m->event_size -= e->size;
    free(e->text);
    free(e);
}

/* The oldest go. */
static void let_old_ones_go(struct member *m)
{
    while (m->event_count > EVENTS_MAX || (m->event_size > EVENTS_SIZE_MAX && m->event_count > 1))
        free_event(m, &m->events);
}

void events_free(struct member *m)
{
    while (m->events)
        free_event(m, &m->events);
}

static void free_events_of(struct reply *t)
{
    for (struct event **at = &t->member->events; *at;)
        if ((*at)->reply == t)
            free_event(t->member, at);
        else
            at = &(*at)->next;
}

static struct event *add_event(struct reply *t, const struct buf *message)
{
    struct member *m = t->member;
    struct event *e = calloc(1, sizeof *e);
    char *text = t->keeps && e ? strndup(message->data, message->len) : NULL;
    if (!e || (t->keeps && !text)) {
        free(e);
        return NULL;
    }
    *e = (struct event){.reply = t, .number = ++t->last, .text = text};
    e->size = text ? message->len : 0;
    *m->last_event = e;
    m->last_event = &e->next;
    m->event_count++;
    m->event_size += e->size;
    return e;
}

/* -- Writing ---------------------------------------------------------------------------------- */

static const char *session_field(struct reply *t, char *line, size_t size)
{
    snprintf(line, size, "Mcp-Session-Id: %s\r\n", t->member->id);
    return t->opens && *t->member->id ? line : "";
}

static void give_as_json(struct reply *t, struct event *e, const struct buf *message,
                         enum mcp_sort sort)
{
    char fields[160], session[64];
    struct http_conn *http = &t->guest->http;
    int status = sort == MCP_REFUSED ? 400 : sort == MCP_UNKNOWN && t->modern ? 404 : 200;
    snprintf(fields, sizeof fields, "%s%s", json_fields, session_field(t, session, sizeof session));
    t->answers = false;
    http_answer(http, status, fields, message->data, message->len);
    e->ticket = http_ticket(http);
    e->given = true;
}

static void give_as_event(struct reply *t, struct event *e, const char *text, size_t size)
{
    struct buf frame cleanup_buf = BUF_UP_TO(SIZE_MAX / 2);
    int r = 0;
    if (t->keeps)
        r = buf_printf(&frame, "id: %" PRIu64 "-%" PRIu64 "\n", t->number, e->number);
    if (r == 0)
        r = buf_str(&frame, "data: ");
    if (r == 0)
        r = buf_append(&frame, text, size);
    if (r == 0)
        r = buf_str(&frame, "\n\n");
    if (r == 0)
        http_stream_write(&t->guest->http, frame.data, frame.len, &e->ticket);
    e->given = r == 0;
}

/* From 2025-11-25 on a client learns at once by what to come back; earlier ones would take an event
 * without data for a message. */
static void prime(struct reply *t)
{
    char text[96];
    const char *version = t->member->peer.version;
    if (!t->keeps || !version || strcmp(version, "2025-11-25") < 0)
        return;
    int n = snprintf(text, sizeof text, "id: %" PRIu64 "-%" PRIu64 "\nretry: %d\ndata:\n\n",
                     t->number, t->left, RETRY_MS);
    http_stream_write(&t->guest->http, text, (size_t)n, NULL);
}

static void begin_events(struct reply *t)
{
    char fields[192], session[64];
    snprintf(fields, sizeof fields, "%s%s", event_fields,
             session_field(t, session, sizeof session));
    t->answers = false;
    t->streams = true;
    t->alive_ns = clock_deadline(ALIVE_MS);
    http_stream_begin(&t->guest->http, 200, fields);
}

void reply_stream(struct reply *t)
{
    if (!t->answers || !t->guest)
        return;
    begin_events(t);
    prime(t);
    guest_touch(t->guest);
}

/* The last word to this connection. */
static void end_events(struct reply *t)
{
    if (t->guest && t->streams)
        http_stream_end(&t->guest->http);
}

static int reply_send(struct mcp_stream *stream, struct buf *message, enum mcp_sort sort,
                      uint64_t *ret_ticket)
{
    struct reply *t = (struct reply *)stream;
    struct event *e = add_event(t, message);
    if (!e)
        return -ENOMEM;
    if (ret_ticket)
        *ret_ticket = e->number;
    t->over = t->over || (sort != MCP_NOTE && t->number > 0);
    if (t->guest && t->answers && t->over)
        give_as_json(t, e, message, sort);
    else if (t->guest) {
        reply_stream(t);
        give_as_event(t, e, message->data, message->len);
    }
    if (t->over)
        end_events(t);
    if (t->guest)
        guest_touch(t->guest);
    buf_done(message);
    let_old_ones_go(t->member);
    return 0;
}

static int reply_has_left(const struct mcp_stream *stream, uint64_t ticket)
{
    const struct reply *t = (const struct reply *)stream;
    if (ticket <= t->left)
        return 1;
    for (struct event *e = t->member->events; e; e = e->next)
        if (e->reply == t && e->number == ticket) {
            note_left(e);
            return ticket <= t->left ? 1 : t->keeps || t->guest ? 0 : -EPIPE;
        }
    return -EPIPE;
}

/* What was given to a connection cannot be taken back. */
static bool reply_drop(struct mcp_stream *stream, uint64_t ticket)
{
    struct reply *t = (struct reply *)stream;
    for (struct event **at = &t->member->events; *at; at = &(*at)->next)
        if ((*at)->reply == t && (*at)->number == ticket && !(*at)->given) {
            free_event(t->member, at);
            return true;
        }
    return false;
}

/* Its request was cancelled: it is not answered. */
static void reply_cancel(struct mcp_stream *stream)
{
    struct reply *t = (struct reply *)stream;
    if (t->over)
        return;
    t->over = true;
    reply_stream(t);
    end_events(t);
}

static const struct mcp_stream_ops reply_ops = {reply_send, reply_has_left, reply_drop,
                                                reply_cancel};

/* -- Life ------------------------------------------------------------------------------------- */

static void reply_init(struct reply *t, struct member *m)
{
    t->stream.ops = &reply_ops;
    t->member = m;
}

void reply_init_main(struct member *m)
{
    reply_init(&m->main, m);
    m->main.keeps = true;
}

struct reply *reply_new(struct member *m, struct guest *g, bool modern)
{
    struct reply *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    reply_init(t, m);
    t->number = ++m->reply_count;
    t->modern = t->stream.own_ids = modern;
    t->keeps = !modern;
    t->answers = true;
    t->stream_ns = clock_deadline(SOON_MS);
    t->guest = g;
    g->reply = t;
    t->next = m->replies;
    m->replies = t;
    m->house->reply_count++;
    return t;
}

void reply_detach(struct reply *t)
{
    struct guest *g = t->guest;
    if (!g)
        return;
    for (struct event *e = t->member->events; e; e = e->next)
        if (e->reply == t) {
            note_left(e);
            e->given = false;
        }
    /* An answer that was no stream cannot be heard again. */
    if (!t->streams && t->number > 0)
        t->keeps = false;
    t->guest = NULL;
    t->streams = false;
    g->reply = NULL;
}

void reply_attach(struct reply *t, struct guest *g, uint64_t after)
{
    if (t->guest)
        reply_detach(t);
    t->guest = g;
    g->reply = t;
    begin_events(t);
    t->left = after;
    prime(t);
    for (struct event *e = t->member->events; e; e = e->next)
        if (e->reply == t && e->number > after)
            give_as_event(t, e, e->text, e->size);
    if (t->over)
        end_events(t);
}

bool reply_is_done(struct reply *t)
{
    if (!t->over)
        return !t->guest && !t->keeps;
    if (t->guest)
        return http_queued(&t->guest->http) == 0;
    return true;
}

void reply_free(struct reply *t)
{
    struct member *m = t->member;
    reply_detach(t);
    mcp_peer_forget(&m->peer, &t->stream);
    free_events_of(t);
    if (t == &m->main)
        return;
    UNLINK(m->replies, t);
    m->house->reply_count--;
    free(t);
}
