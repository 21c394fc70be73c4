/*
 * daemonize [-n COUNT] [-i] [-e] [-s] MARKER
 *
 * Leaves COUNT (1) daemons behind as a careful daemon does it: forked twice, a session of its
 * own, / as directory, /dev/null as stdio, every other descriptor closed. Returns when all of
 * them are ready. They sleep for ever, with MARKER in their argv.
 *
 *   -i  they ignore SIGTERM, SIGHUP and SIGINT
 *   -e  they wipe their environment
 *   -s  they stop themselves
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int ignore, wipe, stop;

static void sleep_for_ever(void)
{
    if (stop)
        raise(SIGSTOP);
    for (;;)
        pause();
}

static void become_daemon(const char *marker, int ready)
{
    const char *argv[] = {"daemon", stop ? "--stop" : "--stay", marker, NULL};
    char *none[] = {NULL};
    int null = open("/dev/null", O_RDWR);

    setsid();
    if (fork() != 0)
        _exit(0);
    if (chdir("/") < 0 || null < 0)
        _exit(1);
    for (int fd = 0; fd < 3; fd++)
        dup2(null, fd);
    for (int fd = 3; fd < 1024; fd++) {
        if (fd != ready)
            close(fd);
    }
    if (ignore) {
        signal(SIGTERM, SIG_IGN);
        signal(SIGHUP, SIG_IGN);
        signal(SIGINT, SIG_IGN);
    }
    if (wipe)
        execve("/proc/self/exe", (char **)argv, none);
    close(ready);
    sleep_for_ever();
}

int main(int argc, char **argv)
{
    int opt, ready[2], count = 1;
    char byte;

    if (argc == 3 && strcmp(argv[0], "daemon") == 0) {
        stop = strcmp(argv[1], "--stop") == 0;
        sleep_for_ever();
    }
    while ((opt = getopt(argc, argv, "n:ies")) != -1) {
        if (opt == 'n')
            count = atoi(optarg);
        else if (opt == 'i')
            ignore = 1;
        else if (opt == 'e')
            wipe = 1;
        else if (opt == 's')
            stop = 1;
        else
            return 2;
    }
    if (optind != argc - 1 || pipe2(ready, O_CLOEXEC) < 0)
        return 2;
    for (int i = 0; i < count; i++) {
        pid_t pid = fork();
        if (pid == 0)
            become_daemon(argv[optind], ready[1]);
        if (pid < 0)
            return 1;
        waitpid(pid, NULL, 0);
    }
    close(ready[1]);
    while (read(ready[0], &byte, 1) < 0 && errno == EINTR)
        ;
    return 0;
}
