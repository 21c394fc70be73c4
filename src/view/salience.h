/*
 * Salience: which lines of a log look like the cause of a failure. A line is judged by itself, by
 * one table of words that compilers, linkers, test runners, package managers, language runtimes
 * and shells use. It is a guess for choosing what to show; no outcome is ever derived from it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum salience {
    SALIENCE_NONE,
    SALIENCE_WARNING, /* says itself that it is none */
    SALIENCE_MENTION, /* speaks of a failure somewhere */
    SALIENCE_ERROR,   /* is an error's message */
    SALIENCE_CAUSE,   /* names what failed: the exception, the test, the signal */
};

/* Only the beginning of a longer line is looked at. */
#define SALIENCE_LOOK  1024

#define SALIENCE_WORDS 512
#define SALIENCE_PAIRS 1024
#define SALIENCE_DEPTH 4 /* bytes of a key */

struct salience_key {
    uint16_t word;
    uint16_t next; /* the number of the next key of the same letters; 0 = none */
    uint8_t back;  /* how far the word begins before its key */
};

/* The table of words, prepared for searching. Opaque. */
struct salience_filter {
    uint16_t wanted[1 << 15]; /* by three letters: the number of the first key */
    struct salience_key keys[2 * SALIENCE_WORDS];
    uint16_t first[SALIENCE_PAIRS]; /* by two letters: the number of the first word, from 1 on */
    uint8_t length[SALIENCE_WORDS];
    uint16_t next[SALIENCE_WORDS];
    uint8_t key[SALIENCE_WORDS]; /* where in each word the rarest bytes begin */
    bool begins[256]; /* by the first letter: whether there is such a beginning of lines */
    uint8_t groups[SALIENCE_DEPTH][32]; /* by the low five bits of each byte of a key */
};

/* The one there is: making it takes longer than a short summary. From any thread. */
const struct salience_filter *salience_filter(void);

/* Whether a line could have a salience, cheaply: true for some that have none, never false for
 * one that has. */
bool salience_possible(const struct salience_filter *filter, const char *line, size_t size);

/*
 * Where in whole lines, the last with its newline, a word or a beginning of the table stands first;
 * size if nowhere. Any line before that one is not possible.
 */
size_t salience_next(const struct salience_filter *filter, const char *text, size_t size);

/* The salience of a rendered line; *ret_at, if it has one, is where the word is that says so. */
enum salience salience_of(const struct salience_filter *filter, const char *line, size_t size,
                          size_t *ret_at);

/* The words of the table, for tests: entry i, or NULL behind the last. */
const char *salience_word(size_t i);
