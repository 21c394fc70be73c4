/* What reaches a person: sentences on stderr, text made harmless, colours where they belong. */
#ifndef NACRE_CLI_OUT_H
#define NACRE_CLI_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <nacre/error.h>

#include "base/buf.h"
#include "base/defs.h"
#include "view/brief.h"

#define COLUMNS_UNLIMITED SIZE_MAX

/* "nacre: <sentence>" on stderr, after everything already printed on stdout. */
void say(const char *fmt, ...) PRINTF(1, 2);

/* The same, returning STATUS_USAGE or STATUS_FAILED. */
int usage_error(const char *fmt, ...) PRINTF(1, 2);
int failure(const char *fmt, ...) PRINTF(1, 2);

/* Says what the library said. */
int library_failure(const nacre_error *error);

/* Makes sure that everything printed has left; STATUS_FAILED if it could not. */
int finish_output(void);

/* Escape sequences, or "" where colours are not wanted: no terminal, or NO_COLOR is set. */
struct paint {
    const char *good, *bad, *dim, *bold, *off;
};
struct paint paint_for(FILE *file);

/* The width of the terminal behind stdout, or COLUMNS_UNLIMITED. */
size_t output_columns(void);

/* How many lines that terminal has; 24 if it does not say. */
size_t output_rows(void);

#define PROCESSES(n) ((n) == 1 ? "process" : "processes")

#endif
