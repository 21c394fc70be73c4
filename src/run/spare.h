/*
 * Where runs lie: in the home, and, when that has no room for one, in a spare: a directory of the
 * user alone, in memory or where temporary files are. Where that is depends on nothing but the user
 * and the path of the home: every process finds it.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#define RUN_SPARES 3

/* The path of the directory of runs in a spare of a home. */
int run_spare_path(const char *home, int index, char *ret_path, size_t size);

/* Opens it, and makes it if asked to; -ENOENT if there is none, -EPERM if it is not ours alone. */
int run_open_spare(const char *home, int index, bool create);

/* Whether the path of a run directory is in a spare. */
bool run_path_is_spare(const char *path);

/* Calls fn for every spare that there is; a result != 0 ends it. */
typedef int spare_fn(int runs_fd, void *userdata);
int run_each_spare(const char *home, spare_fn *fn, void *userdata);

/* Removes those that are empty. */
void run_remove_spares(const char *home);

/* Whether an error (errno) says that there is no room. */
bool run_has_no_room(int error);
