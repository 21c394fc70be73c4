/* Whose sessions there are. A client of the legacy era is known by the id it was given; one of the
 * modern era by the name in its URL. Few of them say goodbye: so a session also ends when nobody
 * has used it for a while. */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "backend/op.h"
#include "base/clock.h"
#include "base/err.h"
#include "serve/house.h"
#include "session/session.h"
#include "sys/host.h"

#define TOLD_WITHIN_NS (10 * NS_PER_S) /* of what lists say of an end */

/* -- Coming ----------------------------------------------------------------------------------- */

static int draw_id(char *id)
{
    unsigned char bytes[SESSION_ID_SIZE / 2];
    int r = host_random(bytes, sizeof bytes);
    for (size_t i = 0; r == 0 && i < sizeof bytes; i++)
        snprintf(id + 2 * i, 3, "%02x", bytes[i]);
    return r;
}

/* Where its commands start: as the URL says, or as the server was told. */
static int take_cwd(struct member *m, struct stretch cwd, nacre_error *err)
{
    struct stat st;
    const char *usual = m->house->options->cwd;
    if (cwd.at)
        m->cwd = strndup(cwd.at, cwd.size);
    else if (usual)
        m->cwd = strdup(usual);
    if (cwd.at && (!m->cwd || *m->cwd != '/' || stat(m->cwd, &st) < 0 || !S_ISDIR(st.st_mode)))
        return err_set(err, NACRE_EINVAL,
                       "cwd in the URL must be the absolute path of a directory");
    return 0;
}

static int open_session_of(struct member *m, nacre_error *err)
{
    nacre_options options = NACRE_OPTIONS_INIT;
    nacre_session *session;
    options.name = m->name;
    options.cwd = m->cwd;
    options.settings = m->house->options->settings;
    options.ask = mcp_ask;
    options.ask_userdata = &m->peer;
    const struct mcp_table *table = m->house->options->table;
    int r = nacre_open(&options, &session, err);
    if (r == 0)
        mcp_peer_init(&m->peer, table ? table : &mcp_shells, session);
    return r;
}

static void free_member(struct member *m)
{
    free(m->cwd);
    free(m);
}

struct member *member_new(struct house *h, const char *name, struct stretch cwd, bool modern,
                          nacre_error *err)
{
    struct member *m = h->member_count < MEMBERS_MAX ? calloc(1, sizeof *m) : NULL;
    if (!m) {
        err_set(err, NACRE_ELIMIT, "there are too many sessions; end one");
        return NULL;
    }
    m->house = h;
    m->last_event = &m->events;
    m->asked_ns = clock_mono_ns();
    m->told_ns = INT64_MAX;
    snprintf(m->name, sizeof m->name, "%s", name);
    int r = modern ? 0 : draw_id(m->id);
    if (r == 0)
        r = take_cwd(m, cwd, err);
    if (r == 0)
        r = open_session_of(m, err);
    if (r < 0) {
        free_member(m);
        return NULL;
    }
    reply_init_main(m);
    m->peer.main = modern ? NULL : &m->main.stream;
    m->peer.log = h->options->log;
    m->next = h->members;
    h->members = m;
    h->member_count++;
    return m;
}

struct member *member_find(struct house *h, struct stretch id)
{
    for (struct member *m = h->members; m; m = m->next)
        if (!m->leaves && *m->id && id.size == SESSION_ID_SIZE &&
            memcmp(m->id, id.at, SESSION_ID_SIZE) == 0)
            return m;
    return NULL;
}

static bool starts_at(const struct member *m, struct stretch cwd)
{
    const char *usual = m->house->options->cwd;
    if (!cwd.at)
        return !m->cwd || (usual && strcmp(m->cwd, usual) == 0);
    return m->cwd && strlen(m->cwd) == cwd.size && memcmp(m->cwd, cwd.at, cwd.size) == 0;
}

struct member *member_named(struct house *h, const char *name, struct stretch cwd, nacre_error *err)
{
    for (struct member *m = h->members; m; m = m->next)
        if (!m->leaves && !*m->id && strcmp(m->name, name) == 0 && starts_at(m, cwd))
            return m;
    return member_new(h, name, cwd, true, err);
}

/* -- Going ------------------------------------------------------------------------------------ */

/* The session is closed in steps, beside everything else. Without memory for that, at once. */
static void close_session_of(struct house *h, nacre_session *session)
{
    struct closing_session *c = calloc(1, sizeof *c);
    nacre_op *op = c ? session_close(session) : NULL;
    if (!op) {
        free(c);
        nacre_close(session, NULL);
        return;
    }
    if (op->step(op, NULL) != 0) {
        op->end(op);
        free(c);
        return;
    }
    c->op = op;
    c->next = h->closing;
    h->closing = c;
}

void member_leave(struct member *m)
{
    struct house *h = m->house;
    if (m->leaves)
        return;
    m->leaves = true;
    mcp_listeners_end(&m->peer);
    while (m->replies) {
        struct guest *g = m->replies->guest;
        bool said = m->replies->over;
        reply_free(m->replies);
        if (g && !said)
            http_hang_up(&g->http);
        if (g)
            guest_touch(g);
    }
    if (m->main.guest) {
        http_stream_end(&m->main.guest->http);
        guest_touch(m->main.guest);
    }
    reply_detach(&m->main);
    close_session_of(h, mcp_peer_end(&m->peer));
    events_free(m);
    UNLINK(h->members, m);
    h->member_count--;
    free_member(m);
}

