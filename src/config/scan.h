/* Finds the places of an object's keys in JSON that a parser has already found to be right: the
 * parser knows what stands there, but not where. */
#ifndef NACRE_CONFIG_SCAN_H
#define NACRE_CONFIG_SCAN_H

#include <stdbool.h>
#include <stddef.h>

struct scan {
    const char *at;
    const char *end;
    size_t line; /* from 1 on */
};

struct scan_place {
    size_t line;       /* of the key */
    const char *value; /* as it is written */
    size_t length;
};

/* Over text whose outermost value is an object. */
struct scan scan_begin(const char *text, size_t size);

/* The next key of that object; false if there is none. Never leaves the text, whatever it is. */
bool scan_next(struct scan *scan, struct scan_place *ret_place);

#endif
