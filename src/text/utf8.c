#include "text/utf8.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

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

size_t utf8_write(uint32_t point, char *to)
{
    static const uint8_t first[] = {0, 0, 0xc0, 0xe0, 0xf0};
    size_t n = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, point >>= 6)
        to[i] = (char)(0x80 | (point & 0x3f));
    to[0] = (char)(first[n == 1 ? 0 : n] | point);
    return n;
}

bool utf8_reorders(uint32_t point)
{
    return (point >= 0x202a && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069);
}

void utf8_upright(char *s, size_t size)
{
    char *end = s + size;
    while (s < end && (s = memchr(s, 0xe2, (size_t)(end - s)))) {
        uint32_t point;
        size_t n = utf8_next(s, (size_t)(end - s), &point);
        if (n == 3 && utf8_reorders(point))
            memcpy(s, UTF8_REPLACEMENT, n);
        s += MAX(n, (size_t)1);
    }
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
        uint64_t eight;
        if (size - i >= sizeof eight) {
            memcpy(&eight, s + i, sizeof eight);
            if ((eight & UINT64_C(0x8080808080808080)) == 0) {
                i += sizeof eight;
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

/* -- Many bytes at a time --------------------------------------------------------------------- */

/* Sixteen bytes at once, in whatever registers the machine has; a comparison gives -1 or 0. */
typedef uint8_t block __attribute__((vector_size(16)));
typedef uint64_t halves __attribute__((vector_size(16)));

#define BLOCK  sizeof(block)
#define STRIDE (4 * BLOCK)

static inline block load_block(const char *s)
{
    block b;
    memcpy(&b, s, sizeof b);
    return b;
}

/* Which bytes are not printable ASCII: below space in the circle that begins at space. */
static inline block odd_bytes(block b)
{
    return (block)(b - ' ' > '~' - ' ');
}

/* Which of them are not tabs or newlines either. */
static inline block unclean_bytes(block b)
{
    return odd_bytes(b) & ~((block)(b == '\t') | (block)(b == '\n'));
}

static inline bool any_byte(block b)
{
    halves h = (halves)b;
    return (h[0] | h[1]) != 0;
}

/* The index of the first byte that is set; there is one. */
static inline size_t first(block b)
{
    halves h = (halves)b;
    size_t skipped = h[0] ? 0 : sizeof h[0];
    uint64_t half = h[0] ? h[0] : h[1];
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return skipped + (size_t)__builtin_ctzll(half) / 8;
#else
    return skipped + (size_t)__builtin_clzll(half) / 8;
#endif
}

#define INLINE static inline __attribute__((always_inline))

/* How far nothing is found from n on, in whole blocks; then exactly where. */
INLINE size_t skip_blocks(const char *s, size_t n, size_t size, block (*find)(block))
{
    for (; size - n >= BLOCK; n += BLOCK) {
        block found = find(load_block(s + n));
        if (any_byte(found))
            return n + first(found);
    }
    return n;
}

/* The length of the longest beginning in which nothing is found, up to what is left when it is
 * shorter than a block. Most pieces are short, so the long strides come second. */
INLINE size_t skip_strides(const char *s, size_t size, block (*find)(block))
{
    size_t n = skip_blocks(s, 0, MIN(size, STRIDE), find);
    if (n < STRIDE)
        return n;
    for (; size - n >= STRIDE; n += STRIDE) {
        block found = find(load_block(s + n)) | find(load_block(s + n + BLOCK)) |
                      find(load_block(s + n + 2 * BLOCK)) | find(load_block(s + n + 3 * BLOCK));
        if (any_byte(found))
            break;
    }
    return skip_blocks(s, n, size, find);
}

static inline bool is_plain(char c)
{
    return c >= ' ' && c <= '~';
}

size_t scan_plain(const char *s, size_t size)
{
    size_t n = skip_strides(s, size, odd_bytes);
    while (n < size && is_plain(s[n]))
        n++;
    return n;
}

/* The length of the characters beyond ASCII that s begins with. */
static size_t scan_wide(const char *s, size_t size)
{
    size_t n = 0;
    while (n < size && (uint8_t)s[n] >= 0x80) {
        uint32_t point;
        size_t length = utf8_next(s + n, size - n, &point);
        if (length == 0 || point == UTF8_INVALID || point < 0xa0)
            break;
        n += length;
    }
    return n;
}

size_t scan_clean(const char *s, size_t size)
{
    size_t n = 0;
    for (;;) {
        n += skip_strides(s + n, size - n, unclean_bytes);
        while (n < size && (is_plain(s[n]) || s[n] == '\t' || s[n] == '\n'))
            n++;
        size_t wide = scan_wide(s + n, size - n);
        if (wide == 0)
            return n;
        n += wide;
    }
}
