/*
 * term-counter [-f] [-q MS] [-d] DIRECTORY MARKER
 *
 * Counts its SIGTERMs: each appends one byte to DIRECTORY/<its pid>, which exists, empty, as
 * soon as the counting has begun. Nothing but SIGKILL ends it.
 *
 *   -f     at each SIGTERM forks one child that counts for itself
 *   -q MS  ends MS milliseconds after the first one
 *   -d     in a session and process group of its own
 */
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static volatile sig_atomic_t got, count_fd = -1;

static void on_term(int signal)
{
    (void)signal;
    got++;
    if (write(count_fd, "T", 1) != 1)
        _exit(3);
}

static void begin(const char *directory)
{
    char path[4096];

    snprintf(path, sizeof(path), "%s/%d", directory, (int)getpid());
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0)
        exit(1);
    if (count_fd >= 0)
        close(count_fd);
    count_fd = fd;
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = on_term};
    int opt, forks = 0, quit_ms = -1, seen = 0;
    sigset_t term, before;

    while ((opt = getopt(argc, argv, "fq:d")) != -1) {
        if (opt == 'f')
            forks = 1;
        else if (opt == 'q')
            quit_ms = atoi(optarg);
        else if (opt != 'd' || setsid() < 0)
            return 2;
    }
    if (optind != argc - 2)
        return 2;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    sigprocmask(SIG_BLOCK, &term, &before);
    sigaction(SIGTERM, &action, NULL);
    begin(argv[optind]);
    for (;;) {
        while (got == seen)
            sigsuspend(&before);
        seen = got;
        if (quit_ms >= 0) {
            sigprocmask(SIG_UNBLOCK, &term, NULL);
            for (int left = quit_ms; left > 0; left -= 10)
                poll(NULL, 0, left < 10 ? left : 10);
            return 0;
        }
        if (forks && fork() == 0) {
            begin(argv[optind]);
            forks = 0;
        }
    }
}
