/*
 * The control socket of a keeper, with real sockets and a real stdin; the rest of the keeper is
 * stubbed and only notes what it was asked for.
 */
#include "unit.h"

#include <poll.h>

/* Its functions reach into the keeper; they are tested in their own file. */
#include "keeper/ctl.c"
#include "keeper/persons.c"

static struct keeper k;
static struct keeper_room room;
static int events, reaps, published;
static uint64_t seen;

void loop_watch(struct keeper *keeper, enum keeper_fd which)
{
    assert_true(keeper->fd[which] >= 0);
}

void loop_watch_conn(struct keeper *keeper, const struct conn *c, uint32_t what)
{
    (void)keeper;
    (void)what;
    assert_true(c->fd >= 0);
}

void loop_ignore(struct keeper *keeper, enum keeper_fd which)
{
    (void)keeper;
    (void)which;
}

void loop_close(struct keeper *keeper, enum keeper_fd which)
{
    close_fd(&keeper->fd[which]);
}

void loop_close_conn(struct keeper *keeper, struct conn *c)
{
    (void)keeper;
    close_fd(&c->fd);
}

void outlive_owner(struct keeper *keeper)
{
    keeper->at[AT_OWNER] = NEVER;
}

void publish(struct keeper *keeper)
{
    published++;
    if (keeper->must_ring)
        ctl_ring(keeper);
}

void machine_event(struct keeper *keeper, enum keeper_event event)
{
    (void)keeper;
    assert_int_equal(event, EV_KILL);
    events++;
}

int64_t machine_kill_ms(const struct keeper *keeper)
{
    (void)keeper;
    return 4321;
}

static int restored;

void restore_files(struct keeper *keeper)
{
    (void)keeper;
    restored++;
}

/* Whether whoever asks is in the tree of the run. */
static bool peer_is_inside;

bool inside_of(const nacre_id *run, pid_t keeper, pid_t pid)
{
    (void)run;
    (void)keeper;
    (void)pid;
    return peer_is_inside;
}

void restore_look(struct keeper *keeper)
{
    (void)keeper;
}

void tree_reap(struct keeper *keeper)
{
    (void)keeper;
    reaps++;
}

void denied_note(struct keeper *keeper, const struct denial *denial)
{
    (void)keeper;
    (void)denial;
}

void drain_seen(struct keeper *keeper, uint64_t offset)
{
    (void)keeper;
    seen = offset;
}

int tty_resize(struct keeper *keeper, unsigned columns, unsigned rows)
{
    (void)keeper;
    (void)rows;
    return columns == 80 ? 0 : -ENOTTY;
}

static int looks, forgotten;

void reads_begin(struct keeper *keeper)
{
    (void)keeper;
    looks++;
}

void reads_forget(struct keeper *keeper)
{
    (void)keeper;
    forgotten++;
}

void tty_end_input(const struct keeper *keeper)
{
    (void)keeper;
}

static int stdin_reader;

static int begin(void **state)
{
    (void)state;
    int ends[2];
    memset(&k, 0, sizeof k);
    k.session.room = &room;
    for (int i = 0; i < CONN_MAX; i++)
        k.conns[i].fd = -EBADF;
    k.state = ST_RUNNING;
    k.fd[FD_LISTEN] = k.fd[FD_DOOR] = -EBADF;
    k.st.generation = 77;
    events = reaps = 0;
    seen = 0;
    if (fd_pipe(ends) < 0 || fd_set_nonblock(ends[0]) < 0 || fd_set_nonblock(ends[1]) < 0)
        return -1;
    fcntl(ends[1], F_SETPIPE_SZ, 4096);
    stdin_reader = ends[0];
    k.fd[FD_IN] = ends[1];
    k.spec.input = NACRE_STDIN_PIPE;
    k.fd[FD_LINE] = -EBADF;
    published = 0;
    return 0;
}

static int finish(void **state)
{
    (void)state;
    for (int i = 0; i < CONN_MAX; i++)
        close_fd(&k.conns[i].fd);
    close_fd(&k.fd[FD_IN]);
    close_fd(&stdin_reader);
    return 0;
}

struct client {
    int fd;
    struct conn *conn;
};

