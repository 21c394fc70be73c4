/* nacre acp-proxy between a client and an agent that the case plays both. The agent is a shell that
 * joins its stdin and stdout with two fifos. */
#ifndef TESTS_PROXY_RIG_H
#define TESTS_PROXY_RIG_H

#include "harness/harness.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jansson.h>

#define RIG __attribute__((unused)) static

struct rig {
    pid_t proxy;
    int to_proxy, from_proxy; /* the client's ends */
    int to_agent_out;         /* what is written here, the agent says */
    int from_agent_in;        /* what the agent hears */
};

static void exec_proxy(const int in[2], const int out[2], const char *option)
{
    const char *argv[] = {program("../../nacre"),
                          "acp-proxy",
                          "--",
                          "sh",
                          "-c",
                          "cat up & cat > down; wait; exit 5",
                          NULL,
                          NULL};
    if (option) {
        memmove(argv + 3, argv + 2, 4 * sizeof *argv);
        argv[2] = option;
    }
    dup2(in[0], STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    execv(argv[0], (char *const *)argv);
    _exit(127);
}

RIG struct rig start_rig(const char *option)
{
    int in[2], out[2];
    CHECK_OK(mkfifo("up", 0600));
    CHECK_OK(mkfifo("down", 0600));
    CHECK_OK(pipe2(in, O_CLOEXEC));
    CHECK_OK(pipe2(out, O_CLOEXEC));
    struct rig r = {.proxy = fork()};
    if (r.proxy == 0)
        exec_proxy(in, out, option);
    close(in[0]);
    close(out[1]);
    r.to_proxy = in[1];
    r.from_proxy = out[0];
    r.to_agent_out = open("up", O_WRONLY | O_CLOEXEC);
    r.from_agent_in = open("down", O_RDONLY | O_CLOEXEC);
    CHECK(r.proxy > 0 && r.to_agent_out >= 0 && r.from_agent_in >= 0);
    return r;
}

RIG void say(int fd, const void *data, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t n = write(fd, (const char *)data + done, size - done);
        CHECK(n > 0);
        done += (size_t)n;
    }
}

RIG void say_text(int fd, const char *text)
{
    say(fd, text, strlen(text));
}

/* Exactly that many bytes. */
RIG char *hear(int fd, size_t size)
{
    char *data = calloc(1, size + 1);
    CHECK(data);
    for (size_t done = 0; done < size;) {
        struct pollfd poller = {.fd = fd, .events = POLLIN};
        if (poll(&poller, 1, (int)soon(5000)) <= 0)
            FAIL("only %zu of %zu bytes came: %s", done, size, data);
        ssize_t n = read(fd, data + done, size - done);
        if (n <= 0)
            FAIL("the end after %zu of %zu bytes: %s", done, size, data);
        done += (size_t)n;
    }
    return data;
}

RIG void expect(int fd, const char *text)
{
    char *data = hear(fd, strlen(text));
    CHECK_TEXT(data, text);
    free(data);
}

RIG json_t *hear_message(int fd)
{
    static char line[1 << 16];
    size_t size = 0;
    do {
        char *byte = hear(fd, 1);
        line[size++] = *byte;
        free(byte);
    } while (line[size - 1] != '\n' && size < sizeof line);
    json_t *message = json_loadb(line, size, 0, NULL);
    CHECK(message);
    return message;
}

RIG void expect_silence(int fd)
{
    struct pollfd poller = {.fd = fd, .events = POLLIN};
    CHECK_EQ_INT(0, poll(&poller, 1, 50));
}

RIG void expect_end(int fd)
{
    struct pollfd poller = {.fd = fd, .events = POLLIN};
    char byte;
    CHECK(poll(&poller, 1, (int)soon(8000)) > 0);
    CHECK_EQ_INT(0, read(fd, &byte, 1));
}

RIG int exit_status(const struct rig *r)
{
    int status;
    CHECK_EQ_INT(r->proxy, waitpid(r->proxy, &status, 0));
    CHECK(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* Both sides end by themselves, the client first. */
RIG void end_rig(struct rig *r)
{
    close(r->to_proxy);
    expect_end(r->from_agent_in);
    close(r->to_agent_out);
    expect_end(r->from_proxy);
    CHECK_EQ_INT(5, exit_status(r));
}

#endif
