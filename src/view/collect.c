#include "view/collect.h"

#include <stdlib.h>

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

int collect_new(const struct collect_options *options, struct collect **ret)
{
    struct render_options render = {.first_line = 1, .line_max = options->line_max, .fold = true};
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
