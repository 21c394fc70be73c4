/*
 * Completions: due, offered, told. The `told` file of a run directory is what lasts; the catalog is
 * the queue. The words are in docs/glossary.md.
 */
#include <nacre/completion.h>

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/grow.h"
#include "session/session.h"
#include "sys/fd.h"

#define BATCH         64
#define ENDED_MAX     256
#define TICK_MS       1000
#define SWEEP_TICK_MS 10

struct nacre_offer {
    nacre_session *session;
    size_t count;
    size_t cap;
    struct offered {
        nacre_id id;
        bool repeated;
    } * items;
};

/* -- What is due ------------------------------------------------------------------------------ */

static void set_due(nacre_session *s, bool due)
{
    uint64_t one = 1;
    pthread_mutex_lock(&s->lock);
    s->due = due;
    if (s->due_fd >= 0) {
        ssize_t n = due ? write(s->due_fd, &one, sizeof one) : read(s->due_fd, &one, sizeof one);
        (void)n; /* it is readable already, or it is not */
    }
    pthread_mutex_unlock(&s->lock);
}

static bool something_is_due(nacre_session *s)
{
    pthread_mutex_lock(&s->lock);
    bool due = s->due;
    pthread_mutex_unlock(&s->lock);
    return due;
}

void completion_set_due(nacre_session *s)
{
    set_due(s, true);
}

/* -- What earlier sessions left --------------------------------------------------------------- */

struct inheritance {
    nacre_session *session;
    struct catalog *catalog;
    nacre_id ended[ENDED_MAX]; /* at one go */
    size_t count;
};

/* Of the same name, or at home in the same directory; and it is over. */
static int note_ended(const struct catalog_session *row, void *userdata)
{
    struct inheritance *in = userdata;
    const nacre_session *s = in->session;
    bool named = *row->name && strcmp(row->name, s->name) == 0;
    bool placed = *row->cwd && strcmp(row->cwd, s->cwd) == 0;
    if (scope_session_lives(row) || nacre_id_equal(&row->id, &s->id))
        return 0;
    if ((named || placed) && in->count < ENDED_MAX)
        in->ended[in->count++] = row->id;
    return 0;
}

/* What they left has perhaps not ended yet: kept, or about to be killed. Then it is awaited. */
static int await_run(const struct catalog_run *run, void *userdata)
{
    struct inheritance *in = userdata;
    struct shell shell = {.id = run->id, .foreign = true, .awaited = true}, known;
    if (!run->owed || run->outcome != NACRE_RUNNING ||
        registry_get(in->session->registry, &run->id, &known))
        return 0;
    for (size_t i = 0; i < in->count; i++)
        if (nacre_id_equal(&in->ended[i], &run->session)) {
            registry_add(in->session->registry, &shell, false);
            return 0;
        }
    return 0;
}

/* What some of them left becomes ours, in one transaction: of two that claim, one gets each.
 * Returns how many sessions were looked at. */
static int claim_some(struct inheritance *in)
{
    struct catalog_session_filter owed = {.only_owed = true};
    struct catalog_filter open = {.state = CATALOG_OPEN};
    nacre_session *s = in->session;
    in->count = 0;
    int r = catalog_each_session(in->catalog, &owed, note_ended, in, NULL);
    if (r < 0 || in->count == 0)
        return r;
    r = session_catalog(s, true, &in->catalog, NULL);
    if (r == 0)
        r = catalog_claim(in->catalog, &s->id, in->ended, in->count, NULL);
    if (r < 0)
        return r;
    set_due(s, true);
    r = catalog_each_run(in->catalog, &open, await_run, in, NULL);
    return r < 0 ? r : (int)in->count;
}

static int claim_all(nacre_session *s)
{
    cleanup_free struct inheritance *in = calloc(1, sizeof *in);
    int r = in ? ends_refresh_home(s, 0, &in->catalog, NULL) : NACRE_ENOMEM;
    if (r >= 0)
        in->session = s;
    while (r >= 0 && (r = claim_some(in)) == ENDED_MAX)
        ;
    return MIN(r, 0);
}

