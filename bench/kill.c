/*
 * The time from the end of the grace to the proof that nothing is left, for a tree of 300
 * daemonised processes that ignore SIGTERM. The tree is this program itself.
 */
#include "bench.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define DAEMONS  300
#define GRACE_MS 300
#define ROUNDS   5

static void daemonise(void)
{
    pid_t pid = fork();
    if (pid > 0) {
        waitpid(pid, NULL, 0);
        return;
    }
    setsid();
    if (fork() != 0)
        _exit(0);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    for (;;)
        pause();
}

_Noreturn static void tree(void)
{
    signal(SIGTERM, SIG_IGN);
    for (int i = 0; i < DAEMONS; i++)
        daemonise();
    puts("ready");
    fflush(stdout);
    for (;;)
        pause();
}

static double kill_once(nacre_session *session, const char *self, int *ret_left)
{
    const char *argv[] = {self, "tree", NULL};
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_kill_options options = NACRE_KILL_OPTIONS_INIT;
    nacre_kill_result result;
    nacre_error err;
    nacre_id id;
    char byte[8];
    uint64_t cursor = 0;
    command.argv = argv;
    options.grace_ms = GRACE_MS;
    if (nacre_start(session, &command, &id, NULL, &err) < 0)
        die("start", &err);
    while (nacre_read(session, &id, &cursor, NACRE_OUT, byte, sizeof byte, NULL, &err) == 0)
        usleep(1000);
    double start = now_us();
    if (nacre_kill(session, &id, &options, &result, &err) < 0)
        die("kill", &err);
    double took = now_us() - start - GRACE_MS * 1e3;
    *ret_left += result.survivors + (result.force_killed < DAEMONS);
    return took / 1e3;
}

int main(int argc, char **argv)
{
    (void)argv;
    if (argc > 1)
        tree();
    char self[4096], measured[64];
    double times[ROUNDS];
    int left = 0;
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n < 0)
        die("readlink", NULL);
    self[n] = '\0';
    nacre_session *session = open_session();
    for (int i = 0; i < ROUNDS; i++)
        times[i] = kill_once(session, self, &left);
    snprintf(measured, sizeof measured, "%d left", left);
    row("300 daemons that ignore SIGTERM, killed", measured, percentile(times, ROUNDS, 50), " ms",
        100, 0);
    return nacre_close(session, NULL) != 0 || left > 0;
}
