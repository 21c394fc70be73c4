#include "tool/follow.h"

#include <string.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/err.h"
#include "screen/escape.h"
#include "session/session.h"
#include "sys/fd.h"
#include "tool/tool.h"

#define CHUNK     ((size_t)64 * 1024)
#define STEP_MAX  16                  /* chunks of one shell in one step: others want their turn */
#define LINE_MAX_ ((size_t)64 * 1024) /* of an unfinished line, its end is looked at */
#define SPAN_STEP ((size_t)16 * 1024) /* of new text, for a match that may span lines */
#define GATHER_MS 50                  /* what follows the first new output so soon goes with it */

/* One stream of text, without escape sequences: the unfinished line, or the last lines where a
 * match may span them, and what comes to it. */
struct window {
    struct escape escape;
    struct buf text;
    bool returned; /* the last byte was a carriage return */
};

struct look {
    nacre_watch *watch;
    bool watched; /* by the epoll */
    bool lingers; /* its command had ended before: only its tree can still end */
    bool ended;
    bool matched;
    bool satisfied;
    int64_t heard_ns; /* its last output */
    int64_t fresh_ns; /* its first new output, or 0 */
    struct window windows[2];
};

struct follow {
    struct follow_want want;
    struct look *looks;
    size_t count;
    int epoll; /* for several */
    int64_t wake_ns;
    char *chunk;
};

/* -- Text ------------------------------------------------------------------------------------- */

/* Escape sequences are gone; a carriage return begins a line, as a progress bar means it, unless it
 * is a part of a line's end. */
static int append_plain(struct window *w, const char *data, size_t size)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < size; i++) {
        if (escape_feed(&w->escape, (uint8_t)data[i]) != ESCAPE_TEXT)
            continue;
        if (w->returned && data[i] != '\n')
            r = buf_append(&w->text, "\n", 1);
        w->returned = data[i] == '\r';
        if (r == 0 && !w->returned)
            r = buf_append(&w->text, &data[i], 1);
    }
    return r;
}

/* Keeps the unfinished line, or what a match may begin in. */
static void forget_lines(struct window *w, bool spans)
{
    const char *newline = w->text.len > 0 ? memrchr(w->text.data, '\n', w->text.len) : NULL;
    size_t gone = newline && !spans ? (size_t)(newline + 1 - w->text.data) : 0;
    size_t most = spans ? FOLLOW_SPAN : LINE_MAX_;
    if (w->text.len - gone > most)
        gone = w->text.len - most;
    memmove(w->text.data, w->text.data + gone, w->text.len - gone);
    w->text.len -= gone;
}

/* The next bytes of a stream. */
static int look_at(struct follow *f, struct look *l, struct window *w, const char *data,
                   size_t size, nacre_error *err)
{
    if (append_plain(w, data, size) < 0)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    int r = match_find(f->want.until, w->text.data, w->text.len, err);
    l->matched = r > 0;
    if (w->text.len > 0)
        forget_lines(w, match_spans(f->want.until));
    return MIN(r, 0);
}

/* A pattern that spans lines goes over its window with every piece, and is quick on small texts. */
static int look_for_text(struct follow *f, struct look *l, const nacre_piece *piece,
                         nacre_error *err)
{
    struct window *w = &l->windows[piece->stream];
    if (!f->want.until || piece->size == 0)
        return 0;
    if (piece->gap_bytes > 0)
        w->text.len = 0;
    size_t most = match_spans(f->want.until) ? SPAN_STEP : CHUNK;
    int r = 0;
    for (size_t at = 0; r == 0 && !l->matched && at < piece->size; at += most)
        r = look_at(f, l, w, f->chunk + at, MIN(piece->size - at, most), err);
    return r;
}

/* -- One shell -------------------------------------------------------------------------------- */

static int take_event(struct follow *f, struct look *l, const nacre_event *event, nacre_error *err)
{
    switch (event->kind) {
    case NACRE_EVENT_OUTPUT:
        l->heard_ns = clock_mono_ns();
        l->fresh_ns = l->fresh_ns ? l->fresh_ns : l->heard_ns;
        return look_for_text(f, l, &event->piece, err);
    case NACRE_EVENT_SETTLED:
        l->ended = l->ended || !l->lingers;
        return 0;
    case NACRE_EVENT_END:
        l->ended = true;
        return 0;
    case NACRE_EVENT_NONE:
    case NACRE_EVENT_EXIT:
        return 0;
    }
    return 0;
}

/* 1 = there is more. */
static int listen(struct follow *f, struct look *l, nacre_error *err)
{
    for (int i = 0; i < STEP_MAX; i++) {
        nacre_event event;
        int r = nacre_watch_next(l->watch, f->chunk, CHUNK, &event, err);
        if (r == 0)
            r = take_event(f, l, &event, err);
        if (r < 0 || event.kind == NACRE_EVENT_NONE || event.kind == NACRE_EVENT_END)
            return r;
        if (l->matched)
            return 0;
    }
    return 1;
}