static struct client connect_client(void)
{
    int pair[2];
    assert_int_equal(sock_pair(pair), 0);
    assert_int_equal(fd_set_nonblock(pair[1]), 0);
    struct client client = {.fd = pair[0], .conn = ctl_place(&k, pair[1], false)};
    ctl_listen(&k, client.conn);
    assert_non_null(client.conn);
    return client;
}

static void say(const struct client *client, const void *message, size_t size)
{
    assert_int_equal(sock_send(client->fd, message, size, NULL, 0, 0), 0);
    ctl_readable(&k, client->conn);
}

/* The type of the next answer; 0 if the keeper hung up, -EAGAIN if there is none. */
static int hear(const struct client *client, void *buf, size_t size)
{
    struct wire_head answer;
    ssize_t n = sock_recv(client->fd, buf, size, NULL, 0, MSG_DONTWAIT);
    if (n <= 0)
        return (int)n;
    memcpy(&answer, buf, sizeof answer);
    assert_int_equal(answer.format, RUN_FORMAT);
    return (int)answer.type;
}

static int hear_type(const struct client *client)
{
    char buf[sizeof(struct wire_event) + 16];
    return hear(client, buf, sizeof buf);
}

static struct wire_head a_head(uint32_t type)
{
    return (struct wire_head){.type = type, .format = RUN_FORMAT};
}

/* -- Watching and killing ---------------------------------------------------------------------- */

static void watchers_are_told(void **state)
{
    (void)state;
    struct client first = connect_client(), second = connect_client();
    struct wire_head watch = a_head(WIRE_WATCH);
    struct wire_event event;
    say(&first, &watch, sizeof watch);
    assert_int_equal(hear(&first, &event, sizeof event), WIRE_EVENT);
    assert_int_equal(event.state.generation, 77);
    k.st.generation = 78;
    ctl_tell_watchers(&k);
    assert_int_equal(hear(&first, &event, sizeof event), WIRE_EVENT);
    assert_int_equal(event.state.generation, 78);
    assert_int_equal(hear_type(&second), -EAGAIN);
    close(first.fd);
    /* One that is gone is forgotten, and disturbs nobody. */
    ctl_tell_watchers(&k);
    assert_true(first.conn->fd < 0);
    assert_true(second.conn->fd >= 0);
    close(second.fd);
}

static void a_watcher_that_does_not_read(void **state)
{
    (void)state;
    struct client client = connect_client();
    struct wire_head watch = a_head(WIRE_WATCH);
    say(&client, &watch, sizeof watch);
    for (int i = 0; i < 2000; i++)
        ctl_tell_watchers(&k);
    /* It is not waited for, and still connected. */
    assert_true(client.conn->fd >= 0);
    assert_int_equal(hear_type(&client), WIRE_EVENT);
    close(client.fd);
}

static void kills_are_acknowledged_and_answered(void **state)
{
    (void)state;
    struct client client = connect_client(), other = connect_client();
    struct wire_kill request = {.head = a_head(WIRE_KILL),
                                .signal = SIGINT,
                                .reason = NACRE_REASON_CANCEL,
                                .grace_ms = 123};
    struct wire_killed killed;
    struct wire_ack ack;
    say(&client, &request, sizeof request);
    assert_int_equal(hear(&client, &ack, sizeof ack), WIRE_ACK);
    assert_int_equal(ack.wait_ms, 4321);
    assert_int_equal(hear_type(&client), -EAGAIN);
    assert_int_equal(events, 1);
    assert_int_equal(reaps, 1);
    assert_int_equal(k.order.signal, SIGINT);
    assert_int_equal(k.order.reason, NACRE_REASON_CANCEL);
    assert_int_equal(k.order.grace_ms, 123);
    ctl_tell_killers(&k);
    assert_int_equal(hear(&client, &killed, sizeof killed), WIRE_KILLED);
    assert_int_equal(hear_type(&other), -EAGAIN);
    ctl_tell_killers(&k);
    assert_int_equal(hear_type(&client), -EAGAIN);
    close(client.fd);
    close(other.fd);
}

/* -- Messages that make no sense --------------------------------------------------------------- */

static void assert_hung_up_on(const void *message, size_t size)
{
    struct client client = connect_client();
    say(&client, message, size);
    assert_true(client.conn->fd < 0);
    assert_int_equal(hear_type(&client), 0);
    close(client.fd);
}

