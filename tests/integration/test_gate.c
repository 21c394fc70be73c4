/*
 * The gate as the library starts it: rules that are none, its word, its end by every way there is.
 * What it lets through is tested between networks, in test_gate.py.
 */
#include "harness/harness.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "local/find_keeper.h"
#include "local/gate.h"
#include "sys/sock.h"

#define FORTY "0123456789012345678901234567890123456789"

/* A gate with all that belongs to it. */
struct rig {
    struct gate gate;
    int listen;
    int line[2]; /* as of a session: the gate has the first end */
    struct sockaddr_in address;
};

static int open_gate_program(void)
{
    int fd = -1;
    CHECK_OK(find_gate(getenv("NACRE_KEEPER"), &fd, ERR));
    return fd;
}

static int hear(struct gate *gate)
{
    struct pollfd polled = {.fd = gate->sock, .events = POLLIN};
    CHECK(poll(&polled, 1, (int)soon(8000)) == 1);
    return gate_hear_ready(gate, ERR);
}

static void listen_somewhere(struct rig *rig)
{
    socklen_t size = sizeof rig->address;
    rig->address =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    rig->listen = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(bind(rig->listen, (struct sockaddr *)&rig->address, size) == 0);
    CHECK(listen(rig->listen, 64) == 0);
    CHECK(getsockname(rig->listen, (struct sockaddr *)&rig->address, &size) == 0);
}

static struct rig open_gate(const char *rules, int owner)
{
    struct rig rig = {.gate = GATE_NONE};
    int program = open_gate_program();
    listen_somewhere(&rig);
    CHECK(sock_pair(rig.line) == 0);
    struct gate_order order = {.program = program,
                               .listen = rig.listen,
                               .rules = rules,
                               .line = rig.line[0],
                               .owner = owner};
    CHECK_OK(gate_begin(&order, &rig.gate, ERR));
    CHECK_EQ_INT(1, hear(&rig.gate));
    CHECK(rig.gate.pid > 1 && process_alive(process_of(rig.gate.pid)));
    close(program);
    close(rig.line[0]);
    return rig;
}

static int visit(const struct rig *rig)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(connect(fd, (const struct sockaddr *)&rig->address, sizeof rig->address) == 0);
    return fd;
}

static void check_answer(const struct rig *rig, const char *request, const char *want)
{
    char got[1024] = "";
    size_t size = 0;
    int fd = visit(rig);
    CHECK(write(fd, request, strlen(request)) == (ssize_t)strlen(request));
    for (ssize_t n; (n = read(fd, got + size, sizeof got - 1 - size)) > 0; size += (size_t)n)
        ;
    CHECK_STR(got, want);
    close(fd);
}

static void close_rest(struct rig *rig)
{
    CHECK(AWAIT(gate_is_gone(&rig->gate), 8000));
    close(rig->listen);
    close(rig->line[1]);
}

TEST(rules_are_checked)
{
    CHECK_OK(gate_check_rules("", ERR));
    CHECK_OK(gate_check_rules("example.org\n*.example.com:443\n1.2.3.4:*", ERR));
    CHECK_CODE(NACRE_EINVAL, gate_check_rules("*", ERR));
    CHECK_CODE(NACRE_EINVAL, gate_check_rules("good.example\nhttps://bad.example/", ERR));
    CHECK_TEXT(harness_error.msg,
               "\"https://bad.example/\" is no rule of the network: write the host alone, "
               "without a scheme or a path");
    CHECK_CODE(NACRE_EINVAL, gate_check_rules("bad rule " FORTY FORTY FORTY, ERR));
    CHECK(strlen(harness_error.msg) < 400);
    struct gate gate;
    struct gate_order order = {
        .rules = "a b", .program = -1, .listen = -1, .line = -1, .owner = -1};
    CHECK_CODE(NACRE_EINVAL, gate_begin(&order, &gate, ERR));
    CHECK_EQ_INT(-EBADF, gate.sock);
}

TEST(it_answers_and_is_let_go)
{
    struct rig rig = open_gate("example.org", -EBADF);
    check_answer(&rig, "CONNECT other.example:443 HTTP/1.1\r\n\r\n",
                 "HTTP/1.1 403 Blocked by nacre\r\n");
    check_answer(&rig, "CONNECT localhost:443 HTTP/1.1\r\n\r\n", "no rule of sandbox_network");
    CHECK(!gate_is_gone(&rig.gate));
    gate_let_go(&rig.gate);
    close_rest(&rig);
}

