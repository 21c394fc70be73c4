#include "view/collect.h"

#include <stdlib.h>
#include <string.h>

#include "base/defs.h"
#include "run/log.h"

/* Looks at line i of either end. */
static void look(const struct collect *c, struct causes *causes, const struct lines *lines,
                 size_t i)
{
    bool next = i + 1 < lines->count;
    causes_look(causes, c->options.filter, lines, i,
                next ? lines->all[i + 1].number : c->newlines + c->unfinished + 1,
                next ? lines->all[i + 1].offset : c->bytes);
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
        if (c->evicted + n >= c->first.count)
            look(c, &c->causes, &c->last, n);
    }
    lines_drop(&c->last, n);
    c->evicted += n;
}

void collect_look(const struct collect *c, size_t first, size_t last, struct causes *at_first,
                  struct causes *at_last)
{
    for (size_t i = first; i < MIN((uint64_t)c->first.count, c->evicted + last); i++)
        look(c, at_first, &c->first, i);
    for (size_t i = c->first.count - MIN((uint64_t)c->first.count, c->evicted); i < last; i++)
        look(c, at_last, &c->last, i);
}

static bool is_full(const struct collect *c)
{
    size_t keep = MAX(c->options.keep, COLLECT_MOST);
    return c->last.cost > 2 * c->options.keep &&
           (c->last.count > 2 * c->options.least || c->last.cost > 2 * keep);
}

static int take_line(void *self, const struct render_line *line)
{
    struct collect *c = self;
    bool torn = c->options.torn && c->evicted == 0 && c->last.count == 0;
    if (!c->first_full && c->first.cost + line->size + 1 > c->options.keep)
        c->first_full = true;
    int r = c->first_full ? 0 : lines_add(&c->first, line, torn);
    if (r == 0)
        r = lines_add(&c->last, line, torn);
    if (r == 0 && is_full(c))
        evict(c);
    return r;
}

/* -- Lines that are only looked at --------------------------------------------------------------
 */

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

/* Where the line begins that ends with the newline before this place. */
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

/* Looks at the line at an index, with those that are equal to it. Returns where the next begins. */
static size_t look_at(struct collect *c, struct cause_line *seen, const char *text, size_t at,
                      size_t end)
{
    const char *stop = memchr(text + at, '\n', end - at);
    size_t size = (size_t)(stop + 1 - (text + at)), next = at + size;
    seen->text = text + at;
    seen->size = size - 1;
    seen->end = seen->number + 1;
    for (; end - next >= size && memcmp(text + next, text + at, size) == 0; next += size)
        seen->end++;
    seen->end_offset = seen->offset + (next - at);
    causes_take(&c->causes, c->options.filter, seen);
    return next;
}

/* Looks for causes in whole lines. Returns how many lines that was. */
static uint64_t look_through(struct collect *c, const struct render_lines *lines, size_t size)
{
    const char *text = lines->text;
    struct cause_line seen = {.number = lines->line, .offset = lines->offset};
    size_t at = 0;
    while (at < size) {
        size_t found = at;
        if (c->causes.announced == SALIENCE_NONE) {
            found += salience_next(c->options.filter, text + at, size - at);
            found = found < size ? line_before(text, found + 1) : size;
        }
        seen.number += log_count_newlines(text + at, found - at);
        seen.offset += found - at;
        at = found;
        if (at == size)
            break;
        at = look_at(c, &seen, text, at, size);
        seen.number = seen.end;
        seen.offset = seen.end_offset;
    }
    return seen.number - lines->line;
}

/* Lets go of all lines at hand: enough others follow. */
static void evict_all(struct collect *c, uint64_t line, uint64_t offset)
{
    for (size_t i = 0; i < c->last.count; i++) {
        bool next = i + 1 < c->last.count;
        if (c->evicted + i >= c->first.count)
            causes_look(&c->causes, c->options.filter, &c->last, i,
                        next ? c->last.all[i + 1].number : line,
                        next ? c->last.all[i + 1].offset : offset);
    }
    c->evicted += c->last.count;
    lines_drop(&c->last, c->last.count);
}

/* What is neither among the first nor the last lines is only looked at, many lines at once. */
static size_t take_lines(void *self, const struct render_lines *lines, uint64_t *ret_count)
{
    struct collect *c = self;
    size_t size = c->first_full ? bytes_to_pass(c, lines->text, first_long(lines)) : 0;
    if (size == 0)
        return 0;
    evict_all(c, lines->line, lines->offset);
    *ret_count = look_through(c, lines, size);
    c->evicted += *ret_count;
    return size;
}

int collect_new(const struct collect_options *options, struct collect **ret)
{
    struct render_options render = {
        .first_line = 1, .line_max = options->line_max, .fold = true, .pass = take_lines};
    struct collect *c = calloc(1, sizeof *c);
    if (!c)
        return -ENOMEM;
    c->options = *options;
    int r = render_new(&render, take_line, c, &c->render);
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
    c->bytes += size;
    c->newlines += log_count_newlines(data, size);
    c->unfinished = data[size - 1] != '\n';
    return render_feed(c->render, data, size);
}

int collect_finish(struct collect *c)
{
    return render_finish(c->render);
}
