/*
 * The MCP server as a client meets it: how soon it answers, what a command costs through it, and
 * what eight floods do to it.
 */
#include "bench.h"

#include "baseline.h"
#include "client.h"

#define ROUNDS 200
#define HELLOS 30
#define LISTS  2000
#define SHELLS 8

static struct client start(void)
{
    char program[4096];
    char verb[] = "mcp";
    char *argv[] = {program, verb, NULL};
    snprintf(program, sizeof program, "%s/nacre", getenv("NACRE_BUILD"));
    return start_server(argv);
}

/* -- The first answer -------------------------------------------------------------------------- */

static void measure_hello(void)
{
    double times[HELLOS];
    for (int i = 0; i < HELLOS; i++) {
        double begin = now_us();
        struct client c = start();
        ask(&c, INITIALIZE);
        times[i] = (now_us() - begin) / 1e3;
        stop_server(&c);
    }
    char measured[64];
    snprintf(measured, sizeof measured, "p90 %.1f ms", percentile(times, HELLOS, 90));
    row("initialize answered after exec, p50", measured, percentile(times, HELLOS, 50), " ms", 10,
        0);
}

/* -- A command --------------------------------------------------------------------------------- */

static void measure_command(struct client *c)
{
    double ours[ROUNDS], theirs[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        double begin = now_us();
        ask(c, CALL("bash", "{\"command\":\"true\"}"));
        ours[i] = now_us() - begin;
        theirs[i] = spawn_once("/bin/bash");
    }
    double us = percentile(ours, ROUNDS, 50), them = percentile(theirs, ROUNDS, 50);
    char measured[64];
    snprintf(measured, sizeof measured, "%.0f us, posix_spawn %.0f us", us, them);
    row("`bash -c true` through MCP, p50", measured, us / them, "x", 1.4, 0);
}

/* -- Floods ------------------------------------------------------------------------------------ */

static double time_lists(struct client *c, double *times)
{
    double begin = now_us();
    for (int i = 0; i < LISTS; i++) {
        double one = now_us();
        ask(c, CALL("list_shells", "{}"));
        times[i] = now_us() - one;
    }
    return (now_us() - begin) / 1e6;
}

static void start_shells(struct client *c, const char *call)
{
    for (int i = 0; i < SHELLS; i++)
        ask(c, call);
}

static void measure_floods(void)
{
    static double calm[LISTS], flooded[LISTS];
    struct client quiet = start(), c = start();
    start_shells(&quiet, CALL("bash", "{\"command\":\"exec sleep 1000\",\"background\":true}"));
    double seconds = time_lists(&quiet, calm);
    double idle = memory_mib(&quiet, "VmRSS:");
    stop_server(&quiet);
    start_shells(&c, CALL("bash", "{\"command\":\"exec yes\",\"background\":true}"));
    time_lists(&c, flooded);
    double busy = memory_mib(&c, "VmRSS:");
    stop_server(&c);
    char measured[64];
    snprintf(measured, sizeof measured, "%d calls, one after another", LISTS);
    row("list_shells with 8 idle shells", measured, LISTS / seconds, "/s", 1000, 1);
    double p99 = percentile(calm, LISTS, 99), high = percentile(flooded, LISTS, 99);
    snprintf(measured, sizeof measured, "idle %.2f ms", p99 / 1e3);
    row("p99 of list_shells while 8 shells flood", measured, high / 1e3, " ms", 20, 0);
    row("the same, against idle", "", high / p99, "x", 5, 0);
    snprintf(measured, sizeof measured, "idle %.1f MiB", idle);
    row("memory of the server while 8 shells flood", measured, busy, " MiB", 12, 0);
    row("the same, beyond idle", "", busy - idle, " MiB", 4, 0);
}

int main(void)
{
    measure_hello();
    struct client c = start();
    ask(&c, INITIALIZE);
    measure_command(&c);
    stop_server(&c);
    measure_floods();
    return 0;
}
