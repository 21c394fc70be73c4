/* Words: letters of either case (ASCII only, no locale), what somebody may have meant, and where
 * a text may be cut. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline char text_upper(char c)
{
    return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

/* Whether two words are the same but for their case. */
bool text_same(const char *a, const char *b);

/* Steps (insert, remove, replace, swap neighbours) from one word to another; 31 is the most. */
size_t text_distance(const char *a, const char *b);

/* Whether somebody who typed word may have meant name. */
bool text_is_near(const char *word, const char *name);

/* Whether the first length bytes of text are what the pattern says: a * stands for any bytes,
 * also none; everything else for itself. */
bool text_matches(const char *pattern, const char *text, size_t length);

/* A number for a text, the same in every process. */
uint64_t text_hash(const char *text);

/* The length without a UTF-8 character that was cut at the end. */
size_t text_whole(const char *text, size_t size);