static void nonsense_ends_the_connection(void **state)
{
    (void)state;
    static const uint32_t types[] = {0,          WIRE_HELLO, WIRE_READY,  WIRE_GO, WIRE_EVENT,
                                     WIRE_READY, WIRE_ACK,   WIRE_KILLED, 99,      UINT32_MAX};
    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        struct wire_head message = a_head(types[i]);
        assert_hung_up_on(&message, sizeof message);
    }
    struct wire_head newer = {.type = WIRE_WATCH, .format = RUN_FORMAT + 1};
    assert_hung_up_on(&newer, sizeof newer);
    struct wire_head watch = a_head(WIRE_WATCH);
    for (size_t size = 0; size < sizeof watch; size++)
        assert_hung_up_on(&watch, size);
    char longer[sizeof(struct wire_input) + 1] = {0};
    memcpy(longer, &watch, sizeof watch);
    assert_hung_up_on(longer, sizeof longer);
    assert_int_equal(events, 0);
}

static void wrong_kills(void **state)
{
    (void)state;
    struct wire_kill right = {.head = a_head(WIRE_KILL), .signal = SIGTERM, .grace_ms = -1};
    static const int32_t signals[] = {0, -1, NSIG, 1000, INT32_MIN, INT32_MAX};
    for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
        struct wire_kill wrong = right;
        wrong.signal = signals[i];
        assert_hung_up_on(&wrong, sizeof wrong);
    }
    struct wire_kill wrong = right;
    wrong.reason = NACRE_REASON_OWNER + 1;
    assert_hung_up_on(&wrong, sizeof wrong);
    for (size_t size = sizeof right.head; size < sizeof right; size++)
        assert_hung_up_on(&right, size);
    assert_int_equal(events, 0);
}

/* -- Input ------------------------------------------------------------------------------------- */

static size_t make_input(struct wire_input *input, char fill, uint32_t size, bool eof)
{
    memset(input, 0, sizeof *input);
    input->head = a_head(WIRE_INPUT);
    input->size = size;
    input->eof = eof;
    memset(input->data, fill, MIN(size, (uint32_t)WIRE_INPUT_MAX));
    return offsetof(struct wire_input, data) + size;
}

static void say_input(const struct client *client, char fill, uint32_t size, bool eof)
{
    static struct wire_input input;
    say(client, &input, make_input(&input, fill, size, eof));
}

static void assert_done(const struct client *client, int error, uint32_t taken)
{
    struct wire_input_done done;
    assert_int_equal(hear(client, &done, sizeof done), WIRE_INPUT_DONE);
    assert_int_equal(done.error, error);
    assert_int_equal(done.taken, taken);
}

/* What the command would read now. */
static size_t read_some(char *buf, size_t size)
{
    size_t done = 0;
    ssize_t n;
    while (done < size && (n = read(stdin_reader, buf + done, size - done)) > 0)
        done += (size_t)n;
    return done;
}

static void input_goes_to_the_command(void **state)
{
    (void)state;
    char buf[64];
    struct client client = connect_client();
    say_input(&client, 'a', 10, false);
    assert_done(&client, 0, 10);
    assert_int_equal(read_some(buf, sizeof buf), 10);
    assert_memory_equal(buf, "aaaaaaaaaa", 10);
    say_input(&client, 'a', 0, false);
    assert_done(&client, 0, 0);
    say_input(&client, 'b', 3, true);
    assert_done(&client, 0, 3);
    assert_true(k.fd[FD_IN] < 0);
    assert_int_equal(read_some(buf, sizeof buf), 3);
    /* After the end nothing is taken. */
    say_input(&client, 'c', 5, false);
    assert_done(&client, EPIPE, 0);
    close(client.fd);
}

static void wrong_sizes_of_input(void **state)
{
    (void)state;
    static struct wire_input input;
    char c;
    size_t size = make_input(&input, 'x', 10, true);
    static const uint32_t claims[] = {
        0, 9, 11, WIRE_INPUT_MAX, WIRE_INPUT_MAX + 1, UINT32_MAX, UINT32_MAX - 15};
    for (size_t i = 0; i < ARRAY_SIZE(claims); i++) {
        input.size = claims[i];
        assert_hung_up_on(&input, size);
    }
    assert_true(k.fd[FD_IN] >= 0);
    assert_int_equal(read(stdin_reader, &c, 1), -1);
}

