/*
 * Waiting for a port. There is no event for it that an ordinary user gets, so it is looked for:
 * often at first, later four times a second. A port counts if a process of the shell's tree holds
 * the socket, wherever that process is; who else may have it is looked for only then.
 */
#include <nacre/ports.h>
#include <stdio.h>
#include <string.h>

#include "backend/op.h"
#include "base/clock.h"
#include "base/err.h"
#include "home/report.h"
#include "home/sweep.h"
#include "run/inside.h"
#include "session/session.h"
#include "sys/ports.h"
#include "sys/proc.h"

#define PAUSE_LEAST 10 /* ms */
#define PAUSE_MOST  250
#define TREE_MAX    4096
#define SOCKETS_MAX 256
#define PORT_MAX    65535

struct port_op {
    nacre_op op;
    nacre_session *session;
    nacre_id id;
    uint16_t port; /* 0 = any */
    int pause_ms;
    bool foreign; /* at the last look somebody else had it */
    nacre_port found;
    struct proc_ref refs[TREE_MAX];
};

/* One look: what listens in the network of the process that was looked at last. */
struct port_look {
    struct port_op *op;
    uint64_t network;
    struct listening sockets[SOCKETS_MAX];
    size_t count;
    pid_t pid;
};

static int add_socket(const struct listening *socket, void *userdata)
{
    struct port_look *look = userdata;
    look->sockets[look->count++] = *socket;
    return look->count == SOCKETS_MAX;
}

/* The lowest one counts, and of who has it the first. */
static int note_held(const struct listening *socket, void *userdata)
{
    struct port_look *look = userdata;
    struct proc_stat stat;
    nacre_port *found = &look->op->found;
    if (found->port != 0 && found->port <= socket->port)
        return 0;
    found->port = socket->port;
    found->pid = look->pid;
    if (proc_stat(look->pid, &stat) == 0)
        memcpy(found->name, stat.name, sizeof found->name);
    return 0;
}

static void look_at_member(struct port_look *look, pid_t pid)
{
    uint64_t network = ports_network(pid);
    if (network != look->network || network == 0) {
        look->count = 0;
        look->network = network;
        ports_listening(pid, look->op->port, add_socket, look);
    }
    look->pid = pid;
    if (look->count > 0)
        ports_held(pid, look->sockets, look->count, note_held, look);
}

/* -- Who else ---------------------------------------------------------------------------------- */

struct holder {
    const struct listening *socket;
    nacre_session *session;
    pid_t pid;
    nacre_id shell;
    char name[64]; /* of the shell */
    bool has_shell;
};

static int note_holder(const struct listening *socket UNUSED, void *userdata UNUSED)
{
    return 1;
}

static int is_holder(pid_t pid, void *userdata)
{
    struct holder *h = userdata;
    if (ports_held(pid, h->socket, 1, note_holder, NULL) != 1)
        return 0;
    h->pid = pid;
    return 1;
}

static int is_its_shell(const nacre_record *record, void *userdata)
{
    struct holder *h = userdata;
    cleanup_run struct run run = RUN_NONE;
    struct run_state state;
    if (home_open_run(h->session->home, &record->id, &run, NULL) < 0 ||
        run_read_state(&run, &state, NULL) < 0 || !sweep_is_here(&state) ||
        !inside_of(&record->id, state.keeper_pid, h->pid))
        return 0;
    h->shell = record->id;
    h->has_shell = true;
    snprintf(h->name, sizeof h->name, "%s", record->name ? record->name : "");
    return 1;
}

static int is_held_by_other(struct port_look *look, nacre_error *err)
{
    struct holder h = {.socket = &look->sockets[0], .session = look->op->session};
    int port = look->op->port;
    proc_each(is_holder, &h);
    if (h.pid > 0)
        home_each_record(h.session->home, true, is_its_shell, &h, NULL);
    if (h.has_shell)
        return err_set(err, NACRE_EBUSY, "port %d is held by shell %s%s%s%s", port,
                       nacre_id_short(&h.shell).s, h.name[0] ? " ([" : "", h.name,
                       h.name[0] ? "])" : "");
    if (h.pid > 0)
        return err_set(err, NACRE_EBUSY, "port %d is held by a process outside nacre (pid %d)",
                       port, h.pid);
    return err_set(err, NACRE_EBUSY,
                   "port %d is held by a process of user %u that may not be looked at", port,
                   h.socket->user);
}

