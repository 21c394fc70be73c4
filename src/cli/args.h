/* Reading the arguments of a verb, strictly: what is not understood is a sentence and status 2. */
#ifndef NACRE_CLI_ARGS_H
#define NACRE_CLI_ARGS_H

#include "cli/cli.h"

struct args {
    void *options; /* the structure of the verb's options */
    char **words;  /* the other arguments: a part of argv, which is reordered */
    size_t count;
    bool help; /* --help was given; nothing else was looked at from there on */
};

/* Returns STATUS_OK, or the status to exit with after having said why. argv begins behind the
 * name of the verb. Release with cli_args_done() in any case. */
int cli_args_parse(const struct verb *verb, int argc, char **argv, struct args *ret);
void cli_args_done(const struct verb *verb, struct args *args);

#endif
