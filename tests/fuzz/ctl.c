/*
 * Arbitrary messages from several clients to a keeper. The rest of the keeper is stubbed; the
 * sockets and the command's stdin are real.
 *
 * The input is a list of steps: a byte that says what and by whom, and for messages their length
 * and bytes.
 */
#include "fuzz.h"

#include <fcntl.h>
#include <sys/socket.h>

#include "keeper/ctl.c"
#include "keeper/persons.c"

#define CLIENTS 3

static struct keeper keeper;
static struct keeper_room room;
static int clients[CLIENTS];
static struct conn *conns[CLIENTS];
static int stdin_reader;

void loop_watch(struct keeper *k, enum keeper_fd which)
{
    MUST(k->fd[which] >= 0);
}

void loop_watch_conn(struct keeper *k, const struct conn *c, uint32_t events)
{
    (void)events;
    MUST(c->fd >= 0);
    MUST(c >= k->conns && c < k->conns + CONN_MAX);
}

void loop_ignore(struct keeper *k, enum keeper_fd which)
{
    (void)k;
    (void)which;
}

void loop_close(struct keeper *k, enum keeper_fd which)
{
    close_fd(&k->fd[which]);
}

void loop_close_conn(struct keeper *k, struct conn *c)
{
    (void)k;
    close_fd(&c->fd);
}

void reads_begin(struct keeper *k)
{
    (void)k;
}

void reads_forget(struct keeper *k)
{
    (void)k;
}

int tty_resize(struct keeper *k, unsigned columns, unsigned rows)
{
    (void)k;
    (void)rows;
    return columns == 80 ? 0 : -ENOTTY;
}

void tty_end_input(const struct keeper *k)
{
    (void)k;
}

void restore_files(struct keeper *k)
{
    (void)k;
}

void restore_look(struct keeper *k)
{
    (void)k;
}

void outlive_owner(struct keeper *k)
{
    k->at[AT_OWNER] = NEVER;
}

void publish(struct keeper *k)
{
    if (k->must_ring)
        ctl_ring(k);
}

void machine_event(struct keeper *k, enum keeper_event event)
{
    MUST(event == EV_KILL);
    MUST(k->order.signal > 0 && k->order.signal < NSIG);
    MUST(k->order.reason <= NACRE_REASON_OWNER);
}

int64_t machine_kill_ms(const struct keeper *k)
{
    (void)k;
    return 1000;
}

void tree_reap(struct keeper *k)
{
    (void)k;
}

void denied_note(struct keeper *k, const struct denial *denial)
{
    (void)k;
    (void)denial;
}

void drain_seen(struct keeper *k, uint64_t offset)
{
    if (offset == UINT64_MAX)
        k->pacer = NULL;
}

static void connect_client(int i)
{
    int pair[2];
    MUST(sock_pair(pair) == 0);
    MUST(fd_set_nonblock(pair[0]) == 0);
    clients[i] = pair[0];
    conns[i] = ctl_place(&keeper, pair[1], false);
    MUST(conns[i]);
}

static void begin(void)
{
    int pipe_ends[2];
    memset(&keeper, 0, sizeof keeper);
    keeper.session.room = &room;
    for (int i = 0; i < CONN_MAX; i++)
        keeper.conns[i].fd = -EBADF;
    keeper.state = ST_RUNNING;
    MUST(fd_pipe(pipe_ends) == 0);
    fcntl(pipe_ends[1], F_SETPIPE_SZ, 4096);
    MUST(fd_set_nonblock(pipe_ends[0]) == 0 && fd_set_nonblock(pipe_ends[1]) == 0);
    stdin_reader = pipe_ends[0];
    keeper.fd[FD_IN] = pipe_ends[1];
    keeper.fd[FD_LINE] = -EBADF;
    for (int i = 0; i < CLIENTS; i++)
        connect_client(i);
}

static void finish(void)
{
    for (int i = 0; i < CONN_MAX; i++)
        close_fd(&keeper.conns[i].fd);
    for (int i = 0; i < CLIENTS; i++)
        close_fd(&clients[i]);
    close_fd(&keeper.fd[FD_IN]);
    close_fd(&stdin_reader);
}

/* As the loop does: while input waits, only a hang-up is reported. */
static void readable(int i)
{
    struct conn *c = conns[i];
    if (c->fd >= 0 && (!c->input_waits || clients[i] < 0))
        ctl_readable(&keeper, c);
}

static void send_message(struct input *in, int i)
{
    char message[sizeof(struct wire_input) + 64];
    size_t size = take16(in) % sizeof message;
    take(in, message, size);
    if (clients[i] < 0)
        return;
    send(clients[i], message, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    readable(i);
}

static void hear(int i)
{
    char buf[sizeof(struct wire_event) + 64];
    ssize_t n;
    while (clients[i] >= 0 && (n = recv(clients[i], buf, sizeof buf, MSG_DONTWAIT)) > 0) {
        const struct wire_head *told = (const void *)buf;
        MUST(n >= (ssize_t)sizeof *told && told->format == RUN_FORMAT);
    }
}

static void step(struct input *in)
{
    char buf[1024];
    uint8_t what = take8(in);
    int i = what / 8 % CLIENTS;
    switch (what % 8) {
    case 0:
        close_fd(&clients[i]);
        readable(i);
        break;
    case 1:
        hear(i);
        break;
    case 2:
        while (read(stdin_reader, buf, sizeof buf) > 0)
            ;
        ctl_feed(&keeper);
        break;
    case 3:
        ctl_tell_watchers(&keeper);
        ctl_tell_killers(&keeper);
        break;
    case 4:
        if (what >= 250)
            ctl_close_input(&keeper);
        break;
    case 5:
        if (what >= 250)
            keeper.pacer = conns[i];
        break;
    default:
        send_message(in, i);
    }
    for (i = 0; i < CONN_MAX; i++) {
        const struct conn *c = &keeper.conns[i];
        MUST(c->fd >= 0 || (!c->watching && !c->kill_waits && !c->input_waits));
        /* Nobody waits for a pipe that is no more. */
        MUST(!c->input_waits || keeper.fd[FD_IN] >= 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    begin();
    for (int steps = 0; in.left > 0 && steps < 200; steps++)
        step(&in);
    finish();
    return 0;
}
