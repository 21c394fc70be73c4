/* Where a user's own files belong, by the environment and the password file. */
#pragma once

#include <limits.h>

/* The value of a variable of the environment; NULL if it is not set, or empty. */
const char *user_variable(const char *name);

/*
 * $<variable>/<rest>, else ~/<below>/<rest>, where ~ is $HOME, else what the password file says.
 * 0, -ENOENT if there is no home, or -ENAMETOOLONG.
 */
int user_path(const char *variable, const char *below, const char *rest, char ret_path[PATH_MAX]);
