/*
 * A verb of the command line: what it is called, takes and says about itself is one entry of the
 * table of verbs; help is made from it, and its arguments are read by it, strictly: what is not
 * understood is a sentence and status 2.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum option_kind {
    OPTION_FLAG,    /* bool: given or not */
    OPTION_TEXT,    /* const char *: as it is, borrowed */
    OPTION_LIST,    /* const char **: every one given, NULL-terminated; NULL if none was */
    OPTION_SECONDS, /* int64_t: milliseconds, from decimal seconds, or with a unit: 2m */
    OPTION_COUNT    /* uint64_t */
};

/* What completion offers where a value or a word is wanted; alternatives such as "out|err" are read
 * from how the help calls it. */
enum offering {
    OFFERED_NOTHING,
    OFFERED_FILES,
    OFFERED_FOLDERS,
    OFFERED_PROGRAMS, /* and then what belongs to the program */
    OFFERED_SHELLS,   /* all of them, by their ids */
    OFFERED_ALIVE,    /* shells that run or linger */
    OFFERED_ENDED,
    OFFERED_SESSIONS,
    OFFERED_SETTINGS,
    OFFERED_CLIENTS, /* that the server can be added to */
    OFFERED_SIGNALS,
    OFFERED_VERBS
};

struct option {
    const char *name;  /* without the dashes */
    const char *value; /* how the help calls its value */
    const char *help;
    enum option_kind kind;
    bool not_zero; /* of a number: 0 is refused */
    size_t offset; /* in the structure of the verb's options */
    char letter;   /* of its short form, such as -i; 0 = it has none */
    enum offering offered;
};

struct verb {
    const char *name;
    const char *aliases;         /* other words for it, with blanks between them; NULL = none */
    const char *words;           /* its arguments that are not options, for people */
    const char *summary;         /* one line, without a full stop */
    const char *details;         /* the rest of what there is to say, and examples */
    struct option options[32];   /* the first without a name ends them */
    size_t options_size;         /* of the structure that options fill in */
    const void *defaults;        /* of that structure; NULL = all zero */
    size_t min_words, max_words; /* how many of them it takes */
    bool is_command;             /* the words are a command: options end at the first */
    enum offering offered;       /* where a word is wanted */
    int (*run)(const void *options, char **words, size_t count);
};

struct verb_args {
    void *options; /* the structure of the verb's options */
    char **words;  /* the other arguments, and NULL: a part of argv, which is reordered */
    size_t count;
    bool help; /* --help was given; nothing else was looked at from there on */
};

/* Returns STATUS_OK, or the status to exit with after having said why. argv begins behind the
 * name of the verb, and ends with NULL. Release with verb_args_done() in any case. */
int verb_args_parse(const struct verb *verb, int argc, char **argv, struct verb_args *ret);
void verb_args_done(const struct verb *verb, struct verb_args *args);