/* When it will be satisfied if nothing comes; INT64_MAX = not by itself. */
static int64_t due_ns(const struct follow *f, const struct look *l)
{
    bool plain = !f->want.until && f->want.idle_ms < 0 && !f->want.only_end;
    if (l->ended || l->matched)
        return 0;
    if (plain && l->fresh_ns)
        return l->fresh_ns + GATHER_MS * NS_PER_MS;
    return f->want.idle_ms >= 0 ? l->heard_ns + f->want.idle_ms * NS_PER_MS : INT64_MAX;
}

/* A watch that is over is always readable. */
static void stop_watching(struct follow *f, struct look *l)
{
    l->satisfied = true;
    if (l->watched)
        epoll_ctl(f->epoll, EPOLL_CTL_DEL, nacre_watch_fd(l->watch), NULL);
    l->watched = false;
}

int follow_step(struct follow *f, nacre_error *err)
{
    size_t satisfied = 0;
    f->wake_ns = INT64_MAX;
    for (size_t i = 0; i < f->count; i++) {
        struct look *l = &f->looks[i];
        int more = l->satisfied ? 0 : listen(f, l, err);
        if (more < 0)
            return more;
        int64_t due = due_ns(f, l);
        if (!l->satisfied && due <= clock_mono_ns())
            stop_watching(f, l);
        satisfied += l->satisfied;
        if (!l->satisfied)
            f->wake_ns = MIN(f->wake_ns, more ? 0 : due);
    }
    return f->want.all ? satisfied == f->count : satisfied > 0;
}

/* -- All of them ------------------------------------------------------------------------------ */

static int open_look(struct follow *f, struct look *l, nacre_session *session, const nacre_id *id,
                     uint64_t offset, nacre_error *err)
{
    nacre_record record cleanup_record = NACRE_RECORD_INIT;
    int r = session_check_id(session, id, false, err);
    if (r == 0)
        r = session_record(session, id, HOME_LIGHT, &record, NULL, err);
    if (r < 0)
        return r;
    l->lingers = record.outcome != NACRE_RUNNING && record.tree == NACRE_TREE_ALIVE;
    l->heard_ns = clock_mono_ns();
    for (int s = 0; s < 2; s++)
        l->windows[s].text = BUF_UP_TO(2 * (LINE_MAX_ + CHUNK));
    r = nacre_watch_open(session, id, offset, &l->watch, err);
    if (r < 0 || f->epoll < 0)
        return r;
    struct epoll_event event = {.events = EPOLLIN};
    if (epoll_ctl(f->epoll, EPOLL_CTL_ADD, nacre_watch_fd(l->watch), &event) < 0)
        return err_sys(err, NACRE_ELIMIT, errno, "wait", "cannot wait for several shells");
    l->watched = true;
    return 0;
}

int follow_new(nacre_session *session, const struct follow_want *want, const nacre_id *ids,
               const uint64_t *offsets, size_t count, struct follow **ret, nacre_error *err)
{
    struct follow *f = calloc(1, sizeof *f);
    if (!f)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    *f = (struct follow){.want = *want, .epoll = -EBADF, .wake_ns = INT64_MAX};
    f->looks = calloc(count, sizeof *f->looks);
    f->chunk = malloc(CHUNK);
    if (!f->looks || !f->chunk) {
        follow_free(f);
        return err_set(err, NACRE_ENOMEM, "out of memory");
    }
    int r = 0;
    if (count > 1 || want->joined) {
        f->epoll = fd_lift_consume(epoll_create1(EPOLL_CLOEXEC));
        if (f->epoll < 0)
            r = err_sys(err, NACRE_ELIMIT, errno, "wait", "cannot wait for several shells");
    }
    for (size_t i = 0; r == 0 && i < count; i++) {
        f->count++;
        r = open_look(f, &f->looks[i], session, &ids[i], offsets[i], err);
    }
    if (r < 0) {
        follow_free(f);
        return r;
    }
    *ret = f;
    return 0;
}

void follow_free(struct follow *f)
{
    if (!f)
        return;
    close_fd(&f->epoll);
    for (size_t i = 0; i < f->count; i++) {
        nacre_watch_close(f->looks[i].watch);
        for (int s = 0; s < 2; s++)
            buf_done(&f->looks[i].windows[s].text);
    }
    free(f->looks);
    free(f->chunk);
    free(f);
}

int follow_fd(const struct follow *f)
{
    return f->epoll < 0 ? session_watch_fd(f->looks[0].watch) : f->epoll;
}

int64_t follow_wake_ns(const struct follow *f)
{
    return f->wake_ns;
}

bool follow_matched(const struct follow *f, size_t i)
{
    return f->looks[i].matched;
}
