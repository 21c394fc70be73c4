#include "view/collect.h"

#include <string.h>

#include "base/defs.h"
#include "run/log.h"

/* -- Lines that are kept ----------------------------------------------------------------------- */

/* The causes take each line when it is known where it ends: when the next one is there. */
static void take_newest(struct collect *c, uint64_t end, uint64_t end_offset)
{
    if (c->last.count == 0)
        return;
    size_t i = c->last.count - 1;
    const struct line *line = &c->last.all[i];
    struct cause_line taken = {
        .text = lines_text(&c->last, i),
        .size = line->size,
        .lost = line->lost,
        .raw = {line->number, end, line->offset, end_offset},
    };
    causes_take(&c->causes, line->salience, line->match, &taken);
}

/* Lets go of the lines that cannot be among the last any more. Done rarely, for many at once. */
static void evict(struct collect *c)
{
    size_t n = 0;
    for (size_t cost = c->last.cost; n + 1 < c->last.count; n++) {
        cost -= c->last.all[n].size + 1;
        if (cost < c->options.keep ||
            (c->last.count - n <= c->options.least && cost < COLLECT_MOST))
            break;
    }
    lines_drop(&c->last, n);
    c->evicted += n;
}

static bool is_full(const struct collect *c)
{
    size_t keep = MAX(c->options.keep, COLLECT_MOST);
    return c->last.cost > 2 * c->options.keep &&
           (c->last.count > 2 * c->options.least || c->last.cost > 2 * keep);
}

/* Judges the line that came last, which either end keeps. */
static void judge_line(struct collect *c)
{
    size_t at, i = c->last.count - 1;
    struct line *line = &c->last.all[i];
    line->salience = (uint8_t)causes_judge(&c->causes, c->options.filter, lines_text(&c->last, i),
                                           line->size, &at);
    line->match = (uint16_t)at;
    if (!c->first_full)
        c->first.all[c->first.count - 1].salience = line->salience;
}

static int collect_line(void *self, const struct render_line *line)
{
    struct collect *c = self;
    bool torn = c->options.torn && c->evicted == 0 && c->last.count == 0;
    if (!c->first_full && c->first.cost + line->size + 1 > c->options.keep)
        c->first_full = true;
    take_newest(c, line->line, line->offset);
    int r = c->first_full ? 0 : lines_add(&c->first, line, torn);
    if (r == 0)
        r = lines_add(&c->last, line, torn);
    if (r < 0)
        return r;
    judge_line(c);
    if (is_full(c))
        evict(c);
    return 0;
}

/* -- Lines that are only looked at ------------------------------------------------------------- */

/* The first line that is too long to be shown as it is begins there; size if there is none. */
static size_t first_long(const struct render_lines *lines)
{
    size_t at = 0;
    while (lines->size - at > lines->line_max) {
        const char *stop = memrchr(lines->text + at, '\n', lines->line_max + 1);
        if (!stop)
            return at;
        at = (size_t)(stop + 1 - lines->text);
    }
    return lines->size;
}

/* Where the line begins that ends with the newline before this index. */
static size_t line_before(const char *text, size_t end)
{
    const char *stop = memrchr(text, '\n', end - 1);
    return stop ? (size_t)(stop + 1 - text) : 0;
}

/* How many bytes of some lines cannot be among the last, for what follows them up to end. Equal
 * lines count as one, and stay together. */
static size_t bytes_to_pass(const struct collect *c, const char *text, size_t end)
{
    size_t at = end, cost = 0, count = 0, size = 0;
    while (at > 0) {
        size_t start = line_before(text, at);
        bool equal = count > 0 && at - start == size && memcmp(text + start, text + at, size) == 0;
        if (!equal && cost >= c->options.keep &&
            (count >= c->options.least || cost >= COLLECT_MOST))
            return at;
        cost += equal ? 0 : at - start;
        count += !equal;
        size = at - start;
        at = start;
    }
    return 0;
}

/* Where it is in whole lines. */
struct walk {
    const char *text;
    size_t size, at;
    uint64_t number, offset; /* of the line at at */
};

/* The line there, without those that are equal to it. */
static struct cause_line walk_line(const struct walk *w)
{
    const char *stop = memchr(w->text + w->at, '\n', w->size - w->at);
    size_t size = (size_t)(stop - (w->text + w->at));
    return (struct cause_line){
        .text = w->text + w->at,
        .size = size,
        .raw = {w->number, w->number + 1, w->offset, w->offset + size + 1},
    };
}

