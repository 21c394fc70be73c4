/*
 * What a command costs: `true` through the library, from the call to the answer, against
 * posix_spawn with two pipes and waitpid of the same shell. The two alternate, so that both see
 * the same machine, and the sessions change, since where the kernel puts a keeper matters. Then
 * from a host that has touched 1 GiB, against a small one.
 */
#include "bench.h"

#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "baseline.h"

#define SESSIONS 8
#define ROUNDS   600
#define WARM     20
#define GIB      ((size_t)1 << 30)

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

struct samples {
    double spawn[SESSIONS * ROUNDS];
    double run[SESSIONS * ROUNDS];
    size_t count;
};

static void sample(struct samples *samples, const char *shell)
{
    nacre_session *session = open_session();
    nacre_record record = NACRE_RECORD_INIT;
    for (int i = -WARM; i < ROUNDS; i++) {
        double spawn = spawn_once(shell);
        double run = run_once(session, shell, &record);
        if (i < 0)
            continue;
        samples->spawn[samples->count] = spawn;
        samples->run[samples->count++] = run;
    }
    nacre_record_done(&record);
    if (nacre_close(session, NULL) != 0)
        die("close", NULL);
}

static struct pair measure(const char *shell)
{
    static struct samples samples;
    samples.count = 0;
    for (int i = 0; i < SESSIONS; i++)
        sample(&samples, shell);
    return (struct pair){percentile(samples.spawn, samples.count, 50),
                         percentile(samples.run, samples.count, 50)};
}

static void report(const char *what, struct pair p)
{
    char measured[64];
    snprintf(measured, sizeof measured, "%.0f us against %.0f us", p.run, p.spawn);
    row(what, measured, p.run / p.spawn, "x", 1.15, 0);
}

/* -- A large host ------------------------------------------------------------------------------ */

struct host {
    pid_t pid;
    int ask[2];
    int answer[2];
};

/* Runs one command for each byte it is asked with. */
static void be_large(const struct host *host)
{
    char *memory = mmap(NULL, GIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        die("mmap", NULL);
    madvise(memory, GIB, MADV_NOHUGEPAGE);
    memset(memory, 1, GIB);
    nacre_session *session = open_session();
    nacre_record record = NACRE_RECORD_INIT;
    char byte;
    while (read(host->ask[0], &byte, 1) == 1) {
        double took = run_once(session, "/bin/bash", &record);
        if (write(host->answer[1], &took, sizeof took) != sizeof took)
            die("write", NULL);
    }
    nacre_record_done(&record);
    _exit(nacre_close(session, NULL) != 0);
}

static struct host make_large_host(void)
{
    struct host host;
    if (pipe2(host.ask, O_CLOEXEC) < 0 || pipe2(host.answer, O_CLOEXEC) < 0)
        die("pipe", NULL);
    host.pid = fork();
    if (host.pid < 0)
        die("fork", NULL);
    if (host.pid == 0) {
        close(host.ask[1]);
        be_large(&host);
    }
    return host;
}

static double run_in(const struct host *host)
{
    double took;
    if (write(host->ask[1], "", 1) != 1 || read(host->answer[0], &took, sizeof took) != sizeof took)
        die("the large host", NULL);
    return took;
}

/* The two hosts take turns, so that both see the same machine. */
static void compare_hosts(nacre_session *session, const struct host *large)
{
    static double smalls[ROUNDS], larges[ROUNDS];
    nacre_record record = NACRE_RECORD_INIT;
    for (int i = -WARM; i < ROUNDS; i++) {
        double there = run_in(large);
        double here = run_once(session, "/bin/bash", &record);
        if (i < 0)
            continue;
        larges[i] = there;
        smalls[i] = here;
    }
    nacre_record_done(&record);
    double small = percentile(smalls, ROUNDS, 50);
    double p50 = percentile(larges, ROUNDS, 50);
    char measured[64];
    snprintf(measured, sizeof measured, "%.0f us against %.0f us", p50, small);
    row("the same from a host of 1 GiB", measured, p50 / small, "x", 1.1, 0);
}

int main(void)
{
    struct host large = make_large_host();
    report("true, bash, against posix_spawn (p50)", measure("/bin/bash"));
    report("true, sh, against posix_spawn (p50)", measure("/bin/sh"));
    nacre_session *session = open_session();
    compare_hosts(session, &large);
    close(large.ask[1]);
    int status;
    bool ended = waitpid(large.pid, &status, 0) == large.pid && status == 0;
    return nacre_close(session, NULL) != 0 || !ended;
}
