#include "fence/layout.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

bool path_is_below(const char *path, const char *top)
{
    size_t n = strlen(top);
    if (n == 1 && top[0] == '/')
        return true;
    return strncmp(path, top, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

static const struct layout_place *find_in_kind(const struct fence_layout *l, enum fence_kind kind,
                                               const char *path)
{
    for (size_t i = 0; i < l->count; i++)
        if (l->places[i].kind == kind && strcmp(l->places[i].path, path) == 0)
            return &l->places[i];
    return NULL;
}

int layout_add(struct fence_layout *l, enum fence_kind kind, const char *path, const char *source)
{
    if (find_in_kind(l, kind, path))
        return 0;
    if (l->count == FENCE_PLACES_MAX)
        return -E2BIG;
    if (GROW(l->places, l->count, l->cap) < 0)
        return -ENOMEM;
    struct layout_place place = {kind, strdup(path), source ? strdup(source) : NULL};
    if (!place.path || (source && !place.source)) {
        free(place.path);
        free(place.source);
        return -ENOMEM;
    }
    l->places[l->count++] = place;
    return 0;
}

bool layout_covers(const struct fence_layout *l, enum fence_kind kind, const char *path)
{
    for (size_t i = 0; i < l->count; i++)
        if (l->places[i].kind == kind && path_is_below(path, l->places[i].path))
            return true;
    return false;
}

static void free_place(struct layout_place *place)
{
    free(place->path);
    free(place->source);
}

void layout_drop_nested(struct fence_layout *l, enum fence_kind kind)
{
    size_t kept = 0;
    layout_sort(l);
    for (size_t i = 0; i < l->count; i++) {
        struct fence_layout before = {.places = l->places, .count = kept};
        if (l->places[i].kind == kind && layout_covers(&before, kind, l->places[i].path))
            free_place(&l->places[i]);
        else
            l->places[kept++] = l->places[i];
    }
    l->count = kept;
}

static int by_kind_and_path(const void *a, const void *b)
{
    const struct layout_place *one = a, *other = b;
    return one->kind != other->kind ? (one->kind > other->kind) - (one->kind < other->kind)
                                    : strcmp(one->path, other->path);
}

void layout_sort(struct fence_layout *l)
{
    if (l->count > 0)
        qsort(l->places, l->count, sizeof *l->places, by_kind_and_path);
}

static int put_string(struct buf *out, const char *s, uint32_t *ret_offset)
{
    *ret_offset = (uint32_t)out->len;
    return buf_append(out, s, strlen(s) + 1);
}

int layout_write(const struct fence_layout *l, enum fence_network network, const char *canary,
                 const char *words, struct buf *out)
{
    struct fence_head head = {
        .magic = "NACREFEN", .format = RUN_FORMAT, .network = network, .count = (uint32_t)l->count};
    cleanup_free struct fence_place *places = calloc(l->count + 1, sizeof *places);
    size_t bytes = l->count * sizeof *places;
    *out = BUF_UP_TO(FENCE_SIZE_MAX);
    int r = places ? buf_append(out, &head, sizeof head) : -ENOMEM;
    if (r == 0)
        r = buf_append(out, places, bytes);
    for (size_t i = 0; r == 0 && i < l->count; i++) {
        places[i].kind = l->places[i].kind;
        r = put_string(out, l->places[i].path, &places[i].path);
        if (r == 0 && l->places[i].source)
            r = put_string(out, l->places[i].source, &places[i].source);
    }
    if (r == 0 && *canary)
        r = put_string(out, canary, &head.canary);
    if (r == 0)
        r = put_string(out, words, &head.words);
    if (r < 0)
        return r;
    head.size = (uint32_t)out->len;
    memcpy(out->data + sizeof head, places, bytes);
    memcpy(out->data, &head, sizeof head);
    head.sum = fence_sum(out->data, out->len);
    memcpy(out->data, &head, sizeof head);
    return 0;
}

void layout_done(struct fence_layout *l)
{
    for (size_t i = 0; i < l->count; i++)
        free_place(&l->places[i]);
    free(l->places);
    *l = (struct fence_layout){0};
}
