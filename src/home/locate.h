/*
 * The home: where run directories are. It is found without creating anything, belongs to the
 * effective uid or is refused, and never lies on a network file system.
 */
#pragma once

#include <limits.h>
#include <nacre/error.h>
#include <stdint.h>

struct home_location {
    char path[PATH_MAX];
    char note[240];  /* why it is not the configured place; "" if it is */
    uint32_t number; /* for signs (run/sign.h): the same whatever links lead to it */
};

/* configured may be NULL: $XDG_STATE_HOME/nacre, else ~/.local/state/nacre. */
int home_locate(const char *configured, struct home_location *ret_home, nacre_error *err);

/* Opens the directory of runs; if create, makes what is missing, else NACRE_ENOTFOUND. */
int home_open_runs(const struct home_location *home, int create, nacre_error *err);
