/*
 * Starting a program from a host that may be anything: threaded, large, with children of its own.
 */
#ifndef NACRE_SYS_SPAWN_H
#define NACRE_SYS_SPAWN_H

#include <sys/types.h>

/*
 * Executes the program behind exec_fd with pass_fd as its descriptor 3, all signals blocked, and
 * the given environment. The memory of the host is not copied, whatever its size. The process
 * raises no SIGCHLD and is invisible to waitpid(-1); the caller must reap it with spawn_reap().
 * Returns the pid or -errno, also of a failed exec.
 */
pid_t spawn_quiet(int exec_fd, int pass_fd, const char *name, char *const *env);

/* Reaps it, waiting for its end. */
void spawn_reap(pid_t pid);

#endif
