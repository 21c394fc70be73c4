/*
 * Who hears of the end of a background shell. A model hears of it in front of the next answer of
 * any tool; that is the tools' matter. Here are the hosts and the people: resources that were
 * subscribed to, and log messages.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/defs.h"
#include "mcp/peer.h"
#include "text/brief.h"

#define REST_MS         1000 /* completions that nobody took ring on; look again this often */
#define COMMAND_COLUMNS 100

/* One resource of somebody who wants to know; of the legacy era without a listener. A listener
 * that subscribed to nothing has one without a uri. */
struct subscription {
    struct subscription *next;
    struct mcp_stream *stream; /* of the listener */
    json_t *listener;          /* the id of its request, or NULL */
    char *uri;
    nacre_id id;
    bool ended; /* when it was subscribed to, or told since */
};

/* -- Subscriptions ---------------------------------------------------------------------------- */

static size_t count_subscriptions(const struct mcp_peer *p)
{
    size_t n = 0;
    for (const struct subscription *u = p->subscriptions; u; u = u->next)
        n++;
    return n;
}

static void remove_subscription(struct subscription **at)
{
    struct subscription *u = *at;
    *at = u->next;
    json_decref(u->listener);
    free(u->uri);
    free(u);
}

static bool has_ended(const struct mcp_peer *p, const nacre_id *id)
{
    nacre_record record cleanup_record = NACRE_RECORD_INIT;
    return nacre_get(p->session, id, &record, NULL) == 0 && record.outcome != NACRE_RUNNING;
}

/* Of the request, or of the legacy era if it does not listen. */
static int add_subscription(const struct mcp_request *q, bool listens, const char *uri,
                            const nacre_id *id)
{
    struct mcp_peer *p = q->peer;
    if (count_subscriptions(p) >= MCP_SUBSCRIPTION_MAX)
        return -ENOBUFS;
    struct subscription *u = calloc(1, sizeof *u);
    if (!u)
        return -ENOMEM;
    *u = (struct subscription){.next = p->subscriptions, .id = id ? *id : (nacre_id){{0}}};
    u->stream = listens ? q->stream : NULL;
    u->listener = listens ? json_deep_copy(q->id) : NULL;
    u->uri = uri ? strdup(uri) : NULL;
    u->ended = uri && has_ended(p, id);
    p->subscriptions = u;
    return 0;
}

static bool is_listener(const struct subscription *u, const struct mcp_stream *stream,
                        const json_t *id)
{
    return u->listener && mcp_is_same(u->stream, u->listener, stream, id);
}

/* The legacy era's of a resource. */
static void end_subscription(struct mcp_peer *p, const char *uri)
{
    struct subscription **at = &p->subscriptions;
    while (*at)
        if (!(*at)->listener && strcmp((*at)->uri, uri) == 0)
            remove_subscription(at);
        else
            at = &(*at)->next;
}

void mcp_subscribe(const struct mcp_request *q)
{
    nacre_error err = NACRE_ERROR_INIT;
    enum resource_kind kind;
    nacre_id id;
    const char *uri = mcp_require(q, "uri");
    if (!uri)
        return;
    if (mcp_find_resource(q->peer, uri, &id, &kind, &err) < 0) {
        mcp_fail(q, MCP_NOT_FOUND, "%s", err.msg);
        return;
    }
    end_subscription(q->peer, uri);
    if (add_subscription(q, false, uri, &id) < 0)
        mcp_fail(q, RPC_INTERNAL, "there are too many subscriptions");
    else
        mcp_reply(q, json_object());
}

void mcp_unsubscribe(const struct mcp_request *q)
{
    const char *uri = mcp_require(q, "uri");
    if (!uri)
        return;
    end_subscription(q->peer, uri);
    mcp_reply(q, json_object());
}

bool mcp_listen_exists(const struct mcp_peer *p, const struct mcp_stream *stream, const json_t *id)
{
    for (const struct subscription *u = p->subscriptions; u; u = u->next)
        if (is_listener(u, stream, id))
            return true;
    return false;
}

bool mcp_listens(const struct mcp_peer *p)
{
    for (const struct subscription *u = p->subscriptions; u; u = u->next)
        if (u->listener)
            return true;
    return false;
}

