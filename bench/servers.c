/*
 * What users would pick instead: two shell servers of npm, and a bare loop around the subprocess
 * calls of Node and of Python. All of them do the same jobs in the same run, driven by the same
 * client. The rows say how many times ours theirs is.
 *
 * The client does not say that it is initialized: one of them would then begin to download a
 * browser.
 */
#include "bench.h"

#include <stdbool.h>

#include "baseline.h"
#include "client.h"

#define HELLOS                   5
#define ROUNDS                   50
#define LISTS                    100
#define FLOODS                   8
#define RUN(tool, command, rest) CALL(tool, "{\"command\":\"" command "\"" rest "}")
/* 32 MiB of lines of a hundred bytes. */
#define FLOOD     "yes $(printf %099d 7) | head -c 33554432"
#define PATH_SIZE 4096

enum { NACRE, DESKTOP_COMMANDER, COMMANDS, NODE, PYTHON, SERVERS };

static const struct server {
    const char *name;
    const char *program; /* NACRE_BENCH_NODE if it ends in js */
    const char *shell;   /* that it runs commands with */
    const char *run;
    const char *flood;
    const char *list; /* its cheapest call, or NULL */
} servers[SERVERS] = {
    [NACRE] = {"nacre", "mcp", "/bin/bash", RUN("bash", "true", ""), RUN("bash", FLOOD, ""),
               CALL("list_shells", "{}")},
    [DESKTOP_COMMANDER] = {"desktop-commander",
                           "node_modules/@wonderwhy-er/desktop-commander/dist/index.js",
                           "/bin/bash", RUN("start_process", "true", ",\"timeout_ms\":5000"),
                           RUN("start_process", FLOOD, ",\"timeout_ms\":60000"),
                           CALL("list_sessions", "{}")},
    [COMMANDS] = {"mcp-server-commands", "node_modules/mcp-server-commands/build/index.js",
                  "/bin/sh", RUN("run_command", "true", ""), RUN("run_command", FLOOD, ""), NULL},
    [NODE] = {"a loop in Node", "loop.mjs", "/bin/bash", RUN("run", "true", ""),
              RUN("run", FLOOD, ""), NULL},
    [PYTHON] = {"a loop in Python", "loop.py", "/bin/bash", RUN("run", "true", ""),
                RUN("run", FLOOD, ""), NULL},
};

static bool ends_with(const char *text, const char *end)
{
    return strlen(text) >= strlen(end) && strcmp(text + strlen(text) - strlen(end), end) == 0;
}

static struct client start(const struct server *s)
{
    char program[PATH_SIZE], interpreter[PATH_SIZE];
    char *argv[] = {interpreter, program, NULL};
    if (s == &servers[NACRE]) {
        snprintf(interpreter, sizeof interpreter, "%s/nacre", getenv("NACRE_BUILD"));
        snprintf(program, sizeof program, "%s", s->program);
    } else {
        snprintf(interpreter, sizeof interpreter, "%s",
                 ends_with(s->program, "py") ? "python3" : getenv("NACRE_BENCH_NODE"));
        snprintf(program, sizeof program, "%s/%s", getenv("NACRE_BENCH_SERVERS"), s->program);
    }
    return start_server(argv);
}

/* One row for each of the others: how many times ours theirs is. */
static void compare(const char *what, const double values[SERVERS], const char *unit, double goal)
{
    for (int i = NACRE + 1; i < SERVERS; i++) {
        char label[64], measured[64];
        snprintf(label, sizeof label, "%s: %s", what, servers[i].name);
        snprintf(measured, sizeof measured, "%.*f%s, nacre %.*f%s", values[i] < 100, values[i],
                 unit, values[NACRE] < 100 ? 2 : 0, values[NACRE], unit);
        row(label, measured, values[i] / values[NACRE], "x", goal, 1);
    }
}

/* -- The first answer -------------------------------------------------------------------------- */

