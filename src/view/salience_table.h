/* The words and beginnings of lines by which a failure is known: data alone, for salience.c. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "view/salience.h"

enum word_kind {
    PLAIN,
    COUNTABLE, /* means nothing after "0" or "no"; in capitals it is an error */
    OPEN,      /* the beginning of a longer word */
    PAIRED,    /* says what was wanted, and means nothing if the line does not say what came */
    ANYWHERE,  /* begins with a sign, and counts right behind a word, too */
};

/* Words anywhere in a line, in any case, at least four bytes long. */
struct word {
    const char *text;
    enum salience salience;
    enum word_kind kind;
};

/* Beginnings of a line, blanks aside, as they stand. */
struct beginning {
    const char *text;
    enum salience salience;
};

extern const struct word salience_words[];
extern const size_t salience_word_count;
extern const struct beginning salience_beginnings[];
extern const size_t salience_beginning_count;

/* What begins like this went well, or only names things: words in it mean nothing. */
extern const char *const salience_quiet_beginnings[];
/* So does what ends like this. */
extern const char *const salience_quiet_ends[];
