#include "view/utf8.h"

#include <string.h>
#include <utf8proc.h>

/* What a first byte promises: the length, and the range of the second byte, which alone tells
 * overlong forms, surrogates and points beyond U+10FFFF apart. No length: it is no first byte. */
struct lead {
    uint8_t length;
    uint8_t low, high;
};

static const struct lead leads[256] = {
    [0xc2 ... 0xdf] = {2, 0x80, 0xbf}, [0xe0] = {3, 0xa0, 0xbf},
    [0xe1 ... 0xec] = {3, 0x80, 0xbf}, [0xed] = {3, 0x80, 0x9f},
    [0xee ... 0xef] = {3, 0x80, 0xbf}, [0xf0] = {4, 0x90, 0xbf},
    [0xf1 ... 0xf3] = {4, 0x80, 0xbf}, [0xf4] = {4, 0x80, 0x8f},
};

size_t utf8_next(const char *s, size_t size, uint32_t *ret_point)
{
    if (size == 0)
        return 0;
    uint8_t byte = (uint8_t)s[0];
    if (byte < 0x80) {
        *ret_point = byte;
        return 1;
    }

    *ret_point = UTF8_INVALID;
    const struct lead *lead = &leads[byte];
    if (lead->length == 0)
        return 1;

    uint32_t point = byte & (0x7fu >> lead->length);
    for (size_t i = 1; i < lead->length; i++) {
        if (i == size)
            return 0;
        byte = (uint8_t)s[i];
        if (byte < (i == 1 ? lead->low : 0x80) || byte > (i == 1 ? lead->high : 0xbf))
            return i;
        point = point << 6 | (byte & 0x3fu);
    }
    *ret_point = point;
    return lead->length;
}

unsigned utf8_width(uint32_t point)
{
    /* Nothing before the combining marks of U+0300 is wide or combines. */
    if (point < 0x300 || point == UTF8_INVALID)
        return 1;
    return (unsigned)utf8proc_charwidth((utf8proc_int32_t)point);
}

size_t utf8_torn(const char *s, size_t size)
{
    size_t n = 0;
    while (n < MIN(size, (size_t)3) && ((uint8_t)s[n] & 0xc0) == 0x80)
        n++;
    return n;
}

/* The length of the longest valid beginning, and how many invalid bytes follow it. */
static size_t valid_run(const char *s, size_t size, size_t *ret_invalid)
{
    size_t n = 0;
    *ret_invalid = 0;
    while (n < size) {
        uint32_t point;
        size_t length = utf8_next(s + n, size - n, &point);
        if (length == 0 || point == UTF8_INVALID) {
            *ret_invalid = length ? length : size - n;
            break;
        }
        n += length;
    }
    return n;
}

bool utf8_is_valid(const char *s, size_t size)
{
    size_t i = 0;
    while (i < size) {
        uint64_t word;
        if (size - i >= sizeof word) {
            memcpy(&word, s + i, sizeof word);
            if ((word & UINT64_C(0x8080808080808080)) == 0) {
                i += sizeof word;
                continue;
            }
        }
        uint32_t point;
        size_t n = utf8_next(s + i, size - i, &point);
        if (n == 0 || point == UTF8_INVALID)
            return false;
        i += n;
    }
    return true;
}

int utf8_clean(struct buf *b, const char *s, size_t size)
{
    while (size > 0) {
        size_t invalid;
        size_t valid = valid_run(s, size, &invalid);
        int r = buf_append(b, s, valid);
        if (r == 0 && invalid > 0)
            r = buf_str(b, UTF8_REPLACEMENT);
        if (r < 0)
            return r;
        s += valid + invalid;
        size -= valid + invalid;
    }
    return 0;
}
