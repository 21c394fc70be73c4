/* What a host without nacre does, to compare with: a shell, two pipes, and its exit. */
#ifndef NACRE_BENCH_BASELINE_H
#define NACRE_BENCH_BASELINE_H

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include "bench.h"

/* A program that succeeds, from its start to its end; microseconds. */
static inline double spawn_program(const char *path, char *const *argv)
{
    double start = now_us();
    int out[2], err[2], status;
    char buf[256];
    pid_t pid;
    posix_spawn_file_actions_t actions;
    if (pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0)
        die("pipe", NULL);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    posix_spawn_file_actions_adddup2(&actions, err[1], 2);
    if (posix_spawn(&pid, path, &actions, NULL, argv, environ) != 0)
        die("posix_spawn", NULL);
    posix_spawn_file_actions_destroy(&actions);
    close(out[1]);
    close(err[1]);
    waitpid(pid, &status, 0);
    while (read(out[0], buf, sizeof buf) > 0 || read(err[0], buf, sizeof buf) > 0)
        ;
    close(out[0]);
    close(err[0]);
    if (status != 0)
        die(path, NULL);
    return now_us() - start;
}

/* `true` in a shell. */
static inline double spawn_once(const char *shell)
{
    char *argv[] = {(char *)shell, (char *)"-c", (char *)"true", NULL};
    return spawn_program(shell, argv);
}

#endif
