/*
 * What a shell would run, read from its text without running anything: every simple command, with
 * the words it gets, wherever in the text it stands.
 *
 * The reader is strict: it follows only what it is certain of, and says otherwise why it is not.
 * So of a text that it is certain of nothing runs that is not listed; of another one what is listed
 * is a part. What a program does once it runs is not its matter, but for the programs that do
 * nothing but start others (env, timeout, xargs, bash -c, ...): these are read, too, or in doubt.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/arena.h"
#include "policy/shell_words.h"

struct script_command {
    struct shell_word *argv;
    size_t argc;        /* at least 1 */
    const char *doubt;  /* why it cannot be told what it does; NULL = it can */
    bool starts_others; /* it does nothing but start what is listed behind it */
    bool is_started;    /* by one of these */
    bool writes;        /* its output goes to a file */
};

struct script {
    struct arena arena;
    struct script_command *commands;
    size_t count, room;
    const char *doubt; /* about the whole text; NULL = each command speaks for itself */
    size_t line;       /* where that is; 0 = no place in particular */
};

enum dialect {
    DIALECT_BASH,
    DIALECT_SH /* what bash and other shells take alike; the rest is in doubt */
};

#define SCRIPT_MAX ((size_t)256 * 1024) /* a longer text is in doubt */

/* 0, or -ENOMEM. Release with script_done() in any case. */
int script_read(const char *text, size_t size, enum dialect dialect, struct script *ret_script);

/* The same of a command that is given by its words. */
int script_read_words(const char *const *argv, struct script *ret_script);

void script_done(struct script *script);

/* The first doubt, of the text or of a command; NULL = none. */
const char *script_first_doubt(const struct script *script);

#define cleanup_script __attribute__((cleanup(script_done)))