/* A full pipe: the rest waits, and is written when there is room, in order. */
static void input_waits_for_room(void **state)
{
    (void)state;
    static char buf[3 * WIRE_INPUT_MAX];
    struct client client = connect_client();
    say_input(&client, 'a', 3000, false);
    assert_done(&client, 0, 3000);
    say_input(&client, 'b', 4000, false);
    assert_int_equal(hear_type(&client), -EAGAIN);
    assert_true(client.conn->input_waits);
    size_t n = read_some(buf, sizeof buf);
    ctl_feed(&k);
    n += read_some(buf + n, sizeof buf - n);
    ctl_feed(&k);
    assert_done(&client, 0, 4000);
    n += read_some(buf + n, sizeof buf - n);
    assert_int_equal(n, 7000);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(buf[i], i < 3000 ? 'a' : 'b');
    close(client.fd);
}

static void the_command_goes_while_input_waits(void **state)
{
    (void)state;
    struct client client = connect_client();
    say_input(&client, 'a', 4096, false);
    assert_done(&client, 0, 4096);
    say_input(&client, 'b', 100, false);
    ctl_close_input(&k);
    assert_done(&client, EPIPE, 0);
    assert_false(client.conn->input_waits);
    close(client.fd);
}

static void the_client_goes_while_its_input_waits(void **state)
{
    (void)state;
    static char buf[3 * WIRE_INPUT_MAX];
    struct client first = connect_client(), second = connect_client();
    say_input(&first, 'a', 4096, false);
    assert_done(&first, 0, 4096);
    say_input(&first, 'b', 100, false);
    close(first.fd);
    ctl_readable(&k, first.conn);
    assert_true(first.conn->fd < 0);
    read_some(buf, sizeof buf);
    ctl_feed(&k);
    assert_int_equal(read_some(buf, sizeof buf), 0);
    say_input(&second, 'c', 1, false);
    assert_done(&second, 0, 1);
    close(second.fd);
}

/* The end that one client sends is no reason to keep another one waiting for ever. */
static void an_end_behind_input_that_waits(void **state)
{
    (void)state;
    static char buf[3 * WIRE_INPUT_MAX];
    struct client first = connect_client(), second = connect_client();
    say_input(&first, 'a', 4000, false);
    assert_done(&first, 0, 4000);
    say_input(&first, 'b', 2000, false);
    assert_int_equal(hear_type(&first), -EAGAIN);
    say_input(&second, 'c', 0, true);
    /* Whoever comes first: in the end both know. */
    for (int i = 0; i < 10; i++) {
        read_some(buf, sizeof buf);
        if (k.fd[FD_IN] >= 0)
            ctl_feed(&k);
    }
    assert_int_equal(hear_type(&first), WIRE_INPUT_DONE);
    assert_int_equal(hear_type(&second), WIRE_INPUT_DONE);
    assert_true(k.fd[FD_IN] < 0);
    close(first.fd);
    close(second.fd);
}

/* -- Connections ------------------------------------------------------------------------------- */

static void there_are_only_so_many_places(void **state)
{
    (void)state;
    int clients[CONN_MAX], pair[2];
    char c;
    for (int i = 0; i < CONN_MAX; i++)
        clients[i] = connect_client().fd;
    assert_int_equal(sock_pair(pair), 0);
    assert_null(ctl_place(&k, pair[1], true));
    assert_false(unit_is_open(pair[1]));
    assert_int_equal(recv(pair[0], &c, 1, 0), 0);
    close(pair[0]);
    close(clients[5]);
    ctl_readable(&k, &k.conns[5]);
    clients[5] = connect_client().fd;
    assert_true(k.conns[5].fd >= 0);
    assert_false(k.conns[5].watching || k.conns[5].kill_waits || k.conns[5].input_waits);
    for (int i = 0; i < CONN_MAX; i++)
        close(clients[i]);
}

