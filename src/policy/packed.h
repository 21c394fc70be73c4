/*
 * The rules that forbid and ask, as keepers have them: one record in memory, which is only read.
 * With them a keeper holds the words of a program that is about to be executed against the same
 * patterns as the text was. Links nothing but libc.
 */
#pragma once

#include <nacre/policy.h>
#include <stdint.h>

#include "policy/match.h"

#define PACKED_SIZE_MAX    ((size_t)1024 * 1024)
#define PACKED_WORDS_MAX   32
#define PACKED_CHOICES_MAX 512 /* of all words of a rule */

#define PACKED_MAGIC       "nacrule"

struct packed_head {
    uint8_t magic[8];
    uint32_t size;  /* of all of it */
    uint32_t count; /* of rules, which follow */
    uint32_t asks;  /* somebody can be asked */
    uint32_t pad;
    uint64_t sum; /* over what follows */
};

/* Then its strings: how it is written, why, and the choices of each word, an empty one behind those
 * of each. */
struct packed_rule {
    uint32_t size; /* of it and its strings, a multiple of 8 */
    uint16_t verdict;
    uint16_t words;
};

/* -EBADMSG if anything in it does not hold. */
int packed_check(const void *data, size_t size);

/* Whether a rule is about a program of that name, whatever its words are. */
bool packed_names(const struct packed_head *packed, const char *name);

struct packed_ruling {
    nacre_verdict verdict;      /* NACRE_ALLOW = no rule is about it */
    const char *text, *because; /* of the rule; NULL = none */
};

/* The strictest rule about a command, and the first of those. What may be meant counts only if not
 * all of its words are known. */
struct packed_ruling packed_rule_on(const struct packed_head *packed, const struct shell_word *argv,
                                    size_t argc);

/*
 * What a person has said yes to: commands, one behind the other, as strings. Each word of one
 * begins with its kind, and an empty string is behind the last. Programs are known by the last part
 * of their path.
 */
#define GRANTED_MAX  ((size_t)4096)
#define GRANTED_WORD '=' /* exactly what follows */
#define GRANTED_ONE  '?' /* one word, whatever it becomes */
#define GRANTED_ANY  '*' /* any number of them */

/* size bytes, which end with an empty string; 0 = none. argc is at least 1. */
bool packed_is_granted(const char *granted, size_t size, const struct shell_word *argv,
                       size_t argc);
