/*
 * The death of a keeper, killed or stopped: the command follows, the next front end that looks
 * ends the rest, and nobody who waits is left waiting.
 */
#include "harness/harness.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run/state.h"
#include "sys/fd.h"

/* -- The keeper goes ------------------------------------------------------------------------- */

/* SIGKILL, and the moment when it has taken effect. */
static void kill_keeper(struct process keeper)
{
    CHECK_EQ_INT(0, kill(keeper.pid, SIGKILL));
    CHECK(AWAIT(!process_alive(keeper), 2000));
}

/* On a busy machine the kernel lets go of a dead process's lock some milliseconds late. */
static bool is_lost(nacre_session *s, const nacre_id *id)
{
    return AWAIT(strcmp(status_of(s, id), "lost") == 0, 200);
}

static void check_lost(nacre_session *s, const nacre_id *id, const char *mark)
{
    CHECK(is_lost(s, id));
    nacre_record record = record_of(s, id);

    CHECK_EQ_INT(NACRE_LOST, record.outcome);
    CHECK_EQ_INT(NACRE_TREE_EMPTY, record.tree);
    CHECK_EQ_INT(-1, record.exit_code);
    CHECK_EQ_INT(0, record.signal);
    nacre_record_done(&record);
    CHECK_EQ_INT(0, count_marked(mark));
    CHECK_TEXT(status_of(s, id), "lost");
}

TEST(keeper_killed)
{
    nacre_session *s = open_session();
    const char *m = marker();
    nacre_id id = start_text(s, format("echo before; %s", scattered(m)));

    await_marked(m, 4);
    kill_keeper(keeper_of(s, &id));
    check_lost(s, &id, m);
    CHECK(output_has(s, &id, NACRE_OUT, "before\n"));
    nacre_kill_result result;
    CHECK_OK(nacre_kill(s, &id, NULL, &result, ERR));
    CHECK_EQ_INT(0, result.was_alive);
    check_lost(s, &id, m);
    struct run run = run_text(s, "echo next");
    CHECK_TEXT(run.out, "next\n");
    run_done(&run);
    close_session(s);
}

/* Nobody needs to look for the command itself to die. */
TEST(keeper_killed_and_the_command_follows)
{
    nacre_session *s = open_session();
    const char *m = marker();
    nacre_id id = start_text(s, format("exec sleep 300.%s", m));

    await_marked(m, 1);
    kill_keeper(keeper_of(s, &id));
    CHECK(AWAIT(count_marked(m) == 0, 1000));
    check_lost(s, &id, m);
    close_session(s);
}

TEST(keeper_killed_from_inside)
{
    nacre_session *s = open_session();
    const char *m = marker();
    nacre_id id = start_text(
        s, format("setsid sleep 300.%s & sleep 0.1; kill -KILL $PPID; sleep 301.%s", m, m));

    CHECK_OK(nacre_wait(s, &id, 1, NACRE_WAIT_ALL, MS(5000), NULL, ERR));
    check_lost(s, &id, m);
    close_session(s);
}

/* So early that the start may not have been heard of: lost, or not started, but nothing left. */
TEST(keeper_killed_from_inside_at_once)
{
    nacre_session *s = open_session();

    for (int i = 0; i < 10; i++) {
        nacre_command command = NACRE_COMMAND_INIT;
        const char *m = marker();
        nacre_id id;
        command.text = format("setsid sleep 300.%s & kill -KILL $PPID; sleep 301.%s", m, m);
        int result = nacre_start(s, &command, &id, NULL, ERR);
        if (result < 0) {
            CHECK_CODE(NACRE_EBACKEND, result);
            CHECK_EQ_INT(0, count_marked(m));
        } else {
            CHECK_OK(nacre_wait(s, &id, 1, NACRE_WAIT_ALL, MS(5000), NULL, ERR));
            check_lost(s, &id, m);
        }
    }
    close_session(s);
}

static int count_any(const nacre_listed *listed, void *arg)
{
    (void)listed;
    ++*(int *)arg;
    return 0;
}

