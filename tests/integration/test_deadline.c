/*
 * Keepers that are stopped, traced, or stopped again and again by what they keep: who waits for a
 * shell, closes its session or looks at its home ends it all the same, in time, and says why. And
 * a command cannot take itself out of its session.
 */
#include "harness/harness.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "run/wire.h"
#include "sys/sock.h"

#define TIME_MS  500 /* the deadline of these shells */
#define GRACE_MS 200
#define LATE_MS  (TIME_MS + GRACE_MS + 10000)

/* -- Holding a keeper ------------------------------------------------------------------------- */

/* Ways of a command to hold its keeper; the mark is in each process that is to be gone. */
static const char *stops_once(const char *m)
{
    return format("%s sleep 300.%s & kill -STOP $PPID; sleep 301.%s", own_session(), m, m);
}

static const char *stops_again(const char *m)
{
    return format("trap '' TERM; %s sleep 300.%s & "
                  "bash -c 'trap \"\" TERM; while :; do kill -STOP $0; done' $PPID 302.%s & "
                  "sleep 301.%s; wait",
                  own_session(), m, m, m);
}

static const char *traces(const char *m)
{
    return format("%s sleep 300.%s & %s $PPID 302.%s & sleep 301.%s", own_session(), m,
                  program("tracer"), m, m);
}

typedef const char *holding(const char *mark);

static nacre_command held_command(holding *how, const char *mark)
{
    nacre_command command = NACRE_COMMAND_INIT;
    command.text = how(mark);
    command.timeout_ms = TIME_MS;
    command.grace_ms = GRACE_MS;
    return command;
}

/* A keeper that its user may not trace cannot be held that way, and needs no help. */
static bool may_trace(void)
{
    nacre_session *s = open_session();
    const char *m = marker();
    nacre_id id = start_text(s, traces(m));
    CHECK(AWAIT(bytes_printed(s, &id) > 0 || process_state(keeper_of(s, &id).pid) == 't', 3000));
    struct process tracer;
    bool held = process_state(keeper_of(s, &id).pid) == 't';
    if (find_marked(format("302.%s", m), &tracer, 1) > 0)
        kill(tracer.pid, SIGKILL);
    kill_shell(s, &id, 0);
    close_session(s);
    return held;
}

static void need_tracing(holding *how)
{
    if (how == traces && !may_trace())
        SKIP("the keeper may not be traced by its command here");
}

