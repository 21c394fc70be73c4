#include "screen/harmless.h"

#include <stdint.h>

#include "base/defs.h"
#include "text/utf8.h"

#define ESC   0x1b
#define RESET "\x1b[0m"

/* -- Characters ------------------------------------------------------------------------------- */

static bool passes(uint32_t point)
{
    if (point < 0x20)
        return point == '\n' || point == '\t' || point == '\r' || point == '\b';
    return point < 0x7f || (point >= 0xa0 && point != UTF8_INVALID && !utf8_reorders(point));
}

static int show_one(struct buf *out, uint32_t point, const char *bytes, size_t size)
{
    if (passes(point))
        return buf_append(out, bytes, size);
    if (point < 0x80)
        return buf_printf(out, "^%c", (int)(point ^ 0x40));
    return buf_str(out, UTF8_REPLACEMENT);
}

/* Inside a sequence that is written out the ends of lines are text, and so is all else. */
static int write_out(struct harmless *h, struct buf *out)
{
    int r = 0;
    for (size_t at = 0, n; r == 0 && at < h->held_size; at += n) {
        uint32_t point;
        n = utf8_next(h->held + at, h->held_size - at, &point);
        if (n == 0) {
            n = h->held_size - at;
            point = UTF8_INVALID;
        }
        r = show_one(out, point, h->held + at, n);
    }
    h->held_size = 0;
    return r;
}

/* A byte outside of any sequence: the first of a character, or one that belongs to it. */
static int take_plain(struct harmless *h, struct buf *out, char byte)
{
    uint32_t point;
    h->held[h->held_size++] = byte;
    size_t n = utf8_next(h->held, h->held_size, &point);
    if (n == 0)
        return 0;
    int r = show_one(out, point, h->held, n);
    h->held_size -= n;
    if (r < 0 || h->held_size == 0)
        return r;
    /* What broke the character off begins the next one. */
    byte = h->held[n];
    h->held_size = 0;
    return take_plain(h, out, byte);
}

/* -- Sequences -------------------------------------------------------------------------------- */

/* Numbers and nothing else: with a private mark it would be another command. */
static bool sets_colours(const struct harmless *h)
{
    size_t n = h->held_size;
    if (h->spilled || n < 3 || h->held[1] != '[' || h->held[n - 1] != 'm')
        return false;
    for (size_t i = 2; i < n - 1; i++)
        if ((h->held[i] < '0' || h->held[i] > '9') && h->held[i] != ';' && h->held[i] != ':')
            return false;
    return true;
}

static bool resets_colours(const struct harmless *h)
{
    return h->held_size == 3 || (h->held_size == 4 && h->held[2] == '0');
}

static int end_sequence(struct harmless *h, struct buf *out)
{
    int r;
    if (!sets_colours(h)) {
        r = write_out(h, out);
    } else {
        r = h->colours ? buf_append(out, h->held, h->held_size) : 0;
        h->painted = h->colours && !resets_colours(h);
    }
    h->held_size = 0;
    h->spilled = false;
    return r;
}

/* A byte inside of a sequence, or one that begins it. */
static int take_sequence(struct harmless *h, struct buf *out, char byte)
{
    int r = 0;
    /* It breaks off what came before. */
    if (byte == ESC) {
        r = write_out(h, out);
        h->spilled = false;
    }
    if (escape_feed(&h->escape, (uint8_t)byte) == ESCAPE_TEXT) {
        h->spilled = false;
        if (r == 0)
            r = write_out(h, out);
        return r < 0 ? r : take_plain(h, out, byte);
    }
    if (r == 0 && h->held_size == sizeof h->held) {
        h->spilled = true;
        r = write_out(h, out);
    }
    h->held[h->held_size++] = byte;
    return r < 0 || escape_inside(&h->escape) ? r : end_sequence(h, out);
}

/* -- The whole -------------------------------------------------------------------------------- */

/* Text that needs no thought, but for what reorders it. */
static int put_clean(struct buf *out, const char *text, size_t size)
{
    int r = buf_append(out, text, size);
    if (r == 0)
        utf8_upright(out->data + out->len - size, size);
    return r;
}

int harmless_feed(struct harmless *h, struct buf *out, const char *data, size_t size)
{
    int r = 0;
    for (size_t at = 0, n; r == 0 && at < size; at += n) {
        bool inside = escape_inside(&h->escape);
        n = inside || h->held_size > 0 ? 0 : scan_clean(data + at, size - at);
        if (n > 0) {
            r = put_clean(out, data + at, n);
            continue;
        }
        n = 1;
        r = inside || data[at] == ESC ? take_sequence(h, out, data[at])
                                      : take_plain(h, out, data[at]);
    }
    return r;
}

int harmless_end(struct harmless *h, struct buf *out)
{
    int r = write_out(h, out);
    if (r == 0 && h->painted)
        r = buf_str(out, RESET);
    *h = (struct harmless){.colours = h->colours};
    return r;
}
