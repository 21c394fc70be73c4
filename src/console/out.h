/* What reaches a person: sentences on stderr, colours where they belong, the exit status. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <nacre/error.h>

#include "base/buf.h"
#include "text/brief.h"

#define COLUMNS_UNLIMITED SIZE_MAX

enum {
    STATUS_OK = 0,
    STATUS_FAILED = 1, /* nacre could not do what was asked */
    STATUS_USAGE = 2,  /* it was asked in a way that makes no sense */
    STATUS_TIMEOUT = 124,
    STATUS_NOT_EXECUTABLE = 126,
    STATUS_NO_PROGRAM = 127,
    STATUS_SIGNAL = 128 /* and the number of the signal */
};

/* "nacre: <sentence>" on stderr, after everything already printed on stdout. */
void say(const char *fmt, ...) PRINTF(1, 2);

/* The same, and the status to return after it. */
#define usage_error(...) (say(__VA_ARGS__), STATUS_USAGE)
#define failure(...)     (say(__VA_ARGS__), STATUS_FAILED)

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
