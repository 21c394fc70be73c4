/*
 * The server over HTTP: requests a second beside a bare epoll server that reads nothing of what it
 * is asked and beside a server of the SDK in Node, a command beside the same over stdio, and what a
 * thousand clients that listen cost the others.
 */
#include "bench.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client.h"

#define CONNECTIONS 16
#define SECONDS     2
#define ROUNDS      100
#define LISTS       300
#define VIEWERS     1000
#define ANSWER_MAX  65536

/* -- Servers ---------------------------------------------------------------------------------- */

struct http_server {
    pid_t pid;
    struct sockaddr_in address;
    char token[80];
};

/* Answers each piece that it reads with the same bytes. */
_Noreturn static void serve_bare(int listener)
{
    static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                                 "Content-Length: 36\r\n\r\n"
                                 "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}";
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener}, events[64];
    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        int n = epoll_wait(epoll, events, 64, -1);
        for (int i = 0; i < n; i++) {
            char piece[16384];
            int fd = events[i].data.fd;
            if (fd == listener) {
                event.data.fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
                epoll_ctl(epoll, EPOLL_CTL_ADD, event.data.fd, &event);
            } else if (read(fd, piece, sizeof piece) <= 0) {
                close(fd);
            } else if (send(fd, answer, sizeof answer - 1, MSG_NOSIGNAL) < 0) {
                close(fd);
            }
        }
    }
}

static struct http_server start_bare(void)
{
    struct http_server s = {.address = {.sin_family = AF_INET}};
    socklen_t size = sizeof s.address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    s.address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(listener, (struct sockaddr *)&s.address, size) < 0 || listen(listener, 128) < 0 ||
        getsockname(listener, (struct sockaddr *)&s.address, &size) < 0)
        die("listen", NULL);
    s.pid = fork();
    if (s.pid == 0)
        serve_bare(listener);
    close(listener);
    return s;
}

/* A program that prints where it listens. */
static struct http_server start_program(char **argv)
{
    struct http_server s = {.address = {.sin_family = AF_INET}};
    char line[256];
    int out[2];
    if (pipe2(out, O_CLOEXEC) < 0)
        die("pipe", NULL);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    if (posix_spawn(&s.pid, argv[0], &actions, NULL, argv, environ) != 0)
        die(argv[0], NULL);
    posix_spawn_file_actions_destroy(&actions);
    close(out[1]);
    FILE *told = fdopen(out[0], "r");
    if (!fgets(line, sizeof line, told))
        die("a server said nothing", NULL);
    fclose(told);
    s.address.sin_port = htons((uint16_t)atoi(strrchr(line, ':') + 1));
    s.address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return s;
}

static struct http_server start_nacre(void)
{
    char program[4096], path[4096];
    snprintf(program, sizeof program, "%s/nacre", getenv("NACRE_BUILD"));
    char *argv[] = {program, (char *)"serve", (char *)"--listen", (char *)"127.0.0.1:0", NULL};
    struct http_server s = start_program(argv);
    snprintf(path, sizeof path, "%s/http-token", getenv("NACRE_HOME"));
    FILE *file = fopen(path, "r");
    if (!file || !fgets(s.token, sizeof s.token, file))
        die(path, NULL);
    fclose(file);
    s.token[strcspn(s.token, "\n")] = '\0';
    return s;
}

static struct http_server start_node(void)
{
    char program[4096], *node = getenv("NACRE_BENCH_NODE");
    snprintf(program, sizeof program, "%s/sdk_http.mjs", getenv("NACRE_BENCH_SERVERS"));
    char *argv[] = {node, program, NULL};
    return start_program(argv);
}

static void stop_http(struct http_server *s)
{
    kill(s->pid, SIGTERM);
    waitpid(s->pid, NULL, 0);
}

/* -- Clients ---------------------------------------------------------------------------------- */

static int connect_to(const struct http_server *s)
{
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (const struct sockaddr *)&s->address, sizeof s->address) < 0)
        die("connect", NULL);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

