/*
 * stray PID PROGRAM [ARGUMENT...]
 *
 * Joins the pid namespace of PID (and, as an ordinary user, its user namespace first), and leaves
 * PROGRAM running there as an orphan: it is adopted by the init of that namespace. Returns at once.
 */
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static int join(const char *pid, const char *kind)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%s/ns/%s", pid, kind);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -1 : setns(fd, 0);
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    if ((geteuid() != 0 && join(argv[1], "user") < 0) || join(argv[1], "pid") < 0) {
        perror("stray");
        return 1;
    }
    pid_t child = fork();
    if (child == 0 && fork() == 0) {
        int null = open("/dev/null", O_RDWR);
        setsid();
        for (int fd = 0; fd <= 2; fd++)
            dup2(null, fd);
        execvp(argv[2], argv + 2);
    }
    if (child <= 0)
        _exit(child < 0);
    return waitpid(child, NULL, 0) < 0;
}
