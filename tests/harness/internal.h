/* What the parts of the harness share among themselves. */
#ifndef TESTS_HARNESS_INTERNAL_H
#define TESTS_HARNESS_INTERNAL_H

#include "harness.h"

/* Sets NACRE_KEEPER, unless it is set, if this program lies in a build folder. */
void surroundings_find_keeper(void);

/* Makes the directory of a case and remembers it; removes it again. */
void surroundings_make(void);
void surroundings_adopt(const char *base);
void surroundings_remove(void);

/*
 * Looks for what a finished case left behind: processes, cgroups, runs that claim to be alive.
 * What is still there after a short while is described in buf and ended. Returns whether there
 * was any.
 */
bool leaks_find(char *buf, size_t size);

/* Calls fn for every process of the machine. */
void each_process(void (*fn)(pid_t pid, void *arg), void *arg);
bool read_stat(pid_t pid, char *ret_state, pid_t *ret_parent, unsigned long long *ret_start);
size_t read_proc(pid_t pid, const char *file, char *buf, size_t size);

#endif
