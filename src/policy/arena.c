#include "policy/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/defs.h"

#define BLOCK 8192
#define ALIGN 16

struct arena_block {
    struct arena_block *next;
    _Alignas(ALIGN) char data[];
};

void *arena_take(struct arena *arena, size_t size)
{
    if (size > SIZE_MAX / 2)
        return NULL;
    size = (size + ALIGN - 1) / ALIGN * ALIGN;
    if (size > arena->left) {
        size_t room = MAX(size, (size_t)BLOCK);
        struct arena_block *block = malloc(sizeof *block + room);
        if (!block)
            return NULL;
        block->next = arena->blocks;
        arena->blocks = block;
        arena->at = block->data;
        arena->left = room;
    }
    void *taken = memset(arena->at, 0, size);
    arena->at += size;
    arena->left -= size;
    return taken;
}

char *arena_copy(struct arena *arena, const char *text, size_t size)
{
    char *copy = arena_take(arena, size + 1);
    return copy ? memcpy(copy, text, size) : NULL;
}

void arena_done(struct arena *arena)
{
    while (arena->blocks) {
        struct arena_block *block = arena->blocks;
        arena->blocks = block->next;
        free(block);
    }
    *arena = (struct arena){0};
}
