/*
 * Whether bytes of a stranger are a text at all. Pictures, archives and programs are not worth
 * reading: they are counted, and not shown.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Of the first bytes: how many were looked at, and how many of them are none of a text. */
struct strange_sample {
    size_t looked, strange;
};

/* The next bytes; those behind the first 8000 are not looked at. */
void strange_take(struct strange_sample *sample, const char *data, size_t size);

/* Whether more than an eighth of them, and at least 32, are none of a text. */
bool strange_is_binary(const struct strange_sample *sample);