/* All places are taken: somebody who only listens makes room, never one who waits for more. */
static void a_listener_makes_room(void **state)
{
    (void)state;
    struct client clients[CONN_MAX];
    char name[64];
    for (int i = 0; i < CONN_MAX; i++)
        clients[i] = connect_client();
    struct conn *listener = clients[7].conn, *killer = clients[8].conn, *pacer = clients[9].conn;
    listener->watching = killer->watching = pacer->watching = true;
    killer->kill_waits = true;
    k.pacer = pacer;
    snprintf(name, sizeof name, "unit-places-%d", getpid());
    k.fd[FD_DOOR] = sock_listen_abstract(name);
    struct client late = {.fd = sock_connect_abstract(name), .conn = listener};
    assert_true(late.fd >= 0);
    ctl_accept(&k);
    assert_int_equal(restored, 1);
    assert_int_equal(hear_type(&clients[7]), 0);
    struct wire_head watch = a_head(WIRE_WATCH);
    say(&late, &watch, sizeof watch);
    assert_int_equal(hear_type(&late), WIRE_EVENT);
    for (int i = 0; i < CONN_MAX; i++) {
        assert_true(k.conns[i].fd >= 0);
        close(clients[i].fd);
    }
    close(late.fd);
    close_fd(&k.fd[FD_DOOR]);
}

static void connect_as_somebody_else(void *data)
{
    const char *name = data;
    char c;
    EXPECT(setgid(65534) == 0 && setuid(65534) == 0);
    int fd = sock_connect_abstract(name);
    EXPECT(fd >= 0);
    fcntl(fd, F_SETFL, 0);
    EXPECT(recv(fd, &c, 1, 0) <= 0);
}

static void strangers_are_not_answered(void **state)
{
    (void)state;
    char name[64];
    if (geteuid() != 0)
        SKIP("connections of another uid: this is not root");
    /* An abstract name, which anybody can reach. */
    snprintf(name, sizeof name, "unit-ctl-%d", getpid());
    k.fd[FD_DOOR] = sock_listen_abstract(name);
    assert_true(k.fd[FD_DOOR] >= 0);
    int own = sock_connect_abstract(name);
    ctl_accept(&k);
    assert_true(k.conns[0].fd >= 0);
    pid_t pid = unit_fork(connect_as_somebody_else, name);
    struct pollfd poller = {.fd = k.fd[FD_DOOR], .events = POLLIN};
    assert_int_equal(poll(&poller, 1, 5000), 1);
    ctl_accept(&k);
    assert_true(k.conns[1].fd < 0);
    assert_int_equal(unit_join(pid), 0);
    close(own);
    close_fd(&k.fd[FD_DOOR]);
}

static void only_the_pacer_sets_the_pace(void **state)
{
    (void)state;
    struct client pacer = connect_client(), other = connect_client();
    struct wire_seen message = {.head = a_head(WIRE_SEEN), .offset = 4711};
    k.pacer = pacer.conn;
    say(&other, &message, sizeof message);
    assert_int_equal(seen, 0);
    say(&pacer, &message, sizeof message);
    assert_int_equal(seen, 4711);
    assert_true(other.conn->fd >= 0 && pacer.conn->fd >= 0);
    assert_hung_up_on(&message, sizeof message - 1);
    /* When it goes, nobody is waited for any more. */
    close(pacer.fd);
    ctl_readable(&k, pacer.conn);
    assert_true(seen == UINT64_MAX);
    close(other.fd);
}