static bool is_listened_to(const struct member *m)
{
    for (const struct reply *t = m->replies; t; t = t->next)
        if (t->guest)
            return true;
    return m->main.guest != NULL;
}

static int64_t moment_after(int64_t ns, int64_t ms)
{
    return ms < (INT64_MAX - ns) / NS_PER_MS ? ns + ms * NS_PER_MS : INT64_MAX;
}

int64_t member_deadline(const struct member *m)
{
    const struct serve_options *o = m->house->options;
    if (mcp_peer_is_busy(&m->peer) || is_listened_to(m))
        return INT64_MAX;
    return m->deserted_ns > 0 ? moment_after(m->deserted_ns, o->gone_ms)
                              : moment_after(m->asked_ns, o->idle_ms);
}

/* Lists say when it ends. What it asks moves that all the time, so they may be somewhat behind. */
static void say_when_it_ends(struct member *m, int64_t now_ns)
{
    int64_t ends = member_deadline(m), told = m->told_ns;
    bool known = ends != INT64_MAX;
    if (known == (told != INT64_MAX) && (!known || llabs(ends - told) < TOLD_WITHIN_NS))
        return;
    m->told_ns = ends;
    nacre_session_set_end(m->peer.session,
                          known ? (clock_real_ns() + (ends - now_ns)) / NS_PER_MS : 0, NULL);
}

void members_tick(struct house *h, int64_t now_ns)
{
    for (struct member *m = h->members, *next; m; m = next) {
        next = m->next;
        if (member_deadline(m) <= now_ns)
            member_leave(m);
        else
            say_when_it_ends(m, now_ns);
    }
}

void members_leave(struct house *h)
{
    while (h->members)
        member_leave(h->members);
}

/* -- Going on --------------------------------------------------------------------------------- */

static bool has_events(const struct reply *t)
{
    for (const struct event *e = t->member->events; e; e = e->next)
        if (e->reply == t)
            return true;
    return false;
}

void member_go_on(struct member *m)
{
    static const struct pollfd nothing[MCP_POLL_FIRST] = {{.fd = -1}, {.fd = -1}};
    mcp_peer_step(&m->peer, nothing, MCP_POLL_FIRST);
    for (struct reply *t = m->replies, *next; t; t = next) {
        next = t->next;
        if (!t->guest && reply_is_done(t) && !(t->keeps && has_events(t)))
            reply_free(t);
    }
}

size_t members_poll(struct house *h, size_t begin)
{
    size_t at = begin;
    for (struct member *m = h->members; m; m = m->next) {
        if (!house_has_room(h, at + MCP_POLL_MAX))
            return at;
        m->polled_at = at;
        m->polled = mcp_peer_poll(&m->peer, h->fds + at);
        if (m->polled == MCP_POLL_FIRST && h->fds[at].fd < 0 && h->fds[at + 1].fd < 0)
            m->polled = 0;
        at += m->polled;
    }
    for (struct closing_session *c = h->closing; c && house_has_room(h, at + 1); c = c->next)
        h->fds[at++] = (struct pollfd){.fd = c->op->fd, .events = (short)c->op->events};
    return at;
}

static int64_t reply_deadline(const struct reply *t)
{
    if (!t->guest)
        return INT64_MAX;
    return t->answers ? t->stream_ns : t->streams && !t->over ? t->alive_ns : INT64_MAX;
}

int64_t members_deadline(struct house *h)
{
    int64_t deadline = INT64_MAX;
    for (struct member *m = h->members; m; m = m->next) {
        deadline = MIN(deadline, mcp_peer_deadline(&m->peer));
        deadline = MIN(deadline, member_deadline(m));
        deadline = MIN(deadline, reply_deadline(&m->main));
        for (const struct reply *t = m->replies; t; t = t->next)
            deadline = MIN(deadline, reply_deadline(t));
    }
    for (struct closing_session *c = h->closing; c; c = c->next)
        deadline = MIN(deadline, c->op->wake_ns);
    return deadline;
}

static void step_closing_sessions(struct house *h)
{
    for (struct closing_session **at = &h->closing; *at;) {
        struct closing_session *c = *at;
        if (c->op->step(c->op, NULL) == 0) {
            at = &c->next;
            continue;
        }
        *at = c->next;
        c->op->end(c->op);
        free(c);
    }
}

static void tick_reply(struct reply *t, int64_t now_ns)
{
    if (reply_deadline(t) > now_ns)
        return;
    if (t->answers) {
        reply_stream(t);
        return;
    }
    t->alive_ns = clock_deadline(ALIVE_MS);
    http_stream_write(&t->guest->http, ":\n\n", 3, NULL);
    guest_touch(t->guest);
}

/* As they were polled; who came since is not among them. */
void members_step(struct house *h)
{
    int64_t now = clock_mono_ns();
    for (struct member *m = h->members; m; m = m->next) {
        if (m->polled > 0)
            mcp_peer_step(&m->peer, h->fds + m->polled_at, m->polled);
        tick_reply(&m->main, now);
        for (struct reply *t = m->replies; t; t = t->next)
            tick_reply(t, now);
        m->polled = 0;
    }
    step_closing_sessions(h);
}
