/*
 * The configuration file. It is JSON: Debian has no C library for TOML, half a TOML of our own
 * would be worse than none, and a strict JSON reader names the line of what it does not
 * understand.
 */
#pragma once

#include <nacre/error.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "config/setting_table.h"

#define CONFIG_MAX ((size_t)256 * 1024)

/*
 * Reads the file. NACRE_ENOTFOUND if there is none; an error, with what to do, if it is no file
 * of ours or root's, if others may write to it, or if it is over CONFIG_MAX.
 */
int config_read(const char *path, struct buf *out, nacre_error *err);

/* The same for a file whose word counts for less: it may be anybody's, and is no link. */
int config_read_project(const char *path, struct buf *out, nacre_error *err);

/* Called for every key of the file; a result below 0 ends the walk and is returned. */
typedef int config_fn(const struct setting *setting, const char *text, size_t line, void *userdata,
                      nacre_error *err);

/* Takes a whole file apart. path is for the sentences. */
int config_parse(const char *text, size_t size, const char *path, config_fn *fn, void *userdata,
                 nacre_error *err);

/* NACRE_EINVAL: the setting does not take that; where is "" or ends with ": ". */
int config_wrong_value(const struct setting *setting, const char *where, const char *got,
                       nacre_error *err);

/* NACRE_EINVAL: there is no setting of that name; the nearest one is named. */
int config_unknown_name(const char *where, const char *name, nacre_error *err);
