#include "view/choose.h"

#include <stdio.h>
#include <string.h>

#include "base/defs.h"
#include "text/brief.h"
#include "text/frame.h"
#include "view/rank.h"

#define ELLIPSIS      "\xe2\x80\xa6"
#define ELLIPSIS_SIZE (sizeof ELLIPSIS - 1)

struct collect *choose_tail(const struct shown_stream *s)
{
    return s->after ? s->after : s->before;
}

static uint64_t tail_base(const struct shown_stream *s)
{
    return s->after ? s->line_base : 0;
}

/* -- Lines ------------------------------------------------------------------------------------ */

size_t choose_line_cost(const struct lines *lines, size_t i, size_t limit)
{
    const struct line *line = &lines->all[i];
    const char *text = lines_text(lines, i);
    struct cut cut = cut_of(text, line->size, line->lost);
    uint64_t lost;
    size_t size = cut_middle(NULL, limit, &cut, &lost);
    /* The beginning decides about the frame; what is behind a separator costs a byte at most. */
    size += frame_size(text, line->size) - line->size;
    return size + 1 + (line->torn ? ELLIPSIS_SIZE : 0) +
           render_repeated_size(size + 1, line->count);
}

static int write_line_text(struct buf *out, const struct lines *lines, size_t i, size_t limit)
{
    const struct line *line = &lines->all[i];
    struct cut cut = cut_of(lines_text(lines, i), line->size, line->lost);
    if (line->size <= limit)
        return frame_write(out, cut.text, cut.size);
    cleanup_free char *shorter = malloc(limit);
    uint64_t lost;
    return shorter ? frame_write(out, shorter, cut_middle(shorter, limit, &cut, &lost)) : -ENOMEM;
}

int choose_write_line(struct buf *out, const struct lines *lines, size_t i, size_t limit)
{
    const struct line *line = &lines->all[i];
    int r = line->torn ? buf_str(out, ELLIPSIS) : 0;
    size_t before = out->len;
    if (r == 0)
        r = write_line_text(out, lines, i, limit);
    if (r == 0)
        r = buf_str(out, "\n");
    return r == 0 ? render_repeat(out, out->len - before, line->count) : r;
}

static bool is_cut(const struct lines *lines, size_t i, size_t limit)
{
    return lines->all[i].lost > 0 || lines->all[i].size > limit;
}

uint64_t choose_cut_lines(const struct shown_stream *s, uint64_t *ret_from, uint64_t *ret_to)
{
    const struct lines *first = &s->before->first, *last = &choose_tail(s)->last;
    uint64_t n = 0;
    *ret_from = *ret_to = 0;
    for (size_t i = 0; i < s->first; i++)
        n += is_cut(first, i, s->limit);
    for (size_t i = 0; i < s->lifted_count; i++)
        n += s->lifted[i].lost > 0;
    for (size_t i = s->last; i < last->count; i++) {
        if (!is_cut(last, i, s->limit))
            continue;
        n++;
        *ret_to = last->all[i].number + tail_base(s);
        *ret_from = *ret_from ? *ret_from : *ret_to;
    }
    return n;
}

/* -- What the choice stands for --------------------------------------------------------------- */

bool choose_is_complete(const struct shown_stream *s)
{
    const struct lines *all = &s->before->last;
    bool cut = false;
    for (size_t i = 0; i < all->count; i++)
        cut |= all->all[i].lost > 0;
    return !cut && !s->after && s->before->evicted == 0 && s->before->bytes == s->bytes;
}

size_t choose_whole_cost(const struct shown_stream *s)
{
    size_t cost = 0;
    for (size_t i = 0; i < s->before->last.count; i++)
        cost += choose_line_cost(&s->before->last, i, SIZE_MAX);
    return cost;
}

void choose_whole(struct shown_stream *s)
{
    s->limit = SIZE_MAX;
    s->first = s->lifted_count = 0;
    s->last = 0;
}

uint64_t choose_first_lines(const struct shown_stream *s)
{
    return s->first > 0 ? s->before->first.all[s->first].number - 1 : 0;
}

