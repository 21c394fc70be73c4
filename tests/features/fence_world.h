/* What lies outside of a fence while somebody tries to reach it from inside, and what became of it:
 * files, a process, listeners, what is shared by number. */
#ifndef TESTS_FENCE_WORLD_H
#define TESTS_FENCE_WORLD_H

#include "harness/harness.h"

#define WORLD     "/mnt" /* a file system of the case's own */
#define WORKSPACE WORLD "/ws"
#define OUTSIDE   WORLD "/out"
#define SECRET    "Tm90IGZvciBjb21tYW5kcw"

/* Enters a mount namespace, or skips the case where there is none to be had; makes the world, names
 * it in the environment, and goes to the workspace. */
void world_make(void);

/* NULL, or what is different from when this was last called with true: what was reached, read,
 * changed or hurt. */
const char *world_look(bool anew);

/* Another listener in the workspace. */
void world_listen(const char *path, int kind);

/* Forgets it; another one can be made. */
void world_end(void);

#endif
