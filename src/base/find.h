/*
 * Finding a few bytes among many, at the speed of memory. A needle is looked for by two of its
 * bytes that are rare in text, thirty-two positions at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct needle {
    const char *text; /* borrowed; in lower case if fold */
    size_t size;      /* at least 1 */
    bool fold;        /* ASCII letters match in either case */
    size_t at[2];     /* where two rare bytes are */
    unsigned char byte[2];
    unsigned char mask[2]; /* or-ed to what is compared: 0x20 makes letters lower case */
};

void needle_init(struct needle *needle, const char *text, size_t size, bool fold);

/* The index of the first one at or after from that lies before size; size if there is none. */
size_t needle_find(const struct needle *needle, const char *hay, size_t from, size_t size);

/* So many bytes of a set, one after another. */
struct byte_run {
    bool set[256];
    size_t least; /* at least 1 */
};

/* The index of the first one at or after from that lies before size; size if there is none. Only
 * every least-th byte is looked at where there is none. */
size_t byte_run_find(const struct byte_run *run, const char *hay, size_t from, size_t size);

/* Whether no byte is above 0x7f. */
bool bytes_are_ascii(const char *data, size_t size);
