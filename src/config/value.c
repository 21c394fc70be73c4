#include "config/value.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/number.h"
#include "base/text.h"

struct unit {
    const char *name;
    int64_t scale;
};

/* Largest first: a number is written in the first that divides it. */
static const struct unit times[] = {
    {"d", 86400000}, {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1},
};

static const struct unit sizes[] = {
    {"TiB", INT64_C(1) << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}};

/* Read, and never written: as other tools have them, K is 1024 and KB is 1000. */
static const struct unit other_sizes[] = {
    {"T", INT64_C(1) << 40},        {"G", 1 << 30},     {"M", 1 << 20},  {"K", 1 << 10}, {"B", 1},
    {"TB", INT64_C(1000000000000)}, {"GB", 1000000000}, {"MB", 1000000}, {"KB", 1000}};

static int64_t find_unit(const struct unit *units, size_t count, const char *name, bool fold)
{
    for (size_t i = 0; i < count; i++)
        if (fold ? text_same(units[i].name, name) : strcmp(units[i].name, name) == 0)
            return units[i].scale;
    return 0;
}

/* What a unit stands for; none is seconds, or bytes. 0 if it is unknown. */
static int64_t scale_of(nacre_setting_kind kind, const char *unit)
{
    if (kind == NACRE_KIND_SHARE)
        return *unit ? 0 : 100;
    if (kind == NACRE_KIND_TIME)
        return *unit ? find_unit(times, ARRAY_SIZE(times), unit, false) : 1000;
    int64_t scale = *unit ? find_unit(sizes, ARRAY_SIZE(sizes), unit, true) : 1;
    return scale ? scale : find_unit(other_sizes, ARRAY_SIZE(other_sizes), unit, true);
}

/* A decimal and a unit of that kind. */
static bool parse_measure(nacre_setting_kind kind, const char *text, uint64_t most,
                          uint64_t *ret_amount)
{
    size_t digits = strspn(text, "0123456789.");
    int64_t scale = scale_of(kind, text + digits);
    return scale != 0 && number_parse_scaled(text, digits, (uint64_t)scale, most, ret_amount);
}

static bool parse_amount(const struct setting *setting, const char *text, int64_t *ret)
{
    uint64_t amount;
    if (setting->kind == NACRE_KIND_COUNT ? !number_parse(text, &amount) || amount > INT64_MAX
                                          : !parse_measure(setting->kind, text, INT64_MAX, &amount))
        return false;
    *ret = (int64_t)amount;
    return *ret >= setting->least && *ret <= setting->most;
}

bool value_parse_time(const char *text, int64_t most_ms, int64_t *ret_ms)
{
    uint64_t ms;
    if (!parse_measure(NACRE_KIND_TIME, text, (uint64_t)most_ms, &ms))
        return false;
    *ret_ms = (int64_t)ms;
    return true;
}

static bool parse_switch(const char *text, int64_t *ret)
{
    static const char *const words[] = {"off", "on", "false", "true", "no", "yes", "0", "1"};
    for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
        if (strcmp(words[i], text) == 0) {
            *ret = (int64_t)(i % 2);
            return true;
        }
    }
    return false;
}

/* The word at an index of a list such as "full, compact"; its length goes to *ret_length. */
static const char *word_at(const char *words, int64_t index, size_t *ret_length)
{
    for (; index > 0 && *words; index--) {
        words += strcspn(words, ",");
        words += strspn(words, ", ");
    }
    *ret_length = strcspn(words, ",");
    return words;
}

static bool parse_choice(const char *words, const char *text, int64_t *ret)
{
    size_t length;
    const char *word;
    for (int64_t i = 0; *(word = word_at(words, i, &length)); i++) {
        if (strlen(text) == length && memcmp(word, text, length) == 0) {
            *ret = i;
            return true;
        }
    }
    return false;
}

static void format_amount(const struct unit *units, size_t count, int64_t number, char *ret_text)
{
    for (size_t i = 0; number > 0 && i < count; i++) {
        if (number % units[i].scale == 0) {
            snprintf(ret_text, VALUE_NUMBER_MAX, "%lld%s", (long long)(number / units[i].scale),
                     units[i].name);
            return;
        }
    }
    snprintf(ret_text, VALUE_NUMBER_MAX, "%lld", (long long)number);
}

