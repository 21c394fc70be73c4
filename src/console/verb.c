#include "console/verb.h"

#include <string.h>

#include "base/defs.h"
#include "base/number.h"
#include "base/text.h"
#include "config/value.h"
#include "console/out.h"

#define SECONDS_MAX INT64_C(1000000000)

static const struct option *find_option(const struct verb *verb, const char *name, size_t length)
{
    for (const struct option *o = verb->options; o->name; o++)
        if (strlen(o->name) == length && memcmp(o->name, name, length) == 0)
            return o;
    return NULL;
}

static const struct option *find_letter(const struct verb *verb, char letter)
{
    for (const struct option *o = verb->options; o->name; o++)
        if (o->letter && letter == o->letter)
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
        int64_t ms;
        if (!value_parse_time(value, SECONDS_MAX * 1000, &ms) || (ms == 0 && o->not_zero))
            return usage_error("%s: --%s takes a time%s, such as 0.5 (seconds), 90s or 2m, up to "
                               "%lld; got \"%s\"",
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

/* Where a command line is being read. */
struct parsing {
    const struct verb *verb;
    void *options;
    char **argv;
    int argc, at; /* the argument that is looked at */
};

/* An option with its value: one that stands in the same argument, or the next argument. */
static int take_option_value(struct parsing *p, const struct option *o, const char *value)
{
    if (o->kind != OPTION_FLAG && !value) {
        if (p->at + 1 >= p->argc)
            return usage_error("%s: --%s needs a value: --%s %s", p->verb->name, o->name, o->name,
                               o->value);
        value = p->argv[++p->at];
    }
    return set_option(p->verb, o, p->options, p->argc, value);
}

/* "--name", "--name value" or "--name=value". */
static int take_long(struct parsing *p, const char *word)
{
    const char *equals = strchr(word, '=');
    const struct option *o =
        find_option(p->verb, word + 2, (equals ? (size_t)(equals - word) : strlen(word)) - 2);
    if (!o)
        return unknown_option(p->verb, word);
    if (o->kind == OPTION_FLAG && equals)
        return usage_error("%s: --%s takes no value", p->verb->name, o->name);
    return take_option_value(p, o, equals ? equals + 1 : NULL);
}

/* "-a", "-aq", "-n 5", "-n5": letters of flags, the last of which may be one with a value. */
static int take_letters(struct parsing *p, const char *word)
{
    for (const char *at = word + 1; *at; at++) {
        const struct option *o = find_letter(p->verb, *at);
        if (!o)
            return unknown_option(p->verb, word);
        bool has_value = o->kind != OPTION_FLAG;
        int status = take_option_value(p, o, has_value && at[1] ? at + 1 : NULL);
        if (status != STATUS_OK || has_value)
            return status;
    }
    return STATUS_OK;
}

static int check_words(const struct verb *verb, const struct verb_args *args)
{
    if (args->count < verb->min_words)
        return usage_error("%s: an argument is missing: nacre %s [OPTION]... %s%s", verb->name,
                           verb->name, verb->is_command ? "-- " : "", verb->words);
    if (args->count > verb->max_words)
        return usage_error("%s: \"%s\" is one argument too many; see \"nacre help %s\"", verb->name,
                           args->words[verb->max_words], verb->name);
    return STATUS_OK;
}

int verb_args_parse(const struct verb *verb, int argc, char **argv, struct verb_args *ret)
{
    *ret = (struct verb_args){.words = argv};
    ret->options = calloc(1, MAX(verb->options_size, (size_t)1));
    if (!ret->options)
        return failure("out of memory");
    if (verb->defaults)
        memcpy(ret->options, verb->defaults, verb->options_size);

    bool only_words = false;
    struct parsing p = {.verb = verb, .options = ret->options, .argv = argv, .argc = argc};
    for (; p.at < argc; p.at++) {
        char *word = argv[p.at];
        if (only_words || word[0] != '-' || strcmp(word, "-") == 0) {
            argv[ret->count++] = word;
            only_words |= verb->is_command;
        } else if (strcmp(word, "--") == 0) {
            only_words = true;
        } else if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
            ret->help = true;
            return STATUS_OK;
        } else {
            int r = word[1] == '-' ? take_long(&p, word) : take_letters(&p, word);
            if (r != STATUS_OK)
                return r;
        }
    }
    argv[ret->count] = NULL;
    return check_words(verb, ret);
}

void verb_args_done(const struct verb *verb, struct verb_args *args)
{
    for (const struct option *o = verb->options; args->options && o->name; o++)
        if (o->kind == OPTION_LIST)
            free(*(void **)((char *)args->options + o->offset));
    free(args->options);
}
