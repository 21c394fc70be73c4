/* The secret that clients show: in a file that only its owner can read. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <nacre/error.h>

#define TOKEN_SIZE 64 /* hex digits of 256 bits */

struct token {
    char text[TOKEN_SIZE + 1];
};

/* A new one. 0 or -errno. */
int token_make(struct token *t);

/* Reads the token of the file at path; makes both if there is none, or if it is to be a new one. A
 * file that others could read is refused. */
int token_load(const char *path, bool renew, struct token *ret, nacre_error *err);

/* Whether what was shown is the token; takes the same time whatever was shown. */
bool token_is(const struct token *t, const char *shown, size_t size);