void value_format(const struct setting *setting, int64_t number, char ret_text[VALUE_NUMBER_MAX])
{
    size_t length;
    const char *word;
    switch (setting->kind) {
    case NACRE_KIND_TIME:
        format_amount(times, ARRAY_SIZE(times), number, ret_text);
        return;
    case NACRE_KIND_SIZE:
        format_amount(sizes, ARRAY_SIZE(sizes), number, ret_text);
        return;
    case NACRE_KIND_SHARE:
        snprintf(ret_text, VALUE_NUMBER_MAX, "%.15g", (double)number / 100);
        return;
    case NACRE_KIND_SWITCH:
        snprintf(ret_text, VALUE_NUMBER_MAX, "%s", number ? "on" : "off");
        return;
    case NACRE_KIND_CHOICE:
        word = word_at(setting->allowed, number, &length);
        snprintf(ret_text, VALUE_NUMBER_MAX, "%.*s", (int)length, word);
        return;
    default:
        snprintf(ret_text, VALUE_NUMBER_MAX, "%lld", (long long)number);
    }
}

/* The entries of a list, in one block behind the pointers to them. */
static int parse_list(const struct setting *setting, const char *text, struct value *ret)
{
    const char *separators = setting->least == LIST_OF_PATHS ? ",\n" : ", \t\r\n";
    size_t count = 0, size = 0;
    for (const char *p = text + strspn(text, separators); *p; p += strspn(p, separators)) {
        size_t n = strcspn(p, separators);
        if (n > (setting->least == LIST_OF_PATHS ? VALUE_TEXT_MAX : VALUE_NAME_MAX) ||
            (setting->least != LIST_OF_PATHS && memchr(p, '=', n)))
            return -EINVAL;
        count++;
        size += n + 1;
        p += n;
    }
    const char **list = malloc((count + 1) * sizeof *list + size);
    struct buf joined cleanup_buf = BUF_UP_TO(VALUE_LIST_MAX);
    int r = list ? buf_str(&joined, "") : -ENOMEM;
    char *to = list ? (char *)(list + count + 1) : NULL;
    const char *p = text + strspn(text, separators);
    for (size_t i = 0; r == 0 && i < count; i++, p += strspn(p, separators)) {
        size_t n = strcspn(p, separators);
        list[i] = memcpy(to, p, n);
        to[n] = '\0';
        r = buf_printf(&joined, "%s%s", i > 0 ? "," : "", to);
        to += n + 1;
        p += n;
    }
    if (r == 0 && !(ret->text = buf_take(&joined)))
        r = -ENOMEM;
    if (r < 0) {
        free(list);
        return r == -E2BIG ? -EINVAL : r;
    }
    list[count] = NULL;
    ret->list = list;
    return 0;
}

static bool parse_number(const struct setting *setting, const char *text, int64_t *ret)
{
    if (setting->kind == NACRE_KIND_SWITCH)
        return parse_switch(text, ret);
    if (setting->kind == NACRE_KIND_CHOICE)
        return parse_choice(setting->allowed, text, ret);
    return parse_amount(setting, text, ret);
}

int value_parse(const struct setting *setting, const char *text, struct value *ret_value)
{
    struct value value = VALUE_NONE;
    char number[VALUE_NUMBER_MAX];
    if (setting->kind == NACRE_KIND_LIST) {
        int r = parse_list(setting, text, &value);
        if (r < 0)
            return r;
    } else if (setting->kind == NACRE_KIND_TEXT || setting->kind == NACRE_KIND_RULES) {
        if (strlen(text) > (setting->kind == NACRE_KIND_TEXT ? VALUE_TEXT_MAX : VALUE_RULES_MAX))
            return -EINVAL;
        value.text = strdup(text);
    } else {
        if (!parse_number(setting, text, &value.number))
            return -EINVAL;
        value_format(setting, value.number, number);
        value.text = strdup(number);
    }
    if (!value.text)
        return -ENOMEM;
    *ret_value = value;
    return 0;
}

void value_done(struct value *value)
{
    free(value->text);
    free(value->list);
    *value = VALUE_NONE;
}
