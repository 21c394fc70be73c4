#include "view/brief.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

#include "base/defs.h"
#include "view/utf8.h"

#define ELLIPSIS "\xe2\x80\xa6"

const char *brief_age(int64_t ms, char buf[AGE_TEXT])
{
    static const struct {
        int64_t seconds;
        char unit;
    } units[] = {{86400, 'd'}, {3600, 'h'}, {60, 'm'}, {1, 's'}};
    int64_t seconds = MAX(ms, 0) / 1000;
    size_t i = 0;
    while (i + 1 < ARRAY_SIZE(units) && seconds < units[i].seconds)
        i++;
    snprintf(buf, AGE_TEXT, "%lld%c", (long long)(seconds / units[i].seconds), units[i].unit);
    return buf;
}

const char *brief_bytes(uint64_t bytes, char buf[BYTES_TEXT])
{
    static const char units[] = "KMGTPE";
    if (bytes < 1024) {
        snprintf(buf, BYTES_TEXT, "%llu", (unsigned long long)bytes);
        return buf;
    }
    double value = (double)bytes / 1024;
    size_t unit = 0;
    for (; value >= 1023.95 && units[unit + 1]; unit++)
        value /= 1024;
    snprintf(buf, BYTES_TEXT, value < 9.95 ? "%.1f%c" : "%.0f%c", value, units[unit]);
    return buf;
}

/* Columns of a character on a terminal; what the locale does not know counts as one. */
static size_t point_columns(uint32_t point)
{
    if (point >= ' ' && point < 0x7f)
        return 1;
    int width = wcwidth((wchar_t)point);
    return width >= 0 ? (size_t)width : 1;
}

size_t brief_columns(const char *text)
{
    size_t size = strlen(text), columns = 0, n;
    for (uint32_t point; size > 0 && (n = utf8_next(text, size, &point)) > 0; text += n, size -= n)
        columns += point_columns(point);
    return columns;
}

static bool is_control(uint32_t point)
{
    return point < 0x20 || (point >= 0x7f && point < 0xa0);
}

int brief_line(struct buf *b, const char *text, size_t columns)
{
    size_t size = strlen(text), used = 0, cut = b->len;
    while (size > 0) {
        uint32_t point;
        size_t n = utf8_next(text, size, &point);
        bool invalid = n == 0 || point == UTF8_INVALID;
        n = n > 0 ? n : size;
        bool control = !invalid && is_control(point);
        size_t width = invalid || control ? 1 : point_columns(point);
        if (width > columns - used) {
            b->len = cut;
            return buf_str(b, ELLIPSIS);
        }
        int r = invalid   ? buf_str(b, UTF8_REPLACEMENT)
                : control ? buf_str(b, " ")
                          : buf_append(b, text, n);
        if (r < 0)
            return r;
        used += width;
        if (used < columns)
            cut = b->len;
        text += n;
        size -= n;
    }
    return 0;
}
