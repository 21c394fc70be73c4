#include "cli/args.h"

#include <stdlib.h>
#include <string.h>

#include "base/defs.h"
#include "base/number.h"
#include "base/text.h"
#include "cli/out.h"

#define SECONDS_MAX INT64_C(1000000000)

/* Milliseconds from decimal seconds such as "1.5"; below 0 if text is anything else. */
static int64_t parse_seconds(const char *text)
{
    uint64_t ms;
    return number_parse_scaled(text, strlen(text), 1000, SECONDS_MAX * 1000, &ms) ? (int64_t)ms
                                                                                  : -1;
}

static const struct option *find_option(const struct verb *verb, const char *name, size_t length)
{
    for (const struct option *o = verb->options; o->name; o++)
        if (strlen(o->name) == length && memcmp(o->name, name, length) == 0)
            return o;
    return NULL;
}

static const struct option *find_letter(const struct verb *verb, const char *word)
{
    for (const struct option *o = verb->options; o->name; o++)
        if (o->letter && word[1] == o->letter && word[2] == '\0')
            return o;
    return NULL;
}

static int unknown_option(const struct verb *verb, const char *word)
{
    int length = (int)strcspn(word, "=");
    for (const struct option *o = verb->options; o->name; o++)
        if (strncmp(word, "--", 2) == 0 && text_is_near(word + 2, o->name))
            return usage_error("%s: unknown option \"%.*s\"; did you mean --%s?", verb->name,
                               length, word, o->name);
    return usage_error("%s: unknown option \"%.*s\"; see \"nacre help %s\"", verb->name, length,
                       word, verb->name);
}

static int add_to_list(const char ***list, int argc, const char *value)
{
    if (!*list && !(*list = calloc((size_t)argc + 1, sizeof **list)))
        return failure("out of memory");
    size_t n = 0;
    while ((*list)[n])
        n++;
    (*list)[n] = value;
    return STATUS_OK;
}

static int set_option(const struct verb *verb, const struct option *o, void *options, int argc,
                      const char *value)
{
    void *field = (char *)options + o->offset;
    switch (o->kind) {
    case OPTION_FLAG:
        *(bool *)field = true;
        return STATUS_OK;
    case OPTION_TEXT:
        *(const char **)field = value;
        return STATUS_OK;
    case OPTION_LIST:
        return add_to_list(field, argc, value);
    case OPTION_SECONDS: {
        int64_t ms = parse_seconds(value);
        if (ms < 0 || (ms == 0 && o->not_zero))
            return usage_error("%s: --%s takes seconds%s, such as 0.5 or 60, up to %lld; got "
                               "\"%s\"",
                               verb->name, o->name, o->not_zero ? " above 0" : "",
                               (long long)SECONDS_MAX, value);
        *(int64_t *)field = ms;
        return STATUS_OK;
    }
    case OPTION_COUNT: {
        uint64_t count;
        if (!number_parse(value, &count) || (count == 0 && o->not_zero))
            return usage_error("%s: --%s takes a whole number%s; got \"%s\"", verb->name, o->name,
                               o->not_zero ? " above 0" : "", value);
        *(uint64_t *)field = count;
        return STATUS_OK;
    }
    }
    return STATUS_USAGE;
}

/* One argument that begins with a dash, and the next one if it is its value; *i moves along. */
static int take_option(const struct verb *verb, void *options, int argc, char **argv, int *i)
{
    char *word = argv[*i];
    bool is_long = strncmp(word, "--", 2) == 0;
    char *equals = is_long ? strchr(word, '=') : NULL;
    const struct option *o = is_long ? NULL : find_letter(verb, word);
    if (is_long)
        o = find_option(verb, word + 2, (equals ? (size_t)(equals - word) : strlen(word)) - 2);
    if (!o)
        return unknown_option(verb, word);

    const char *value = equals ? equals + 1 : NULL;
    if (o->kind == OPTION_FLAG && value)
        return usage_error("%s: --%s takes no value", verb->name, o->name);
    if (o->kind != OPTION_FLAG && !value) {
        if (*i + 1 >= argc)
            return usage_error("%s: --%s needs a value: --%s %s", verb->name, o->name, o->name,
                               o->value);
        value = argv[++*i];
    }
    return set_option(verb, o, options, argc, value);
}

static int check_words(const struct verb *verb, const struct args *args)
{
    if (args->count < verb->min_words)
        return usage_error("%s: an argument is missing: nacre %s [OPTION]... %s%s", verb->name,
                           verb->name, verb->is_command ? "-- " : "", verb->words);
    if (args->count > verb->max_words)
        return usage_error("%s: \"%s\" is one argument too many; see \"nacre help %s\"", verb->name,
                           args->words[verb->max_words], verb->name);
    return STATUS_OK;
}

int cli_args_parse(const struct verb *verb, int argc, char **argv, struct args *ret)
{
    *ret = (struct args){.words = argv};
    ret->options = calloc(1, MAX(verb->options_size, (size_t)1));
    if (!ret->options)
        return failure("out of memory");
    if (verb->defaults)
        memcpy(ret->options, verb->defaults, verb->options_size);

    bool only_words = false;
    for (int i = 0; i < argc; i++) {
        char *word = argv[i];
        if (only_words || word[0] != '-' || strcmp(word, "-") == 0) {
            argv[ret->count++] = word;
            only_words |= verb->is_command;
        } else if (strcmp(word, "--") == 0) {
            only_words = true;
        } else if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
            ret->help = true;
            return STATUS_OK;
        } else {
            int r = take_option(verb, ret->options, argc, argv, &i);
            if (r != STATUS_OK)
                return r;
        }
    }
    return check_words(verb, ret);
}

void cli_args_done(const struct verb *verb, struct args *args)
{
    for (const struct option *o = verb->options; args->options && o->name; o++)
        if (o->kind == OPTION_LIST)
            free(*(void **)((char *)args->options + o->offset));
    free(args->options);
}