static void measure_hello(void)
{
    double times[SERVERS][HELLOS], p50[SERVERS];
    for (int round = 0; round < HELLOS; round++)
        for (int i = 0; i < SERVERS; i++) {
            double begin = now_us();
            struct client c = start(&servers[i]);
            ask(&c, INITIALIZE);
            times[i][round] = (now_us() - begin) / 1e3;
            stop_server(&c);
        }
    for (int i = 0; i < SERVERS; i++)
        p50[i] = percentile(times[i], HELLOS, 50);
    compare("initialize", p50, " ms", 1);
}

/* -- Commands ---------------------------------------------------------------------------------- */

/* Each as a multiple of posix_spawn of the shell that it uses. The loops keep no log and hold
 * nothing together, so they may be somewhat faster. */
static void measure_command(struct client clients[SERVERS])
{
    static double theirs[SERVERS][ROUNDS], spawns[SERVERS][ROUNDS];
    double ratio[SERVERS];
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < SERVERS; i++) {
            double begin = now_us();
            ask(&clients[i], servers[i].run);
            theirs[i][round] = now_us() - begin;
            spawns[i][round] = spawn_once(servers[i].shell);
        }
    for (int i = 0; i < SERVERS; i++)
        ratio[i] = percentile(theirs[i], ROUNDS, 50) / percentile(spawns[i], ROUNDS, 50);
    compare("`true`/posix_spawn", ratio, "x", 0.75);
}

static double calls_per_second(struct client *c, const struct server *s)
{
    double begin = now_us();
    for (int n = 0; n < LISTS; n++)
        ask(c, s->list);
    return LISTS / (now_us() - begin) * 1e6;
}

static void measure_lists(struct client clients[SERVERS])
{
    double ours = calls_per_second(&clients[NACRE], &servers[NACRE]);
    for (int i = NACRE + 1; i < SERVERS; i++) {
        char label[64], measured[64];
        if (!servers[i].list)
            continue;
        double theirs = calls_per_second(&clients[i], &servers[i]);
        snprintf(label, sizeof label, "listing calls: %s", servers[i].name);
        snprintf(measured, sizeof measured, "%.0f/s, nacre %.0f/s", theirs, ours);
        row(label, measured, ours / theirs, "x", 1, 1);
    }
}

/* -- Memory ------------------------------------------------------------------------------------ */

/* At once. What does not fit is a failure of theirs; here it is only how much they took for it. */
static void flood(struct client *c, const struct server *s)
{
    for (int n = 0; n < FLOODS; n++)
        send_line(c, s->flood);
    for (int n = 0; n < FLOODS; n++)
        read_answer(c);
}

/* Of the server alone. Ours has a keeper for each command besides; bench/idle.c weighs those. */
static void measure_memory(void)
{
    double idle[SERVERS], peak[SERVERS];
    for (int i = 0; i < SERVERS; i++) {
        struct client c = start(&servers[i]);
        ask(&c, INITIALIZE);
        idle[i] = memory_mib(&c, "VmRSS:");
        flood(&c, &servers[i]);
        peak[i] = memory_mib(&c, "VmHWM:");
        stop_server(&c);
    }
    compare("memory idle", idle, " MiB", 1);
    compare("8 floods of 32 MiB", peak, " MiB", 1);
}

int main(void)
{
    struct client clients[SERVERS];
    setenv("DESKTOP_COMMANDER_DISABLE_TELEMETRY", "1", 1);
    setenv("DC_FLAG_URL", "http://127.0.0.1:9/", 1);
    measure_hello();
    for (int i = 0; i < SERVERS; i++) {
        clients[i] = start(&servers[i]);
        ask(&clients[i], INITIALIZE);
    }
    measure_command(clients);
    measure_lists(clients);
    for (int i = 0; i < SERVERS; i++)
        stop_server(&clients[i]);
    measure_memory();
    return 0;
}
