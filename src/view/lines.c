#include "view/lines.h"

#include <string.h>

#include "base/defs.h"
#include "base/grow.h"

void lines_done(struct lines *l)
{
    free(l->all);
    free(l->text);
    *l = (struct lines){0};
}

static int lines_grow(struct lines *l, size_t size)
{
    if (GROW(l->all, l->count, l->room) < 0)
        return -ENOMEM;
    if (l->text_room - l->len < size) {
        size_t room = MAX(l->text_room * 2, l->len + size);
        char *text = realloc(l->text, room);
        if (!text)
            return -ENOMEM;
        l->text = text;
        l->text_room = room;
    }
    return 0;
}

int lines_add(struct lines *l, const struct render_line *line, bool torn)
{
    int r = lines_grow(l, line->size);
    if (r < 0)
        return r;
    l->all[l->count++] = (struct line){
        .number = line->line,
        .offset = line->offset,
        .count = line->count,
        .lost = line->lost,
        .at = l->len,
        .size = line->size,
        .torn = torn,
    };
    if (line->size > 0)
        memcpy(l->text + l->len, line->text, line->size);
    l->len += line->size;
    l->cost += line->size + 1;
    return 0;
}

void lines_drop(struct lines *l, size_t n)
{
    if (n == 0)
        return;
    size_t from = n < l->count ? l->all[n].at : l->len;
    l->cost -= from + n;
    l->count -= n;
    l->len -= from;
    memmove(l->text, l->text + from, l->len);
    memmove(l->all, l->all + n, l->count * sizeof *l->all);
    for (size_t i = 0; i < l->count; i++)
        l->all[i].at -= from;
}

const char *lines_text(const struct lines *l, size_t i)
{
    return l->text ? l->text + l->all[i].at : "";
}
