/* A text that grows, out of snapshots that lose their beginning. */
#include <string.h>

#include "acp/agent.h"
#include "base/defs.h"
#include "base/sum.h"

static bool goes_on_at(const struct acp_text *t, const char *snapshot, size_t size, size_t at)
{
    return at <= size && at >= t->known && memcmp(snapshot + at - t->known, t->last, t->known) == 0;
}

/* Where a snapshot shows the end of what we have; SIZE_MAX if it does not. The first match is
 * taken: a text that repeats itself may then be shown twice, but none of it is left out. */
static size_t find_end(const struct acp_text *t, const char *snapshot, size_t size)
{
    const char *found = t->known > 0 ? memmem(snapshot, size, t->last, t->known) : NULL;
    return found ? (size_t)(found - snapshot) + t->known : SIZE_MAX;
}

static void remember(struct acp_text *t, const char *new, size_t size)
{
    size_t kept = size >= ACP_OVERLAP ? 0 : MIN(t->known, ACP_OVERLAP - size);
    size_t taken = MIN(size, (size_t)ACP_OVERLAP);
    memmove(t->last, t->last + t->known - kept, kept);
    memcpy(t->last + kept, new + size - taken, taken);
    t->known = kept + taken;
    t->end += size;
}

/* The very snapshot that was seen last says nothing new, however it repeats itself. The sum leaves
 * out an odd end, which is in what we remember. */
static bool is_the_same(struct acp_text *t, const char *snapshot, size_t size)
{
    uint64_t sum = sum64(snapshot, size);
    bool same = size == t->size && sum == t->sum && goes_on_at(t, snapshot, size, size);
    t->size = size;
    t->sum = sum;
    return same;
}

size_t acp_text_take(struct acp_text *t, const char *snapshot, size_t size, bool truncated,
                     bool *ret_gap)
{
    *ret_gap = false;
    if (size == 0)
        return 0;
    size_t at = t->end <= size ? (size_t)t->end : SIZE_MAX;
    bool whole = !truncated && !t->cut;
    if (!whole || at == SIZE_MAX || !goes_on_at(t, snapshot, size, at)) {
        if (is_the_same(t, snapshot, size))
            return size;
        at = find_end(t, snapshot, size);
    }
    t->cut = t->cut || truncated;
    if (at == SIZE_MAX) {
        *ret_gap = true;
        t->cut = true;
        t->known = 0;
        t->end++;
        at = 0;
    }
    remember(t, snapshot + at, size - at);
    return at;
}
