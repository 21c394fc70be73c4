/* The control socket: kill, input, watch. Only the same uid is answered. */
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/defs.h"
#include "keeper/keeper.h"
#include "run/inside.h"
#include "sys/fd.h"
#include "sys/sock.h"

static union ctl_message *message_of(const struct keeper *k, const struct conn *c)
{
    return &k->session.room->messages[c - k->conns];
}

static struct wire_head head_of(enum wire_type type)
{
    return (struct wire_head){.type = type, .format = RUN_FORMAT};
}

static void drop_conn(struct keeper *k, struct conn *c)
{
    loop_close_conn(k, c);
    c->watching = false;
    c->behind = false;
    c->kill_waits = false;
    c->input_waits = false;
    c->look_waits = false;
    if (k->pacer == c)
        drain_seen(k, UINT64_MAX);
    person_end(k, c);
}

/* Nothing more is heard from it until the pipe took its last input. */
static void listen_to(struct keeper *k, const struct conn *c)
{
    if (c->fd >= 0)
        loop_watch_conn(k, c, (c->input_waits ? 0 : EPOLLIN) | (c->behind ? EPOLLOUT : 0));
}

/* A client that does not read is not waited for: the state file tells it everything. False if it
 * has no room for the message. */
static bool send_to(struct keeper *k, struct conn *c, const void *message, size_t size)
{
    int r = sock_send(c->fd, message, size, NULL, 0, MSG_DONTWAIT);
    if (r < 0 && r != -EAGAIN)
        drop_conn(k, c);
    return r != -EAGAIN;
}

struct conn *ctl_place(struct keeper *k, int fd, bool watching)
{
    for (struct conn *c = k->conns; c < k->conns + CONN_MAX; c++) {
        if (c->fd >= 0)
            continue;
        c->fd = fd;
        c->watching = watching;
        return c;
    }
    close(fd);
    return NULL;
}

void ctl_listen(struct keeper *k, const struct conn *c)
{
    if (c)
        listen_to(k, c);
}

/* When all places are taken a mere listener has to go; it reads the state instead. */
static void make_place(struct keeper *k)
{
    struct conn *listener = NULL;
    for (int i = 0; i < CONN_MAX; i++) {
        struct conn *c = &k->conns[i];
        if (c->fd < 0)
            return;
        if (c->watching && !c->kill_waits && !c->input_waits && c != k->pacer)
            listener = c;
    }
    if (listener)
        drop_conn(k, listener);
}

