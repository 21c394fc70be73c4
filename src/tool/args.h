/*
 * The arguments of a tool, described by one table: it is what the schema is made of, what calls
 * are read by, and what the documentation is compared with.
 *
 * Types are strict. What is wrong is said in a sentence that names the field, what is allowed, an
 * example, and what came. null counts as not given. Names that other tools use for the same thing
 * are taken too, without being in the schema.
 */
#pragma once

#include <jansson.h>
#include <nacre/error.h>
#include <nacre/settings.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* The types, with what they store. What was not given is NULL, false, or -1. */
enum arg_type {
    ARG_TEXT,    /* const char *, without NUL */
    ARG_BYTES,   /* struct arg_bytes, of which data is NULL if not given */
    ARG_FLAG,    /* bool */
    ARG_SECONDS, /* int64_t, in milliseconds; above the most it is the most */
    ARG_COUNT,   /* int64_t */
    ARG_CHOICE,  /* int, the place in the list of choices */
    ARG_TEXTS,   /* json_t *, an array of texts that is not empty */
    ARG_MAP,     /* json_t *, an object of texts, numbers and switches; null = none */
    ARG_LIMITS,  /* nacre_limits, 0 = not given */
    ARG_WISHES   /* json_t *, an object of lists of texts and of switches, by choices */
};

struct arg_bytes {
    const char *data;
    size_t size;
};

struct arg {
    const char *name; /* NULL ends a table */
    enum arg_type type;
    size_t offset; /* where it is stored */
    bool required;
    int64_t least, most;        /* of a number; of a text, least is its size; most 0 = no bound */
    const char *const *choices; /* ended by NULL */
    const char *aliases;        /* with blanks between; one that ends in _ms is in milliseconds */
    const char *help;           /* a template, see args_fill() */
    const char *example;
};

/*
 * Reads an object into values, which is zeroed before. What is stored borrows from the object.
 * NACRE_EINVAL.
 */
int args_parse(const struct arg *args, const json_t *object, void *values, size_t size,
               nacre_error *err);

/* The JSON schema of such an object; NULL if out of memory. */
json_t *args_schema(const struct arg *args, const nacre_settings *settings);

/* The word for a type in schema and documentation: "string", "number", ... */
const char *args_type_name(enum arg_type type);

/* Appends a template: {name} becomes the value in force of the setting of that name. 0, -ENOMEM or
 * -E2BIG. */
int args_fill(struct buf *out, const char *template, const nacre_settings *settings);
