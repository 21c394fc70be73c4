#include "view/choose.h"

#include <stdio.h>
#include <string.h>

#include "base/defs.h"
#include "view/cut.h"
#include "view/frame.h"

#define ELLIPSIS      "\xe2\x80\xa6"
#define ELLIPSIS_SIZE (sizeof ELLIPSIS - 1)
#define REPEATED      "[repeated %llu more times]\n"
#define WARNINGS_MAX  4 /* of the causes that are shown, if there are others */

struct collect *choose_tail(const struct shown *s)
{
    return s->after ? s->after : s->before;
}

static uint64_t tail_base(const struct shown *s)
{
    return s->after ? s->line_base : 0;
}

/* -- Lines ------------------------------------------------------------------------------------ */

static size_t repeated_size(uint64_t count)
{
    return count > 1 ? (size_t)snprintf(NULL, 0, REPEATED, (unsigned long long)(count - 1)) : 0;
}

size_t choose_line_cost(const struct lines *lines, size_t i, size_t limit)
{
    const struct line *line = &lines->all[i];
    const char *text = lines_text(lines, i);
    struct cut cut = cut_of(text, line->size, line->lost);
    uint64_t lost;
    size_t size = cut_middle(NULL, limit, &cut, &lost);
    /* The beginning decides about the frame; what is behind a separator costs a byte at most. */
    size += frame_size(text, line->size) - line->size;
    return size + 1 + (line->torn ? ELLIPSIS_SIZE : 0) + repeated_size(line->count);
}

static int write_text(struct buf *out, const struct lines *lines, size_t i, size_t limit)
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
    if (r == 0)
        r = write_text(out, lines, i, limit);
    if (r == 0)
        r = buf_str(out, "\n");
    if (r == 0 && line->count > 1)
        r = buf_printf(out, REPEATED, (unsigned long long)(line->count - 1));
    return r;
}

static bool is_cut(const struct lines *lines, size_t i, size_t limit)
{
    return lines->all[i].lost > 0 || lines->all[i].size > limit;
}