TEST(it_ends_with_the_line)
{
    struct rig rig = open_gate("example.org", -EBADF);
    int visitor = visit(&rig);
    char byte;
    CHECK(AWAIT(count_children(rig.gate.pid) == 1, 8000));
    close(rig.line[1]);
    rig.line[1] = -1;
    CHECK_EQ_INT(0, read(visitor, &byte, 1));
    close(visitor);
    close_rest(&rig);
}

TEST(it_ends_with_the_socket)
{
    struct rig rig = open_gate("example.org", -EBADF);
    struct process gate = process_of(rig.gate.pid);
    close(rig.gate.sock);
    CHECK(AWAIT(!process_alive(gate), 8000));
    rig.gate.sock = -EBADF;
    close_rest(&rig);
}

TEST(it_ends_with_the_owner)
{
    pid_t owner = fork();
    if (owner == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        pause();
    }
    int pidfd = (int)syscall(SYS_pidfd_open, owner, 0);
    if (pidfd < 0) {
        kill(owner, SIGKILL);
        waitpid(owner, NULL, 0);
        SKIP("the end of an owner by its pidfd: this kernel has none");
    }
    struct rig rig = open_gate("example.org", pidfd);
    close(pidfd);
    CHECK(!gate_is_gone(&rig.gate));
    kill(owner, SIGKILL);
    waitpid(owner, NULL, 0);
    close_rest(&rig);
}

static void be_a_host(void *arg)
{
    struct rig *rig = arg;
    *rig = open_gate("example.org", -EBADF);
    (void)visit(rig);
    for (;;)
        pause();
}

/* A host that is killed closes all that it had. */
TEST(it_ends_with_a_host_that_is_killed)
{
    struct rig *rig = shared_memory(sizeof *rig);
    pid_t host = host_fork(be_a_host, rig);
    CHECK(AWAIT(__atomic_load_n(&rig->gate.pid, __ATOMIC_ACQUIRE) > 0, 8000));
    struct process gate = process_of(rig->gate.pid);
    host_kill(host);
    CHECK(AWAIT(!process_alive(gate), 8000));
}

TEST(a_subreaper_reaps_it)
{
    CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0);
    struct rig rig = open_gate("example.org", -EBADF);
    CHECK(rig.gate.is_child);
    gate_let_go(&rig.gate);
    close_rest(&rig);
    CHECK_EQ_INT(0, count_children(getpid()));
}

TEST(another_program_is_none)
{
    struct gate gate = GATE_NONE;
    struct rig rig = {0};
    listen_somewhere(&rig);
    CHECK(sock_pair(rig.line) == 0);
    struct gate_order order = {
        .listen = rig.listen, .rules = "example.org", .line = rig.line[0], .owner = -EBADF};
    order.program = open("/bin/true", O_PATH | O_CLOEXEC);
    CHECK_OK(gate_begin(&order, &gate, ERR));
    CHECK_CODE(NACRE_EBACKEND, hear(&gate));
    CHECK(AWAIT(gate_is_gone(&gate), 8000));
    close(order.program);
    order.program = open("/etc/passwd", O_PATH | O_CLOEXEC);
    CHECK_CODE(NACRE_EBACKEND, gate_begin(&order, &gate, ERR));
    close(order.program);
    /* A socket that does not listen. */
    order.program = open_gate_program();
    order.listen = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_OK(gate_begin(&order, &gate, ERR));
    CHECK_CODE(NACRE_EBACKEND, hear(&gate));
    CHECK(AWAIT(gate_is_gone(&gate), 8000));
    close(order.program);
    close(order.listen);
    close(rig.listen);
    close(rig.line[0]);
    close(rig.line[1]);
}

TEST(it_is_found_beside_the_keeper)
{
    int fd;
    close(open_gate_program());
    CHECK_CODE(NACRE_EBACKEND, find_gate("/bin/true", &fd, ERR));
    CHECK_STR(harness_error.msg,
              "cannot use /bin/nacre-gate; install nacre-gate beside nacre-keeper");
    CHECK_CODE(NACRE_EBACKEND, find_gate("/nowhere/keeper", &fd, ERR));
}

/* Nothing of ours is left open by what was begun and ended. */
TEST(it_costs_one_descriptor)
{
    int before = fd_count();
    struct rig rig = open_gate("example.org", -EBADF);
    CHECK_EQ_INT(before + 3, fd_count());
    gate_let_go(&rig.gate);
    close_rest(&rig);
    CHECK_EQ_INT(before, fd_count());
}

/* What an idle one takes: said in docs/sandbox-gate.md. */
TEST(it_is_small)
{
    if (sanitized())
        SKIP("the memory of the gate: a sanitizer has its own");
    struct rig rig = open_gate("example.org", -EBADF);
    CHECK_RANGE(1, process_anon_kb(rig.gate.pid), 512);
    gate_let_go(&rig.gate);
    close_rest(&rig);
}
