/* The loop of the server, and how it begins and ends. */
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/err.h"
#include "serve/house.h"
#include "serve/whereabouts.h"
#include "sys/end_signals.h"
#include "sys/fd.h"
#include "sys/sock.h"

#define EVENTS_AT_ONCE 64
#define TICK_MS        500
#define ACCEPT_AT_ONCE 64
#define LEAVE_MS       15000 /* for sessions to end when the server does */
#define HEAP_REST      (1 << 20)

static const struct http_limits usual_limits = {
    .body_max = RPC_LINE_MAX,
    .queue_max = (size_t)80 << 20,
    .head_ms = 10000,
    .body_ms = 30000,
    .idle_ms = 120000,
};

bool house_has_room(struct house *h, size_t count)
{
    if (count <= h->room)
        return true;
    size_t room = count * 2;
    struct pollfd *more = realloc(h->fds, room * sizeof *more);
    if (!more)
        return false;
    h->fds = more;
    h->room = room;
    return true;
}

/* -- Who comes -------------------------------------------------------------------------------- */

/* Without a descriptor left the one who waits would wake us for ever: the spare one is given for
 * him, and he is sent away. */
static void send_away(struct house *h, int listener)
{
    close_fd(&h->spare);
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    close_fd(&fd);
    h->spare = fd_lift_consume(open("/dev/null", O_RDONLY | O_CLOEXEC));
}

static void take_guests(struct house *h, int listener)
{
    for (int i = 0; i < ACCEPT_AT_ONCE; i++) {
        int fd = fd_lift_consume(accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (fd == -EMFILE || fd == -ENFILE)
            send_away(h, listener);
        if (fd < 0 && fd != -ECONNABORTED)
            return;
        if (fd >= 0 && *h->path && !sock_peer_is_us(fd))
            close_fd(&fd);
        if (fd >= 0)
            guest_come(h, fd);
    }
}

static bool is_our_listener(const struct house *h, const void *what)
{
    return what >= (const void *)h->listeners &&
           what < (const void *)(h->listeners + LISTENERS_MAX);
}

static void take_epoll_event(struct house *h, const struct epoll_event *event)
{
    if (event->data.ptr == &h->signals)
        h->ended = true;
    else if (is_our_listener(h, event->data.ptr))
        take_guests(h, *(const int *)event->data.ptr);
    else
        guest_turn(event->data.ptr, event->events);
}

/* -- Turns ------------------------------------------------------------------------------------ */

static size_t poll_page(struct house *h, size_t begin)
{
    size_t count = h->page ? page_poll_count(h->page) : 0;
    if (count == 0 || !house_has_room(h, begin + count))
        return begin;
    page_poll(h->page, h->fds + begin);
    return begin + count;
}

/* While calls are under way their descriptors are polled beside the epoll; else it is asked at
 * once. */
static int await_events(struct house *h, struct epoll_event *events)
{
    size_t count = poll_page(h, members_poll(h, 1));
    int64_t deadline = MIN(members_deadline(h), h->guest_count > 0 ? h->tick_ns : INT64_MAX);
    if (h->page)
        deadline = MIN(deadline, page_deadline(h->page));
    int left = clock_left_ms(deadline);
    h->fds[0] = (struct pollfd){.fd = h->epoll, .events = POLLIN};
    if (count > 1) {
        if (poll(h->fds, count, left) < 0)
            return 0;
        left = 0;
    }
    return epoll_wait(h->epoll, events, EVENTS_AT_ONCE, left);
}

static void turn_house(struct house *h)
{
    struct epoll_event events[EVENTS_AT_ONCE];
    int n = await_events(h, events);
    int64_t now = clock_mono_ns();
    members_step(h);
    for (int i = 0; i < n; i++)
        take_epoll_event(h, &events[i]);
    if (h->page)
        page_step(h->page);
    guests_settle(h);
    if (now >= h->tick_ns) {
        h->tick_ns = clock_deadline(TICK_MS);
        guests_tick(h, now);
    }
    members_tick(h, now);
    guests_sweep(h);
}

/* -- Life ------------------------------------------------------------------------------------- */

static int open_ears(struct house *h, nacre_error *err)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &h->signals};
    h->signals = end_signals_catch();
    h->epoll = fd_lift_consume(epoll_create1(EPOLL_CLOEXEC));
    h->spare = fd_lift_consume(open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (h->signals < 0 || h->epoll < 0 ||
        epoll_ctl(h->epoll, EPOLL_CTL_ADD, h->signals, &event) < 0 || !house_has_room(h, 64))
        return err_sys(err, NACRE_ELIMIT, errno, "epoll", "cannot listen to events");
    return 0;
}

static int load_token(struct house *h, nacre_error *err)
{
    const struct serve_options *o = h->options;
    if (o->no_token || h->admit.open) {
        h->admit.open = true;
        return 0;
    }
    return token_load(o->token_file, false, &h->admit.token, err);
}

/* All at once, each with its grace. */
static void await_leaving(struct house *h)
{
    int64_t deadline = clock_deadline(LEAVE_MS);
    members_leave(h);
    while (h->closing && clock_left_ms(deadline) != 0) {
        size_t count = members_poll(h, 0);
        poll(h->fds, count, clock_left_ms(MIN(deadline, members_deadline(h))));
        members_step(h);
    }
    while (h->closing) {
        struct closing_session *c = h->closing;
        h->closing = c->next;
        c->op->end(c->op);
        free(c);
    }
}

static void touch_guest(struct http_conn *c)
{
    guest_touch((struct guest *)c);
}

static int begin_page(struct house *h, nacre_error *err)
{
    const struct serve_options *o = h->options;
    if (o->no_page)
        return 0;
    h->page_options = (struct page_options){.settings = o->settings, .touched = touch_guest};
    passes_load(&h->admit.passes, o->home);
    int r = page_new(&h->page_options, &h->page);
    if (r < 0)
        return err_sys(err, NACRE_ELIMIT, -r, "epoll", "cannot serve a page");
    whereabouts_write(o->home, h->where);
    return 0;
}

static int open_house(struct house *h, nacre_error *err)
{
    int r = open_ears(h, err);
    if (r == 0)
        r = listen_open(h, err);
    if (r == 0)
        r = load_token(h, err);
    return r == 0 ? begin_page(h, err) : r;
}

int serve_run(const struct serve_options *options, serve_told_fn *told, void *userdata,
              nacre_error *reterr)
{
    struct house h = {.options = options,
                      .limits = usual_limits,
                      .epoll = -EBADF,
                      .signals = -EBADF,
                      .spare = -EBADF};
    for (size_t i = 0; i < LISTENERS_MAX; i++)
        h.listeners[i] = -EBADF;
    mallopt(M_TRIM_THRESHOLD, HEAP_REST);
    int r = open_house(&h, reterr);
    if (r == 0 && told)
        told(h.where, userdata);
    while (r == 0 && !h.ended)
        turn_house(&h);
    if (h.page)
        whereabouts_remove(options->home, h.where);
    listen_close(&h);
    await_leaving(&h);
    page_free(h.page);
    guests_leave(&h);
    close_fd(&h.epoll);
    close_fd(&h.signals);
    close_fd(&h.spare);
    free(h.fds);
    return r;
}
