/* The part of a command that `run` and `start` take in the same way. */
#pragma once

#include <stddef.h>

#include <nacre/command.h>
#include <nacre/error.h>
#include <nacre/settings.h>

/* One word is the text of a shell command, several are a program with its arguments, as they are.
 * The words end with NULL, and are borrowed. A status, with a sentence said unless it is STATUS_OK.
 */
int take_words(const char *verb, char **words, size_t count, nacre_command *command);

/* Says why the command could not be started, and returns the status to exit with: for a program
 * that could not be executed, those that shells and env(1) have. */
int start_failure(const nacre_command *command, const nacre_error *error);

/* Refuses entries that are not NAME=value. env may be NULL. */
int check_env(const char *verb, const char *const *env);

/* The settings, with limits such as "memory=2G,processes=256" laid over. words may be NULL. */
int limited_settings(const char *verb, const char *const *words, nacre_settings **ret_settings);

#define LIMIT_OPTION(type)                                                              \
    {                                                                                   \
        "limit", "L=V",                                                                 \
            "what it may use: memory=2G,processes=256,cpu=1.5,...; see docs/limits.md", \
            OPTION_LIST, false, offsetof(struct type, limits), 0                        \
    }
