/* Values of settings: from the text that people write, and back to the shortest that means it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "config/setting_table.h"

#define VALUE_NUMBER_MAX 32 /* bytes of a number as text */
#define VALUE_NAME_MAX   255
#define VALUE_TEXT_MAX   4095
#define VALUE_LIST_MAX   65535
#define VALUE_RULES_MAX  262143

struct value {
    int64_t number;
    char *text;        /* as value_parse() takes it again */
    const char **list; /* of a list: ended by NULL, one block with its strings; else NULL */
};

#define VALUE_NONE ((struct value){0})

/* 0, -EINVAL if the text is not what the setting takes, or -ENOMEM. Release with value_done(). */
int value_parse(const struct setting *setting, const char *text, struct value *ret_value);
void value_done(struct value *value);

/* A time such as "500ms", "30" (seconds), "1.5s", "2m", "3h" or "14d"; false if it is none, or
 * above most. */
bool value_parse_time(const char *text, int64_t most_ms, int64_t *ret_ms);

/* A count, time, size, switch or choice as text. */
void value_format(const struct setting *setting, int64_t number, char ret_text[VALUE_NUMBER_MAX]);
