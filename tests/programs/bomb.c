/*
 * bomb COUNT SECONDS MARKER
 *
 * Keeps COUNT processes alive for SECONDS: each of them looks for others that are gone, and puts
 * new ones in their places. A third of them leads a session, a quarter is orphaned, none has an
 * environment, and all ignore SIGTERM. Who is left afterwards goes by itself.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define LOOKS 8 /* at others, before a pause of a millisecond */

struct bomb {
    int count;
    time_t until;
    atomic_int places[]; /* pids; 0 = free, -1 = somebody fills it */
};

static void live(struct bomb *bomb, int place);

static void fill(struct bomb *bomb, int place)
{
    pid_t child = fork();
    if (child < 0)
        atomic_store(&bomb->places[place], 0);
    if (child != 0)
        return;
    if (place % 3 == 0)
        setsid();
    if (place % 4 == 0 && fork() != 0)
        _exit(0);
    live(bomb, place);
}

static int is_free(struct bomb *bomb, int place)
{
    int pid = atomic_load(&bomb->places[place]);
    if (pid < 0 || (pid > 0 && (kill(pid, 0) == 0 || errno != ESRCH)))
        return 0;
    return atomic_compare_exchange_strong(&bomb->places[place], &pid, -1);
}

static void live(struct bomb *bomb, int place)
{
    struct timespec pause_time = {.tv_nsec = 1000 * 1000};
    unsigned next = (unsigned)place;
    atomic_store(&bomb->places[place], getpid());
    while (time(NULL) < bomb->until) {
        for (int i = 0; i < LOOKS; i++) {
            next = next * 1103515245u + 12345u;
            int other = (int)(next / 7 % (unsigned)bomb->count);
            if (is_free(bomb, other))
                fill(bomb, other);
        }
        nanosleep(&pause_time, NULL);
    }
    _exit(0);
}

int main(int argc, char **argv, char **env)
{
    char *none[] = {NULL};
    if (argc != 4 || atoi(argv[1]) < 1)
        return 2;
    if (env[0])
        execve("/proc/self/exe", argv, none);
    int count = atoi(argv[1]);
    struct bomb *bomb = mmap(NULL, sizeof *bomb + (size_t)count * sizeof bomb->places[0],
                             PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (bomb == MAP_FAILED)
        return 1;
    bomb->count = count;
    bomb->until = time(NULL) + atoi(argv[2]);
    signal(SIGTERM, SIG_IGN);
    signal(SIGCHLD, SIG_IGN);
    live(bomb, 0);
    return 0;
}
