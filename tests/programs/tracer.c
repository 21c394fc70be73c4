/*
 * tracer PID MARKER
 *
 * Seizes a process and holds it still until it is itself ended. Prints "held" when it does, or
 * "refused" and the reason if it may not.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    pid_t pid = atoi(argv[1]);
    signal(SIGTERM, SIG_IGN);
    if (ptrace(PTRACE_SEIZE, pid, 0L, 0L) < 0 || ptrace(PTRACE_INTERRUPT, pid, 0L, 0L) < 0) {
        printf("refused: %s\n", strerror(errno));
        return 1;
    }
    waitpid(pid, NULL, __WALL);
    printf("held\n");
    fflush(stdout);
    for (;;)
        pause();
}
