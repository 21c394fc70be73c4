/* What a single command gets beyond the fence of its session, since its user said so. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Lists end with NULL; NULL = an empty one. */
struct fence_more {
    const char *const *write;
    const char *const *hosts;
    const char *const *sockets;
};

/* How many there are in one list. */
size_t fence_more_count(const char *const *list);

bool fence_more_is_none(const struct fence_more *more);
bool fence_more_is_same(const struct fence_more *a, const struct fence_more *b);

/* A copy of the caller's own, who ends it with fence_more_done(). 0 or -ENOMEM. */
int fence_more_copy(const struct fence_more *more, struct fence_more *ret);
void fence_more_done(struct fence_more *copy);