HOST(starts_that_are_killed)
{
    nacre_session *s = open_session();
    int64_t until = now_ms() + soon(5000);
    for (int i = 0; i < 3; i++) {
        nacre_command command = NACRE_COMMAND_INIT;
        nacre_id id;
        command.text = "exit 0";
        CHECK_CODE(NACRE_EBACKEND, nacre_start(s, &command, &id, NULL, ERR));
        CHECK_STR(ERR->msg, "was not started");
        int count = 0;
        CHECK_OK(list_home(s, false, count_any, &count));
        CHECK_EQ_INT(0, count);
    }
    CHECK(now_ms() < until);
    close_session(s);
}

/* Between the go and the exec: the stand-in sets an alarm then, and dies of that. */
TEST(killed_before_it_is_the_command)
{
    const char *prefix[] = {program("deny-syscall"), "timerfd_settime=KILL", "--", NULL};
    host_join(host_exec(prefix, "starts_that_are_killed"));
}

static int note_lost(const nacre_listed *listed, void *arg)
{
    const nacre_record *record = listed->record;
    *(int *)arg += record->outcome == NACRE_LOST;
    return 0;
}

TEST(keeper_killed_and_somebody_else_lists)
{
    nacre_session *s = open_session();
    const char *m = marker();
    nacre_id id = start_text(s, scattered(m));
    int lost = 0;

    await_marked(m, 4);
    kill_keeper(keeper_of(s, &id));
    nacre_session *other = open_session();
    CHECK(AWAIT(({
                    lost = 0;
                    CHECK_OK(list_home(other, false, note_lost, &lost));
                    lost == 1;
                }),
                200));
    CHECK_EQ_INT(0, count_marked(m));
    check_lost(other, &id, m);
    close_session(other);
    check_lost(s, &id, m);
    close_session(s);
}

TEST(keeper_killed_and_its_session_closes)
{
    nacre_session *s = open_session();
    const char *m = marker();
    nacre_id id = start_text(s, scattered(m));

    await_marked(m, 4);
    kill_keeper(keeper_of(s, &id));
    close_session(s);
    CHECK_EQ_INT(0, count_marked(m));
    s = open_session();
    check_lost(s, &id, m);
    close_session(s);
}

/* Without a cgroup, who wiped its environment is out of reach once the keeper is gone. */
TEST(keeper_killed_with_wiped_environments)
{
    if (tier_in_force() != NACRE_TIER_CGROUP)
        SKIP("only a cgroup holds what wiped its environment");
    nacre_session *s = open_session();
    const char *m = marker();
    nacre_id id =
        start_text(s, format("%s -e -i -n 5 %s; exec sleep 300.%s", program("daemonize"), m, m));

    await_marked(m, 6);
    kill_keeper(keeper_of(s, &id));
    check_lost(s, &id, m);
    close_session(s);
}

TEST(keeper_killed_while_lingering)
{
    nacre_session *s = open_session();
    const char *m = marker();
    nacre_id id = start_text(s, format("%s sleep 300.%s & %s; exit 7", own_session(), m, gate()));
    struct process keeper = keeper_of(s, &id);

    await_marked(m, 1);
    let_go();
    wait_outcome(s, &id, 3000);
    kill_keeper(keeper);
    CHECK(AWAIT(tree_empty(s, &id), 3000));
    CHECK_EQ_INT(0, count_marked(m));
    CHECK_TEXT(status_of(s, &id), "exited(7)");
    close_session(s);
}

struct waiting {
    nacre_session *session;
    nacre_id id;
    atomic_int done;
};

static void *wait_thread(void *arg)
{
    struct waiting *waiting = arg;

    CHECK_OK(nacre_wait(waiting->session, &waiting->id, 1, NACRE_WAIT_ANY, -1, NULL, ERR));
    atomic_fetch_add(&waiting->done, 1);
    return NULL;
}

static int ignore_piece(const nacre_piece *piece, const void *bytes, void *arg)
{
    (void)piece;
    (void)bytes;
    (void)arg;
    return 0;
}

static void *follow_thread(void *arg)
{
    struct waiting *waiting = arg;

    CHECK_OK(nacre_follow(waiting->session, &waiting->id, 0, ignore_piece, NULL, ERR));
    atomic_fetch_add(&waiting->done, 1);
    return NULL;
}