/* -- The operation ---------------------------------------------------------------------------- */

static int state_of_shell(const struct port_op *o, struct run_state *state, nacre_error *err)
{
    cleanup_run struct run run = RUN_NONE;
    int r = home_open_run(o->session->home, &o->id, &run, err);
    if (r == 0)
        r = MIN(sweep_peek(&run, state, err), 0);
    if (r < 0)
        return r;
    if (state->tree == NACRE_TREE_EMPTY)
        return err_set(err, NACRE_ECLOSED, "shell %s has ended, and listens nowhere",
                       nacre_id_short(&o->id).s);
    if (state->tier == NACRE_TIER_CLIENT || !sweep_is_here(state))
        return err_set(err, NACRE_EUNSUPPORTED,
                       "shell %s runs elsewhere; its ports cannot be seen here",
                       nacre_id_short(&o->id).s);
    return 0;
}

static int step_port(nacre_op *op, nacre_error *err)
{
    struct port_op *o = (struct port_op *)op;
    struct port_look look = {.op = o};
    struct run_state state;
    int r = state_of_shell(o, &state, err);
    if (r < 0)
        return r;
    size_t count = report_living(&state, o->refs, TREE_MAX);
    for (size_t i = 0; i < count; i++)
        look_at_member(&look, o->refs[i].pid);
    if (o->found.port != 0)
        return 1;
    /* A process that was just forked is not in the list yet: so it is looked twice. */
    bool foreign = o->port != 0 && look.count > 0;
    if (foreign && o->foreign)
        return is_held_by_other(&look, err);
    o->foreign = foreign;
    op->wake_ns = clock_deadline(foreign ? PAUSE_LEAST : o->pause_ms);
    o->pause_ms = MIN(2 * o->pause_ms, PAUSE_MOST);
    return 0;
}

static void end_port(nacre_op *op)
{
    free(op);
}

int session_await_port(nacre_session *s, const nacre_id *id, int port, nacre_op **ret_op,
                       nacre_error *err)
{
    int r = session_check_id(s, id, false, err);
    if (r < 0)
        return r;
    if (port < 0 || port > PORT_MAX)
        return err_set(err, NACRE_EINVAL, "there is no port %d", port);
    struct port_op *o = malloc(sizeof *o);
    if (!o)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    *o = (struct port_op){.op = OP_INIT(step_port, end_port),
                          .session = s,
                          .id = *id,
                          .port = (uint16_t)port,
                          .pause_ms = PAUSE_LEAST,
                          .found = NACRE_PORT_INIT};
    o->op.result = &o->found;
    *ret_op = &o->op;
    return 0;
}

int nacre_wait_port(nacre_session *session, const nacre_id *id, int port, int64_t timeout_ms,
                    nacre_port *ret_port, nacre_error *reterr)
{
    nacre_op *op cleanup_op = NULL;
    if (!ret_port || ret_port->size != sizeof *ret_port)
        return err_set(reterr, NACRE_EINVAL, "the port must start from NACRE_PORT_INIT");
    int r = session_await_port(session, id, port, &op, reterr);
    if (r == 0)
        r = op_wait(op, timeout_ms, reterr);
    if (r == 0 && port == 0)
        return err_set(reterr, NACRE_ETIMEOUT, "shell %s listens on no port", nacre_id_short(id).s);
    if (r == 0)
        return err_set(reterr, NACRE_ETIMEOUT, "shell %s does not listen on port %d",
                       nacre_id_short(id).s, port);
    if (r > 0)
        *ret_port = *(const nacre_port *)op->result;
    return MIN(r, 0);
}
