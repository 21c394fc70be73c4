/*
 * The output of shells that somebody looks at: one watch for each of them, whoever many look. What
 * prints faster than anybody can read is shown in part: where its end is, so often in a second.
 */
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/base64.h"
#include "base/clock.h"
#include "page/page.h"
#include "page/picture.h"
#include "session/session.h"

#define PIECE    ((size_t)16 << 10)
#define AT_ONCE  ((size_t)64 << 10) /* bytes of one shell */
#define A_LOT    ((size_t)8 << 10)  /* after so many others have their turn for PAUSE_MS */
#define BEHIND   ((uint64_t)256 << 10)
#define PAUSE_MS 25

struct followed {
    struct followed *next;
    nacre_id id;
    nacre_watch *watch;      /* NULL = nothing more comes */
    struct picture *picture; /* of one with a terminal */
    uint64_t at;             /* in its log */
    bool armed;              /* epoll tells of it */
    bool ready;
    int64_t next_ns; /* when it may be read on */
};

static struct followed *find_follow(const struct live_page *p, const nacre_id *id)
{
    for (struct followed *f = p->follows; f; f = f->next)
        if (nacre_id_equal(&f->id, id))
            return f;
    return NULL;
}

static void arm(struct live_page *p, struct followed *f, bool armed)
{
    struct epoll_event event = {.events = armed ? EPOLLIN : 0, .data.ptr = f};
    if (f->armed != armed && f->watch)
        epoll_ctl(p->epoll, EPOLL_CTL_MOD, nacre_watch_fd(f->watch), &event);
    f->armed = armed;
}

static void end_following(struct live_page *p, struct followed *f)
{
    if (f->watch)
        epoll_ctl(p->epoll, EPOLL_CTL_DEL, nacre_watch_fd(f->watch), NULL);
    nacre_watch_close(f->watch);
    f->watch = NULL;
}

static void free_follow(struct live_page *p, struct followed *f)
{
    end_following(p, f);
    UNLINK(p->follows, f);
    picture_free(f->picture);
    free(f);
}

void follow_begin(struct live_page *p, const nacre_id *id)
{
    const struct shown *s = shown_find(p, id);
    struct followed *f = !s || find_follow(p, id) ? NULL : calloc(1, sizeof *f);
    if (!f)
        return;
    *f = (struct followed){.id = *id, .at = s->end, .armed = true, .ready = true};
    if (s->tty)
        f->picture = picture_new(p, id);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = f};
    if (session_watch(p->session, id, f->at, &f->watch, NULL) < 0)
        f->watch = NULL;
    else
        epoll_ctl(p->epoll, EPOLL_CTL_ADD, nacre_watch_fd(f->watch), &event);
    f->next = p->follows;
    p->follows = f;
}

uint64_t follow_reached(struct live_page *p, const nacre_id *id)
{
    const struct followed *f = find_follow(p, id);
    return f ? f->at : 0;
}

void follow_hear(struct followed *f)
{
    f->ready = true;
}

int follow_write_screen(struct live_page *p, const nacre_id *id, struct buf *out)
{
    struct followed *f = find_follow(p, id);
    return f && f->picture ? picture_write(f->picture, true, out) : 0;
}

/* -- Output ----------------------------------------------------------------------------------- */

static void tell_output(struct live_page *p, const struct followed *f, const nacre_piece *piece,
                        const char *bytes)
{
    struct buf text cleanup_buf = BUF_UP_TO(PIECE * 2 + 512);
    if (buf_printf(&text,
                   "event: output\ndata: {\"id\":\"%s\",\"at\":%llu,\"stream\":%d,"
                   "\"ms\":%lld,\"bytes\":\"",
                   nacre_id_format(&f->id).s, (unsigned long long)piece->offset, (int)piece->stream,
                   (long long)piece->time_ms) == 0 &&
        base64_append(&text, bytes, piece->size) == 0 && buf_str(&text, "\"}\n\n") == 0)
        viewers_tell(p, &f->id, text.data, text.len, piece->offset + piece->size);
}

/* What is far behind is left out; it can be asked for by its place. */
static void catch_up(const struct live_page *p UNUSED, struct followed *f)
{
    nacre_record record cleanup_record = NACRE_RECORD_INIT;
    if (nacre_watch_record(f->watch, &record, NULL) < 0)
        return;
    uint64_t end = record.bytes[NACRE_STDOUT] + record.bytes[NACRE_STDERR];
    if (end - MIN(end, f->at) <= BEHIND)
        return;
    f->at = end - AT_ONCE / 2;
    session_watch_seek(f->watch, f->at);
}

static void read_followed(struct live_page *p, struct followed *f, int64_t now_ns)
{
    char bytes[PIECE];
    size_t size = 0;
    nacre_event event = {.kind = NACRE_EVENT_EXIT};
    int r = 0;
    while (size < AT_ONCE && event.kind != NACRE_EVENT_NONE && event.kind != NACRE_EVENT_END) {
        r = nacre_watch_next(f->watch, bytes, sizeof bytes, &event, NULL);
        if (r < 0)
            break;
        if (event.kind != NACRE_EVENT_OUTPUT)
            continue;
        size += event.piece.size;
        f->at = event.piece.offset + event.piece.size;
        if (!f->picture)
            tell_output(p, f, &event.piece, bytes);
    }
    f->ready = size >= AT_ONCE;
    if (r < 0 || event.kind == NACRE_EVENT_END) {
        end_following(p, f);
        return;
    }
    if (size >= A_LOT) {
        f->next_ns = now_ns + PAUSE_MS * NS_PER_MS;
        arm(p, f, false);
        catch_up(p, f);
    }
}

/* -- Screens ---------------------------------------------------------------------------------- */

static void draw_picture(struct live_page *p, struct followed *f, int64_t now_ns)
{
    struct buf text cleanup_buf = BUF_UP_TO(SIZE_MAX / 2);
    if (!picture_step(f->picture, now_ns))
        return;
    if (picture_write(f->picture, false, &text) == 0 && text.len > 0)
        viewers_tell(p, &f->id, text.data, text.len, f->at);
}

/* -- Turns ------------------------------------------------------------------------------------ */

void follows_step(struct live_page *p, int64_t now_ns)
{
    for (struct followed *f = p->follows, *next; f; f = next) {
        next = f->next;
        if (!viewers_look_at(p, &f->id)) {
            free_follow(p, f);
            continue;
        }
        if (!f->armed && f->watch && now_ns >= f->next_ns) {
            arm(p, f, true);
            f->ready = true;
        }
        bool news = f->watch && f->ready && f->armed;
        if (news)
            read_followed(p, f, now_ns);
        if (f->picture && news)
            picture_doubt(f->picture);
        if (f->picture)
            draw_picture(p, f, now_ns);
    }
}

int64_t follows_deadline(const struct live_page *p)
{
    int64_t deadline = INT64_MAX;
    for (const struct followed *f = p->follows; f; f = f->next) {
        if (f->watch && !f->armed)
            deadline = MIN(deadline, f->next_ns);
        else if (f->watch && f->ready)
            deadline = 0;
        if (f->picture)
            deadline = MIN(deadline, picture_deadline(f->picture));
    }
    return deadline;
}

void follows_end(struct live_page *p)
{
    while (p->follows)
        free_follow(p, p->follows);
}
