/* The places of a fence while they are being decided on. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "run/fence.h"

struct layout_place {
    enum fence_kind kind;
    char *path;
    char *source; /* or NULL */
};

struct fence_layout {
    struct layout_place *places;
    size_t count;
    size_t cap;
};

/* 0, -ENOMEM, or -E2BIG. What is there already in that kind is not added again. */
int layout_add(struct fence_layout *l, enum fence_kind kind, const char *path, const char *source);

/* Whether path is one of that kind, or lies below one. */
bool layout_covers(const struct fence_layout *l, enum fence_kind kind, const char *path);

/* Leaves those of a kind out that lie below others of it. */
void layout_drop_nested(struct fence_layout *l, enum fence_kind kind);

/* A directory before what lies in it, and the same record for the same places. */
void layout_sort(struct fence_layout *l);

/* The record: head, places, strings. */
int layout_write(const struct fence_layout *l, enum fence_network network, const char *canary,
                 const char *words, struct buf *out);

void layout_done(struct fence_layout *l);

/* Whether path is top or lies below it. */
bool path_is_below(const char *path, const char *top);
