/*
 * The lines of a stream that look like the cause of something, of which there may be any number.
 * Lines of one template are one kind: all are counted, the first ones and the last one of each kind
 * are kept, with the lines around them. Memory is bounded: where there are too many kinds, those go
 * that say the least, but the first and the latest of them stay.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "view/lines.h"
#include "view/salience.h"

#define CAUSE_MAX      400 /* bytes of one; longer ones are cut, but not where it says what it says */
#define CAUSE_KINDS    96
#define CAUSE_FAMILIES 64
#define CAUSE_FIRST    2 /* the first ones of a kind, and one more: the last */
#define CAUSE_BEFORE   2 /* lines around one */
#define CAUSE_AFTER    3
#define CAUSE_NEAR     (CAUSE_BEFORE + CAUSE_AFTER)
#define NEAR_MAX       160 /* bytes of one of them */

/* Which raw lines a shown one stands for: end is the first one behind them. */
struct raw_lines {
    uint64_t number, end;
    uint64_t offset, end_offset;
};

struct near_line {
    struct raw_lines raw;
    uint64_t lost;
    size_t size;
    char text[NEAR_MAX];
};

struct cause {
    struct raw_lines raw;
    enum salience salience;
    uint64_t lost; /* bytes left out of its text */
    size_t size;
    char text[CAUSE_MAX];
    size_t near_count;
    struct near_line near[CAUSE_NEAR];
};

struct cause_kind {
    enum salience salience;
    uint64_t count;
    uint64_t turn;   /* of all kinds that were begun, this is the n-th */
    uint64_t family; /* the word by which its lines are known */
    struct cause kept[CAUSE_FIRST + 1];
};

/* How many lines are known by one word, of whatever kinds. */
struct cause_family {
    uint64_t word;
    uint64_t count;
};

/* A cause of which the lines after it are still to come. */
struct open_cause {
    struct cause *cause;
    size_t after; /* so many of them are there */
};

struct causes {
    bool traced;             /* in a traceback: its first line that is not indented ends it */
    enum salience announced; /* by a message that ends with a colon */
    uint64_t count[SALIENCE_CAUSE + 1];
    uint64_t begun;
    size_t kind_count;
    uint64_t templates[CAUSE_KINDS];
    struct cause_kind kinds[CAUSE_KINDS];
    struct cause_family families[CAUSE_FAMILIES];
    size_t recent_count;
    struct near_line recent[CAUSE_BEFORE]; /* the lines that came last */
    size_t open_count;
    struct open_cause open[CAUSE_AFTER];
};

/* A line as it goes by. */
struct cause_line {
    const char *text;
    size_t size;
    uint64_t lost;
    struct raw_lines raw;
};

/* The salience of the next line of the stream, each in its turn, and where the word is that says
 * so. After a message that ends with a colon the next line that is not empty says at least as
 * much; and a traceback ends with what it was about. Counts it. */
enum salience causes_judge(struct causes *c, const struct salience_filter *filter, const char *text,
                           size_t size, size_t *ret_at);

/* Whether the next line matters, whatever it says. */
bool causes_await(const struct causes *c);

/* Takes the next line, after it was judged. Lines that have no salience and none near may be left
 * out: those between CAUSE_AFTER lines behind one cause and CAUSE_BEFORE lines before the next. */
void causes_take(struct causes *c, enum salience salience, size_t at,
                 const struct cause_line *line);

/* How many lines are known by the same word as those of a kind. */
uint64_t causes_in_family(const struct causes *c, const struct cause_kind *kind);

/* How many of a kind are kept, in the order of lines. */
size_t causes_kept(const struct cause_kind *kind);
