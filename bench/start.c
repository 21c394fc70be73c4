/*
 * What a command costs: `true` through the library, from the call to the answer, against
 * posix_spawn with two pipes and waitpid of the same shell. The two alternate, so that both see
 * the same machine. Then the same from a host that has touched 1 GiB.
 */
#include "bench.h"

#include <sys/mman.h>

#include "baseline.h"

#define ROUNDS 600
#define WARM   20
#define GIB    ((size_t)1 << 30)

static double run_once(nacre_session *session, const char *shell, nacre_record *record)
{
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_error err;
    command.text = "true";
    command.shell = shell;
    double start = now_us();
    if (nacre_run(session, &command, -1, record, &err) < 0)
        die("run", &err);
    double took = now_us() - start;
    if (record->outcome != NACRE_EXITED || record->exit_code != 0)
        die("true did not exit with 0", NULL);
    return took;
}

struct pair {
    double spawn;
    double run;
};

static struct pair measure(nacre_session *session, const char *shell)
{
    static double spawns[ROUNDS], runs[ROUNDS];
    nacre_record record = NACRE_RECORD_INIT;
    for (int i = -WARM; i < ROUNDS; i++) {
        double spawn = spawn_once(shell);
        double run = run_once(session, shell, &record);
        if (i < 0)
            continue;
        spawns[i] = spawn;
        runs[i] = run;
    }
    nacre_record_done(&record);
    return (struct pair){percentile(spawns, ROUNDS, 50), percentile(runs, ROUNDS, 50)};
}

static void report(const char *what, struct pair p)
{
    char measured[64];
    snprintf(measured, sizeof measured, "%.0f us against %.0f us", p.run, p.spawn);
    row(what, measured, p.run / p.spawn, "x", 1.15, 0);
}

int main(void)
{
    nacre_session *session = open_session();
    struct pair small = measure(session, "/bin/bash");
    report("true, bash, against posix_spawn (p50)", small);
    report("true, sh, against posix_spawn (p50)", measure(session, "/bin/sh"));
    char *memory = mmap(NULL, GIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        die("mmap", NULL);
    madvise(memory, GIB, MADV_NOHUGEPAGE);
    memset(memory, 1, GIB);
    struct pair large = measure(session, "/bin/bash");
    char measured[64];
    snprintf(measured, sizeof measured, "%.0f us against %.0f us", large.run, small.run);
    row("the same from a host of 1 GiB", measured, large.run / small.run, "x", 1.1, 0);
    return nacre_close(session, NULL) != 0;
}
