/* A text that grows, out of snapshots that lose their beginning. */
#include <string.h>

#include "backend/acp.h"
#include "base/defs.h"

#define OVERLAP 256 /* bytes by which a snapshot is recognised as going on where we are */

uint64_t acp_text_end(const struct acp_text *t)
{
    return t->base + t->bytes.len;
}

static uint64_t count_lines(const char *s, size_t size)
{
    uint64_t lines = size > 0 && s[size - 1] != '\n';
    for (const char *end = s + size; (s = memchr(s, '\n', (size_t)(end - s))); s++)
        lines++;
    return lines;
}

/* Where the snapshot begins: right where it shows the end of what we have; or, if that is not in
 * it, behind a gap. The first match is taken: a text that repeats itself may then be shown twice,
 * but none of it is left out. */
static uint64_t place(const struct acp_text *t, const char *snapshot, size_t size)
{
    size_t known = MIN(t->bytes.len, (size_t)OVERLAP);
    uint64_t end = acp_text_end(t);
    const char *found =
        known > 0 ? memmem(snapshot, size, t->bytes.data + t->bytes.len - known, known) : NULL;
    if (!found)
        return end + 1;
    uint64_t shown = (uint64_t)(found - snapshot) + known;
    return shown > end ? 0 : end - shown;
}

int acp_text_update(struct acp_text *t, const char *snapshot, size_t size, bool truncated)
{
    struct buf bytes;
    buf_init(&bytes, SIZE_MAX / 2);
    int r = buf_append(&bytes, snapshot, size);
    if (r < 0)
        return r;
    t->base = truncated || t->cut ? place(t, snapshot, size) : 0;
    t->cut = t->cut || truncated;
    t->lines = count_lines(snapshot, size);
    buf_done(&t->bytes);
    t->bytes = bytes;
    return 0;
}

size_t acp_text_read(const struct acp_text *t, uint64_t *cursor, void *buf, size_t size,
                     uint64_t *ret_gap)
{
    *ret_gap = *cursor < t->base ? t->base - *cursor : 0;
    *cursor = MAX(*cursor, t->base);
    uint64_t end = acp_text_end(t);
    size_t n = *cursor < end ? (size_t)MIN(end - *cursor, (uint64_t)size) : 0;
    if (n > 0)
        memcpy(buf, t->bytes.data + (*cursor - t->base), n);
    *cursor += n;
    return n;
}