/* Those who wait must learn of it without being told. */
TEST(keeper_killed_under_waiters)
{
    struct waiting waiting = {.session = open_session()};
    const char *m = marker();
    pthread_t threads[2];

    waiting.id = start_text(waiting.session, scattered(m));
    await_marked(m, 4);
    pthread_create(&threads[0], NULL, wait_thread, &waiting);
    pthread_create(&threads[1], NULL, follow_thread, &waiting);
    pause_ms(50);
    CHECK_EQ_INT(0, atomic_load(&waiting.done));
    kill_keeper(keeper_of(waiting.session, &waiting.id));
    CHECK(AWAIT(atomic_load(&waiting.done) == 2, 3000));
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    check_lost(waiting.session, &waiting.id, m);
    close_session(waiting.session);
}

/* What was logged before is a true beginning of what was printed. */
TEST(keeper_killed_in_a_flood)
{
    for (int round = 0; round < 5; round++) {
        nacre_session *s = open_session();
        nacre_id id = start_text(s, "exec seq 1 100000000000000");
        size_t size = 0;

        CHECK(AWAIT(bytes_printed(s, &id) > 100000, 5000));
        kill_keeper(keeper_of(s, &id));
        CHECK(is_lost(s, &id));
        char *out = output_of(s, &id, NACRE_OUT, &size);
        CHECK(size > 100000);
        size_t at = 0;
        /* As far as the head of the log goes; how much there is depends on how busy we are. */
        for (int n = 1; at + 16 < size && at < 30000000; n++) {
            char line[16];
            int length = snprintf(line, sizeof(line), "%d\n", n);
            if (memcmp(out + at, line, (size_t)length) != 0)
                FAIL("round %d: byte %zu of %zu is not line %d", round, at, size, n);
            at += (size_t)length;
        }
        free(out);
        close_session(s);
    }
}

struct positions {
    uint64_t at[2];
    uint64_t gap;
};

/* Every byte that can still be read stands where the record says it stood. */
static void check_remains(nacre_session *s, const nacre_id *id)
{
    static char buf[65536];
    nacre_record record = record_of(s, id);
    struct positions p = {{0, 0}, 0};
    uint64_t cursor = 0;
    nacre_piece piece;
    int64_t got;

    CHECK_EQ_INT(NACRE_LOST, record.outcome);
    while ((got = nacre_read(s, id, &cursor, NACRE_BOTH, buf, sizeof(buf), &piece, ERR)) > 0) {
        for (int i = 0; piece.gap_bytes && i < 2; i++)
            p.at[i] += record.dropped_bytes[i];
        p.gap += piece.gap_bytes;
        check_pattern(buf, piece.size, p.at[piece.stream], piece.stream, 1);
        p.at[piece.stream] += piece.size;
    }
    CHECK_OK(got);
    CHECK_EQ_INT(record.bytes[0], p.at[0]);
    CHECK_EQ_INT(record.bytes[1], p.at[1]);
    CHECK_EQ_INT(record.dropped_bytes[0] + record.dropped_bytes[1], p.gap);
    nacre_record_done(&record);
}

static void kill_in_a_flood(uint64_t quota, uint64_t after, int chunk)
{
    nacre_session *s = open_session();

    for (int round = 0; round < 8; round++) {
        nacre_command command = NACRE_COMMAND_INIT;
        command.text = format("exec %s -l -c %d 4000000000 4000000000", program("flood"), chunk);
        command.quota = quota;
        nacre_id id = start_command(s, &command);
        CHECK(AWAIT(bytes_printed(s, &id) > after, 5000));
        pause_ms(round % 4);
        kill_keeper(keeper_of(s, &id));
        CHECK(is_lost(s, &id));
        check_remains(s, &id);
    }
    close_session(s);
}

TEST(keeper_killed_in_the_head)
{
    kill_in_a_flood(16 << 20, 300000, 5000);
}

/* The ring goes on being written until the very moment. */
TEST(keeper_killed_in_the_ring)
{
    kill_in_a_flood(256 << 10, 3000000, 65536);
    kill_in_a_flood(1 << 20, 3000000, 333);
}

/* -- The keeper is stopped ------------------------------------------------------------------- */

