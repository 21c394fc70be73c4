#include "text/legible.h"

#include <stdint.h>

#include "text/brief.h"
#include "text/utf8.h"

/* Blanks that take room are seen, as long as they do not end a line. */
static bool is_seen(uint32_t point)
{
    return point == ' ' || point == 0xa0 || point == 0x3000 || !utf8_is_invisible(point);
}

static int put_escape(struct buf *out, uint32_t point)
{
    switch (point) {
    case '\n':
        return buf_str(out, "\\n");
    case '\r':
        return buf_str(out, "\\r");
    case '\t':
        return buf_str(out, "\\t");
    default:
        return buf_printf(out, point < 0x80 ? "\\x%02x" : "\\u%04x", (unsigned)point);
    }
}

static int put_seen(struct buf *out, const char *text, size_t size)
{
    int r = 0;
    for (size_t at = 0, n; r == 0 && at < size; at += n) {
        n = scan_plain(text + at, size - at);
        if (n > 0) {
            r = buf_append(out, text + at, n);
            continue;
        }
        uint32_t point;
        n = utf8_next(text + at, size - at, &point);
        if (n == 0) /* it was cut here */
            return 0;
        r = point == UTF8_INVALID ? buf_str(out, UTF8_REPLACEMENT)
            : is_seen(point)      ? buf_append(out, text + at, n)
                                  : put_escape(out, point);
    }
    return r;
}

int legible_write(struct buf *out, const char *text, size_t size)
{
    struct buf seen cleanup_buf = BUF_UP_TO(SIZE_MAX / 2);
    char shorter[LEGIBLE_MAX];
    uint64_t lost;
    int r = put_seen(&seen, text, size);
    if (r < 0 || seen.len == 0)
        return r;
    struct cut cut = cut_of(seen.data, seen.len, 0);
    return buf_append(out, shorter, cut_middle(shorter, sizeof shorter, &cut, &lost));
}
