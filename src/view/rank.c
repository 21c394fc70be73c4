#include "view/rank.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/defs.h"
#include "text/frame.h"

#define RANK_CAUSES 6  /* at most so many causes of both streams */
#define RANK_MORE   3  /* and so many if the likeliest one is shown anyway */
#define RANK_TOP    3  /* so many of both are shown with the lines near them */
#define SPREAD      27 /* what is so far below the best one is left out */
#define FIRST       8  /* what the first failure is worth more */
#define AGAIN       18 /* what the second one of a kind is worth less, the last one twice that */
#define OFTEN       7  /* and a kind for each time that its number doubles, */
#define COMMON      4  /* likewise for each time that the lines of its word double, */
#define MANY        16 /* lines with one word: that is how the program speaks, failing or not */
#define OFTEN_MOST  42 /* but not more, */
#define COMMON_MOST 24 /* and a rare one of a common word keeps a lead */

static const int worth[] = {
    [SALIENCE_NONE] = 0,   [SALIENCE_WARNING] = 12, [SALIENCE_MENTION] = 36,
    [SALIENCE_ERROR] = 70, [SALIENCE_CAUSE] = 88,
};

struct ranked {
    const struct cause *cause;
    struct raw_lines raw; /* in the whole stream */
    int score;
    bool often; /* many lines of its stream have its word: that is how the program speaks */
    int stream;
    bool after; /* behind a gap */
    bool shown; /* among the first or the last lines */
    bool taken;
};

struct ranking {
    struct ranked *all;
    size_t count;
    int best;
};

static struct raw_lines in_stream(const struct shown_stream *s, const struct raw_lines *raw,
                                  bool after)
{
    uint64_t lines = after ? s->line_base : 0, bytes = after ? s->byte_base : 0;
    return (struct raw_lines){raw->number + lines, raw->end + lines, raw->offset + bytes,
                              raw->end_offset + bytes};
}

static bool is_shown(const struct shown_stream *s, const struct raw_lines *raw)
{
    return raw->number <= choose_first_lines(s) || raw->number >= choose_last_number(s);
}

static int doublings(uint64_t count)
{
    return 63 - __builtin_clzll(count | 1);
}

static int score_of(const struct causes *causes, const struct cause_kind *kind, size_t nth)
{
    int often = OFTEN * doublings(kind->count);
    int common = MIN(COMMON * doublings(causes_in_family(causes, kind)), COMMON_MOST);
    return worth[kind->salience] - MIN(MAX(often, common), OFTEN_MOST) - AGAIN * (int)nth;
}

static void add_part(struct ranking *r, const struct shown_stream *s, int stream, bool after)
{
    const struct causes *causes = &(after ? s->after : s->before)->causes;
    for (size_t i = 0; i < causes->kind_count; i++) {
        const struct cause_kind *kind = &causes->kinds[i];
        for (size_t n = 0; n < causes_kept(kind); n++) {
            const struct cause *cause = &kind->kept[n];
            struct raw_lines raw = in_stream(s, &cause->raw, after);
            r->all[r->count++] = (struct ranked){
                .cause = cause,
                .raw = raw,
                .score = score_of(causes, kind, n),
                .often = causes_in_family(causes, kind) >= MANY,
                .stream = stream,
                .after = after,
                .shown = is_shown(s, &raw),
            };
        }
    }
}

/* The first failure of a stream is likelier to be the cause than what followed from it. */
static void prefer_first(struct ranking *r, size_t from)
{
    struct ranked *first = NULL;
    for (size_t i = from; i < r->count; i++) {
        struct ranked *one = &r->all[i];
        if (one->cause->salience >= SALIENCE_ERROR && !one->often &&
            (!first || one->raw.number < first->raw.number))
            first = one;
    }
    if (first)
        first->score += FIRST;
}

static int by_score(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->score != y->score)
        return x->score < y->score ? 1 : -1;
    if (x->stream != y->stream)
        return y->stream - x->stream;
    return (x->raw.number > y->raw.number) - (x->raw.number < y->raw.number);
}

