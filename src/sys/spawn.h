/*
 * Starting a program from a host that may be anything: threaded, large, with children of its own.
 */
#pragma once

#include <sys/types.h>

/*
 * Executes the program behind exec_fd with pass_fd as its descriptor 3, all signals blocked, and
 * the given arguments and environment. The memory of the host is not copied, whatever its size. The
 * process is nobody's child but that of whoever adopts orphans: the host gets no SIGCHLD, and
 * waitpid(-1) meets nothing. Returns its pid or -errno, also of a failed exec.
 */
pid_t spawn_orphan(int exec_fd, int pass_fd, char *const *argv, char *const *env);

/* Runs fn(data) in a child that shares our memory while we stand still, and that nobody hears of:
 * it may only make system calls. Returns what it returned, or -errno. */
int spawn_try(int (*fn)(void *data), void *data);