/* If all was over in a moment the keeper lives on, as that of the next shell. */
static bool has_let_go(struct process keeper, const nacre_id *id)
{
    int fd = open(run_path(id, "state"), O_RDONLY | O_CLOEXEC);
    int held = lock_held(fd);

    CHECK_OK(fd);
    CHECK_OK(held);
    close(fd);
    return !process_alive(keeper) || held == 0;
}

static void kill_stopped(const char *before)
{
    nacre_session *s = open_session();
    const char *m = marker();
    nacre_kill_result result;
    nacre_id id = start_text(s, format("%s sleep 300.%s & %s kill -STOP $PPID; sleep 301.%s",
                                       own_session(), m, before, m));
    struct process keeper = keeper_of(s, &id);

    await_marked(m, 2);
    if (*before)
        CHECK(AWAIT(process_state(keeper.pid) == 'T', 2000));
    int64_t begin = now_ms();
    CHECK_OK(nacre_kill(s, &id, NULL, &result, ERR));
    CHECK_RANGE(0, now_ms() - begin, soon(10000));
    CHECK_EQ_INT(0, result.survivors);
    CHECK_EQ_INT(0, count_marked(m));
    CHECK(AWAIT(has_let_go(keeper, &id), 500));
    /* One that was woken may have ended the command and said so before it was killed itself. */
    const char *status = status_of(s, &id);
    if (!result.keeper_killed || strcmp(status, "lost") != 0)
        CHECK_TEXT(status, "killed");
    close_session(s);
}

TEST_LIMIT(keeper_stopped_from_inside, 30)
{
    kill_stopped("sleep 0.1;");
}

/* So early that the start has not been heard of yet. */
TEST_LIMIT(keeper_stopped_from_inside_at_once, 30)
{
    for (int i = 0; i < 2; i++)
        kill_stopped("");
}

/* Looking never needs the keeper, and asking it has a limit. */
TEST_LIMIT(keeper_stopped_and_looked_at, 30)
{
    nacre_session *s = open_session();
    nacre_command command = NACRE_COMMAND_INIT;
    const char *m = marker();

    command.text = format("echo hello; exec sleep 300.%s", m);
    command.input = NACRE_STDIN_PIPE;
    nacre_id id = start_command(s, &command);
    CHECK(AWAIT(output_has(s, &id, NACRE_OUT, "hello"), 5000));
    struct process keeper = keeper_of(s, &id);
    kill(keeper.pid, SIGSTOP);
    CHECK(AWAIT(process_state(keeper.pid) == 'T', 2000));

    int64_t begin = now_ms();
    CHECK_TEXT(status_of(s, &id), "running");
    CHECK(output_has(s, &id, NACRE_OUT, "hello"));
    CHECK_CODE(NACRE_ETIMEOUT, nacre_wait(s, &id, 1, NACRE_WAIT_ANY, 50, NULL, ERR));
    CHECK_RANGE(0, now_ms() - begin, soon(1000));
    int64_t sent = nacre_input(s, &id, "x\n", 2, 0, 100, ERR);
    CHECK(sent <= 0 || sent == 2);
    CHECK_RANGE(0, now_ms() - begin, soon(6000));
    kill(keeper.pid, SIGCONT);
    kill_shell(s, &id, -1);
    close_session(s);
}

TEST_LIMIT(keeper_stopped_and_its_session_closes, 30)
{
    nacre_session *s = open_session();
    const char *m = marker();
    nacre_id id = start_text(
        s, format("%s sleep 300.%s & kill -STOP $PPID; sleep 301.%s", own_session(), m, m));

    await_marked(m, 2);
    int64_t begin = now_ms();
    close_session(s);
    CHECK_RANGE(0, now_ms() - begin, soon(10000));
    CHECK_EQ_INT(0, count_marked(m));
    s = open_session();
    CHECK(tree_empty(s, &id));
    close_session(s);
}

/* -- Whose pids these are -------------------------------------------------------------------- */

static void edit_state(const nacre_id *id, void (*edit)(struct run_state *state))
{
    int fd = open(run_path(id, "state"), O_RDWR | O_CLOEXEC);
    struct run_state state;

    CHECK(fd >= 0);
    CHECK_EQ_INT(0, state_read(fd, &state));
    if (state.cgroup[0] == '/')
        rmdir(state.cgroup);
    state.cgroup[0] = 0;
    edit(&state);
    CHECK_EQ_INT(0, state_write(fd, &state));
    close(fd);
}