static void walk_to(struct walk *w, size_t at, uint64_t number)
{
    w->offset += at - w->at;
    w->number = number;
    w->at = at;
}

/* Where the lines begin that stand before this one, equal ones counting as one; not before
 * the walk. */
static size_t some_back(const struct walk *w, size_t at)
{
    for (size_t back = 0; back < CAUSE_BEFORE && at > w->at; back++) {
        size_t start = line_before(w->text, at), size = at - start;
        at = start;
        while (at - w->at >= size && memcmp(w->text + at - size, w->text + start, size) == 0 &&
               (at == size || w->text[at - size - 1] == '\n'))
            at -= size;
    }
    return at;
}

/* Takes a line, with those that are equal to it, and goes on to the next. */
static void take_equal(struct collect *c, struct walk *w)
{
    struct cause_line line = walk_line(w);
    size_t at, size = line.size + 1, next = w->at + size;
    for (; w->size - next >= size && memcmp(w->text + next, line.text, size) == 0; next += size)
        line.raw.end++;
    line.raw.end_offset = line.raw.offset + (next - w->at);
    enum salience salience = causes_judge(&c->causes, c->options.filter, line.text, line.size, &at);
    causes_take(&c->causes, salience, at, &line);
    walk_to(w, next, line.raw.end);
}

/* Goes to the next line that matters, and takes what stands from shortly before it up to it. */
static void take_next(struct collect *c, struct walk *w)
{
    size_t found = w->at;
    if (!causes_await(&c->causes)) {
        found += salience_next(c->options.filter, w->text + w->at, w->size - w->at);
        found = found < w->size ? line_before(w->text, found + 1) : w->size;
    }
    size_t from = some_back(w, found);
    walk_to(w, from, w->number + log_count_newlines(w->text + w->at, from - w->at));
    while (w->at < w->size && w->at <= found)
        take_equal(c, w);
}

/* Looks for causes in whole lines. Returns how many lines that was. */
static uint64_t look_through(struct collect *c, const struct render_lines *lines, size_t size)
{
    struct walk w = {lines->text, size, 0, lines->line, lines->offset};
    while (w.at < size)
        take_next(c, &w);
    return w.number - lines->line;
}

/* Lets go of all lines at hand: enough others follow. */
static void evict_all(struct collect *c, const struct render_lines *end)
{
    take_newest(c, end->line, end->offset);
    c->evicted += c->last.count;
    lines_drop(&c->last, c->last.count);
}

/* What is neither among the first nor the last lines is only looked at, many lines at once. */
static size_t pass_over_lines(void *self, const struct render_lines *lines, uint64_t *ret_count)
{
    struct collect *c = self;
    size_t size = c->first_full ? bytes_to_pass(c, lines->text, first_long(lines)) : 0;
    if (size == 0)
        return 0;
    evict_all(c, lines);
    *ret_count = look_through(c, lines, size);
    c->evicted += *ret_count;
    return size;
}

int collect_new(const struct collect_options *options, struct collect **ret)
{
    struct render_options render = {
        .first_line = 1, .line_max = options->line_max, .fold = true, .pass = pass_over_lines};
    struct collect *c = calloc(1, sizeof *c);
    if (!c)
        return -ENOMEM;
    c->options = *options;
    int r = render_new(&render, collect_line, c, &c->render);
    if (r < 0) {
        collect_free(c);
        return r;
    }
    *ret = c;
    return 0;
}

void collect_free(struct collect *c)
{
    if (!c)
        return;
    render_free(c->render);
    lines_done(&c->first);
    lines_done(&c->last);
    free(c);
}

int collect_feed(struct collect *c, const char *data, size_t size)
{
    if (size == 0)
        return 0;
    strange_take(&c->sample, data, size);
    c->bytes += size;
    c->newlines += log_count_newlines(data, size);
    c->unfinished = data[size - 1] != '\n';
    return render_feed(c->render, data, size);
}

int collect_finish(struct collect *c)
{
    int r = render_finish(c->render);
    take_newest(c, c->newlines + c->unfinished + 1, c->bytes);
    return r;
}
