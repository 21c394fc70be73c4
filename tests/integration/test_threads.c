/* Sessions shared by threads. Built with the thread sanitizer too. */
#include "harness/harness.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct stage {
    nacre_session *session;
    nacre_id id;
    const char *mark;
    atomic_int number;
    atomic_int alive_at_return;
    pthread_barrier_t barrier;
};

/* -- Starting -------------------------------------------------------------------------------- */

static void start_and_check(int index, void *arg)
{
    struct stage *stage = arg;

    pthread_barrier_wait(&stage->barrier);
    for (int i = 0; i < 3; i++) {
        struct run run = run_text(stage->session, format("echo %d-%d; exit %d", index, i, index));
        CHECK_TEXT(run.out, format("%d-%d\n", index, i));
        CHECK_EQ_INT(index, run.record.exit_code);
        run_done(&run);
    }
}

TEST_LIMIT(sixty_four_start_at_once, 40)
{
    struct stage stage = {.session = open_session()};
    int before = fd_count();

    pthread_barrier_init(&stage.barrier, NULL, 64);
    run_threads(64, start_and_check, &stage);
    pthread_barrier_destroy(&stage.barrier);
    /* What a session has open, its log among it; not one for each start. */
    CHECK_RANGE(before, fd_count(), before + 9);
    close_session(stage.session);
}

static void open_start_close(int index, void *arg)
{
    const char *m = marker();

    (void)arg;
    for (int i = 0; i < 5; i++) {
        nacre_session *s = open_session();
        start_text(s, format("%s sleep 300.%s & sleep 301.%s", own_session(), m, m));
        struct run run = run_text(s, format("exit %d", index));
        CHECK_EQ_INT(index, run.record.exit_code);
        run_done(&run);
        close_session(s);
        CHECK_EQ_INT(0, count_marked(m));
    }
}

TEST(sessions_of_their_own)
{
    run_threads(8, open_start_close, NULL);
}

/* -- Killing --------------------------------------------------------------------------------- */

static void kill_it(int index, void *arg)
{
    struct stage *stage = arg;
    nacre_kill_options options = NACRE_KILL_OPTIONS_INIT;
    nacre_kill_result result;

    (void)index;
    options.grace_ms = MS(150);
    pthread_barrier_wait(&stage->barrier);
    CHECK_OK(nacre_kill(stage->session, &stage->id, &options, &result, ERR));
    atomic_fetch_add(&stage->alive_at_return, count_marked(stage->mark));
    CHECK_EQ_INT(0, result.survivors);
    CHECK_EQ_INT(0, result.keeper_killed);
    atomic_fetch_add(&stage->number, result.was_alive);
}

static void kill_from_ten(const char *before)
{
    struct stage stage = {.session = open_session(), .mark = marker()};

    stage.id = start_text(stage.session, format("%s; %s sleep 300.%s & sleep 301.%s; sleep 302",
                                                before, own_session(), stage.mark, stage.mark));
    await_marked(stage.mark, 2);
    pthread_barrier_init(&stage.barrier, NULL, 10);
    run_threads(10, kill_it, &stage);
    pthread_barrier_destroy(&stage.barrier);
    CHECK_EQ_INT(0, atomic_load(&stage.alive_at_return));
    CHECK(atomic_load(&stage.number) >= 1);
    CHECK_TEXT(status_of(stage.session, &stage.id), "killed");
    close_session(stage.session);
}

TEST(ten_kills_at_once)
{
    kill_from_ten("true");
}

TEST(ten_kills_at_once_of_the_stubborn)
{
    kill_from_ten("trap '' TERM");
}
static void kill_own(int index, void *arg)
{
    struct stage *stage = arg;
    const char *m = marker();

    (void)index;
    for (int i = 0; i < 4; i++) {
        nacre_id id = start_text(stage->session, format("sleep 300.%s & sleep 301.%s", m, m));
        kill_shell(stage->session, &id, -1);
        CHECK_EQ_INT(0, count_marked(m));
    }
}

TEST(each_kills_its_own)
{
    struct stage stage = {.session = open_session()};

    run_threads(8, kill_own, &stage);
    close_session(stage.session);
}

/* -- Reading during a flood ------------------------------------------------------------------ */

enum { FLOOD_OUT = 6000000, FLOOD_ERR = 2000000 };