/* A request of a session, or of none. */
static int write_request(char *to, size_t room, const struct http_server *s, const char *method,
                         const char *session, const char *body)
{
    return snprintf(to, room,
                    "%s /mcp HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nAuthorization: Bearer %s\r\n"
                    "Accept: application/json, text/event-stream\r\n"
                    "Content-Type: application/json\r\n%s%s%sContent-Length: %zu\r\n\r\n%s",
                    method, ntohs(s->address.sin_port), s->token, session ? "Mcp-Session-Id: " : "",
                    session ? session : "", session ? "\r\n" : "", strlen(body), body);
}

static void send_all(int fd, const char *text, int size)
{
    if (send(fd, text, (size_t)size, MSG_NOSIGNAL) != size)
        die("send", NULL);
}

/* Reads until the answer is whole: a length, or the last chunk. */
static size_t hear_answer(int fd, char *text)
{
    size_t have = 0;
    for (;;) {
        ssize_t n = read(fd, text + have, ANSWER_MAX - 1 - have);
        if (n <= 0)
            die("no answer", NULL);
        have += (size_t)n;
        text[have] = '\0';
        const char *body = strstr(text, "\r\n\r\n"), *length = strcasestr(text, "Content-Length: ");
        if (body && length && length < body &&
            have >= (size_t)(body + 4 - text) + strtoul(length + 16, NULL, 10))
            return have;
        if (body && !(length && length < body) && have > 5 &&
            strcmp(text + have - 5, "0\r\n\r\n") == 0)
            return have;
    }
}

static void open_http_session(const struct http_server *s, char *session)
{
    static char request[4096], answer[ANSWER_MAX];
    int fd = connect_to(s);
    send_all(fd, request, write_request(request, sizeof request, s, "POST", NULL, INITIALIZE));
    hear_answer(fd, answer);
    const char *id = strcasestr(answer, "Mcp-Session-Id: ");
    if (!id)
        die("no session", NULL);
    snprintf(session, 33, "%s", id + 16);
    close(fd);
}

/* -- What is measured ------------------------------------------------------------------------- */

static double measure_rate(const struct http_server *s, const char *request, int size)
{
    static char answer[ANSWER_MAX];
    struct epoll_event event = {.events = EPOLLIN}, events[CONNECTIONS];
    int fds[CONNECTIONS], epoll = epoll_create1(EPOLL_CLOEXEC);
    size_t count = 0;
    for (int i = 0; i < CONNECTIONS; i++) {
        fds[i] = event.data.fd = connect_to(s);
        epoll_ctl(epoll, EPOLL_CTL_ADD, fds[i], &event);
        send_all(fds[i], request, size);
    }
    double begin = now_us();
    while (now_us() - begin < SECONDS * 1e6) {
        int n = epoll_wait(epoll, events, CONNECTIONS, 1000);
        for (int i = 0; i < n; i++) {
            hear_answer(events[i].data.fd, answer);
            send_all(events[i].data.fd, request, size);
            count++;
        }
    }
    double rate = (double)count / (now_us() - begin) * 1e6;
    for (int i = 0; i < CONNECTIONS; i++)
        close(fds[i]);
    close(epoll);
    return rate;
}

static int write_ping(char *request, size_t room, const struct http_server *s)
{
    char session[33];
    open_http_session(s, session);
    return write_request(request, room, s, "POST", session,
                         "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}");
}

static void compare_rates(const struct http_server *s)
{
    static char request[4096];
    char measured[64];
    struct http_server bare = start_bare(), node = start_node();
    int size = write_ping(request, sizeof request, s);
    double theirs = measure_rate(&bare, request, size), ours = measure_rate(s, request, size);
    size = write_ping(request, sizeof request, &node);
    double slow = measure_rate(&node, request, size);
    snprintf(measured, sizeof measured, "%.0f/s, bare epoll %.0f/s", ours, theirs);
    row("`ping` over HTTP, 16 connections", measured, ours / theirs, "x", 0.5, 1);
    snprintf(measured, sizeof measured, "%.0f/s, SDK in Node %.0f/s", ours, slow);
    row("the same, beside the SDK in Node", measured, ours / slow, "x", 5, 1);
    kill(bare.pid, SIGKILL);
    waitpid(bare.pid, NULL, 0);
    stop_http(&node);
}