/* How many of us have come by one of our names. */
static int accept_all(struct keeper *k, enum keeper_fd door)
{
    int count = 0;
    for (;;) {
        int fd = fd_lift_consume(accept4(k->fd[door], NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (fd < 0)
            return count;
        if (!sock_peer_is_us(fd)) {
            close(fd);
            continue;
        }
        make_place(k);
        ctl_listen(k, ctl_place(k, fd, false));
        count++;
    }
}

/* Who comes may have found no files: they are there before it hears a word. */
void ctl_accept(struct keeper *k)
{
    if (accept_all(k, FD_DOOR) + accept_all(k, FD_LISTEN) > 0)
        restore_files(k);
}

static void tell_state(struct keeper *k, struct conn *c)
{
    struct wire_event event = {.head = head_of(WIRE_EVENT), .state = k->st};
    bool behind = !send_to(k, c, &event, sizeof event);
    if (c->fd < 0 || behind == c->behind)
        return;
    c->behind = behind;
    listen_to(k, c);
}

void ctl_tell_watchers(struct keeper *k)
{
    for (int i = 0; i < CONN_MAX; i++)
        if (k->conns[i].fd >= 0 && k->conns[i].watching)
            tell_state(k, &k->conns[i]);
}

void ctl_tell_killers(struct keeper *k)
{
    struct wire_killed killed = {.head = head_of(WIRE_KILLED), .state = k->st};
    for (int i = 0; i < CONN_MAX; i++) {
        struct conn *c = &k->conns[i];
        if (c->fd < 0 || !c->kill_waits)
            continue;
        c->kill_waits = false;
        send_to(k, c, &killed, sizeof killed);
    }
}

static void input_done(struct keeper *k, struct conn *c, int error)
{
    struct wire_input_done done = {
        .head = head_of(WIRE_INPUT_DONE), .error = error, .taken = c->input_done};
    union ctl_message *message = message_of(k, c);
    c->input_waits = false;
    /* It may have been a password. */
    explicit_bzero(message->input.data, sizeof message->input.data);
    send_to(k, c, &done, sizeof done);
    listen_to(k, c);
}

/* Writes what the pipe takes; false if the rest has to wait. */
static bool feed_conn(struct keeper *k, struct conn *c)
{
    const struct wire_input *input = &message_of(k, c)->input;
    bool open = k->fd[FD_IN] >= 0;
    while (k->fd[FD_IN] >= 0 && c->input_done < input->size) {
        const char *rest = input->data + c->input_done;
        ssize_t n = RETRY(write(k->fd[FD_IN], rest, input->size - c->input_done));
        if (n < 0 && errno == EAGAIN)
            return false;
        if (n < 0)
            loop_close(k, FD_IN);
        else
            c->input_done += (uint32_t)n;
    }
    if (input->eof && k->is_terminal && k->fd[FD_IN] >= 0)
        tty_end_input(k);
    else if (input->eof)
        loop_close(k, FD_IN);
    input_done(k, c, !open || c->input_done < input->size ? EPIPE : 0);
    return true;
}

/* Input goes in as it came: an end of file does not overtake what others still have waiting. */
static struct conn *next_in_turn(struct keeper *k)
{
    struct conn *next = NULL;
    for (int i = 0; i < CONN_MAX; i++) {
        struct conn *c = &k->conns[i];
        if (c->fd >= 0 && c->input_waits && (!next || c->turn < next->turn))
            next = c;
    }
    return next;
}

void ctl_feed(struct keeper *k)
{
    struct conn *c;
    while ((c = next_in_turn(k)))
        if (!feed_conn(k, c))
            break;
    if (c)
        loop_watch(k, FD_IN);
    else
        loop_ignore(k, FD_IN);
}

void ctl_close_input(struct keeper *k)
{
    /* What the command did not get is closed when nobody waits for its exit any more. */
    if (k->spec.input != NACRE_STDIN_PIPE)
        return;
    loop_close(k, FD_IN);
    ctl_feed(k);
}

/* A full line has been rung often enough: whoever hears it looks at every state. */
void ctl_ring(struct keeper *k)
{
    k->must_ring = false;
    if (k->st.background && k->fd[FD_LINE] >= 0)
        sock_send(k->fd[FD_LINE], &k->st.id, sizeof k->st.id, NULL, 0, MSG_DONTWAIT);
}

/* -- What clients ask for; false if it makes no sense ------------------------------------------ */

static void on_watch(struct keeper *k, struct conn *c, const union ctl_message *m UNUSED)
{
    /* Who has missed its files asks again. */
    restore_look(k);
    c->watching = true;
    tell_state(k, c);
}

static void on_input(struct keeper *k, struct conn *c, const union ctl_message *m UNUSED)
{
    c->input_waits = true;
    c->input_done = 0;
    c->turn = k->turns++;
    reads_forget(k);
    if (!person_may_type(k, c)) {
        input_done(k, c, EPERM);
        return;
    }
    listen_to(k, c);
    ctl_feed(k);
}

static void on_kill(struct keeper *k, struct conn *c, const union ctl_message *m)
{
    c->kill_waits = true;
    /* A natural exit that is already there comes first: its code is the outcome. */
    tree_reap(k);
    if (k->state == ST_DONE)
        return;
    k->order = (struct kill_order){.signal = m->kill.signal,
                                   .grace_ms = m->kill.grace_ms,
                                   .reason = (nacre_reason)m->kill.reason};
    /* Before the work: to find a large tree may take longer than who asks waits for a word. */
    struct wire_ack ack = {.head = head_of(WIRE_ACK), .wait_ms = machine_kill_ms(k)};
    send_to(k, c, &ack, sizeof ack);
    machine_event(k, EV_KILL);
}

/* A command cannot decide to outlive its session. */
static bool may_change(const struct keeper *k, const struct conn *c, const union ctl_message *m)
{
    return !m->change.kept || k->st.kept || !inside_of(&k->st.id, getpid(), sock_peer_pid(c->fd));
}

/* Nothing is taken back: a shell in the background stays there, a kept one is kept. */
static void on_change(struct keeper *k, struct conn *c, const union ctl_message *m)
{
    bool background = m->change.background, kept = m->change.kept && !k->st.kept;
    if (!may_change(k, c, m)) {
        struct wire_ack refusal = {.head = head_of(WIRE_ACK), .wait_ms = -1};
        send_to(k, c, &refusal, sizeof refusal);
        return;
    }
    if (background && !k->st.background && k->st.outcome != NACRE_RUNNING)
        k->must_ring = true;
    k->st.background = k->st.background || background;
    if (kept) {
        k->st.kept = true;
        outlive_owner(k);
    }
    publish(k);
    struct wire_ack ack = {.head = head_of(WIRE_ACK)};
    send_to(k, c, &ack, sizeof ack);
}

/* The group outlives its leader; only while the command runs is it surely the command's. */
static void on_signal(struct keeper *k, struct conn *c, const union ctl_message *m)
{
    struct wire_input_done done = {.head = head_of(WIRE_INPUT_DONE)};
    tree_reap(k);
    if (k->main_reaped || k->main <= 1)
        done.error = ESRCH;
    else if (kill(-k->main, m->signal.signal) < 0)
        done.error = errno;
    if (c->fd >= 0)
        send_to(k, c, &done, sizeof done);
}

static void on_resize(struct keeper *k, struct conn *c, const union ctl_message *m)
{
    struct wire_input_done done = {.head = head_of(WIRE_INPUT_DONE)};
    done.error = person_resize(k, c, m->resize.columns, m->resize.rows);
    if (c->fd >= 0)
        send_to(k, c, &done, sizeof done);
}

static void on_attach(struct keeper *k, struct conn *c, const union ctl_message *m)
{
    struct wire_input_done done = {.head = head_of(WIRE_INPUT_DONE)};
    done.error = person_begin(k, c, &m->attach);
    if (c->fd >= 0)
        send_to(k, c, &done, sizeof done);
}

static void on_look(struct keeper *k, struct conn *c, const union ctl_message *m)
{
    c->look_waits = true;
    c->look_for = m->look.wanted;
    c->look_held = (int64_t)m->look.held_ms * NS_PER_MS;
    c->looks = 0;
    reads_begin(k);
}

void ctl_tell_reads(struct keeper *k, struct conn *c, const struct wire_looked *looked)
{
    struct wire_looked answer = *looked;
    answer.head = head_of(WIRE_LOOKED);
    c->look_waits = false;
    send_to(k, c, &answer, sizeof answer);
}

static void on_denied(struct keeper *k, struct conn *c UNUSED, const union ctl_message *m)
{
    denied_note(k, &m->denied.denial);
}

static void on_seen(struct keeper *k, struct conn *c, const union ctl_message *m)
{
    if (k->pacer == c)
        drain_seen(k, m->seen.offset);
}

static const struct ctl_request {
    void (*obey)(struct keeper *k, struct conn *c, const union ctl_message *m);
    size_t size; /* 0 = any */
} requests[] = {
    [WIRE_WATCH] = {on_watch, 0},
    [WIRE_KILL] = {on_kill, sizeof(struct wire_kill)},
    [WIRE_INPUT] = {on_input, offsetof(struct wire_input, data)}, /* and the bytes */
    [WIRE_SEEN] = {on_seen, sizeof(struct wire_seen)},
    [WIRE_CHANGE] = {on_change, sizeof(struct wire_change)},
    [WIRE_SIGNAL] = {on_signal, sizeof(struct wire_signal)},
    [WIRE_RESIZE] = {on_resize, sizeof(struct wire_resize)},
    [WIRE_ATTACH] = {on_attach, sizeof(struct wire_attach)},
    [WIRE_LOOK] = {on_look, sizeof(struct wire_look)},
    [WIRE_DENIED] = {on_denied, sizeof(struct wire_denied)},
};

static bool makes_sense(const union ctl_message *m, size_t size)
{
    uint32_t type = m->head.type;
    if (size < sizeof m->head || m->head.format > RUN_FORMAT || type >= ARRAY_SIZE(requests) ||
        !requests[type].obey)
        return false;
    size_t known = requests[type].size, more = type == WIRE_INPUT ? m->input.size : 0;
    if (known && (size < known || size - known != more))
        return false;
    int signal = type == WIRE_KILL ? m->kill.signal : type == WIRE_SIGNAL ? m->signal.signal : 1;
    return signal > 0 && signal < NSIG &&
           (type != WIRE_KILL || m->kill.reason <= NACRE_REASON_OWNER);
}

void ctl_readable(struct keeper *k, struct conn *c)
{
    union ctl_message *message = message_of(k, c);
    if (c->behind) {
        tell_state(k, c);
        if (c->fd < 0 || c->input_waits)
            return;
    }
    if (c->input_waits) {
        drop_conn(k, c); /* the client hung up: nobody waits for the rest */
        return;
    }
    ssize_t n = sock_recv(c->fd, message, sizeof *message, NULL, 0, MSG_DONTWAIT);
    if (n == -EAGAIN)
        return;
    if (n > 0 && makes_sense(message, (size_t)n))
        requests[message->head.type].obey(k, c, message);
    else
        drop_conn(k, c);
}
