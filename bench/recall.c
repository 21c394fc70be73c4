/*
 * A search over 1 GiB of log, against grep -E and rg on the same bytes in a file: a literal, an
 * alternation, and classes. Each is a process of its own; what is compared is the processor time
 * it takes, since all of them use one thread, with everything in the page cache. rg maps its
 * file; --no-mmap makes it read it, as a log that may be truncated has to be.
 */
#include "bench.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define SIZE   ((uint64_t)1 << 30)
#define PIECE  ((size_t)1 << 20)
#define ROUNDS 3

static char file[4096], answer[4096], nacre[4096];

/* Log lines that look random and are the same each time. */
static char *make_lines(void)
{
    static const char *const words[] = {"connection", "request", "worker", "buffer",  "socket",
                                        "packet",     "timeout", "cache",  "segment", "session",
                                        "gateway",    "cluster", "shard",  "leader",  "snapshot"};
    char *text = malloc(PIECE);
    uint64_t x = 1;
    size_t n = 0;
    while (text && n + 400 < PIECE) {
        x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        unsigned r = (unsigned)(x >> 33);
        n += (size_t)sprintf(text + n, "2026-11-%02u %02u:%02u:%02u.%03u %s [%s-%u]", r % 28 + 1,
                             r / 3 % 24, r / 5 % 60, r / 7 % 60, r % 1000,
                             r % 40 ? "INFO" : "ERROR", words[r / 11 % 15], r / 13 % 64);
        for (unsigned i = 0; i < r / 17 % 9 + 2; i++)
            n += (size_t)sprintf(text + n, " %s", words[(r >> (i * 2)) % 15]);
        n += (size_t)sprintf(text + n, " took %u us, %u bytes, id=%08x\n", r / 19 % 99999,
                             r / 23 % 1000000, r * 2654435761u);
    }
    if (text)
        memset(text + n, '\n', PIECE - n);
    return text;
}

static void write_file(void)
{
    char *text = make_lines();
    FILE *f = fopen(file, "we");
    for (uint64_t n = 0; text && f && n < SIZE; n += PIECE)
        if (fwrite(text, 1, PIECE, f) != PIECE)
            die(file, NULL);
    if (!text || !f || fclose(f) != 0)
        die(file, NULL);
    free(text);
}

static void make_log(nacre_session *session)
{
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_record record = NACRE_RECORD_INIT;
    nacre_error err;
    const char *argv[] = {"cat", file, NULL};
    command.argv = argv;
    command.quota = SIZE * 4;
    if (nacre_run(session, &command, -1, &record, &err) < 0)
        die("run", &err);
    if (record.bytes[NACRE_STDOUT] != SIZE || record.dropped_bytes[NACRE_STDOUT] != 0)
        die("the log is not all there", NULL);
    nacre_record_done(&record);
}

struct took {
    double us; /* of processor time */
    long kb;
    unsigned long long matches;
};

/* Runs a searcher; the number behind mark in its answer is what it counted. */
static struct took run(const char *const *argv, const char *mark)
{
    posix_spawn_file_actions_t actions;
    struct rusage usage;
    pid_t pid;
    int status;
    char text[4096];
    posix_spawn_file_actions_init(&actions);
    /* A file: grep does not search on when its answer goes nowhere. */
    posix_spawn_file_actions_addopen(&actions, 1, answer, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (posix_spawnp(&pid, argv[0], &actions, NULL, (char **)argv, environ) != 0)
        die(argv[0], NULL);
    posix_spawn_file_actions_destroy(&actions);
    if (wait4(pid, &status, 0, &usage) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) > 1)
        die(argv[0], NULL);
    FILE *f = fopen(answer, "re");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f)
        fclose(f);
    text[n] = '\0';
    const char *at = strstr(text, mark);
    return (struct took){
        .us = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
              (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec),
        .kb = usage.ru_maxrss,
        .matches = at ? strtoull(at + strlen(mark), NULL, 10) : 0,
    };
}

static int has_rg(void)
{
    const char *argv[] = {"sh", "-c", "command -v rg >/dev/null && echo 1", NULL};
    return run(argv, "").matches == 1;
}

static long compare(const char *what, const char *pattern, int rg)
{
    const char *ours[] = {nacre,       "recall", "--json", "--limit", "1",
                          "--timeout", "100",    pattern,  NULL};
    const char *grep[] = {"grep", "-Ec", pattern, file, NULL};
    const char *mapped[] = {"rg", "-c", pattern, file, NULL};
    const char *reading[] = {"rg", "--no-mmap", "-c", pattern, file, NULL};
    double times[4][ROUNDS];
    long kb = 0;
    for (int i = 0; i < ROUNDS; i++) {
        struct took a = run(ours, "\"matches\": "), b = run(grep, "");
        if (a.matches != b.matches)
            die("grep counted other lines", NULL);
        times[0][i] = a.us;
        times[1][i] = b.us;
        times[2][i] = rg ? run(mapped, "").us : 0;
        times[3][i] = rg ? run(reading, "").us : 0;
        kb = a.kb > kb ? a.kb : kb;
    }
    double t[4];
    for (int i = 0; i < 4; i++)
        t[i] = percentile(times[i], ROUNDS, 50);
    char name[64], measured[64];
    static const char *const others[] = {"grep -E", "rg", "rg --no-mmap"};
    for (int i = 1; i < (rg ? 4 : 2); i++) {
        snprintf(name, sizeof name, "%s in 1 GiB, against %s", what, others[i - 1]);
        snprintf(measured, sizeof measured, "%.2f s against %.2f s", t[0] / 1e6, t[i] / 1e6);
        row(name, measured, t[i] / t[0], "x", i == 1 ? 1 : 0.5, 1);
    }
    return kb;
}

int main(void)
{
    static const struct {
        const char *what, *pattern;
    } searches[] = {
        {"a literal", "segment fault at"}, {"an alternation", "segfault|panicked|deadlock"},
        {"a class", "[a-z]+-[0-9]{3,}"},   {"two classes", "[0-9]+ us, 99[0-9]+ bytes"},
        {"a number", "\\b[0-9]{9,}\\b"},
    };
    const char *home = getenv("NACRE_HOME"), *build = getenv("NACRE_BUILD");
    if (!home || !build)
        die("NACRE_HOME and NACRE_BUILD must be set", NULL);
    snprintf(file, sizeof file, "%s.log", home);
    snprintf(answer, sizeof answer, "%s.answer", home);
    snprintf(nacre, sizeof nacre, "%s/nacre", build);
    nacre_session *session = open_session();
    write_file();
    make_log(session);
    int rg = has_rg();
    long kb = 0;
    for (size_t i = 0; i < sizeof searches / sizeof searches[0]; i++) {
        long used = compare(searches[i].what, searches[i].pattern, rg);
        kb = used > kb ? used : kb;
    }
    if (!rg)
        puts("rg is not installed: `scripts/deps.sh bench` does that");
    row("memory of a search over 1 GiB, at its peak", "", (double)kb / 1024, " MiB", 12, 0);
    unlink(file);
    unlink(answer);
    return nacre_close(session, NULL) != 0;
}
