/*
 * rabbit [-if] CHAINS PAUSE_US MARKER
 *
 * Runs away from whoever hunts it: CHAINS processes that fork and exit, fork and exit, each new
 * pid living about PAUSE_US microseconds. Returns at once. A chain ends after ten seconds or two
 * thousand pids, or when init has adopted it, so that a failed hunt does not use up the pids of the
 * machine; with -f it goes on then, too. With -i SIGTERM is ignored.
 */
#define _GNU_SOURCE 1
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static int goes_far;

static void run_away(long pause_us)
{
    struct timespec pause_time = {0, pause_us * 1000};
    time_t until = time(NULL) + 10;

    for (int pids = 0; pids < 2000 && time(NULL) < until; pids++) {
        nanosleep(&pause_time, NULL);
        if (getppid() == 1 && !goes_far)
            break;
        if (fork() > 0)
            _exit(0);
    }
    _exit(0);
}

int main(int argc, char **argv)
{
    int opt;

    while ((opt = getopt(argc, argv, "if")) != -1) {
        if (opt == 'f')
            goes_far = 1;
        else if (opt == 'i')
            signal(SIGTERM, SIG_IGN);
        else
            return 2;
    }
    if (optind != argc - 3)
        return 2;
    for (int i = 0; i < atoi(argv[optind]); i++) {
        if (fork() == 0) {
            setsid();
            run_away(atol(argv[optind + 1]));
        }
    }
    return 0;
}
