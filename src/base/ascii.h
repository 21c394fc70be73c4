/* Letters and digits of ASCII, whatever the locale of the host. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

static inline char ascii_lower(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
}

static inline bool ascii_is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static inline bool ascii_is_alnum(char c)
{
    return (ascii_lower(c) >= 'a' && ascii_lower(c) <= 'z') || ascii_is_digit(c);
}

/* Whether both are the same but for case. */
static inline bool ascii_is_same(const char *a, const char *b, size_t size)
{
    size_t i = 0;
    while (i < size && ascii_lower(a[i]) == ascii_lower(b[i]))
        i++;
    return i == size;
}
