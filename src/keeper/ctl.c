/* The control socket: kill, input, watch. Only the same uid is answered. */
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/defs.h"
#include "keeper/keeper.h"
#include "sys/fd.h"
#include "sys/sock.h"

/* The last message of each connection, apart from the rest: most pages are never touched. */
static struct wire_input messages[CONN_MAX];

static struct wire_input *message_of(const struct keeper *k, const struct conn *c)
{
    return &messages[c - k->conns];
}

static struct wire_head head(enum wire_type type)
{
    return (struct wire_head){.type = type, .format = RUN_FORMAT};
}

static void drop(struct keeper *k, struct conn *c)
{
    loop_close(k, &c->fd);
    c->watching = false;
    c->kill_waits = false;
    c->input_waits = false;
    if (k->pacer == c)
        drain_seen(k, UINT64_MAX);
}

/* A client that does not read is not waited for: the state file tells it everything. */
static void send_to(struct keeper *k, struct conn *c, const void *message, size_t size)
{
    int r = sock_send(c->fd, message, size, NULL, 0, MSG_DONTWAIT);
    if (r < 0 && r != -EAGAIN)
        drop(k, c);
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
    if (c && c->fd >= 0)
        loop_add(k, c->fd, EPOLLIN, TAG_CONN, (uint32_t)(c - k->conns));
}

struct conn *ctl_add(struct keeper *k, int fd, bool watching)
{
    struct conn *c = ctl_place(k, fd, watching);
    ctl_listen(k, c);
    return c;
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
        drop(k, listener);
}

