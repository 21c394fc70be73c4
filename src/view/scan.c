#include "view/scan.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "view/utf8.h"

/* Sixteen bytes at once, in whatever registers the machine has; a comparison gives -1 or 0. */
typedef uint8_t block __attribute__((vector_size(16)));
typedef uint64_t halves __attribute__((vector_size(16)));

#define BLOCK  sizeof(block)
#define STRIDE (4 * BLOCK)

static inline block load(const char *s)
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

static inline bool any(block b)
{
    halves h = (halves)b;
    return (h[0] | h[1]) != 0;
}

/* The place of the first byte that is set; there is one. */
static inline size_t first(block b)
{
    halves h = (halves)b;
    size_t skipped = h[0] ? 0 : sizeof h[0];
    uint64_t word = h[0] ? h[0] : h[1];
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return skipped + (size_t)__builtin_ctzll(word) / 8;
#else
    return skipped + (size_t)__builtin_clzll(word) / 8;
#endif
}

#define INLINE static inline __attribute__((always_inline))

/* How far nothing is found from n on, in whole blocks; then exactly where. */
INLINE size_t skip_blocks(const char *s, size_t n, size_t size, block (*find)(block))
{
    for (; size - n >= BLOCK; n += BLOCK) {
        block found = find(load(s + n));
        if (any(found))
            return n + first(found);
    }
    return n;
}

/* The length of the longest beginning in which nothing is found, up to what is left when it is
 * shorter than a block. Most pieces are short, so the long strides come second. */
INLINE size_t skip(const char *s, size_t size, block (*find)(block))
{
    size_t n = skip_blocks(s, 0, MIN(size, STRIDE), find);
    if (n < STRIDE)
        return n;
    for (; size - n >= STRIDE; n += STRIDE) {
        block found = find(load(s + n)) | find(load(s + n + BLOCK)) |
                      find(load(s + n + 2 * BLOCK)) | find(load(s + n + 3 * BLOCK));
        if (any(found))
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
    size_t n = skip(s, size, odd_bytes);
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
        n += skip(s + n, size - n, unclean_bytes);
        while (n < size && (is_plain(s[n]) || s[n] == '\t' || s[n] == '\n'))
            n++;
        size_t wide = scan_wide(s + n, size - n);
        if (wide == 0)
            return n;
        n += wide;
    }
}
