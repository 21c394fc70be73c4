/*
 * Patterns of words, held against the words of a command.
 *
 * A rule that forbids or asks is open: other words may stand behind and between, options may stand
 * anywhere, and what might be meant counts as much as what is. A rule that allows is closed: word
 * for word, and nothing more, unless it ends in "**".
 */
#pragma once

#include "policy/shell_words.h"

struct pattern_word {
    const char *const *choices;
    size_t count;
};

struct word_pattern {
    const struct pattern_word *words;
    size_t count; /* at least 1 */
};

enum word_match {
    MATCH_NO,
    MATCH_MAYBE, /* what the words become when it runs decides */
    MATCH_YES
};

enum word_match match_open(const struct word_pattern *p, const struct shell_word *argv,
                           size_t argc);
bool match_closed(const struct word_pattern *p, const struct shell_word *argv, size_t argc);