void mcp_cancel_listen(struct mcp_peer *p, const struct mcp_stream *stream, const json_t *id)
{
    struct subscription **at = &p->subscriptions;
    while (*at)
        if (is_listener(*at, stream, id))
            remove_subscription(at);
        else
            at = &(*at)->next;
}

void mcp_listen_forget(struct mcp_peer *p, const struct mcp_stream *stream)
{
    struct subscription **at = &p->subscriptions;
    while (*at)
        if ((*at)->listener && (*at)->stream == stream)
            remove_subscription(at);
        else
            at = &(*at)->next;
}

/* Takes up the resources that exist. What is honoured is what is said to be. */
static json_t *take_up(const struct mcp_request *q, const json_t *uris)
{
    json_t *honoured = json_array();
    json_t *value;
    size_t i;
    json_array_foreach(uris, i, value)
    {
        nacre_id id;
        enum resource_kind kind;
        const char *uri = rpc_text(value);
        if (uri && mcp_find_resource(q->peer, uri, &id, &kind, NULL) == 0 &&
            add_subscription(q, true, uri, &id) == 0)
            json_array_append(honoured, value);
    }
    return honoured;
}

/* The request stays open; it has no answer before the end. Tools and prompts never change, so
 * there is nothing to tell of them. */
void mcp_listen(const struct mcp_request *q)
{
    const json_t *wanted = json_object_get(q->params, "notifications");
    const json_t *uris = json_object_get(wanted, "resourceSubscriptions");
    if (!json_is_object(wanted) || (uris && !json_is_array(uris))) {
        mcp_fail_params(q, "notifications must be an object, and resourceSubscriptions an array");
        return;
    }
    if (add_subscription(q, true, NULL, NULL) < 0) {
        mcp_fail(q, RPC_INTERNAL, "there are too many subscriptions");
        return;
    }
    json_t *honoured = json_object();
    if (uris)
        json_object_set_new(honoured, "resourceSubscriptions", take_up(q, uris));
    mcp_notify(q->peer, q->stream, "notifications/subscriptions/acknowledged",
               json_pack("{s:o, s:{s:O}}", "notifications", honoured, "_meta",
                         MCP_META "subscriptionId", q->id));
}

/* -- Ends ------------------------------------------------------------------------------------- */

/* People hear of it in the log: always in the legacy era, unless they do not want to; while a
 * request that says so is under way in the modern one. */
static bool has_people(const struct mcp_peer *p)
{
    return (p->initialized && p->level <= LOG_INFO) || p->asked_to_log || mcp_calls_want_log(p);
}

static bool has_audience(const struct mcp_peer *p)
{
    return p->subscriptions || has_people(p);
}

int mcp_events_fd(struct mcp_peer *p)
{
    if (!has_audience(p) || p->bell_rest_ns > clock_mono_ns())
        return -1;
    if (p->bell < 0)
        p->bell = nacre_completion_fd(p->session, NULL);
    return p->bell;
}

int64_t mcp_events_deadline(const struct mcp_peer *p)
{
    return has_audience(p) && p->bell_rest_ns > clock_mono_ns() ? p->bell_rest_ns : INT64_MAX;
}

static void tell_subscribers(struct mcp_peer *p, const nacre_id *id)
{
    for (struct subscription *u = p->subscriptions; u; u = u->next) {
        if (!u->uri || u->ended || !nacre_id_equal(&u->id, id))
            continue;
        u->ended = true;
        json_t *params = json_pack("{s:s}", "uri", u->uri);
        if (u->listener)
            json_object_set_new(params, "_meta",
                                json_pack("{s:O}", MCP_META "subscriptionId", u->listener));
        mcp_notify(p, u->listener ? u->stream : p->main, "notifications/resources/updated", params);
    }
}

/* An answer that showed an end leaves no completion to be told. */
void mcp_events_delivered(struct mcp_peer *p)
{
    p->delivered = true;
    for (const struct subscription *u = p->subscriptions; u; u = u->next)
        if (u->uri && !u->ended && has_ended(p, &u->id))
            tell_subscribers(p, &u->id);
}

