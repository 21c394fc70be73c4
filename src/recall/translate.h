/*
 * Patterns are meant for lines, but searched for in buffers of many lines, which is far faster.
 * The translation makes that the same: no part of the new pattern can match a newline, and its
 * anchors are those of lines. On the way it notes literals of which every match must contain one,
 * or a run of characters of a class that every match must contain.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/find.h"

#define LITERALS_MAX     8
#define LITERAL_SIZE_MAX 64
#define TRANSLATION_MAX  ((size_t)256 * 1024)

struct literal {
    size_t size;
    char text[LITERAL_SIZE_MAX];
};

/* Every match contains one of them; count 0 = nothing is known. */
struct literals {
    size_t count;
    struct literal items[LITERALS_MAX];
};

struct translation {
    struct buf text;          /* for PCRE2_MULTILINE */
    struct literals literals; /* as written, in the pattern's own case */
    struct byte_run run;      /* if there are no literals; least 0 = nothing is known. In the
                                 pattern's own case; bytes above 0x7f are always in the set. */
    bool is_literal;          /* the pattern is nothing but one of the literals */
};

/*
 * Translates a pattern that PCRE2 accepts. Returns 0, -ENOTSUP if it has something that cannot be
 * translated and has to be searched for line by line, or -ENOMEM. Release with
 * translation_done() in any case.
 */
int translate(const char *pattern, size_t size, struct translation *ret);
void translation_done(struct translation *translation);
