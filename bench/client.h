/* A client of a server that speaks JSON-RPC in lines on its stdin and stdout: asks, and waits. */
#ifndef NACRE_BENCH_CLIENT_H
#define NACRE_BENCH_CLIENT_H

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include "bench.h"

#define INITIALIZE                                                                     \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{"             \
    "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{\"name\":" \
    "\"bench\",\"version\":\"1\"}}}\n"
#define CALL(tool, arguments)                                                                    \
    "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"" tool "\"," \
    "\"arguments\":" arguments "}}\n"

struct client {
    pid_t pid;
    int in;
    FILE *out;
    char *line;
    size_t size;
};

/* What the server says on stderr goes nowhere. */
static inline struct client start_server(char *const argv[])
{
    struct client c = {0};
    int in[2], out[2];
    posix_spawn_file_actions_t actions;
    if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
        die("pipe", NULL);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    if (posix_spawnp(&c.pid, argv[0], &actions, NULL, argv, environ) != 0)
        die(argv[0], NULL);
    posix_spawn_file_actions_destroy(&actions);
    close(in[0]);
    close(out[1]);
    c.in = in[1];
    c.out = fdopen(out[0], "r");
    return c;
}

static inline void send_line(struct client *c, const char *line)
{
    if (write(c->in, line, strlen(line)) != (ssize_t)strlen(line))
        die("write", NULL);
}

/* The next line that is no notification. */
static inline const char *read_answer(struct client *c)
{
    do
        if (getline(&c->line, &c->size, c->out) < 0)
            die("the server said nothing", NULL);
    while (strstr(c->line, "\"method\":\"notifications/"));
    return c->line;
}

static inline void ask(struct client *c, const char *line)
{
    send_line(c, line);
    const char *answer = read_answer(c);
    if (!strstr(answer, "\"result\":") || strstr(answer, "\"isError\":true"))
        die(answer, NULL);
}

static inline double memory_mib(const struct client *c, const char *field)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/status", (int)c->pid);
    return (double)field_kb(path, field) / 1024;
}

static inline void stop_server(struct client *c)
{
    int status;
    close(c->in);
    waitpid(c->pid, &status, 0);
    fclose(c->out);
    free(c->line);
    if (status != 0)
        die("the server did not end well", NULL);
}

#endif
