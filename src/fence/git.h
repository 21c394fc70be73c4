/* Where a repository has its files, when they may lie elsewhere: in worktrees and submodules. */
#pragma once

#include <stdbool.h>

/* The directory with the repository's files that a directory belongs to, and the one that it shares
 * with others (the same, if it shares none); without links. False if there is none, or if it cannot
 * be believed: it has to belong to this user, and to point back. */
bool git_find(const char *directory, char ret_own[4096], char ret_common[4096]);
