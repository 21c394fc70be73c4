/*
 * The home: where run directories are. It is found without creating anything, belongs to the
 * effective uid or is refused, and never lies on a network file system.
 */
#ifndef NACRE_RUN_HOME_H
#define NACRE_RUN_HOME_H

#include <limits.h>
#include <nacre/error.h>

struct home {
    char path[PATH_MAX];
    char note[240]; /* why it is not the configured place; "" if it is */
};

/* configured may be NULL: $XDG_STATE_HOME/nacre, else ~/.local/state/nacre. */
int home_find(const char *configured, struct home *ret_home, nacre_error *err);

/* Opens the directory of runs; if create, makes what is missing, else NACRE_ENOTFOUND. */
int home_open_runs(const struct home *home, int create, nacre_error *err);

#endif
