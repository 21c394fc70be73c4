#include "fence/more.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

size_t fence_more_count(const char *const *list)
{
    size_t count = 0;
    while (list && list[count])
        count++;
    return count;
}

static bool is_same_list(const char *const *a, const char *const *b)
{
    size_t count = fence_more_count(a);
    if (count != fence_more_count(b))
        return false;
    for (size_t i = 0; i < count; i++)
        if (strcmp(a[i], b[i]) != 0)
            return false;
    return true;
}

static void free_list(const char *const **list)
{
    for (size_t i = 0; *list && (*list)[i]; i++)
        free((void *)(*list)[i]);
    free((void *)*list);
    *list = NULL;
}

static int copy_list(const char *const *list, const char *const **ret)
{
    size_t count = fence_more_count(list);
    const char **copy = count > 0 ? calloc(count + 1, sizeof *copy) : NULL;
    bool whole = copy || count == 0;
    for (size_t i = 0; whole && i < count; i++)
        whole = (copy[i] = strdup(list[i])) != NULL;
    *ret = copy;
    return whole ? 0 : -ENOMEM;
}

bool fence_more_is_none(const struct fence_more *more)
{
    return fence_more_count(more->write) + fence_more_count(more->hosts) +
               fence_more_count(more->sockets) ==
           0;
}

bool fence_more_is_same(const struct fence_more *a, const struct fence_more *b)
{
    return is_same_list(a->write, b->write) && is_same_list(a->hosts, b->hosts) &&
           is_same_list(a->sockets, b->sockets);
}

int fence_more_copy(const struct fence_more *more, struct fence_more *ret)
{
    *ret = (struct fence_more){0};
    int r = copy_list(more->write, &ret->write);
    if (r == 0)
        r = copy_list(more->hosts, &ret->hosts);
    if (r == 0)
        r = copy_list(more->sockets, &ret->sockets);
    if (r < 0)
        fence_more_done(ret);
    return r;
}

void fence_more_done(struct fence_more *copy)
{
    free_list(&copy->write);
    free_list(&copy->hosts);
    free_list(&copy->sockets);
}