static void compare_commands(const struct http_server *s)
{
    static char request[4096], answer[ANSWER_MAX];
    double over_http[ROUNDS], over_stdio[ROUNDS];
    char session[33], measured[64], program[4096];
    char *argv[] = {program, (char *)"mcp", NULL};
    snprintf(program, sizeof program, "%s/nacre", getenv("NACRE_BUILD"));
    struct client stdio = start_server(argv);
    ask(&stdio, INITIALIZE);
    open_http_session(s, session);
    int fd = connect_to(s);
    int size = write_request(request, sizeof request, s, "POST", session,
                             CALL("bash", "{\"command\":\"true\"}"));
    for (int i = 0; i < ROUNDS; i++) {
        double begin = now_us();
        send_all(fd, request, size);
        hear_answer(fd, answer);
        over_http[i] = now_us() - begin;
        begin = now_us();
        ask(&stdio, CALL("bash", "{\"command\":\"true\"}"));
        over_stdio[i] = now_us() - begin;
    }
    double us = percentile(over_http, ROUNDS, 50), them = percentile(over_stdio, ROUNDS, 50);
    snprintf(measured, sizeof measured, "%.0f us, stdio %.0f us", us, them);
    row("`bash -c true` over HTTP, p50", measured, us / them, "x", 1.15, 0);
    close(fd);
    stop_server(&stdio);
}

static double resident_mib(pid_t pid)
{
    char path[64], line[256];
    double kib = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, "VmRSS:", 6) == 0)
            kib = atof(line + 6);
    if (file)
        fclose(file);
    return kib / 1024;
}

/* Each listens to the resources of a session of its own name's: a stream that stays open. */
static void let_listen(const struct http_server *s, int *fds)
{
    static char request[4096], piece[ANSWER_MAX];
    static const char body[] =
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"subscriptions/listen\",\"params\":{"
        "\"notifications\":{},\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":"
        "\"2026-07-28\",\"io.modelcontextprotocol/clientCapabilities\":{}}}}";
    for (int i = 0; i < VIEWERS; i++) {
        int n = snprintf(request, sizeof request,
                         "POST /mcp/v%d HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n"
                         "Authorization: Bearer %s\r\nAccept: */*\r\n"
                         "Content-Type: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\n"
                         "Mcp-Method: subscriptions/listen\r\nContent-Length: %zu\r\n\r\n%s",
                         i % 8, ntohs(s->address.sin_port), s->token, sizeof body - 1, body);
        fds[i] = connect_to(s);
        send_all(fds[i], request, n);
        if (read(fds[i], piece, sizeof piece) <= 0)
            die("a listener was not taken", NULL);
    }
}

static double list_p99(const struct http_server *s, const char *session)
{
    static char request[4096], answer[ANSWER_MAX];
    double times[LISTS];
    int fd = connect_to(s);
    int size =
        write_request(request, sizeof request, s, "POST", session, CALL("list_shells", "{}"));
    for (int i = 0; i < LISTS; i++) {
        double begin = now_us();
        send_all(fd, request, size);
        hear_answer(fd, answer);
        times[i] = (now_us() - begin) / 1e3;
    }
    close(fd);
    return percentile(times, LISTS, 99);
}

static void measure_listeners(const struct http_server *s)
{
    static int fds[VIEWERS];
    char session[33], measured[64];
    double idle = resident_mib(s->pid);
    open_http_session(s, session);
    double alone = list_p99(s, session);
    let_listen(s, fds);
    double with = list_p99(s, session), full = resident_mib(s->pid);
    snprintf(measured, sizeof measured, "alone %.2f ms", alone);
    row("list_shells p99, 1,000 listen", measured, with, " ms", 20, 0);
    row("memory of an idle server", "", idle, " MiB", 8, 0);
    snprintf(measured, sizeof measured, "%.1f MiB in all", full);
    row("memory for 1,000 that listen", measured, full - idle, " MiB", 4, 0);
    for (int i = 0; i < VIEWERS; i++)
        close(fds[i]);
}

int main(void)
{
    struct rlimit files = {4096, 4096};
    setrlimit(RLIMIT_NOFILE, &files);
    signal(SIGPIPE, SIG_IGN);
    struct http_server s = start_nacre();
    printf("memory and rates of the server over HTTP\n");
    measure_listeners(&s);
    compare_rates(&s);
    compare_commands(&s);
    stop_http(&s);
    return 0;
}