static void same_boot(struct run_state *state)
{
    state->tier = NACRE_TIER_SUBREAPER;
}

static void other_boot(struct run_state *state)
{
    state->boot[3] ^= 0xff;
}

static void other_namespace(struct run_state *state)
{
    state->pid_ns ^= 0x55;
}

/* A stranger that carries the mark of the run, not being part of its tree. */
static pid_t start_decoy(const nacre_id *id, const char *mark)
{
    nacre_id_text text = nacre_id_format(id);
    pid_t pid = fork();

    CHECK(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        setenv("NACRE_ID", text.s, 1);
        execlp("sleep", "sleep", format("305.%s", mark), (char *)NULL);
        _exit(127);
    }
    await_marked(mark, 1);
    return pid;
}

static void look_with_decoy(void (*edit)(struct run_state *state), bool swept)
{
    nacre_options options = NACRE_OPTIONS_INIT;
    const char *m = marker(), *decoy_mark = marker();

    options.tier = NACRE_TIER_SUBREAPER;
    nacre_session *s = open_options(&options);
    nacre_id id = start_text(s, format("exec sleep 300.%s", m));
    await_marked(m, 1);
    pid_t decoy = start_decoy(&id, decoy_mark);
    kill_keeper(keeper_of(s, &id));
    CHECK(AWAIT(count_marked(m) == 0, 2000));
    edit_state(&id, edit);
    nacre_record record = NACRE_RECORD_INIT;
    if (edit == other_namespace)
        CHECK(AWAIT(nacre_get(s, &id, &record, ERR) == NACRE_EPERM, 200));
    else
        CHECK(is_lost(s, &id));
    nacre_record_done(&record);
    CHECK_EQ_INT(swept ? 0 : 1, count_marked(decoy_mark));
    kill(decoy, SIGKILL);
    waitpid(decoy, NULL, 0);
    close_session(s);
}

TEST(sweep_finds_the_mark)
{
    look_with_decoy(same_boot, true);
}

TEST(no_sweep_after_another_boot)
{
    look_with_decoy(other_boot, false);
}

TEST(no_sweep_in_another_pid_namespace)
{
    look_with_decoy(other_namespace, false);
}

/* -- Damage ----------------------------------------------------------------------------------- */

static int ignore_listed(const nacre_listed *listed, void *arg)
{
    (void)listed;
    (void)arg;
    return 0;
}

/* Nobody knows of it any more, and its state ($S) says nothing: what it started is ended all the
 * same. */
static void state_lost(const char *damage)
{
    need_tree();
    nacre_options options = NACRE_OPTIONS_INIT;
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_list_options list = NACRE_LIST_OPTIONS_INIT;
    const char *m = marker();
    nacre_id id;

    options.single = 1;
    nacre_session *s = open_options(&options);
    command.text = format("(setsid sleep 300.%s &); until [ -e go ]; do sleep 0.02; done; "
                          "S=\"$NACRE_HOME/runs/$NACRE_ID/state\"; %s; "
                          "kill -KILL $PPID; sleep 300",
                          m, damage);
    command.lifetime = NACRE_LIFE_KEEP;
    CHECK_OK(nacre_start(s, &command, &id, NULL, ERR));
    await_marked(m, 1);
    struct process keeper = keeper_of(s, &id);
    close_session(s);
    spit("go", "", 0);
    CHECK(AWAIT(!process_alive(keeper), 5000));
    unlink("go");
    CHECK_EQ_INT(1, count_marked(m));
    s = open_session();
    list.which = NACRE_LIST_HOME;
    CHECK_OK(nacre_list(s, &list, ignore_listed, NULL, ERR));
    CHECK_EQ_INT(0, count_marked(m));
    close_session(s);
}

TEST(state_damaged_and_nobody_left_who_knows)
{
    state_lost("head -c 5000 /dev/zero >$S");
}

TEST(state_in_the_way_of_the_next)
{
    state_lost("rm -f $S; mkdir -p $S/full");
    state_lost("rm -f $S; mkdir -p $S/full $S.new/full");
}
