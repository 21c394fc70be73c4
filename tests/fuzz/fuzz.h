/* What the targets share: bytes taken from the input one after another, and files in memory. */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ __attribute__((unused)) static

/* What must always hold. */
#define MUST(condition)                                                                \
    do {                                                                               \
        if (!(condition)) {                                                            \
            fprintf(stderr, "%s:%d: must hold: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                                   \
        }                                                                              \
    } while (0)

struct input {
    const uint8_t *at;
    size_t left;
};

/* Beyond the end there are zeros. */
FUZZ void take(struct input *in, void *to, size_t size)
{
    size_t n = size < in->left ? size : in->left;
    memset(to, 0, size);
    if (n > 0)
        memcpy(to, in->at, n);
    in->at += n;
    in->left -= n;
}

FUZZ uint8_t take8(struct input *in)
{
    uint8_t value;
    take(in, &value, sizeof value);
    return value;
}

FUZZ uint16_t take16(struct input *in)
{
    uint16_t value;
    take(in, &value, sizeof value);
    return value;
}

FUZZ uint64_t take64(struct input *in)
{
    uint64_t value;
    take(in, &value, sizeof value);
    return value;
}

FUZZ void set_content(int fd, const void *data, size_t size)
{
    MUST(ftruncate(fd, 0) == 0);
    MUST(size == 0 || pwrite(fd, data, size, 0) == (ssize_t)size);
}

#endif
