#include "view/causes.h"

#include <string.h>

#include "base/defs.h"
#include "view/cut.h"

void causes_clear(struct causes *c)
{
    c->announced = SALIENCE_NONE;
    memset(c->count, 0, sizeof c->count);
}

static void keep(struct cause *to, enum salience salience, const struct cause_line *line)
{
    *to = (struct cause){
        .number = line->number,
        .end = line->end,
        .offset = line->offset,
        .end_offset = line->end_offset,
        .salience = salience,
    };
    struct cut cut = cut_of(line->text, line->size, line->lost);
    to->size = cut_middle(to->text, sizeof to->text, &cut, &to->lost);
}

enum salience causes_judge(const struct salience_filter *filter, enum salience *announced,
                           const char *text, size_t size)
{
    bool possible = salience_possible(filter, text, size);
    if (!possible && *announced == SALIENCE_NONE)
        return SALIENCE_NONE;
    while (size > 0 && (text[size - 1] == ' ' || text[size - 1] == '\t'))
        size--;
    if (size == 0)
        return SALIENCE_NONE;
    enum salience before = *announced;
    enum salience salience = possible ? salience_of(filter, text, size) : SALIENCE_NONE;
    *announced = salience >= SALIENCE_ERROR && text[size - 1] == ':' ? salience : SALIENCE_NONE;
    return MAX(salience, before);
}

void causes_take(struct causes *c, const struct salience_filter *filter,
                 const struct cause_line *line)
{
    enum salience salience = causes_judge(filter, &c->announced, line->text, line->size);
    if (salience == SALIENCE_NONE)
        return;
    uint64_t n = c->count[salience]++;
    struct cause *to =
        n < CAUSES_KEPT ? &c->first[salience][n] : &c->last[salience][n % CAUSES_KEPT];
    keep(to, salience, line);
}

void causes_look(struct causes *c, const struct salience_filter *filter, const struct lines *lines,
                 size_t i, uint64_t end, uint64_t end_offset)
{
    const struct line *line = &lines->all[i];
    struct cause_line seen = {
        .text = lines_text(lines, i),
        .size = line->size,
        .lost = line->lost,
        .number = line->number,
        .end = end,
        .offset = line->offset,
        .end_offset = end_offset,
    };
    causes_take(c, filter, &seen);
}

const struct cause *causes_get(const struct causes *c, enum salience salience, size_t k)
{
    uint64_t count = c->count[salience];
    uint64_t gap = count > 2 * (uint64_t)CAUSES_KEPT ? count - 2 * (uint64_t)CAUSES_KEPT : 0;
    uint64_t n = k < CAUSES_KEPT ? k : k + gap;
    if (n >= count)
        return NULL;
    return n < CAUSES_KEPT ? &c->first[salience][n] : &c->last[salience][n % CAUSES_KEPT];
}
