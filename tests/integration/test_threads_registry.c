/* Places, ends, completions and names, used by many threads at once. Built with the thread
 * sanitizer too. */
#include "harness/harness.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { THREADS = 64, PLACES = 8 };

struct stage {
    nacre_session *session;
    nacre_id ids[THREADS];
    nacre_id id;
    atomic_int count;
    atomic_int refused;
    pthread_barrier_t barrier;
};

static void run_stage(struct stage *stage, int threads, void (*fn)(int index, void *arg))
{
    pthread_barrier_init(&stage->barrier, NULL, (unsigned)threads);
    run_threads(threads, fn, stage);
    pthread_barrier_destroy(&stage->barrier);
}

/* -- Places ---------------------------------------------------------------------------------- */

static void start_one(int index, void *arg)
{
    struct stage *stage = arg;
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_id id;

    (void)index;
    command.text = "sleep 300";
    command.background = 1;
    pthread_barrier_wait(&stage->barrier);
    int r = nacre_start(stage->session, &command, &id, NULL, ERR);
    if (r == 0) {
        stage->ids[atomic_fetch_add(&stage->count, 1)] = id;
        return;
    }
    CHECK_CODE(NACRE_ELIMIT, r);
    atomic_fetch_add(&stage->refused, 1);
}

TEST_LIMIT(exactly_eight_of_sixty_four_start, 40)
{
    struct stage stage = {.session = open_tool(NULL)};

    for (int round = 0; round < 3; round++) {
        stage.count = stage.refused = 0;
        run_stage(&stage, THREADS, start_one);
        CHECK_EQ_INT(PLACES, stage.count);
        CHECK_EQ_INT(THREADS - PLACES, stage.refused);
        CHECK_EQ_INT(PLACES, counts_of(stage.session).running);
        kill_shell(stage.session, &stage.ids[0], 0);
        kill_shell(stage.session, &stage.ids[5], 0);
        stage.count = stage.refused = 0;
        run_stage(&stage, THREADS, start_one);
        CHECK_EQ_INT(2, stage.count);
        CHECK_EQ_INT(PLACES, counts_of(stage.session).running);
        close_session(stage.session);
        stage.session = open_tool(NULL);
    }
    close_session(stage.session);
}

/* -- Ends ------------------------------------------------------------------------------------ */

static void race_to_the_end(int index, void *arg)
{
    struct stage *stage = arg;

    pthread_barrier_wait(&stage->barrier);
    if (index == 0)
        nacre_input(stage->session, &stage->id, "\n", 1, 0, 1000, ERR);
    else
        CHECK_OK(nacre_kill(stage->session, &stage->id, NULL, NULL, ERR));
}

TEST_LIMIT(the_first_outcome_stays, 40)
{
    struct stage stage = {.session = open_tool(NULL)};
    nacre_session *s = stage.session;

    for (int round = 0; round < 25; round++) {
        stage.id = start_held(s, "echo ready; read x; exit 7");
        CHECK(AWAIT(output_has(s, &stage.id, NACRE_OUT, "ready"), 5000));
        run_stage(&stage, 2, race_to_the_end);
        nacre_record record = record_of(s, &stage.id);
        bool killed = record.outcome == NACRE_KILLED;
        if (!killed)
            CHECK_TEXT(status_of(s, &stage.id), "exited(7)");
        nacre_record_done(&record);
        kill_shell(s, &stage.id, 0);
        CHECK_TEXT(status_of(s, &stage.id), killed ? "killed" : "exited(7)");
    }
    close_session(s);
}

/* -- Completions ----------------------------------------------------------------------------- */

static void take_all(int index, void *arg)
{
    struct stage *stage = arg;
    int64_t until = now_ms() + soon(10000);
    nacre_offer *offer;

    pthread_barrier_wait(&stage->barrier);
    while (stage->count < THREADS && now_ms() < until) {
        int64_t got = nacre_offer_take(stage->session, (size_t)(index % 3), &offer, ERR);
        CHECK_OK(got);
        for (int64_t i = 0; i < got; i++) {
            CHECK_EQ_INT(0, nacre_offer_repeated(offer, (size_t)i));
            stage->ids[atomic_fetch_add(&stage->count, 1) % THREADS] =
                nacre_offer_id(offer, (size_t)i);
        }
        CHECK_OK(nacre_offer_acknowledge(offer, ERR));
        if (got == 0)
            pause_ms(2);
    }
}