/* The command ended by itself just before: there is nothing to kill, and an answer comes. */
static void too_late_to_kill(void **state)
{
    (void)state;
    struct client client = connect_client();
    struct wire_kill request = {.head = a_head(WIRE_KILL), .signal = SIGTERM, .grace_ms = -1};
    k.state = ST_DONE;
    say(&client, &request, sizeof request);
    assert_int_equal(events, 0);
    ctl_tell_killers(&k);
    int type;
    while ((type = hear_type(&client)) == WIRE_ACK)
        ;
    assert_int_equal(type, WIRE_KILLED);
    close(client.fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, finish)

static void change(const struct client *c, uint32_t background, uint32_t kept)
{
    struct wire_change request = {
        .head = a_head(WIRE_CHANGE), .background = background, .kept = kept};
    struct wire_ack ack;
    assert_int_equal(sock_send(c->fd, &request, sizeof request, NULL, 0, 0), 0);
    ctl_readable(&k, c->conn);
    assert_int_equal(sock_recv(c->fd, &ack, sizeof ack, NULL, 0, MSG_DONTWAIT), sizeof ack);
    assert_int_equal(ack.head.type, WIRE_ACK);
    assert_int_equal(ack.wait_ms < 0, kept && peer_is_inside);
}

/* A command cannot decide to outlive its session; it may go to the background. */
static void a_command_cannot_keep_itself(void **state)
{
    (void)state;
    struct client c = connect_client();
    peer_is_inside = true;
    change(&c, 0, 1);
    change(&c, 1, 1);
    assert_true(!k.st.kept && !k.st.background);
    change(&c, 1, 0);
    assert_true(!k.st.kept && k.st.background);
    peer_is_inside = false;
    close(c.fd);
}

/* A shell that goes to the background when it is over rings at once; what was changed stays. */
static void changes_are_heard(void **state)
{
    (void)state;
    int line[2];
    nacre_id rung;
    struct client c = connect_client();
    assert_int_equal(sock_pair(line), 0);
    k.fd[FD_LINE] = line[0];
    k.st.id.bytes[0] = 0x5a;
    k.st.outcome = NACRE_EXITED;
    ctl_ring(&k);
    assert_int_equal(sock_recv(line[1], &rung, sizeof rung, NULL, 0, MSG_DONTWAIT), -EAGAIN);
    change(&c, 1, 0);
    assert_true(k.st.background && !k.st.kept);
    assert_int_equal(sock_recv(line[1], &rung, sizeof rung, NULL, 0, MSG_DONTWAIT), sizeof rung);
    assert_true(nacre_id_equal(&rung, &k.st.id));
    change(&c, 1, 1);
    change(&c, 0, 0);
    assert_true(k.st.background && k.st.kept);
    assert_int_equal(published, 3);
    assert_int_equal(sock_recv(line[1], &rung, sizeof rung, NULL, 0, MSG_DONTWAIT), -EAGAIN);
    close_fd(&k.fd[FD_LINE]);
    close(line[1]);
    close(c.fd);
}

/* A question stays with the connection until it is answered; what is typed makes it stale. */
static void who_reads_is_asked_and_told(void **state)
{
    (void)state;
    struct client client = connect_client();
    struct wire_look look = {.head = head_of(WIRE_LOOK), .wanted = READS_LINE, .held_ms = 250};
    struct wire_looked looked = {.reads = READS_LINE, .pid = 31, .name = "cat"}, answer;
    looks = forgotten = 0;
    say(&client, &look, sizeof look);
    assert_int_equal(looks, 1);
    assert_true(client.conn->look_waits);
    assert_int_equal(client.conn->look_for, READS_LINE);
    assert_int_equal(client.conn->look_held, 250 * NS_PER_MS);
    assert_int_equal(hear_type(&client), -EAGAIN);
    struct wire_input input = {.head = head_of(WIRE_INPUT), .size = 1, .data = "x"};
    say(&client, &input, offsetof(struct wire_input, data) + 1);
    assert_int_equal(forgotten, 1);
    assert_int_equal(hear_type(&client), WIRE_INPUT_DONE);
    ctl_tell_reads(&k, client.conn, &looked);
    assert_false(client.conn->look_waits);
    assert_int_equal(hear(&client, &answer, sizeof answer), WIRE_LOOKED);
    assert_int_equal(answer.pid, 31);
    assert_string_equal(answer.name, "cat");
    say(&client, &look, sizeof look - 1);
    assert_true(client.conn->fd < 0);
    close(client.fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(watchers_are_told),
        TEST(a_watcher_that_does_not_read),
        TEST(kills_are_acknowledged_and_answered),
        TEST(too_late_to_kill),
        TEST(nonsense_ends_the_connection),
        TEST(wrong_kills),
        TEST(input_goes_to_the_command),
        TEST(wrong_sizes_of_input),
        TEST(input_waits_for_room),
        TEST(the_command_goes_while_input_waits),
        TEST(the_client_goes_while_its_input_waits),
        TEST(an_end_behind_input_that_waits),
        TEST(there_are_only_so_many_places),
        TEST(a_listener_makes_room),
        TEST(strangers_are_not_answered),
        TEST(only_the_pacer_sets_the_pace),
        TEST(a_command_cannot_keep_itself),
        TEST(changes_are_heard),
        TEST(who_reads_is_asked_and_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