uint64_t choose_cut_lines(const struct shown *s, uint64_t *ret_from, uint64_t *ret_to)
{
    const struct lines *first = &s->before->first, *last = &choose_tail(s)->last;
    uint64_t n = 0;
    *ret_from = *ret_to = 0;
    for (size_t i = 0; i < s->first; i++)
        n += is_cut(first, i, s->limit);
    for (size_t i = 0; i < s->cause_count; i++)
        n += s->causes[i].cause->lost > 0;
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

bool choose_is_complete(const struct shown *s)
{
    const struct lines *all = &s->before->last;
    bool cut = false;
    for (size_t i = 0; i < all->count; i++)
        cut |= all->all[i].lost > 0;
    return !cut && !s->after && s->before->evicted == 0 && s->before->bytes == s->bytes;
}

size_t choose_whole_cost(const struct shown *s)
{
    size_t cost = 0;
    for (size_t i = 0; i < s->before->last.count; i++)
        cost += choose_line_cost(&s->before->last, i, SIZE_MAX);
    return cost;
}

void choose_whole(struct shown *s)
{
    s->limit = SIZE_MAX;
    s->first = s->cause_count = 0;
    s->last = 0;
}

uint64_t choose_first_lines(const struct shown *s)
{
    return s->first > 0 ? s->before->first.all[s->first].number - 1 : 0;
}

uint64_t choose_first_bytes(const struct shown *s)
{
    return s->first > 0 ? s->before->first.all[s->first].offset : 0;
}

/* Where the last lines begin, in the numbers of their part. A stretch that shows nothing at all,
 * such as one of colours only, is shown by showing none of its lines. */
static uint64_t last_number(const struct shown *s, uint64_t *ret_offset)
{
    const struct collect *tail = choose_tail(s);
    bool all = s->last == 0 && tail->evicted == 0;
    bool none = s->last == tail->last.count;
    *ret_offset = all ? 0 : none ? tail->bytes : tail->last.all[s->last].offset;
    return all ? 1 : none ? tail->newlines + tail->unfinished + 1 : tail->last.all[s->last].number;
}

uint64_t choose_last_number(const struct shown *s)
{
    uint64_t offset;
    return tail_base(s) + last_number(s, &offset);
}

uint64_t choose_last_lines(const struct shown *s)
{
    uint64_t offset;
    const struct collect *tail = choose_tail(s);
    return tail->newlines + tail->unfinished + 1 - last_number(s, &offset);
}

uint64_t choose_last_bytes(const struct shown *s)
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
static size_t more_cost(const struct shown *s, uint64_t lines, uint64_t floor)
{
    const struct lines *last = &choose_tail(s)->last;
    size_t cost = 0;
    for (size_t i = s->last; i > 0 && lines > 0 && last->all[i - 1].number > floor; i--, lines--)
        cost += choose_line_cost(last, i - 1, s->limit);
    return cost;
}

static size_t show_more(struct shown *s, uint64_t lines, size_t room, uint64_t floor)
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
static size_t show_safe(struct shown streams[2], size_t room)
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

/* The causes of a part of a stream, in the order of its lines: among the first lines that are not
 * shown, in what is gone, and among the last lines that are not shown. */
enum { AT_FIRST, GONE, AT_LAST, PLACES };

struct found {
    struct causes at_hand[2][PLACES];
};

void choose_done(struct shown *s)
{
    free(s->found);
    s->found = NULL;
}

static const struct causes *found_at(const struct shown *s, int part, int place)
{
    const struct collect *c = part ? s->after : s->before;
    return place == GONE ? &c->causes : &s->found->at_hand[part][place];
}

/* Looks for causes in all that is not shown. */
static void look_for_causes(struct shown *s)
{
    memset(s->degrees, 0, sizeof s->degrees);
    for (int part = 0; part <= (s->after ? 1 : 0); part++) {
        const struct collect *c = part ? s->after : s->before;
        struct causes *at = s->found->at_hand[part];
        causes_clear(&at[AT_FIRST]);
        causes_clear(&at[AT_LAST]);
        collect_look(c, part ? 0 : s->first, c == choose_tail(s) ? s->last : c->last.count,
                     &at[AT_FIRST], &at[AT_LAST]);
        for (int place = 0; place < PLACES; place++)
            for (size_t degree = 0; degree < ARRAY_SIZE(s->degrees); degree++)
                s->degrees[degree] += found_at(s, part, place)->count[degree];
    }
}

static size_t cause_cost(const struct chosen_cause *c)
{
    return (size_t)snprintf(NULL, 0, "%llu: \n", (unsigned long long)c->number) + c->cause->size;
}

static struct chosen_cause absolute(const struct shown *s, const struct cause *cause, bool after)
{
    uint64_t lines = after ? s->line_base : 0, bytes = after ? s->byte_base : 0;
    return (struct chosen_cause){
        .cause = cause,
        .number = cause->number + lines,
        .end = cause->end + lines,
        .offset = cause->offset + bytes,
        .end_offset = cause->end_offset + bytes,
    };
}

/* All causes of a degree that were kept, in the order of their lines. */
static size_t list_causes(const struct shown *s, enum salience degree, struct chosen_cause *list)
{
    size_t count = 0;
    for (int part = 0; part <= (s->after ? 1 : 0); part++)
        for (int place = 0; place < PLACES; place++) {
            const struct causes *from = found_at(s, part, place);
            const struct cause *cause;
            for (size_t k = 0; (cause = causes_get(from, degree, k)); k++)
                list[count++] = absolute(s, cause, part == 1);
        }
    return count;
}

/* The likeliest first: by degree, and of each degree from both ends inwards. */
static void gather_causes(struct shown *s)
{
    struct chosen_cause list[2 * PLACES * 2 * CAUSES_KEPT];
    s->cause_count = 0;
    for (size_t degree = SALIENCE_CAUSE; degree > SALIENCE_NONE; degree--) {
        size_t most = CHOOSE_CAUSES;
        if (degree == SALIENCE_WARNING && s->cause_count > 0)
            most = MIN(most, s->cause_count + WARNINGS_MAX);
        size_t count = list_causes(s, degree, list);
        for (size_t k = 0; k < count && s->cause_count < most; k++)
            s->causes[s->cause_count++] = list[k % 2 == 0 ? k / 2 : count - 1 - k / 2];
    }
}

static size_t causes_cost(const struct chosen_cause *causes, size_t count)
{
    size_t cost = count > 0 ? CHOOSE_HEADING : 0;
    for (size_t i = 0; i < count; i++)
        cost += cause_cost(&causes[i]);
    return cost;
}

static int by_number(const void *a, const void *b)
{
    const struct chosen_cause *x = a, *y = b;
    return (x->number > y->number) - (x->number < y->number);
}

/* As many of the gathered ones as there is room for. */
static size_t show_causes(struct shown *s, size_t room)
{
    size_t used = CHOOSE_HEADING, count = 0;
    for (; count < s->cause_count; count++) {
        size_t cost = cause_cost(&s->causes[count]);
        if (used + cost > room)
            break;
        used += cost;
    }
    s->cause_count = count;
    qsort(s->causes, count, sizeof s->causes[0], by_number);
    return count > 0 ? used : 0;
}

/* How many of the first lines may be shown: such that it is known where the next one begins, and
 * it is not one of the last. */
static size_t first_max(const struct shown *s)
{
    const struct lines *first = &s->before->first;
    size_t n = 0;
    while (n + 1 < first->count && (s->after || first->all[n + 1].number <= choose_last_number(s)))
        n++;
    return n;
}

static size_t first_cost(const struct shown *s, size_t room, size_t *ret_count)
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

/* What is shown otherwise is no cause that was left out. */
static void forget_causes(struct shown *s, const struct lines *lines, size_t from, size_t to)
{
    enum salience announced = SALIENCE_NONE;
    for (size_t i = from - (from > 0); i < to; i++) {
        enum salience salience = causes_judge(s->before->options.filter, &announced,
                                              lines_text(lines, i), lines->all[i].size);
        if (i >= from)
            s->degrees[salience]--;
    }
    size_t left = 0;
    uint64_t last = choose_last_number(s);
    for (size_t i = 0; i < s->cause_count; i++)
        if (s->causes[i].number < last)
            s->causes[left++] = s->causes[i];
    s->cause_count = left;
}

uint64_t choose_cause_total(const struct shown *s)
{
    size_t lowest = ARRAY_SIZE(s->degrees);
    for (size_t i = 0; i < s->cause_count; i++)
        lowest = MIN(lowest, (size_t)s->causes[i].cause->salience);
    uint64_t total = 0;
    for (size_t degree = lowest; degree < ARRAY_SIZE(s->degrees); degree++)
        total += s->degrees[degree];
    return total;
}

static size_t stage_causes(struct shown streams[2], size_t room)
{
    size_t need[2], get[2], used = 0;
    for (int s = 0; s < 2; s++) {
        look_for_causes(&streams[s]);
        gather_causes(&streams[s]);
        need[s] = causes_cost(streams[s].causes, streams[s].cause_count);
    }
    fair(room, need, get);
    for (int s = 0; s < 2; s++)
        used += show_causes(&streams[s], get[s]);
    return used;
}

static size_t stage_first(struct shown streams[2], size_t room)
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
static uint64_t floor_of(const struct shown *s)
{
    return s->after ? 0 : choose_first_lines(s);
}

static size_t stage_more(struct shown streams[2], size_t room)
{
    size_t need[2], get[2], used = 0;
    for (int s = 0; s < 2; s++)
        need[s] = more_cost(&streams[s], UINT64_MAX, floor_of(&streams[s]));
    fair(room, need, get);
    for (int i = 0; i < 2; i++) {
        struct shown *s = &streams[i];
        size_t was = s->last;
        used += show_more(s, UINT64_MAX, get[i], floor_of(s));
        forget_causes(s, &choose_tail(s)->last, s->last, was);
        /* The first lines and the last ones have met: then all of it is shown as one. */
        if (s->first > 0 && !s->after && s->before->evicted == 0 &&
            choose_last_number(s) == choose_first_lines(s) + 1)
            s->first = s->last = 0;
    }
    return used;
}

static void show_none(struct shown streams[2])
{
    for (int s = 0; s < 2; s++)
        streams[s].last = choose_tail(&streams[s])->last.count;
}

/* All stages but the first. The room for causes is set aside before the first lines and more of the
 * last are chosen, and used after: which of them are shown anyway is known then. */
static void show_rest(struct shown streams[2], size_t left, size_t aside)
{
    left -= aside;
    left -= stage_first(streams, left / 3);
    left -= stage_more(streams, left);
    left += aside;
    left -= stage_causes(streams, left);
    stage_more(streams, left);
}

int choose(struct shown streams[2], size_t room, bool compact)
{
    show_none(streams);
    if (compact) {
        show_safe(streams, room);
        return 0;
    }
    for (int s = 0; s < 2; s++) {
        streams[s].found = malloc(sizeof *streams[s].found);
        if (!streams[s].found)
            return -ENOMEM;
    }
    size_t left = room - show_safe(streams, room - room / 4);
    size_t aside = stage_causes(streams, MAX(left / 2, MIN(left, room / 4)));
    if (aside == 0) {
        show_none(streams);
        left = room - show_safe(streams, room);
    }
    show_rest(streams, left, aside);
    return 0;
}
