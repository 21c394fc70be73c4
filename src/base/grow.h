/* Growing arrays: items, how many there are, and for how many there is room. */
#pragma once

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

/* Room for one more behind `count` items: 0, or -ENOMEM with the array as it was. */
#define GROW(items, count, cap)                                          \
    __extension__({                                                      \
        void *grown_ = grown((items), (count), &(cap), sizeof *(items)); \
        if (grown_)                                                      \
            (items) = grown_;                                            \
        grown_ ? 0 : -ENOMEM;                                            \
    })

/* Twice as much room each time, so that adding one costs the same however many there are. */
static inline void *grown(void *items, size_t count, size_t *cap, size_t item_size)
{
    if (count < *cap)
        return items;
    size_t room = *cap ? *cap * 2 : 16, bytes;
    if (room < *cap || __builtin_mul_overflow(room, item_size, &bytes))
        return NULL;
    void *more = realloc(items, bytes);
    if (more)
        *cap = room;
    return more;
}