void ctl_accept(struct keeper *k)
{
    for (;;) {
        int fd = fd_lift_consume(accept4(k->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (fd < 0)
            return;
        if (!sock_peer_is_us(fd)) {
            close(fd);
            continue;
        }
        make_place(k);
        ctl_add(k, fd, false);
    }
}

static void tell(struct keeper *k, struct conn *c)
{
    struct wire_event event = {.head = head(WIRE_EVENT), .state = k->st};
    send_to(k, c, &event, sizeof event);
}

void ctl_tell_watchers(struct keeper *k)
{
    for (int i = 0; i < CONN_MAX; i++)
        if (k->conns[i].fd >= 0 && k->conns[i].watching)
            tell(k, &k->conns[i]);
}

void ctl_tell_killers(struct keeper *k)
{
    struct wire_killed killed = {.head = head(WIRE_KILLED), .state = k->st};
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
        .head = head(WIRE_INPUT_DONE), .error = error, .taken = c->input_done};
    c->input_waits = false;
    send_to(k, c, &done, sizeof done);
    if (c->fd >= 0)
        loop_add(k, c->fd, EPOLLIN, TAG_CONN, (uint32_t)(c - k->conns));
}

/* Writes what the pipe takes; false if the rest has to wait. */
static bool feed(struct keeper *k, struct conn *c)
{
    const struct wire_input *input = message_of(k, c);
    bool open = k->in_fd >= 0;
    while (k->in_fd >= 0 && c->input_done < input->size) {
        const char *rest = input->data + c->input_done;
        ssize_t n = RETRY(write(k->in_fd, rest, input->size - c->input_done));
        if (n < 0 && errno == EAGAIN)
            return false;
        if (n < 0)
            loop_close(k, &k->in_fd);
        else
            c->input_done += (uint32_t)n;
    }
    if (input->eof)
        loop_close(k, &k->in_fd);
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
        if (!feed(k, c))
            break;
    if (c)
        loop_add(k, k->in_fd, EPOLLOUT, TAG_IN, 0);
    else
        loop_remove(k, k->in_fd);
}

void ctl_close_input(struct keeper *k)
{
    /* What the command did not get is closed when nobody waits for its exit any more. */
    if (k->spec.input != NACRE_STDIN_PIPE)
        return;
    loop_close(k, &k->in_fd);
    ctl_feed(k);
}

static void on_input(struct keeper *k, struct conn *c)
{
    c->input_waits = true;
    c->input_done = 0;
    c->turn = k->turns++;
    /* No further message is taken from this connection until the pipe took this one. */
    loop_add(k, c->fd, 0, TAG_CONN, (uint32_t)(c - k->conns));
    ctl_feed(k);
}

static void on_kill(struct keeper *k, struct conn *c, const struct wire_kill *request)
{
    c->kill_waits = true;
    /* A natural exit that is already there comes first: its code is the outcome. */
    tree_reap(k);
    if (k->state == ST_DONE)
        return;
    k->order = (struct kill_order){.signal = request->signal,
                                   .grace_ms = request->grace_ms,
                                   .reason = (nacre_reason)request->reason};
    /* Before the work: to find a large tree may take longer than who asks waits for a word. */
    struct wire_ack ack = {.head = head(WIRE_ACK), .wait_ms = machine_kill_ms(k)};
    send_to(k, c, &ack, sizeof ack);
    machine_event(k, EV_KILL);
}

/* A full line has been rung often enough: whoever hears it looks at every state. */
void ctl_ring(struct keeper *k)
{
    k->bell_due = false;
    if (k->st.background && k->owner_line >= 0)
        sock_send(k->owner_line, &k->st.id, sizeof k->st.id, NULL, 0, MSG_DONTWAIT);
}

/* Nothing is taken back: a shell in the background stays there, a kept one is kept. */
static void on_change(struct keeper *k, struct conn *c, const struct wire_change *request)
{
    bool late = request->background && !k->st.background && k->st.outcome != NACRE_RUNNING;
    if (request->background)
        k->st.background = true;
    if (request->kept && !k->st.kept) {
        k->st.kept = true;
        outlive_owner(k);
    }
    k->bell_due = k->bell_due || late;
    publish(k);
    struct wire_ack ack = {.head = head(WIRE_ACK)};
    send_to(k, c, &ack, sizeof ack);
}

/* The group outlives its leader; only while the command runs is it surely the command's. */
static void on_signal(struct keeper *k, struct conn *c, const struct wire_signal *request)
{
    struct wire_input_done done = {.head = head(WIRE_INPUT_DONE)};
    tree_reap(k);
    if (k->main_reaped || k->main <= 1)
        done.error = ESRCH;
    else if (kill(-k->main, request->signal) < 0)
        done.error = errno;
    if (c->fd >= 0)
        send_to(k, c, &done, sizeof done);
}

static bool signal_is_valid(int signal)
{
    return signal > 0 && signal < NSIG;
}

/* False if the message makes no sense. */
static bool obey(struct keeper *k, struct conn *c, const struct wire_input *message, size_t size)
{
    struct wire_kill request;
    struct wire_seen seen;
    struct wire_change change;
    struct wire_signal signal;
    switch (message->head.type) {
    case WIRE_WATCH:
        c->watching = true;
        tell(k, c);
        return true;
    case WIRE_KILL:
        memcpy(&request, message, sizeof request);
        if (size != sizeof request || !signal_is_valid(request.signal) ||
            request.reason > NACRE_REASON_OWNER)
            return false;
        on_kill(k, c, &request);
        return true;
    case WIRE_INPUT:
        if (size < offsetof(struct wire_input, data) ||
            size != offsetof(struct wire_input, data) + message->size)
            return false;
        on_input(k, c);
        return true;
    case WIRE_CHANGE:
        memcpy(&change, message, sizeof change);
        if (size != sizeof change)
            return false;
        on_change(k, c, &change);
        return true;
    case WIRE_SIGNAL:
        memcpy(&signal, message, sizeof signal);
        if (size != sizeof signal || !signal_is_valid(signal.signal))
            return false;
        on_signal(k, c, &signal);
        return true;
    case WIRE_SEEN:
        memcpy(&seen, message, sizeof seen);
        if (size != sizeof seen)
            return false;
        if (k->pacer == c)
            drain_seen(k, seen.offset);
        return true;
    default:
        return false;
    }
}

void ctl_readable(struct keeper *k, struct conn *c)
{
    struct wire_input *message = message_of(k, c);
    if (c->input_waits) {
        drop(k, c); /* the client hung up: nobody waits for the rest */
        return;
    }
    ssize_t n = sock_recv(c->fd, message, sizeof *message, NULL, 0, MSG_DONTWAIT);
    if (n == -EAGAIN)
        return;
    if (n < (ssize_t)sizeof message->head || message->head.format > RUN_FORMAT ||
        !obey(k, c, message, (size_t)n))
        drop(k, c);
}
