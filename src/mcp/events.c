/*
 * Who hears of the end of a background shell. A model hears of it in front of the next answer of
 * any tool; that is the tools' matter. Here are the hosts and the people: resources that were
 * subscribed to, and log messages.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/defs.h"
#include "mcp/server.h"
#include "text/brief.h"

#define REST_MS         1000 /* completions that nobody took ring on; look again this often */
#define COMMAND_COLUMNS 100

/* One resource of somebody who wants to know; of the legacy era without a listener. A listener
 * that subscribed to nothing has one without a uri. */
struct subscription {
    struct subscription *next;
    json_t *listener; /* the id of its request, or NULL */
    char *uri;
    nacre_id id;
    bool ended; /* when it was subscribed to, or told since */
};

/* -- Subscriptions ---------------------------------------------------------------------------- */

static size_t count_subscriptions(const struct mcp_server *s)
{
    size_t n = 0;
    for (const struct subscription *u = s->subscriptions; u; u = u->next)
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

static bool has_ended(const struct mcp_server *s, const nacre_id *id)
{
    nacre_record record cleanup_record = NACRE_RECORD_INIT;
    return nacre_get(s->session, id, &record, NULL) == 0 && record.outcome != NACRE_RUNNING;
}

static int add_subscription(struct mcp_server *s, const json_t *listener, const char *uri,
                            const nacre_id *id)
{
    if (count_subscriptions(s) >= MCP_SUBSCRIPTION_MAX)
        return -ENOBUFS;
    struct subscription *u = calloc(1, sizeof *u);
    if (!u)
        return -ENOMEM;
    *u = (struct subscription){.next = s->subscriptions, .id = id ? *id : (nacre_id){{0}}};
    u->listener = json_deep_copy(listener);
    u->uri = uri ? strdup(uri) : NULL;
    u->ended = uri && has_ended(s, id);
    s->subscriptions = u;
    return 0;
}

/* Whether it is of this listener; without one, whether it is the legacy era's of this uri. */
static bool is_of(const struct subscription *u, const json_t *listener, const char *uri)
{
    if (listener)
        return u->listener && json_equal(u->listener, listener);
    return !u->listener && u->uri && uri && strcmp(u->uri, uri) == 0;
}

static void end_subscriptions(struct mcp_server *s, const json_t *listener, const char *uri)
{
    struct subscription **at = &s->subscriptions;
    while (*at)
        if (is_of(*at, listener, uri))
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
    if (mcp_find_resource(q->server, uri, &id, &kind, &err) < 0) {
        mcp_fail(q, MCP_NOT_FOUND, "%s", err.msg);
        return;
    }
    end_subscriptions(q->server, NULL, uri);
    if (add_subscription(q->server, NULL, uri, &id) < 0)
        mcp_fail(q, RPC_INTERNAL, "there are too many subscriptions");
    else
        mcp_reply(q, json_object());
}

void mcp_unsubscribe(const struct mcp_request *q)
{
    const char *uri = mcp_require(q, "uri");
    if (!uri)
        return;
    end_subscriptions(q->server, NULL, uri);
    mcp_reply(q, json_object());
}

bool mcp_listen_exists(const struct mcp_server *s, const json_t *id)
{
    for (const struct subscription *u = s->subscriptions; u; u = u->next)
        if (is_of(u, id, NULL))
            return true;
    return false;
}

void mcp_cancel_listen(struct mcp_server *s, const json_t *id)
{
    end_subscriptions(s, id, NULL);
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
        if (uri && mcp_find_resource(q->server, uri, &id, &kind, NULL) == 0 &&
            add_subscription(q->server, q->id, uri, &id) == 0)
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
    if (add_subscription(q->server, q->id, NULL, NULL) < 0) {
        mcp_fail(q, RPC_INTERNAL, "there are too many subscriptions");
        return;
    }
    json_t *honoured = json_object();
    if (uris)
        json_object_set_new(honoured, "resourceSubscriptions", take_up(q, uris));
    mcp_notify(q->server, "notifications/subscriptions/acknowledged",
               json_pack("{s:o, s:{s:O}}", "notifications", honoured, "_meta",
                         MCP_META "subscriptionId", q->id));
}

/* -- Ends ------------------------------------------------------------------------------------- */

/* People hear of it in the log: always in the legacy era, unless they do not want to; while a
 * request that says so is under way in the modern one. */
static bool has_people(const struct mcp_server *s)
{
    return (s->initialized && s->level <= LOG_INFO) || s->asked_to_log || mcp_calls_want_log(s);
}

static bool has_audience(const struct mcp_server *s)
{
    return s->subscriptions || has_people(s);
}

int mcp_events_fd(struct mcp_server *s)
{
    if (!has_audience(s) || s->bell_rest_ns > clock_mono_ns())
        return -1;
    if (s->bell < 0)
        s->bell = nacre_completion_fd(s->session, NULL);
    return s->bell;
}

int64_t mcp_events_deadline(const struct mcp_server *s)
{
    return has_audience(s) && s->bell_rest_ns > clock_mono_ns() ? s->bell_rest_ns : INT64_MAX;
}

static void tell_subscribers(struct mcp_server *s, const nacre_id *id)
{
    for (struct subscription *u = s->subscriptions; u; u = u->next) {
        if (!u->uri || u->ended || !nacre_id_equal(&u->id, id))
            continue;
        u->ended = true;
        json_t *params = json_pack("{s:s}", "uri", u->uri);
        if (u->listener)
            json_object_set_new(params, "_meta",
                                json_pack("{s:O}", MCP_META "subscriptionId", u->listener));
        mcp_notify(s, "notifications/resources/updated", params);
    }
}

/* An answer that showed an end leaves no completion to be told. */
void mcp_events_delivered(struct mcp_server *s)
{
    s->delivered = true;
    for (const struct subscription *u = s->subscriptions; u; u = u->next)
        if (u->uri && !u->ended && has_ended(s, &u->id))
            tell_subscribers(s, &u->id);
}

static void tell_people(struct mcp_server *s, const nacre_id *id)
{
    char status[64];
    nacre_record record cleanup_record = NACRE_RECORD_INIT;
    struct buf text cleanup_buf = BUF_UP_TO(4096);
    if (!has_people(s) || nacre_get(s->session, id, &record, NULL) < 0)
        return;
    nacre_id_text name = nacre_id_format(id);
    if (buf_printf(&text, "shell %.8s — %s: ", name.s,
                   nacre_status(&record, status, sizeof status)) == 0 &&
        brief_line(&text, record.command, COMMAND_COLUMNS) == 0)
        mcp_notify(s, "notifications/message",
                   json_pack("{s:s, s:s, s:s%}", "level", "info", "logger", "nacre", "data",
                             text.data, text.len));
}

/* Whether a completion was due already when they were last looked at. */
static bool is_announced(const struct mcp_server *s, const nacre_id *id)
{
    for (size_t i = 0; i < s->announced_count; i++)
        if (nacre_id_equal(&s->announced[i], id))
            return true;
    return false;
}

/* Remembers what an offer holds. Without memory for it, it is announced again. */
static void remember_announced(struct mcp_server *s, const nacre_offer *offer)
{
    size_t n = nacre_offer_count(offer);
    free(s->announced);
    s->announced = n > 0 ? calloc(n, sizeof *s->announced) : NULL;
    s->announced_count = s->announced ? n : 0;
    for (size_t i = 0; i < s->announced_count; i++)
        s->announced[i] = nacre_offer_id(offer, i);
}

/* Nothing was delivered since, so a new one would make them more. */
static bool is_unchanged(const struct mcp_server *s)
{
    nacre_counts counts = NACRE_COUNTS_INIT;
    return !s->delivered && s->announced_count > 0 &&
           nacre_get_counts(s->session, &counts, NULL) >= 0 &&
           (size_t)counts.completions == s->announced_count;
}

/* Completions are looked at and put back: the next answer of a tool takes them. The bell rings on
 * until then, so it is given a rest. */
void mcp_events_step(struct mcp_server *s)
{
    nacre_offer *offer = NULL;
    s->bell_rest_ns = clock_deadline(REST_MS);
    if (is_unchanged(s))
        return;
    s->delivered = false;
    nacre_offer_take(s->session, 0, &offer, NULL);
    for (size_t i = 0; i < nacre_offer_count(offer); i++) {
        nacre_id id = nacre_offer_id(offer, i);
        if (is_announced(s, &id))
            continue;
        tell_subscribers(s, &id);
        tell_people(s, &id);
    }
    remember_announced(s, offer);
    if (!offer)
        s->bell_rest_ns = 0;
    nacre_offer_retract(offer, NULL);
}

void mcp_events_tell(const struct mcp_request *q)
{
    if (!q->logs)
        return;
    q->server->asked_to_log = true;
    mcp_events_step(q->server);
    q->server->asked_to_log = false;
}

void mcp_listeners_end(struct mcp_server *s)
{
    for (const struct subscription *u = s->subscriptions; u; u = u->next) {
        struct mcp_request q = {.server = s, .id = u->listener, .modern = true};
        if (u->listener && !u->uri)
            mcp_reply(&q, json_pack("{s:{s:O}}", "_meta", MCP_META "subscriptionId", u->listener));
    }
}

void mcp_events_end(struct mcp_server *s)
{
    while (s->subscriptions)
        remove_subscription(&s->subscriptions);
    free(s->announced);
}
