/* The table of settings: all that is known about each but its value. */
#pragma once

#include <nacre/settings.h>
#include <stddef.h>
#include <stdint.h>

#define SETTING_COUNT    ((size_t)NACRE_SETTING_POLICY_GATE + 1)
#define SETTING_NAME_MAX 24

#define LIST_OF_PATHS    1 /* blanks belong to an entry */

struct setting {
    const char *name;
    nacre_setting_kind kind;
    int64_t least,
        most; /* of a count, time, size or share; of a list, least may be LIST_OF_PATHS */
    const char *fallback;
    const char *allowed; /* of a choice: the words, with ", " between them; of a text: for people */
    const char *help;
};

/* Indexed by nacre_setting. */
extern const struct setting setting_table[SETTING_COUNT];

/* The variable of the environment, NACRE_ and the name in upper case. */
void setting_variable(const struct setting *setting, char ret_name[SETTING_NAME_MAX + 8]);

/* What is allowed, for people. */
void setting_allowed(const struct setting *setting, char *ret_text, size_t size);

/* The setting of that name, or NULL. */
const struct setting *setting_find(const char *name);

/* The name that somebody who wrote this may have meant, or NULL. */
const char *setting_nearest(const char *name);
