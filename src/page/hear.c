/*
 * When to look again. The directory of runs says what is new and what is gone; the state of a run
 * is written whenever something of it changes; the log of the catalog, when something of a session
 * does. During a flood that is a thousand times a second: what was heard is only noted here.
 */
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>

#include "ask/desk_door.h"
#include "base/clock.h"
#include "base/grow.h"
#include "page/page.h"
#include "session/session.h"
#include "sys/fd.h"

#define LOOK_MS     50
#define EVENTS_SIZE 16384

static void say_deaf(struct live_page *p)
{
    p->deaf = true;
    news_set(p, &p->notes,
             strdup("{\"slow\":\"The system has no inotify watches left (fs.inotify.max_user_"
                    "watches): changes are looked for once a second.\"}"));
}

static int add_hearing(struct live_page *p, const char *path, uint32_t mask)
{
    int watch = inotify_add_watch(p->inotify, path, mask);
    if (watch < 0 && (errno == ENOSPC || errno == ENOMEM))
        say_deaf(p);
    return watch;
}

/* A session that asks something opens a door there. */
static void hear_desks(struct live_page *p, const char *home)
{
    char path[4200];
    if (p->desks_watch >= 0)
        return;
    snprintf(path, sizeof path, "%s/" DOOR_DIR, home);
    p->desks_watch = add_hearing(p, path, IN_CREATE | IN_DELETE | IN_ONLYDIR);
    p->asks_stale |= p->desks_watch >= 0;
}

/* The directory of runs may be made only when the first command starts. */
static void hear_runs(struct live_page *p)
{
    char path[4200];
    const char *home;
    if (p->inotify < 0 || nacre_session_home(p->session, &home, NULL, NULL) < 0)
        return;
    hear_desks(p, home);
    if (p->runs_watch >= 0)
        return;
    if (p->home_watch < 0)
        p->home_watch = add_hearing(p, home, IN_MODIFY | IN_CREATE | IN_MOVED_TO | IN_ONLYDIR);
    snprintf(path, sizeof path, "%s/runs", home);
    p->runs_watch =
        add_hearing(p, path, IN_CREATE | IN_MOVED_TO | IN_DELETE | IN_MOVED_FROM | IN_ONLYDIR);
}

static int hear_directory(struct live_page *p, const nacre_id *id)
{
    char path[4200];
    const char *home;
    if (p->inotify < 0 || nacre_session_home(p->session, &home, NULL, NULL) < 0)
        return -1;
    snprintf(path, sizeof path, "%s/runs/%s", home, nacre_id_format(id).s);
    return add_hearing(p, path, IN_MODIFY | IN_MOVED_TO | IN_ONLYDIR);
}

void hear_shell(struct live_page *p, struct shown *s)
{
    if (s->watch < 0)
        s->watch = hear_directory(p, &s->id);
}

void hear_no_more(struct live_page *p, struct shown *s)
{
    if (s->watch >= 0)
        inotify_rm_watch(p->inotify, s->watch);
    s->watch = -1;
}

static void doubt(struct live_page *p, struct shown *s)
{
    if (s->stale)
        return;
    s->stale = true;
    p->look_ns = MIN(p->look_ns, clock_deadline(LOOK_MS));
}

/* -- Keepers that wait ------------------------------------------------------------------------- */

/*
 * A directory of runs may belong to a keeper that waits for a command: it is no run yet, and only
 * its state will say that it has become one.
 */
static void await_beginning(struct live_page *p, const nacre_id *id)
{
    if (GROW(p->waiting, p->waiting_count, p->waiting_room) < 0)
        return;
    struct page_waiting *w = &p->waiting[p->waiting_count++];
    *w = (struct page_waiting){.id = *id, .watch = hear_directory(p, id)};
    w->stale = true;
    p->look_ns = MIN(p->look_ns, clock_deadline(LOOK_MS));
}

static void forget_waiting(struct live_page *p, struct page_waiting *w)
{
    if (w->watch >= 0)
        inotify_rm_watch(p->inotify, w->watch);
    *w = p->waiting[--p->waiting_count];
}