/* One reader with its own cursor: every byte once, in order, of the streams it asked for. */
static void read_flood(int index, void *arg)
{
    struct stage *stage = arg;
    unsigned streams = index % 3 == 0 ? NACRE_BOTH : index % 3 == 1 ? NACRE_OUT : NACRE_ERR;
    size_t size = 1000 + (size_t)index * 7777;
    uint64_t cursor = 0, seen[2] = {0, 0};
    char *buf = malloc(size);
    nacre_piece piece;

    CHECK(buf);
    for (;;) {
        bool over = nacre_wait(stage->session, &stage->id, 1, NACRE_WAIT_ALL, 0, NULL, NULL) == 0;
        int64_t got;
        while ((got = nacre_read(stage->session, &stage->id, &cursor, streams, buf, size, &piece,
                                 ERR)) > 0) {
            CHECK_EQ_INT(0, piece.gap_bytes);
            check_pattern(buf, (size_t)got, seen[piece.stream], piece.stream, 0);
            seen[piece.stream] += (uint64_t)got;
        }
        CHECK_OK(got);
        if (over)
            break;
        pause_ms(1);
    }
    CHECK_EQ_INT(streams & NACRE_OUT ? FLOOD_OUT : 0, seen[0]);
    CHECK_EQ_INT(streams & NACRE_ERR ? FLOOD_ERR : 0, seen[1]);
    free(buf);
}

TEST_LIMIT(ten_readers_of_a_flood, 40)
{
    struct stage stage = {.session = open_session()};

    stage.id =
        start_text(stage.session, format("exec %s %d %d", program("flood"), FLOOD_OUT, FLOOD_ERR));
    run_threads(10, read_flood, &stage);
    close_session(stage.session);
}

static int count_bytes(const nacre_piece *piece, const void *bytes, void *arg)
{
    (void)bytes;
    *(uint64_t *)arg += piece->size;
    return 0;
}

static void follow_flood(int index, void *arg)
{
    struct stage *stage = arg;
    uint64_t size = 0;

    (void)index;
    CHECK_OK(nacre_follow(stage->session, &stage->id, 0, count_bytes, &size, ERR));
    CHECK_EQ_INT(FLOOD_OUT + FLOOD_ERR, size);
}

TEST_LIMIT(ten_followers_of_a_flood, 40)
{
    struct stage stage = {.session = open_session()};

    stage.id =
        start_text(stage.session, format("exec %s %d %d", program("flood"), FLOOD_OUT, FLOOD_ERR));
    run_threads(10, follow_flood, &stage);
    close_session(stage.session);
}

/* -- All of it at once ----------------------------------------------------------------------- */

static int look_at(const nacre_listed *listed, void *arg)
{
    (void)arg;
    CHECK(listed->record->command != NULL);
    return 0;
}

static void do_something(int index, void *arg)
{
    struct stage *stage = arg;
    nacre_session *s = stage->session;
    int64_t until = now_ms() + (long_tests() ? MS(400) : 400);

    while (now_ms() < until) {
        if (index % 4 == 0) {
            struct run run = run_text(s, "echo x; exit 2");
            CHECK_EQ_INT(2, run.record.exit_code);
            CHECK_OK(nacre_remove(s, &run.record.id, ERR));
            run_done(&run);
        } else if (index % 4 == 1) {
            CHECK_OK(list_home(s, index % 8 == 1, look_at, NULL));
        } else if (index % 4 == 2) {
            nacre_id id = start_text(s, "sleep 0.01; echo y");
            CHECK_OK(nacre_wait(s, &id, 1, NACRE_WAIT_ANY, MS(5000), NULL, ERR));
            CHECK(output_has(s, &id, NACRE_OUT, "y\n"));
        } else {
            nacre_id id = start_text(s, "sleep 300");
            CHECK_OK(nacre_release(s, &id, ERR));
        }
    }
}

TEST(everything_at_once)
{
    struct stage stage = {.session = open_session()};

    run_threads(12, do_something, &stage);
    close_session(stage.session);
}

static void wait_for_it(int index, void *arg)
{
    struct stage *stage = arg;

    CHECK_OK(nacre_wait(stage->session, &stage->id, 1, index % 2 ? NACRE_WAIT_ANY : NACRE_WAIT_ALL,
                        -1, NULL, ERR));
    atomic_fetch_add(&stage->number, 1);
}

TEST(many_wait_for_one)
{
    struct stage stage = {.session = open_session()};

    stage.id = start_text(stage.session, "sleep 0.1; exit 1");
    run_threads(30, wait_for_it, &stage);
    CHECK_EQ_INT(30, atomic_load(&stage.number));
    close_session(stage.session);
}