static bool set_claimed(nacre_session *s, bool claimed)
{
    pthread_mutex_lock(&s->lock);
    bool before = s->claimed;
    s->claimed = claimed;
    pthread_mutex_unlock(&s->lock);
    return before;
}

/* Once; again only if somebody was in the way. */
static void claim(nacre_session *s)
{
    if (!s->person && !set_claimed(s, true) && claim_all(s) == NACRE_EBUSY)
        set_claimed(s, false);
}

/* -- Offers ----------------------------------------------------------------------------------- */

static int add_to_offer(nacre_offer *offer, const nacre_id *id, bool repeated)
{
    if (GROW(offer->items, offer->count, offer->cap) < 0)
        return -ENOMEM;
    offer->items[offer->count++] = (struct offered){*id, repeated};
    return 0;
}

static int take(nacre_offer *offer, struct catalog *catalog, size_t max, nacre_error *err)
{
    nacre_session *s = offer->session;
    size_t want = max ? max : SIZE_MAX;
    /* Before the look: whatever becomes due from now on rings anew. */
    set_due(s, false);
    while (offer->count < want) {
        nacre_id ids[BATCH];
        bool repeated[BATCH];
        size_t room = MIN(want - offer->count, (size_t)BATCH);
        int n = catalog_offer(catalog, &s->id, ids, repeated, room, err);
        if (n < 0)
            return n;
        for (int i = 0; i < n; i++)
            if (add_to_offer(offer, &ids[i], repeated[i]) < 0) {
                catalog_retract(catalog, &s->id, ids + i, (size_t)(n - i), NULL);
                return err_set(err, NACRE_ENOMEM, "out of memory");
            }
        if ((size_t)n < room)
            return 0;
    }
    set_due(s, true);
    return 0;
}

int64_t nacre_offer_take(nacre_session *session, size_t max, nacre_offer **ret_offer,
                         nacre_error *reterr)
{
    struct catalog *catalog;
    *ret_offer = NULL;
    int r = session_check(session, reterr);
    if (r < 0)
        return r;
    ends_hear(session);
    claim(session);
    completion_set_bell(session);
    if (!something_is_due(session))
        return 0;
    nacre_offer *offer = calloc(1, sizeof *offer);
    if (!offer)
        return err_set(reterr, NACRE_ENOMEM, "out of memory");
    offer->session = session;
    r = session_catalog(session, true, &catalog, reterr);
    if (r == 0)
        r = take(offer, catalog, max, reterr);
    if (r < 0)
        set_due(session, true);
    if (r < 0 || offer->count == 0) {
        nacre_offer_retract(offer, NULL);
        return r;
    }
    *ret_offer = offer;
    return (int64_t)offer->count;
}

size_t nacre_offer_count(const nacre_offer *offer)
{
    return offer ? offer->count : 0;
}

nacre_session *completion_session(const nacre_offer *offer)
{
    return offer->session;
}

nacre_id nacre_offer_id(const nacre_offer *offer, size_t index)
{
    return offer->items[index].id;
}

int nacre_offer_repeated(const nacre_offer *offer, size_t index)
{
    return offer->items[index].repeated;
}

static void offer_free(nacre_offer *offer)
{
    free(offer->items);
    free(offer);
}

int completion_told(nacre_session *s, const nacre_id *id, nacre_error *err)
{
    struct catalog *catalog;
    int r = home_set_told(s->home, id, err);
    if (r == NACRE_ENOTFOUND)
        r = 0;
    if (r == 0)
        r = session_catalog(s, true, &catalog, err);
    if (r == 0)
        registry_stop_awaiting(s->registry, id);
    return r < 0 ? r : catalog_ack(catalog, id, 1, err);
}

int nacre_offer_acknowledge(nacre_offer *offer, nacre_error *reterr)
{
    int r = 0;
    if (!offer)
        return 0;
    nacre_session *s = offer->session;
    for (size_t i = 0; i < offer->count; i++) {
        int one = completion_told(s, &offer->items[i].id, reterr);
        if (one == 0)
            registry_mark_read(s->registry, &offer->items[i].id, 0, true);
        r = MIN(r, one);
    }
    offer_free(offer);
    return r;
}

