/* The rules of the setting `policy`: read strictly, with their examples checked. */
#pragma once

#include <nacre/policy.h>

#include "policy/match.h"
#include "policy/script.h"

#define RULES_MAX      512
#define RULE_WORDS_MAX 32

struct rule {
    nacre_verdict verdict;
    struct word_pattern pattern;
    const char *text;    /* as it is written, on one line */
    const char *because; /* "" = it does not say */
    const char *sandbox; /* the mode for what it allows; NULL = it does not say */
};

struct rules {
    struct arena arena;
    struct rule *items;
    size_t count;
    nacre_verdict fallback; /* of what no rule is about */
    bool gated; /* those that forbid and ask are held against whatever is executed, too */
};

/* The text of the setting; "" = none. NACRE_EINVAL with a sentence that begins with `where`. On
 * success released with rules_done(). */
int rules_parse(const char *text, const char *where, struct rules *ret_rules, nacre_error *err);
void rules_done(struct rules *rules);

/* Without any, nothing needs to be read. */
bool rules_are_needed(const struct rules *rules);

#define cleanup_rules __attribute__((cleanup(rules_done)))
