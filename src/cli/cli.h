/*
 * The command line: one table of verbs, one file per verb. What a verb is called, takes and says
 * about itself is its entry of the table; parsing and help are made from it.
 */
#ifndef NACRE_CLI_H
#define NACRE_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    STATUS_OK = 0,
    STATUS_FAILED = 1, /* nacre could not do what was asked */
    STATUS_USAGE = 2,  /* it was asked in a way that makes no sense */
    STATUS_TIMEOUT = 124,
    STATUS_SIGNAL = 128 /* and the number of the signal */
};

enum option_kind {
    OPTION_FLAG,    /* bool: given or not */
    OPTION_TEXT,    /* const char *: as it is, borrowed */
    OPTION_LIST,    /* const char **: every one given, NULL-terminated; NULL if none was */
    OPTION_SECONDS, /* int64_t: milliseconds, from decimal seconds */
    OPTION_COUNT    /* uint64_t */
};

struct option {
    const char *name;  /* without the dashes */
    const char *value; /* how the help calls its value */
    const char *help;
    enum option_kind kind;
    bool not_zero; /* of a number: 0 is refused */
    size_t offset; /* in the structure of the verb's options */
    char letter;   /* of its short form, such as -i; 0 = it has none */
};

struct verb {
    const char *name;
    const char *words;            /* its arguments that are not options, for people */
    const char *summary;          /* one line, without a full stop */
    const char *details;          /* the rest of what there is to say, and examples */
    const struct option *options; /* ends with a NULL name */
    size_t options_size;          /* of the structure that options fill in */
    const void *defaults;         /* of that structure; NULL = all zero */
    size_t min_words, max_words;  /* how many of them it takes */
    bool is_command;              /* the words are a command: options end at the first */
    int (*run)(const void *options, char **words, size_t count);
};

extern const struct verb verb_run, verb_start, verb_list, verb_output, verb_wait, verb_input,
    verb_kill, verb_adopt, verb_recall, verb_rm, verb_gc, verb_sessions, verb_show, verb_config,
    verb_doctor, verb_mcp, verb_acp_terminals, verb_acp_proxy;

#endif