static int await_stray(const nacre_id *id, void *userdata)
{
    struct live_page *p = userdata;
    if (!shown_find(p, id))
        await_beginning(p, id);
    return 0;
}

static void await_strays(struct live_page *p)
{
    struct catalog *catalog;
    if (session_catalog(p->session, false, &catalog, NULL) == 0)
        catalog_each_stray(catalog, await_stray, p, NULL);
}

void hear_look_at_waiting(struct live_page *p)
{
    for (size_t i = p->waiting_count; i > 0; i--) {
        struct page_waiting *w = &p->waiting[i - 1];
        if (!w->stale && !p->deaf)
            continue;
        w->stale = false;
        nacre_id id = w->id;
        shown_look(p, &id);
        if (shown_find(p, &id))
            forget_waiting(p, w);
    }
}

/* -- Events ----------------------------------------------------------------------------------- */

static struct page_waiting *find_waiting(struct live_page *p, const nacre_id *id)
{
    for (size_t i = 0; i < p->waiting_count; i++)
        if (nacre_id_equal(&p->waiting[i].id, id))
            return &p->waiting[i];
    return NULL;
}

static void hear_of_run(struct live_page *p, const struct inotify_event *event)
{
    nacre_id id;
    if (event->len == 0 || nacre_id_parse(event->name, &id) < 0)
        return;
    struct shown *s = shown_find(p, &id);
    struct page_waiting *w = find_waiting(p, &id);
    if (s)
        doubt(p, s);
    else if (w && (event->mask & (IN_DELETE | IN_MOVED_FROM)))
        forget_waiting(p, w);
    else if (!w && (event->mask & (IN_CREATE | IN_MOVED_TO)))
        await_beginning(p, &id);
}

static void hear_of_state(struct live_page *p, const struct inotify_event *event)
{
    if (event->len == 0 || strncmp(event->name, "state", 5) != 0)
        return;
    for (size_t i = 0; i < p->shell_count; i++)
        if (p->shells[i]->watch == event->wd) {
            doubt(p, p->shells[i]);
            return;
        }
    for (size_t i = 0; i < p->waiting_count; i++)
        if (p->waiting[i].watch == event->wd) {
            p->waiting[i].stale = true;
            p->look_ns = MIN(p->look_ns, clock_deadline(LOOK_MS));
            return;
        }
}

static void take_notice(struct live_page *p, const struct inotify_event *event)
{
    if (event->mask & IN_Q_OVERFLOW)
        p->looked_at_all_ns = 0;
    else if (event->wd == p->runs_watch)
        hear_of_run(p, event);
    else if (event->wd == p->desks_watch)
        p->asks_stale = true;
    else if (event->wd == p->home_watch)
        p->sessions_stale = true;
    else
        hear_of_state(p, event);
}

void hear_step(struct live_page *p)
{
    char events[EVENTS_SIZE] __attribute__((aligned(__alignof__(struct inotify_event))));
    ssize_t n;
    hear_runs(p);
    while (p->inotify >= 0 && (n = read(p->inotify, events, sizeof events)) > 0)
        for (ssize_t at = 0; at < n;) {
            const struct inotify_event *event = (const struct inotify_event *)(events + at);
            at += (ssize_t)(sizeof *event + event->len);
            take_notice(p, event);
        }
}

/* -- Life ------------------------------------------------------------------------------------- */

void hear_open(struct live_page *p)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = p};
    p->runs_watch = p->home_watch = p->desks_watch = -1;
    p->inotify = fd_lift_consume(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    if (p->inotify < 0 || epoll_ctl(p->epoll, EPOLL_CTL_ADD, p->inotify, &event) < 0)
        say_deaf(p);
    hear_runs(p);
    await_strays(p);
}

void hear_close(struct live_page *p)
{
    close_fd(&p->inotify);
    free(p->waiting);
    p->waiting = NULL;
    p->waiting_count = p->waiting_room = 0;
    p->runs_watch = p->home_watch = p->desks_watch = -1;
    p->deaf = false;
}
