#include "fence/judge.h"

#include <string.h>

#include "fence/layout.h"

static bool lies_in(const struct fence *fence, enum fence_kind kind, const char *path)
{
    const struct fence_place *places = fence_places(fence);
    for (uint32_t i = 0; i < fence->head->count; i++)
        if (places[i].kind == kind && path_is_below(path, fence_string(fence, places[i].path)))
            return true;
    return false;
}

/* In the reverse of the order in which places are put over each other. */
enum judgement fence_judge(const struct fence *fence, const char *path)
{
    if (lies_in(fence, FENCE_SOCKET, path))
        return JUDGED_OPEN;
    if (lies_in(fence, FENCE_SHOW, path))
        return JUDGED_READ_ONLY;
    if (lies_in(fence, FENCE_HIDE, path))
        return JUDGED_HIDDEN;
    if (lies_in(fence, FENCE_PROTECT, path) || lies_in(fence, FENCE_WATCH, path))
        return JUDGED_PROTECTED;
    bool open = lies_in(fence, FENCE_WRITE, path) || lies_in(fence, FENCE_PRIVATE, path) ||
                lies_in(fence, FENCE_MEMORY, path) || lies_in(fence, FENCE_DEVICES, path);
    return open ? JUDGED_OPEN : JUDGED_READ_ONLY;
}
