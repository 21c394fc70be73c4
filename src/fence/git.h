/* Where a repository has its files, when they may lie elsewhere: in worktrees and submodules. */
#pragma once

#include <stdbool.h>

/* The directory with the repository's files that a directory belongs to, and the one that it shares
 * with others (the same, if it shares none); without links. False if there is none, or if it cannot
 * be believed: it has to belong to this user, and to point back. */
bool git_find(const char *directory, char ret_own[4096], char ret_common[4096]);

/* Calls fn for each file or directory elsewhere that the configuration in a repository's directory
 * has git obey: hooks, and what it includes. Absolute, as it is written. The first result of fn
 * below 0 ends it, and is returned. */
typedef int git_obeyed_fn(const char *path, void *userdata);
int git_each_obeyed(const char *directory, git_obeyed_fn *fn, void *userdata);

/* Whether the directory is a repository itself, without files of a worktree. */
bool git_is_bare(const char *directory);
