/*
 * From a program's question until whoever waits is told that it reads a line. The program is this
 * one itself: it says when it asks.
 */
#include "bench.h"

#define ROUNDS    21
#define GOAL_MS   300
#define BEFORE_US 300000 /* the wait has begun by then */

_Noreturn static void ask(void)
{
    char line[8];
    usleep(BEFORE_US);
    printf("%.0f ", now_us());
    fflush(stdout);
    (void)!read(STDIN_FILENO, line, sizeof line);
    exit(0);
}

static double ask_once(nacre_session *session, const char *self)
{
    const char *argv[] = {self, "ask", NULL};
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_reading reading = NACRE_READING_INIT;
    nacre_error err;
    nacre_id id;
    char asked[64] = "";
    uint64_t cursor = 0;
    command.argv = argv;
    command.tty = 1;
    if (nacre_start(session, &command, &id, NULL, &err) < 0)
        die("start", &err);
    if (nacre_wait_reading(session, &id, NACRE_READS_TYPED, 0, 30000, &reading, &err) < 0)
        die("wait", &err);
    double told = now_us();
    if (nacre_read(session, &id, &cursor, NACRE_OUT, asked, sizeof asked - 1, NULL, &err) <= 0)
        die("read", &err);
    if (nacre_kill(session, &id, NULL, NULL, &err) < 0)
        die("kill", &err);
    return (told - strtod(asked, NULL)) / 1e3;
}

int main(int argc, char **argv)
{
    (void)argv;
    if (argc > 1)
        ask();
    char self[4096], measured[64];
    double times[ROUNDS];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n < 0)
        die("readlink", NULL);
    self[n] = '\0';
    nacre_session *session = open_session();
    for (int i = 0; i < ROUNDS; i++)
        times[i] = ask_once(session, self);
    nacre_close(session, NULL);
    double middle = percentile(times, ROUNDS, 50);
    snprintf(measured, sizeof measured, "p50 of %d, longest %.0f ms", ROUNDS,
             percentile(times, ROUNDS, 100));
    row("a question until it is told", measured, middle, " ms", GOAL_MS, 0);
    return 0;
}
