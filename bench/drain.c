/*
 * How fast a flood is drained beyond the quota, where the keeper writes into its ring, against a
 * bare read loop on the same pipe. The flood is this program itself, writing lines.
 */
#include "bench.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#define FLOOD  ((uint64_t)4 << 30)
#define QUOTA  ((uint64_t)64 << 20)
#define ROUNDS 5

static int flood(uint64_t bytes)
{
    static char block[65536];
    for (size_t i = 0; i < sizeof block; i++)
        block[i] = i % 64 == 63 ? '\n' : 'y';
    while (bytes > 0) {
        ssize_t n = write(1, block, bytes < sizeof block ? bytes : sizeof block);
        if (n < 0)
            return 1;
        bytes -= (uint64_t)n;
    }
    return 0;
}

static double bare(const char *self)
{
    static char buf[65536];
    int out[2], status;
    char *argv[] = {(char *)self, (char *)"flood", NULL};
    pid_t pid;
    posix_spawn_file_actions_t actions;
    if (pipe2(out, O_CLOEXEC) < 0)
        die("pipe", NULL);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    double start = now_us();
    if (posix_spawn(&pid, self, &actions, NULL, argv, environ) != 0)
        die("posix_spawn", NULL);
    posix_spawn_file_actions_destroy(&actions);
    close(out[1]);
    while (read(out[0], buf, sizeof buf) > 0)
        ;
    waitpid(pid, &status, 0);
    close(out[0]);
    return now_us() - start;
}

static double kept(nacre_session *session, const char *self)
{
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_record record = NACRE_RECORD_INIT;
    nacre_error err;
    const char *argv[] = {self, "flood", NULL};
    command.argv = argv;
    command.quota = QUOTA;
    double start = now_us();
    if (nacre_run(session, &command, -1, &record, &err) < 0)
        die("run", &err);
    double took = now_us() - start;
    if (record.bytes[NACRE_STDOUT] != FLOOD || record.lines[NACRE_STDOUT] != FLOOD / 64)
        die("the flood was not counted exactly", NULL);
    nacre_remove(session, &record.id, NULL);
    nacre_record_done(&record);
    return took;
}

int main(int argc, char **argv)
{
    (void)argv;
    if (argc > 1)
        return flood(FLOOD);
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n < 0)
        die("readlink", NULL);
    self[n] = '\0';
    double bares[ROUNDS], kepts[ROUNDS];
    nacre_session *session = open_session();
    for (int i = 0; i < ROUNDS; i++) {
        bares[i] = bare(self);
        kepts[i] = kept(session, self);
    }
    double b = percentile(bares, ROUNDS, 50), k = percentile(kepts, ROUNDS, 50);
    char measured[64];
    snprintf(measured, sizeof measured, "%.2f GB/s against %.2f GB/s", (double)FLOOD / k / 1e3,
             (double)FLOOD / b / 1e3);
    row("a flood drained, against a bare read loop", measured, b / k, "x", 0.8, 1);
    return nacre_close(session, NULL) != 0;
}