struct news {
    struct mcp_peer *peer;
    const struct buf *text;
};

/* Once to each stream, however many of its requests want it. */
static void tell_stream(struct mcp_stream *stream, void *userdata)
{
    const struct news *news = userdata;
    if (!stream || stream->heard == news->peer->news)
        return;
    stream->heard = news->peer->news;
    mcp_notify(news->peer, stream, "notifications/message",
               json_pack("{s:s, s:s, s:s%}", "level", "info", "logger", "nacre", "data",
                         news->text->data, news->text->len));
}

static void tell_people(struct mcp_peer *p, const nacre_id *id)
{
    char status[64];
    nacre_record record cleanup_record = NACRE_RECORD_INIT;
    struct buf text cleanup_buf = BUF_UP_TO(4096);
    struct news news = {p, &text};
    if (!has_people(p) || nacre_get(p->session, id, &record, NULL) < 0)
        return;
    nacre_id_text name = nacre_id_format(id);
    if (buf_printf(&text, "shell %.8s — %s: ", name.s,
                   nacre_status(&record, status, sizeof status)) < 0 ||
        brief_line(&text, record.command, COMMAND_COLUMNS) < 0)
        return;
    p->news++;
    if (p->initialized && p->level <= LOG_INFO)
        tell_stream(p->main, &news);
    tell_stream(p->asked_to_log, &news);
    mcp_calls_each_log(p, tell_stream, &news);
}

/* Whether a completion was due already when they were last looked at. */
static bool is_announced(const struct mcp_peer *p, const nacre_id *id)
{
    for (size_t i = 0; i < p->announced_count; i++)
        if (nacre_id_equal(&p->announced[i], id))
            return true;
    return false;
}

/* Remembers what an offer holds. Without memory for it, it is announced again. */
static void remember_announced(struct mcp_peer *p, const nacre_offer *offer)
{
    size_t n = nacre_offer_count(offer);
    free(p->announced);
    p->announced = n > 0 ? calloc(n, sizeof *p->announced) : NULL;
    p->announced_count = p->announced ? n : 0;
    for (size_t i = 0; i < p->announced_count; i++)
        p->announced[i] = nacre_offer_id(offer, i);
}

/* Nothing was delivered since, so a new one would make them more. */
static bool is_unchanged(const struct mcp_peer *p)
{
    nacre_counts counts = NACRE_COUNTS_INIT;
    return !p->delivered && p->announced_count > 0 &&
           nacre_get_counts(p->session, &counts, NULL) >= 0 &&
           (size_t)counts.completions == p->announced_count;
}

/* Completions are looked at and put back: the next answer of a tool takes them. The bell rings on
 * until then, so it is given a rest. */
void mcp_events_step(struct mcp_peer *p)
{
    nacre_offer *offer = NULL;
    p->bell_rest_ns = clock_deadline(REST_MS);
    if (is_unchanged(p))
        return;
    p->delivered = false;
    nacre_offer_take(p->session, 0, &offer, NULL);
    for (size_t i = 0; i < nacre_offer_count(offer); i++) {
        nacre_id id = nacre_offer_id(offer, i);
        if (is_announced(p, &id))
            continue;
        tell_subscribers(p, &id);
        tell_people(p, &id);
    }
    remember_announced(p, offer);
    if (!offer)
        p->bell_rest_ns = 0;
    nacre_offer_retract(offer, NULL);
}

void mcp_events_tell(const struct mcp_request *q)
{
    if (!q->logs)
        return;
    q->peer->asked_to_log = q->stream;
    mcp_events_step(q->peer);
    q->peer->asked_to_log = NULL;
}

void mcp_listeners_end(struct mcp_peer *p)
{
    for (const struct subscription *u = p->subscriptions; u; u = u->next) {
        struct mcp_request q = {.peer = p, .stream = u->stream, .id = u->listener, .modern = true};
        if (u->listener && !u->uri)
            mcp_reply(&q, json_pack("{s:{s:O}}", "_meta", MCP_META "subscriptionId", u->listener));
    }
}

void mcp_events_end(struct mcp_peer *p)
{
    while (p->subscriptions)
        remove_subscription(&p->subscriptions);
    free(p->announced);
}
