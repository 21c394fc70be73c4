/* The part of a command that `run` and `start` take in the same way. */
#ifndef NACRE_CLI_COMMAND_H
#define NACRE_CLI_COMMAND_H

#include <stddef.h>

#include <nacre/command.h>

/* The words joined by blanks into one shell command; the caller frees it. NULL, with a sentence
 * said, if out of memory. */
char *join_words(char **words, size_t count);

/* Refuses entries that are not NAME=value. env may be NULL. */
int check_env(const char *verb, const char *const *env);

#endif