static int by_bytes(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(nacre_id));
}

TEST_LIMIT(each_completion_goes_to_one_taker, 60)
{
    struct stage stage = {.session = open_tool((const char *[]){"shells=100", NULL})};
    nacre_id ids[THREADS];

    for (int i = 0; i < THREADS; i++)
        ids[i] = start_background(stage.session, "true");
    run_stage(&stage, 6, take_all);
    CHECK_EQ_INT(THREADS, stage.count);
    qsort(ids, THREADS, sizeof ids[0], by_bytes);
    qsort(stage.ids, THREADS, sizeof ids[0], by_bytes);
    CHECK(memcmp(ids, stage.ids, sizeof ids) == 0);
    CHECK_EQ_INT(0, counts_of(stage.session).completions);
    close_session(stage.session);
}

/* -- Names ----------------------------------------------------------------------------------- */

static void start_named(int index, void *arg)
{
    struct stage *stage = arg;
    nacre_command command = NACRE_COMMAND_INIT;

    command.text = "sleep 300";
    command.name = "web";
    command.background = 1;
    pthread_barrier_wait(&stage->barrier);
    int r = nacre_start(stage->session, &command, &stage->ids[index], NULL, ERR);
    CHECK_OK(r);
    if (r == 0)
        atomic_fetch_add(&stage->count, 1);
}

TEST(ten_threads_start_one_name_once)
{
    struct stage stage = {.session = open_tool(NULL)};

    run_stage(&stage, 10, start_named);
    CHECK_EQ_INT(1, stage.count);
    for (int i = 1; i < 10; i++)
        CHECK(nacre_id_equal(&stage.ids[0], &stage.ids[i]));
    CHECK_EQ_INT(1, counts_of(stage.session).running);
    close_session(stage.session);
}

/* -- Everything at once ---------------------------------------------------------------------- */

static int ignore(const nacre_listed *listed, void *arg)
{
    (void)listed;
    (void)arg;
    return 0;
}

static void do_everything(int index, void *arg)
{
    struct stage *stage = arg;
    nacre_session *s = stage->session;
    nacre_unread unread = NACRE_UNREAD_INIT;
    nacre_offer *offer;

    pthread_barrier_wait(&stage->barrier);
    for (int i = 0; i < 6; i++) {
        nacre_id id = start_background(s, format("echo %d; exit %d", i, index));
        CHECK_OK(nacre_list(s, NULL, ignore, NULL, ERR));
        CHECK_OK(nacre_get_unread(s, &id, &unread, ERR));
        CHECK_OK(nacre_mark_read(s, &id, unread.to, 0, ERR));
        wait_outcome(s, &id, 10000);
        CHECK_TEXT(status_of(s, &id), format("exited(%d)", index));
        CHECK_OK(nacre_offer_take(s, 0, &offer, ERR));
        stage->count += (int)nacre_offer_count(offer);
        if (index % 2)
            CHECK_OK(nacre_offer_acknowledge(offer, ERR));
        else {
            stage->count -= (int)nacre_offer_count(offer);
            CHECK_OK(nacre_offer_retract(offer, ERR));
        }
        counts_of(s);
    }
}

TEST_LIMIT(all_of_it_by_eight_threads, 60)
{
    struct stage stage = {
        .session = open_tool((const char *[]){"shells=100", "listed=5", "audit=on", NULL})};
    nacre_offer *offer;

    run_stage(&stage, 8, do_everything);
    CHECK(AWAIT(counts_of(stage.session).running == 0, 5000));
    /* An end that the catalog was too busy for is noted a second later. */
    if (!AWAIT(stage.count + (int)counts_of(stage.session).completions == 48, 5000))
        FAIL("%d completions were taken and %d are left, of 48", stage.count,
             (int)counts_of(stage.session).completions);
    CHECK_OK(nacre_offer_take(stage.session, 0, &offer, ERR));
    CHECK_EQ_INT(48, stage.count + (int)nacre_offer_count(offer));
    CHECK_OK(nacre_offer_acknowledge(offer, ERR));
    CHECK_EQ_INT(5, counts_of(stage.session).finished);
    close_session(stage.session);
}
