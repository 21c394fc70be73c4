/*
 * A session's part of the catalog. The catalog is an index of the run directories, so nothing here
 * is needed for a command to run, and nothing fails because of it: what could not be written is
 * found again by whoever looks next. Opened late, never before the first command.
 */
#ifndef NACRE_SHELL_BOOKS_H
#define NACRE_SHELL_BOOKS_H

#include <nacre/error.h>
#include <nacre/id.h>
#include <stdbool.h>

#include "catalog/catalog.h"

struct books;

/* Who keeps them; strings are copied. */
struct books_owner {
    nacre_id session;
    const char *name;
    const char *cwd;
};

/* NULL if out of memory. */
struct books *books_new(const struct books_owner *owner);
void books_free(struct books *b, bool forked);

/* The catalog of a home, for reading; for writing, with this session's row in it. */
int books_open(struct books *b, const char *home, bool write, struct catalog **ret_catalog,
               nacre_error *err);

/* Whether this session has written anything. */
bool books_are_open(struct books *b);

/* The session is over: said in its row, if it has one. */
void books_close(struct books *b);

#endif
