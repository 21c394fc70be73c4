/* Memory of one reading: many small pieces that are freed together. */
#pragma once

#include <stddef.h>

struct arena_block;

struct arena {
    struct arena_block *blocks;
    size_t left; /* bytes free in the first block */
    char *at;
};

/* Zeroed and aligned for anything; NULL if out of memory. */
void *arena_take(struct arena *arena, size_t size);

/* A copy of size bytes, and a NUL behind them. */
char *arena_copy(struct arena *arena, const char *text, size_t size);

void arena_done(struct arena *arena);