uint64_t choose_first_bytes(const struct shown_stream *s)
{
    return s->first > 0 ? s->before->first.all[s->first].offset : 0;
}

/* Where the last lines begin, in the numbers of their part. A stretch that shows nothing at all,
 * such as one of colours only, is shown by showing none of its lines. */
static uint64_t last_number(const struct shown_stream *s, uint64_t *ret_offset)
{
    const struct collect *tail = choose_tail(s);
    bool all = s->last == 0 && tail->evicted == 0;
    bool none = s->last == tail->last.count;
    *ret_offset = all ? 0 : none ? tail->bytes : tail->last.all[s->last].offset;
    return all ? 1 : none ? tail->newlines + tail->unfinished + 1 : tail->last.all[s->last].number;
}

uint64_t choose_last_number(const struct shown_stream *s)
{
    uint64_t offset;
    return tail_base(s) + last_number(s, &offset);
}

uint64_t choose_last_lines(const struct shown_stream *s)
{
    uint64_t offset;
    const struct collect *tail = choose_tail(s);
    return tail->newlines + tail->unfinished + 1 - last_number(s, &offset);
}

uint64_t choose_last_bytes(const struct shown_stream *s)
{
    uint64_t offset;
    last_number(s, &offset);
    return choose_tail(s)->bytes - offset;
}

/* -- The stages ------------------------------------------------------------------------------- */

static void fair(size_t room, const size_t need[2], size_t ret[2])
{
    ret[0] = MIN(need[0], MAX(room / 2, room - MIN(room, need[1])));
    ret[1] = MIN(need[1], room - ret[0]);
}

/* The cost of up to so many lines more before those that are shown, but none up to floor. */
static size_t more_cost(const struct shown_stream *s, uint64_t lines, uint64_t floor)
{
    const struct lines *last = &choose_tail(s)->last;
    size_t cost = 0;
    for (size_t i = s->last; i > 0 && lines > 0 && last->all[i - 1].number > floor; i--, lines--)
        cost += choose_line_cost(last, i - 1, s->limit);
    return cost;
}

static size_t show_more(struct shown_stream *s, uint64_t lines, size_t room, uint64_t floor)
{
    const struct lines *last = &choose_tail(s)->last;
    size_t used = 0;
    for (; s->last > 0 && lines > 0 && last->all[s->last - 1].number > floor; lines--) {
        size_t cost = choose_line_cost(last, s->last - 1, s->limit);
        if (cost > room - used)
            break;
        used += cost;
        s->last--;
    }
    return used;
}

/* The safe lines, with the longest limit of a line that lets them fit. */
static size_t show_safe(struct shown_stream streams[2], size_t room)
{
    size_t need[2], get[2], used = 0;
    for (size_t limit = 8192; limit >= CUT_LEAST; limit /= 2) {
        for (int s = 0; s < 2; s++) {
            streams[s].limit = limit;
            need[s] = more_cost(&streams[s], streams[s].safe, 0);
        }
        if (need[0] + need[1] <= room)
            break;
    }
    fair(room, need, get);
    for (int s = 0; s < 2; s++)
        used += show_more(&streams[s], streams[s].safe, get[s], 0);
    return used;
}

/* How many of the first lines may be shown: such that it is known where the next one begins, and
 * it is not one of the last. */
static size_t first_max(const struct shown_stream *s)
{
    const struct lines *first = &s->before->first;
    size_t n = 0;
    while (n + 1 < first->count && (s->after || first->all[n + 1].number <= choose_last_number(s)))
        n++;
    return n;
}

static size_t first_cost(const struct shown_stream *s, size_t room, size_t *ret_count)
{
    size_t used = CHOOSE_HEADING, most = first_max(s);
    for (*ret_count = 0; *ret_count < most; ++*ret_count) {
        size_t cost = choose_line_cost(&s->before->first, *ret_count, s->limit);
        if (used + cost > room)
            break;
        used += cost;
    }
    return *ret_count > 0 ? used : 0;
}

/* -- Causes ----------------------------------------------------------------------------------- */

