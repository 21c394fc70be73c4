#include "view/scan.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "view/utf8.h"

/* Sixteen bytes at once, in whatever registers the machine has; a comparison gives -1 or 0. */
typedef uint8_t block __attribute__((vector_size(16)));

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
    uint64_t half[2];
    memcpy(half, &b, sizeof half);
    return (half[0] | half[1]) != 0;
}

static inline bool is_plain(char c)
{
    return c >= ' ' && c <= '~';
}

/* The length of a beginning without such bytes; what follows it is shorter than a stride or has
 * one. */
static inline size_t skip_strides(const char *s, size_t size, block (*find)(block))
{
    size_t n = 0;
    while (size - n >= STRIDE) {
        block found = find(load(s + n)) | find(load(s + n + BLOCK)) |
                      find(load(s + n + 2 * BLOCK)) | find(load(s + n + 3 * BLOCK));
        if (any(found))
            break;
        n += STRIDE;
    }
    while (size - n >= BLOCK && !any(find(load(s + n))))
        n += BLOCK;
    return n;
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