int nacre_offer_retract(nacre_offer *offer, nacre_error *reterr)
{
    struct catalog *catalog;
    int r = 0;
    if (!offer)
        return 0;
    nacre_session *s = offer->session;
    if (offer->count > 0) {
        r = session_catalog(s, true, &catalog, reterr);
        for (size_t i = 0; r == 0 && i < offer->count; i++) {
            int one = catalog_retract(catalog, &s->id, &offer->items[i].id, 1, reterr);
            r = MIN(r, one);
        }
        set_due(s, true);
    }
    offer_free(offer);
    return r;
}

int completion_count(nacre_session *s)
{
    struct catalog *catalog;
    struct catalog_counts counts;
    if (!something_is_due(s) || session_catalog(s, false, &catalog, NULL) < 0 ||
        catalog_counts(catalog, &s->id, &counts, NULL) < 0)
        return 0;
    return (int)counts.due;
}

/* -- The descriptor --------------------------------------------------------------------------- */

/* The session's line exists from its first start on. */
static void add_to_bell(nacre_session *s, int fd)
{
    struct epoll_event event = {.events = EPOLLIN};
    if (fd >= 0 && s->bell_fd >= 0)
        epoll_ctl(s->bell_fd, EPOLL_CTL_ADD, fd, &event);
}

/* Not everything can ring: a keeper may be killed, an adopted shell rings elsewhere. While
 * something is awaited, somebody should look every now and then; while something is swept, more
 * often. */
static void set_ticking(nacre_session *s, int64_t every_ms)
{
    struct timespec every = {.tv_sec = every_ms / 1000,
                             .tv_nsec = (long)(every_ms % 1000 * NS_PER_MS)};
    struct itimerspec when = {.it_interval = every, .it_value = every};
    if (s->tick_fd >= 0 && every_ms != s->tick_ms)
        timerfd_settime(s->tick_fd, 0, &when, NULL);
    s->tick_ms = every_ms;
}

static bool is_awaited(const struct shell *shell, const void *argument UNUSED)
{
    return shell->awaited;
}

void completion_set_bell(nacre_session *s)
{
    uint64_t ticks;
    bool awaiting = registry_select(s->registry, is_awaited, NULL, NULL, 0) > 0;
    pthread_mutex_lock(&s->lock);
    if (s->bell_fd >= 0) {
        add_to_bell(s, s->keepers.ops->bell(s->keepers.self));
        if (s->self != s->keepers.self && s->ops.bell)
            add_to_bell(s, s->ops.bell(s->self));
        ssize_t n = read(s->tick_fd, &ticks, sizeof ticks);
        (void)n; /* it has not ticked */
        set_ticking(s, s->looks ? SWEEP_TICK_MS : awaiting ? TICK_MS : 0);
    }
    pthread_mutex_unlock(&s->lock);
}

static int open_bell(nacre_session *s)
{
    cleanup_close int epoll = fd_lift_consume(epoll_create1(EPOLL_CLOEXEC));
    cleanup_close int due = fd_lift_consume(eventfd(s->due, EFD_CLOEXEC | EFD_NONBLOCK));
    cleanup_close int tick =
        fd_lift_consume(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
    if (epoll < 0 || due < 0 || tick < 0)
        return -errno;
    s->bell_fd = TAKE_FD(epoll);
    s->due_fd = TAKE_FD(due);
    s->tick_fd = TAKE_FD(tick);
    add_to_bell(s, s->due_fd);
    add_to_bell(s, s->tick_fd);
    return 0;
}

int nacre_completion_fd(nacre_session *session, nacre_error *reterr)
{
    int r = session_check(session, reterr);
    if (r < 0)
        return r;
    pthread_mutex_lock(&session->lock);
    int e = session->bell_fd < 0 ? open_bell(session) : 0;
    pthread_mutex_unlock(&session->lock);
    if (e < 0)
        return err_sys(reterr, NACRE_ELIMIT, -e, "bell", "cannot open a descriptor");
    completion_set_bell(session);
    return session->bell_fd;
}