#define EACH_HOLDING(ident)               \
    static void ident(holding *how);      \
    TEST_LIMIT(ident##_stopped, 60)       \
    {                                     \
        ident(stops_once);                \
    }                                     \
    TEST_LIMIT(ident##_stopped_again, 60) \
    {                                     \
        ident(stops_again);               \
    }                                     \
    TEST_LIMIT(ident##_traced, 60)        \
    {                                     \
        need_tracing(traces);             \
        ident(traces);                    \
    }                                     \
    static void ident(holding *how)

static void check_timed_out(nacre_session *s, const nacre_id *id, const char *mark)
{
    CHECK(AWAIT(tree_empty(s, id), 3000));
    CHECK_TEXT(status_of(s, id), "timed_out");
    check_ended(s, id, NACRE_TIMED_OUT, NACRE_REASON_DEADLINE);
    CHECK_EQ_INT(0, count_marked(mark));
}

/* -- Deadlines -------------------------------------------------------------------------------- */

EACH_HOLDING(waited_for)
{
    nacre_session *s = open_session();
    const char *m = marker();
    nacre_command command = held_command(how, m);
    int64_t begin = now_ms();
    nacre_id id = start_command(s, &command);
    CHECK_OK(nacre_wait(s, &id, 1, NACRE_WAIT_ALL, MS(30000), NULL, ERR));
    CHECK_RANGE(TIME_MS, now_ms() - begin, soon(LATE_MS));
    check_timed_out(s, &id, m);
    close_session(s);
}

/* In the foreground, by the watch of its start. */
EACH_HOLDING(run_to_its_end)
{
    nacre_session *s = open_session();
    const char *m = marker();
    nacre_command command = held_command(how, m);
    nacre_record record = NACRE_RECORD_INIT;
    int64_t begin = now_ms();
    CHECK_OK(nacre_run(s, &command, MS(30000), &record, ERR));
    CHECK_EQ_INT(NACRE_TIMED_OUT, record.outcome);
    CHECK_RANGE(TIME_MS, now_ms() - begin, soon(LATE_MS));
    nacre_id id = record.id;
    nacre_record_done(&record);
    check_timed_out(s, &id, m);
    close_session(s);
}

/* Nobody waits; its session only hears of ends. */
EACH_HOLDING(in_the_background)
{
    nacre_session *s = open_session();
    const char *m = marker();
    nacre_command command = held_command(how, m);
    command.background = 1;
    int64_t begin = now_ms();
    nacre_id id = start_command(s, &command);
    CHECK(AWAIT(counts_of(s).running == 0, LATE_MS));
    CHECK_RANGE(TIME_MS, now_ms() - begin, soon(LATE_MS));
    check_timed_out(s, &id, m);
    close_session(s);
}

TEST_LIMIT(stopped_from_outside, 40)
{
    nacre_session *s = open_session();
    const char *m = marker();
    nacre_command command = NACRE_COMMAND_INIT;
    command.text = scattered(m);
    command.timeout_ms = TIME_MS;
    command.grace_ms = GRACE_MS;
    nacre_id id = start_command(s, &command);
    await_marked(m, 4);
    CHECK_EQ_INT(0, kill(keeper_of(s, &id).pid, SIGSTOP));
    CHECK_OK(nacre_wait(s, &id, 1, NACRE_WAIT_ANY, MS(20000), NULL, ERR));
    check_timed_out(s, &id, m);
    close_session(s);
}

/* Held by somebody whom nothing of ours ends. */
TEST_LIMIT(traced_from_outside, 60)
{
    need_tracing(traces);
    nacre_session *s = open_session(), *other = open_session();
    const char *m = marker(), *tracer_mark = marker();
    nacre_command command = held_command(stops_once, m);
    command.text = format("%s sleep 300.%s & sleep 301.%s", own_session(), m, m);
    nacre_id id = start_command(s, &command);
    await_marked(m, 2);
    struct process keeper = keeper_of(s, &id);
    nacre_id tracer = start_text(
        other, format("exec %s %d 305.%s", program("tracer"), (int)keeper.pid, tracer_mark));
    CHECK(AWAIT(process_state(keeper.pid) == 't', 5000));
    CHECK_OK(nacre_wait(s, &id, 1, NACRE_WAIT_ALL, MS(30000), NULL, ERR));
    check_timed_out(s, &id, m);
    CHECK_EQ_INT(1, count_marked(tracer_mark));
    kill_shell(other, &tracer, 0);
    close_session(other);
    close_session(s);
}

/* -- Kill and close --------------------------------------------------------------------------- */

EACH_HOLDING(killed)
{
    nacre_session *s = open_session();
    const char *m = marker();
    nacre_kill_result result;
    nacre_id id = start_text(s, how(m));
    await_marked(m, how == stops_once ? 2 : 3);
    pause_ms(100); /* it holds its keeper by then, or soon */
    CHECK_OK(nacre_kill(s, &id, NULL, &result, ERR));
    CHECK_EQ_INT(0, result.survivors);
    CHECK(AWAIT(tree_empty(s, &id), 3000));
    CHECK_EQ_INT(0, count_marked(m));
    close_session(s);
}

EACH_HOLDING(closed)
{
    nacre_session *s = open_session();
    const char *marks[8];
    nacre_id ids[8];
    for (int i = 0; i < 8; i++) {
        marks[i] = marker();
        ids[i] = start_text(s, how(marks[i]));
    }
    for (int i = 0; i < 8; i++)
        await_marked(marks[i], how == stops_once ? 2 : 3);
    int64_t begin = now_ms();
    CHECK_EQ_INT(0, nacre_close(s, ERR));
    CHECK_RANGE(0, now_ms() - begin, soon(8000));
    s = open_session();
    for (int i = 0; i < 8; i++) {
        CHECK_EQ_INT(0, count_marked(marks[i]));
        CHECK(tree_empty(s, &ids[i]));
    }
    close_session(s);
}

/* -- The owner is gone ------------------------------------------------------------------------ */

struct talk {
    nacre_command command;
    nacre_id id;
    atomic_int ready;
};

static void owner(void *arg)
{
    struct talk *talk = arg;
    nacre_session *s = open_session();
    talk->id = start_command(s, &talk->command);
    atomic_store(&talk->ready, 1);
    for (;;)
        pause();
}

/* Without a look, which would wake it. */
static pid_t keeper_unseen(const nacre_id *id)
{
    struct run_state state;
    int fd = open(run_path(id, "state"), O_RDONLY | O_CLOEXEC);
    CHECK_EQ_INT(0, state_read(fd, &state));
    close(fd);
    return state.keeper_pid;
}

static struct talk *leave_behind(holding *how, const char *mark)
{
    struct talk *talk = shared_memory(sizeof *talk);
    talk->command = (nacre_command)NACRE_COMMAND_INIT;
    talk->command.text = how(mark);
    talk->command.grace_ms = GRACE_MS;
    pid_t host = host_fork(owner, talk);
    CHECK(AWAIT(atomic_load(&talk->ready), 8000));
    await_marked(mark, how == stops_once ? 2 : 3);
    pid_t keeper = keeper_unseen(&talk->id);
    CHECK(AWAIT(process_state(keeper) == (how == traces ? 't' : 'T'), 5000));
    host_kill(host);
    return talk;
}

static int ignore_row(const nacre_listed *listed, void *arg)
{
    (void)listed;
    (void)arg;
    return 0;
}

static int ignore_session(const nacre_session_info *info, void *arg)
{
    (void)info;
    (void)arg;
    return 0;
}

static void check_gone(const nacre_id *id, const char *mark)
{
    if (!AWAIT(count_marked(mark) == 0, GRACE_MS + 3000))
        FAIL("%d processes are left", count_marked(mark));
    nacre_session *s = open_session();
    CHECK(AWAIT(tree_empty(s, id), 3000));
    close_session(s);
}

EACH_HOLDING(left_behind_and_listed)
{
    const char *m = marker();
    struct talk *talk = leave_behind(how, m);
    nacre_session *s = open_session();
    int64_t begin = now_ms();
    CHECK_OK(list_home(s, true, ignore_row, NULL));
    CHECK_RANGE(0, now_ms() - begin, soon(8000));
    close_session(s);
    check_gone(&talk->id, m);
}

EACH_HOLDING(left_behind_and_collected)
{
    const char *m = marker();
    struct talk *talk = leave_behind(how, m);
    nacre_session *s = open_session();
    CHECK_OK(nacre_gc(s, NULL, NULL, NULL, NULL, ERR));
    close_session(s);
    check_gone(&talk->id, m);
}

EACH_HOLDING(left_behind_and_sessions_listed)
{
    const char *m = marker();
    struct talk *talk = leave_behind(how, m);
    nacre_session *s = open_session();
    CHECK_OK(nacre_list_sessions(s, ignore_session, NULL, ERR));
    close_session(s);
    check_gone(&talk->id, m);
}

EACH_HOLDING(left_behind_and_read)
{
    const char *m = marker();
    struct talk *talk = leave_behind(how, m);
    nacre_session *s = open_session();
    nacre_snapshot snapshot = {0};
    CHECK_OK(nacre_output(s, &talk->id, NACRE_BOTH, 0, &snapshot, ERR));
    free(snapshot.data);
    close_session(s);
    check_gone(&talk->id, m);
}

/* A server that begins to work in the home, and does nothing about it. */
EACH_HOLDING(left_behind_and_a_server_comes)
{
    const char *m = marker();
    struct talk *talk = leave_behind(how, m);
    nacre_session *s = open_tool(NULL);
    nacre_offer *offer = NULL;
    struct run run = run_text(s, "true");
    run_done(&run);
    CHECK(AWAIT(({
                    CHECK_OK(nacre_offer_take(s, 0, &offer, ERR));
                    nacre_offer_retract(offer, NULL);
                    count_marked(m) == 0;
                }),
                5000));
    close_session(s);
    check_gone(&talk->id, m);
}

/* A kept one has no owner to end with: its deadline is due at the next look. */
EACH_HOLDING(kept_and_listed)
{
    nacre_session *s = open_session();
    const char *m = marker();
    nacre_command command = held_command(how, m);
    command.lifetime = NACRE_LIFE_KEEP;
    nacre_id id = start_command(s, &command);
    await_marked(m, how == stops_once ? 2 : 3);
    close_session(s);
    if (how == stops_once) /* the close has woken it, since it was to make the next one */
        CHECK_EQ_INT(0, kill(keeper_unseen(&id), SIGSTOP));
    pause_ms(TIME_MS + GRACE_MS + 500);
    CHECK(count_marked(m) > 0);
    s = open_session();
    CHECK_OK(list_home(s, true, ignore_row, NULL));
    CHECK(AWAIT(count_marked(m) == 0, GRACE_MS + 2000));
    CHECK(AWAIT(tree_empty(s, &id), 3000));
    check_timed_out(s, &id, m);
    close_session(s);
}

/* -- A command that would stay ---------------------------------------------------------------- */

static const char *ask_inside(const char *how, const char *name)
{
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    CHECK(n > 0);
    self[n] = '\0';
    return format("%s %s -x %s", how, self, name);
}

static nacre_id id_inside(nacre_session *s)
{
    nacre_id id;
    CHECK_OK(nacre_find(s, getenv("NACRE_ID"), &id, ERR));
    return id;
}

HOST(ask_the_library)
{
    nacre_session *s = open_session();
    nacre_id id = id_inside(s);
    CHECK_CODE(NACRE_EFORBIDDEN, nacre_keep(s, &id, ERR));
    close_session(s);
}

/* As a client of its own would. */
HOST(ask_the_keeper)
{
    nacre_session *s = open_session();
    nacre_id id = id_inside(s);
    struct wire_change change = {.head = {.type = WIRE_CHANGE, .format = RUN_FORMAT}, .kept = 1};
    struct wire_ack ack;
    int dir = open(run_path(&id, ""), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int sock = sock_connect_at(dir, "ctl");
    CHECK(sock >= 0);
    CHECK_EQ_INT(0, sock_send(sock, &change, sizeof change, NULL, 0, 0));
    ssize_t n;
    CHECK(AWAIT((n = sock_recv(sock, &ack, sizeof ack, NULL, 0, MSG_DONTWAIT)) != -EAGAIN, 2000));
    CHECK_EQ_INT(sizeof ack, n);
    CHECK(ack.wait_ms < 0);
    close_session(s);
}

static void ask_and_stay(const char *how, const char *name)
{
    nacre_session *s = open_session();
    const char *m = marker();
    nacre_id id =
        start_text(s, format("%s && echo refused; exec sleep 300.%s", ask_inside(how, name), m));
    CHECK(AWAIT(count_marked(m) == 1, 10000));
    if (!AWAIT(output_has(s, &id, NACRE_OUT, "refused"), 2000))
        FAIL("%s", output_of(s, &id, NACRE_BOTH, NULL));
    nacre_record record = record_of(s, &id);
    CHECK_EQ_INT(NACRE_LIFE_SESSION, record.lifetime);
    nacre_record_done(&record);
    close_session(s);
    CHECK_EQ_INT(0, count_marked(m));
}

TEST(a_command_asks_the_library_to_be_kept)
{
    ask_and_stay("", "ask_the_library");
}

TEST(a_command_asks_its_keeper_to_be_kept)
{
    ask_and_stay("", "ask_the_keeper");
    ask_and_stay("setsid -w", "ask_the_keeper");
}

/* From outside it is what "nacre adopt" is for. */
TEST(somebody_else_keeps_it)
{
    nacre_session *s = open_session(), *other = open_session();
    const char *m = marker();
    nacre_id id = start_text(s, format("exec sleep 300.%s", m));
    await_marked(m, 1);
    CHECK_EQ_INT(0, nacre_keep(other, &id, ERR));
    close_session(s);
    CHECK_EQ_INT(1, count_marked(m));
    kill_shell(other, &id, 0);
    close_session(other);
}