uint64_t choose_degree(const struct shown_stream *s, enum salience degree)
{
    return s->before->causes.count[degree] + (s->after ? s->after->causes.count[degree] : 0);
}

size_t choose_causes(const struct shown_stream *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->lifted_count; i++)
        n += s->lifted[i].salience != SALIENCE_NONE;
    return n;
}

static uint64_t count_from(const struct lines *lines, size_t from, size_t to, enum salience lowest)
{
    uint64_t n = 0;
    for (size_t i = from; i < to; i++)
        n += lines->all[i].salience >= lowest;
    return n;
}

uint64_t choose_cause_total(const struct shown_stream *s)
{
    enum salience lowest = SALIENCE_CAUSE;
    const struct lines *last = &choose_tail(s)->last;
    for (size_t i = 0; i < s->lifted_count; i++)
        if (s->lifted[i].salience != SALIENCE_NONE)
            lowest = MIN(lowest, s->lifted[i].salience);
    uint64_t total = 0;
    for (enum salience degree = lowest; degree <= SALIENCE_CAUSE; degree++)
        total += choose_degree(s, degree);
    return total - count_from(&s->before->first, 0, s->first, lowest) -
           count_from(last, s->last, last->count, lowest);
}

/* What the last lines show now is not lifted out of them, and what is near to nothing else goes
 * with it. */
static void drop_shown(struct shown_stream *s)
{
    size_t left = 0;
    uint64_t last = choose_last_number(s);
    for (size_t i = 0; i < s->lifted_count; i++)
        if (s->lifted[i].raw.number < last && s->lifted[i].cause < last)
            s->lifted[left++] = s->lifted[i];
    s->lifted_count = left;
}

static size_t stage_first(struct shown_stream streams[2], size_t room)
{
    size_t need[2], get[2], used = 0, count;
    for (int s = 0; s < 2; s++)
        need[s] = first_cost(&streams[s], room, &count);
    fair(room, need, get);
    for (int s = 0; s < 2; s++)
        used += first_cost(&streams[s], get[s], &streams[s].first);
    return used;
}

/* Where more of the last lines must stop: at the first ones. */
static uint64_t floor_of(const struct shown_stream *s)
{
    return s->after ? 0 : choose_first_lines(s);
}

static size_t stage_more(struct shown_stream streams[2], size_t room)
{
    size_t need[2], get[2], used = 0;
    for (int s = 0; s < 2; s++)
        need[s] = more_cost(&streams[s], UINT64_MAX, floor_of(&streams[s]));
    fair(room, need, get);
    for (int i = 0; i < 2; i++) {
        struct shown_stream *s = &streams[i];
        used += show_more(s, UINT64_MAX, get[i], floor_of(s));
        drop_shown(s);
        /* The first lines and the last ones have met: then all of it is shown as one. */
        if (s->first > 0 && !s->after && s->before->evicted == 0 &&
            choose_last_number(s) == choose_first_lines(s) + 1)
            s->first = s->last = 0;
    }
    return used;
}

static void show_none(struct shown_stream streams[2])
{
    for (int s = 0; s < 2; s++)
        streams[s].last = choose_tail(&streams[s])->last.count;
}

/* All stages but the first. The room for causes is set aside before the first lines and more of the
 * last are chosen, and used after: which of them are shown anyway is known then. */
static void show_rest(struct shown_stream streams[2], size_t left, size_t aside, bool failed)
{
    left -= aside;
    left -= stage_first(streams, left / 3);
    left -= stage_more(streams, left);
    left += aside;
    left -= rank_causes(streams, left, failed);
    stage_more(streams, left);
}

void choose_compact(struct shown_stream streams[2], size_t room)
{
    show_none(streams);
    show_safe(streams, room);
}

void choose(struct shown_stream streams[2], size_t room, bool failed)
{
    show_none(streams);
    size_t left = room - show_safe(streams, room - room / 4);
    size_t aside = rank_causes(streams, MAX(left / 2, MIN(left, room / 4)), failed);
    if (aside == 0) {
        show_none(streams);
        left = room - show_safe(streams, room);
    }
    show_rest(streams, left, aside, failed);
}