static int rank_all(struct ranking *r, const struct shown_stream streams[2])
{
    size_t parts = 2 + (streams[0].after != NULL) + (streams[1].after != NULL);
    r->all = malloc(parts * CAUSE_KINDS * (CAUSE_FIRST + 1) * sizeof *r->all);
    if (!r->all)
        return -1;
    for (int s = 0; s < 2; s++) {
        size_t from = r->count;
        add_part(r, &streams[s], s, false);
        if (streams[s].after)
            add_part(r, &streams[s], s, true);
        prefer_first(r, from);
    }
    qsort(r->all, r->count, sizeof *r->all, by_score);
    r->best = r->count > 0 ? r->all[0].score : 0;
    return 0;
}

/* -- Lifting ----------------------------------------------------------------------------------- */

static size_t lifted_cost(uint64_t number, const char *text, size_t size)
{
    return (size_t)snprintf(NULL, 0, LIFTED_CAUSE "\n", (unsigned long long)number) +
           frame_size(text, size);
}

static struct lifted *find_lifted(struct shown_stream *s, uint64_t number)
{
    for (size_t i = 0; i < s->lifted_count; i++)
        if (s->lifted[i].raw.number == number)
            return &s->lifted[i];
    return NULL;
}

/* The first line of a stream pays for the heading. What is lifted already may be near another. */
static bool lift(struct shown_stream *s, const struct lifted *line, size_t *room)
{
    struct lifted *there = find_lifted(s, line->raw.number);
    if (there)
        there->cause = MIN(there->cause, line->cause);
    size_t cost = lifted_cost(line->raw.number, line->text, line->size) +
                  (s->lifted_count == 0 ? CHOOSE_HEADING : 0);
    if (there || s->lifted_count == CHOOSE_LIFTED || cost > *room)
        return false;
    s->lifted[s->lifted_count++] = *line;
    *room -= cost;
    return true;
}

/* Without a failure what only speaks of one is none. */
static bool is_likely(const struct ranking *r, const struct ranked *one, bool failed)
{
    return one->score >= r->best - SPREAD && (failed || one->cause->salience >= SALIENCE_ERROR);
}

static void lift_causes(struct ranking *r, struct shown_stream streams[2], bool failed,
                        size_t *room)
{
    size_t lifted = 0, most = r->count > 0 && r->all[0].shown ? RANK_MORE : RANK_CAUSES;
    for (size_t i = 0; i < r->count && is_likely(r, &r->all[i], failed); i++) {
        struct ranked *one = &r->all[i];
        struct lifted line = {
            .raw = one->raw,
            .text = one->cause->text,
            .size = one->cause->size,
            .lost = one->cause->lost,
            .salience = one->cause->salience,
            .cause = one->raw.number,
        };
        if (!one->shown && lifted < most)
            one->taken = lift(&streams[one->stream], &line, room);
        lifted += one->taken;
    }
}

/* The lines near the likeliest ones. */
static void lift_near(const struct ranking *r, struct shown_stream streams[2], size_t *room)
{
    size_t top = 0;
    for (size_t i = 0; i < r->count && top < RANK_TOP; i++) {
        const struct ranked *one = &r->all[i];
        struct shown_stream *s = &streams[one->stream];
        if (!one->taken)
            continue;
        top++;
        for (size_t k = 0; k < one->cause->near_count; k++) {
            const struct near_line *near = &one->cause->near[k];
            struct lifted line = {
                .raw = in_stream(s, &near->raw, one->after),
                .text = near->text,
                .size = near->size,
                .lost = near->lost,
                .salience = SALIENCE_NONE,
                .cause = one->raw.number,
            };
            if (!is_shown(s, &line.raw))
                lift(s, &line, room);
        }
    }
}

static int by_number(const void *a, const void *b)
{
    const struct lifted *x = a, *y = b;
    return (x->raw.number > y->raw.number) - (x->raw.number < y->raw.number);
}

size_t rank_causes(struct shown_stream streams[2], size_t room, bool failed)
{
    struct ranking r = {0};
    size_t left = room;
    for (int s = 0; s < 2; s++)
        streams[s].lifted_count = 0;
    if (rank_all(&r, streams) < 0)
        return 0;
    lift_causes(&r, streams, failed, &left);
    lift_near(&r, streams, &left);
    for (int s = 0; s < 2; s++)
        qsort(streams[s].lifted, streams[s].lifted_count, sizeof streams[s].lifted[0], by_number);
    free(r.all);
    return room - left;
}
