#include "local/gate.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/err.h"
#include "run/wire.h"
#include "sys/sock.h"
#include "sys/spawn.h"

int gate_check_rules(const char *rules, nacre_error *err)
{
    const char *rule;
    size_t size;
    const char *fault = hosts_find_fault(rules, &rule, &size);
    if (!fault)
        return 0;
    return err_set(err, NACRE_EINVAL, "\"%.*s\" is no rule of the network: %s",
                   (int)MIN(size, (size_t)80), rule, fault);
}

static int say_rules(const struct gate_order *order, int sock)
{
    struct wire_gate_hello hello = {
        .head = {.type = WIRE_GATE_HELLO, .format = RUN_FORMAT},
        .fds = order->owner >= 0 ? WIRE_FD_OWNER : 0,
        .host_pid = getpid(),
        .patience_ms = (uint32_t)order->patience_ms,
        .size = (uint32_t)strlen(order->rules),
    };
    memcpy(hello.rules, order->rules, hello.size);
    int fds[] = {order->listen, order->line, order->owner};
    return sock_send(sock, &hello, offsetof(struct wire_gate_hello, rules) + hello.size, fds,
                     order->owner >= 0 ? 3 : 2, MSG_DONTWAIT);
}

int gate_begin(const struct gate_order *order, struct gate *ret_gate, nacre_error *err)
{
    char *argv[] = {(char *)"nacre-gate", NULL}, *env[] = {NULL};
    int pair[2], r = gate_check_rules(order->rules, err);
    *ret_gate = (struct gate)GATE_NONE;
    if (r < 0)
        return r;
    r = sock_pair(pair);
    if (r < 0)
        return err_sys(err, NACRE_ELIMIT, -r, "gate", "cannot open a socket for the gate");
    cleanup_close int ours = pair[0], theirs = pair[1];
    r = spawn_orphan(order->program, theirs, argv, env);
    /* By now it is the child of whoever adopts it, and can tell whether that is us. */
    if (r > 0)
        r = say_rules(order, ours);
    if (r < 0)
        return err_sys(err, NACRE_EBACKEND, -r, "gate", "cannot execute nacre-gate");
    ret_gate->sock = TAKE_FD(ours);
    return 0;
}

int gate_hear_ready(struct gate *gate, nacre_error *err)
{
    struct wire_gate_ready ready = {0};
    ssize_t n = sock_recv(gate->sock, &ready, sizeof ready, NULL, 0, MSG_DONTWAIT);
    if (n == -EAGAIN)
        return 0;
    if (n < (ssize_t)sizeof ready.head || ready.head.type != WIRE_GATE_READY)
        return err_set(err, NACRE_EBACKEND,
                       "nacre-gate did not get ready: it ended, or is not the one that belongs to "
                       "this library; check the installation");
    if (ready.head.format != RUN_FORMAT || n != sizeof ready || ready.error == EPROTO)
        return err_set(err, NACRE_EBACKEND,
                       "nacre-gate (format %u) and this library (" NACRE_VERSION ", format %d) are "
                       "not of one build; install the two together",
                       ready.head.format, RUN_FORMAT);
    gate->pid = ready.pid;
    gate->is_child = ready.child_of_host;
    if (ready.error)
        return err_sys(err, NACRE_EBACKEND, ready.error, "gate", "the gate cannot open");
    return 1;
}

void gate_let_go(struct gate *gate)
{
    if (gate->sock >= 0)
        shutdown(gate->sock, SHUT_WR);
}

bool gate_is_gone(struct gate *gate)
{
    char word[64];
    ssize_t n =
        gate->sock < 0 ? 0 : sock_recv(gate->sock, word, sizeof word, NULL, 0, MSG_DONTWAIT);
    if (n > 0 || n == -EAGAIN || n == -EMSGSIZE)
        return false;
    close_fd(&gate->sock);
    if (gate->is_child && waitpid(gate->pid, NULL, WNOHANG | __WALL) == 0)
        return false;
    gate->is_child = false;
    return true;
}
