/*
 * A pattern, ready to be looked for in buffers of whole lines. A match never leaves its line: "^"
 * and "$" are the ends of a line, and nothing matches a newline. "$" also matches before the
 * carriage return of a line that ends with both.
 *
 * Text is UTF-8, characters and their case are Unicode's. In a line that is not valid UTF-8, its
 * valid parts match as such, and a pattern in ASCII also as if each byte was a character.
 */
#pragma once

#include <nacre/error.h>
#include <stdbool.h>
#include <stddef.h>

#include "recall/watchdog.h"

#define PATTERN_MAX     4096 /* bytes */
#define PATTERN_NEEDLES 8

struct pattern;

/* Compiles; NACRE_EINVAL with PCRE2's words and the offset. dog is borrowed. */
int pattern_new(const char *text, bool literal, bool ignore_case, struct watchdog *dog,
                struct pattern **ret, nacre_error *err);
/* The same for one that may span lines, in a text that is searched as a whole: "^" and "$" are the
 * ends of lines, "." is no newline, but "\n" is one. */
int pattern_new_spanning(const char *text, struct watchdog *dog, struct pattern **ret,
                         nacre_error *err);
void pattern_free(struct pattern *pattern);

/* Lines: each but the last ends with a newline. */
struct text {
    const char *data;
    size_t size;
    bool cut_start; /* the first line begins before data */
    bool cut_end;   /* the last line does not end here */

    /* Of the pattern: where the literals that it looks for are next. */
    bool has_needles;
    bool known[PATTERN_NEEDLES];
    size_t next[PATTERN_NEEDLES];
};

struct hit {
    size_t start;
    size_t end;
};

/* Must come before the first find in a text, and when its bytes have changed. */
void pattern_begin(const struct pattern *pattern, struct text *text);

/*
 * The first match at or after from, where a line begins. Returns 1, 0 if there is none,
 * NACRE_ELIMIT if the pattern is too costly, or NACRE_EBUSY if the watchdog ends the search.
 */
int pattern_find(struct pattern *pattern, struct text *text, size_t from, struct hit *ret,
                 nacre_error *err);

/* For tests: search line by line, as if the pattern could not be translated. */
void pattern_force_lines(struct pattern *pattern);
