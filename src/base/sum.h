/* The checksum of records on disk. It has to notice a torn or truncated write, quickly; it is no
 * defence against somebody who forges one. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* size is taken down to whole groups of eight bytes. */
static inline uint64_t sum64(const void *data, size_t size)
{
    const char *p = data;
    uint64_t sum = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i + 8 <= size; i += 8) {
        uint64_t eight;
        memcpy(&eight, p + i, sizeof eight);
        sum = (sum ^ eight) * UINT64_C(0x9e3779b97f4a7c15);
        sum ^= sum >> 29;
    }
    return sum;
}

/* FNV-1a of texts, one after the other: the first begins with SUM_TEXTS. Two that only look the
 * same are taken for one. */
#define SUM_TEXTS UINT64_C(14695981039346656037)

static inline uint64_t sum_text(uint64_t sum, const char *text)
{
    do
        sum = (sum ^ (unsigned char)*text) * UINT64_C(1099511628211);
    while (*text++);
    return sum;
}
