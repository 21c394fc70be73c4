#include "text/brief.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

#include "base/defs.h"
#include "text/utf8.h"

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

const char *brief_duration(int64_t ms, char buf[AGE_TEXT])
{
    long long seconds = MAX(ms, 0) / 1000;
    if (ms < 9950)
        snprintf(buf, AGE_TEXT, "%.1fs", (double)MAX(ms, 0) / 1000);
    else if (seconds < 60)
        snprintf(buf, AGE_TEXT, "%llds", seconds);
    else if (seconds < 3600)
        snprintf(buf, AGE_TEXT, "%lldm%02llds", seconds / 60, seconds % 60);
    else if (seconds < 86400)
        snprintf(buf, AGE_TEXT, "%lldh%02lldm", seconds / 3600, seconds / 60 % 60);
    else
        snprintf(buf, AGE_TEXT, "%lldd", seconds / 86400);
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

/* Whether it moves a cursor or ends a line somewhere. */
static bool is_control(uint32_t point)
{
    return point < 0x20 || (point >= 0x7f && point < 0xa0) || (point | 1) == 0x2029;
}

/* How a character of a stranger's stands within a line of ours. */
static int put_inline(struct buf *b, const char *text, size_t n, uint32_t point)
{
    if (point == UTF8_INVALID || utf8_reorders(point))
        return buf_str(b, UTF8_REPLACEMENT);
    return is_control(point) ? buf_str(b, " ") : buf_append(b, text, n);
}

/* Like utf8_next(), but there is always something: an unfinished character is an invalid one. */
static size_t next_point(const char *text, size_t size, uint32_t *ret_point)
{
    size_t n = utf8_next(text, size, ret_point);
    if (n == 0)
        *ret_point = UTF8_INVALID;
    return n > 0 ? n : size;
}

int brief_inline(struct buf *b, const char *text, size_t size)
{
    int r = 0;
    for (size_t at = 0, n; r == 0 && at < size; at += n) {
        uint32_t point;
        n = next_point(text + at, size - at, &point);
        r = put_inline(b, text + at, n, point);
    }
    return r;
}

int brief_line(struct buf *b, const char *text, size_t columns)
{
    size_t size = strlen(text), used = 0, cut = b->len;
    while (size > 0) {
        uint32_t point;
        size_t n = next_point(text, size, &point);
        bool replaced = point == UTF8_INVALID || is_control(point) || utf8_reorders(point);
        size_t width = replaced ? 1 : point_columns(point);
        if (width > columns - used) {
            b->len = cut;
            return buf_str(b, ELLIPSIS);
        }
        int r = put_inline(b, text, n, point);
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

/* -- Long lines ------------------------------------------------------------------------------- */

#define NOTICE     "[... %llu bytes left out ...]"
#define NOTICE_MAX (sizeof NOTICE + 20)

_Static_assert(NOTICE_MAX < CUT_LEAST, "there is always room for the notice");

static size_t notice(char buf[NOTICE_MAX], uint64_t bytes)
{
    return (size_t)snprintf(buf, NOTICE_MAX, NOTICE, (unsigned long long)bytes);
}

struct cut cut_of(const char *text, size_t size, uint64_t lost)
{
    struct cut cut = {.text = text, .size = size};
    char words[NOTICE_MAX];
    size_t n = notice(words, lost);
    const char *at = lost > 0 ? memmem(text, size, words, n) : NULL;
    if (at) {
        cut.head = (size_t)(at - text);
        cut.skip = n;
        cut.lost = lost;
    }
    return cut;
}

static size_t back_to_character(const char *s, size_t at)
{
    while (at > 0 && ((uint8_t)s[at] & 0xc0) == 0x80)
        at--;
    return at;
}

static size_t copy_at(char *to, size_t at, const char *from, size_t size)
{
    if (to && size > 0)
        memcpy(to + at, from, size);
    return at + size;
}

size_t cut_middle(char *to, size_t max, const struct cut *cut, uint64_t *ret_lost)
{
    *ret_lost = cut->lost;
    if (cut->size <= max && (cut->lost == 0 || cut->skip > 0))
        return copy_at(to, 0, cut->text, cut->size);

    char words[NOTICE_MAX];
    uint64_t all = cut->size - cut->skip + cut->lost;
    size_t room = max - notice(words, all);
    size_t head = MIN(room / 2, cut->lost > 0 ? cut->head : cut->size);
    size_t behind = cut->lost > 0 ? cut->head + cut->skip : head;
    size_t tail = MIN(room - room / 2, cut->size - behind);
    if (head < cut->size)
        head = back_to_character(cut->text, head);
    size_t from = cut->size - tail;
    from += utf8_torn(cut->text + from, tail);
    tail = cut->size - from;

    *ret_lost = all - head - tail;
    size_t size = notice(words, *ret_lost);
    size_t at = copy_at(to, 0, cut->text, head);
    at = copy_at(to, at, words, size);
    return copy_at(to, at, cut->text + from, tail);
}

#define AROUND_LEAST 192 /* below that there is room for one notice only */

size_t cut_around(char *to, size_t max, const struct cut *cut, size_t at, uint64_t *ret_lost)
{
    size_t head = max / 6, lead = max / 12;
    if (cut->size <= max || cut->lost > 0 || max < AROUND_LEAST || at + max / 4 < max / 2)
        return cut_middle(to, max, cut, ret_lost);
    char words[NOTICE_MAX];
    size_t room = max - 2 * notice(words, cut->size) - head;
    size_t from = MAX(head, MIN(at - lead, cut->size - room));
    head = back_to_character(cut->text, head);
    from = back_to_character(cut->text, from);
    size_t end = MIN(from + room, cut->size);
    if (end < cut->size)
        end = back_to_character(cut->text, end);
    size_t n = copy_at(to, 0, cut->text, head);
    n = copy_at(to, n, words, notice(words, from - head));
    n = copy_at(to, n, cut->text + from, end - from);
    if (end < cut->size)
        n = copy_at(to, n, words, notice(words, cut->size - end));
    *ret_lost = (from - head) + (cut->size - end);
    return n;
}
