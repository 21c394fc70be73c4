/* Whether a process belongs to a run, or to some run. */
#pragma once

#include <nacre/id.h>
#include <stdbool.h>
#include <sys/types.h>

/*
 * Whether pid descends from the keeper of a run, is in its leaf, or carries its mark. Also if that
 * cannot be told, since it is gone or in another pid namespace: it is asked about somebody who says
 * to be elsewhere.
 */
bool inside_of(const nacre_id *run, pid_t keeper, pid_t pid);

/* The same of any run at all: whether it descends from a keeper, is in a leaf, or carries a mark.
 * Also if that cannot be told. */
bool inside_any(pid_t pid);
