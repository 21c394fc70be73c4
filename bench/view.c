/*
 * The first answer of `nacre show` for a log of 1 GiB with one error in its middle, and the memory
 * it takes; against grep looking for the words of failures in the same bytes, both in processor
 * time. The log is made by this program itself.
 * The limit of the ratio was set after measuring, so that a slower version shows.
 */
#include "bench.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define LOG    ((uint64_t)1 << 30)
#define QUOTA  ((uint64_t)5 << 29) /* half of it is the head, which holds the whole log */
#define ROUNDS 3

static int print_log(void)
{
    static char block[1 << 16];
    uint64_t done = 0, number = 0;
    while (done < LOG) {
        size_t used = 0;
        while (used + 128 < sizeof block) {
            number++;
            used += (size_t)snprintf(
                block + used, 128,
                "[%8llu] GET /api/orders/%llu HTTP/1.1 200 %llu bytes in %llu ms\n",
                (unsigned long long)number, (unsigned long long)(number * 7919 % 100003),
                (unsigned long long)(number * 31 % 4096), (unsigned long long)(number % 17));
        }
        if (done <= LOG / 2 && done + used > LOG / 2)
            used += (size_t)snprintf(block + used, 128, "ERROR: the real cause\n");
        for (size_t at = 0; at < used;) {
            ssize_t n = write(1, block + at, used - at);
            if (n < 0)
                return 1;
            at += (size_t)n;
        }
        done += used;
    }
    return 0;
}

/* Runs a program with its output in a file; microseconds of processor time, and KiB. */
static double timed(char *const argv[], const char *output, long *ret_rss_kb)
{
    pid_t pid;
    int status;
    struct rusage usage;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ) != 0 ||
        wait4(pid, &status, 0, &usage) != pid)
        die(argv[0], NULL);
    posix_spawn_file_actions_destroy(&actions);
    if (!WIFEXITED(status) || WEXITSTATUS(status) > 1)
        die(argv[0], NULL);
    *ret_rss_kb = usage.ru_maxrss;
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static void check_answer(const char *path)
{
    char text[16384];
    FILE *file = fopen(path, "re");
    size_t n = file ? fread(text, 1, sizeof text - 1, file) : 0;
    text[n] = '\0';
    if (file)
        fclose(file);
    if (n > 10240 || !strstr(text, "likely causes: 1 of 1") ||
        !strstr(text, "ERROR: the real cause"))
        die("the summary lacks the cause", NULL);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return print_log();
    char self[4096], program[4200], log[4400], answer[4200];
    const char *build = getenv("NACRE_BUILD"), *home = getenv("NACRE_HOME");
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n < 0 || !build || !home)
        die("NACRE_BUILD and NACRE_HOME must be set: use scripts/bench.sh", NULL);
    self[n] = '\0';
    (void)argv;

    nacre_session *session = open_session();
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_record record = NACRE_RECORD_INIT;
    nacre_error err;
    const char *flood[] = {self, "print", NULL};
    command.argv = flood;
    command.quota = QUOTA;
    if (nacre_run(session, &command, -1, &record, &err) < 0)
        die("run", &err);
    if (record.dropped_bytes[NACRE_STDOUT] > 0)
        die("the log is not whole", NULL);

    nacre_id_text id = nacre_id_format(&record.id);
    snprintf(program, sizeof program, "%s/nacre", build);
    snprintf(log, sizeof log, "%s/runs/%s/log", home, id.s);
    snprintf(answer, sizeof answer, "%s.answer", home);
    char *show[] = {program, (char *)"show", id.s, NULL};
    char *grep[] = {(char *)"grep", (char *)"-ciE", (char *)"error|fail|warn|panic", log, NULL};
    double shows[ROUNDS], greps[ROUNDS];
    long rss = 0, ignored;
    for (int i = 0; i < ROUNDS; i++) {
        /* To a file: grep does not search on when its answer goes nowhere. */
        greps[i] = timed(grep, answer, &ignored);
        shows[i] = timed(show, answer, &rss);
        check_answer(answer);
    }
    unlink(answer);
    double s = percentile(shows, ROUNDS, 50), g = percentile(greps, ROUNDS, 50);
    char measured[64];
    snprintf(measured, sizeof measured, "%.2f s (%.2f GB/s), grep %.2f s", s / 1e6,
             (double)LOG / s / 1e3, g / 1e6);
    row("nacre show of a 1 GiB log, against grep -ciE", measured, s / g, "x", 2.0, 0);
    row("its peak memory", "", (double)rss / 1024, " MiB", 16, 0);
    nacre_remove(session, &record.id, NULL);
    nacre_record_done(&record);
    return nacre_close(session, NULL) != 0;
}
