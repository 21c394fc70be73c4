/* Waiting, watching, following and listing: events come once, in order, and in time. */
#include "harness/harness.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* -- Waiting --------------------------------------------------------------------------------- */

TEST(wait_for_any)
{
    nacre_session *s = open_session();
    nacre_id ids[3] = {start_text(s, "sleep 100"), start_text(s, format("%s; exit 4", gate())),
                       start_text(s, "sleep 100")};
    size_t index = 99;
    int64_t begin = now_ms();

    CHECK_CODE(NACRE_ETIMEOUT, nacre_wait(s, ids, 3, NACRE_WAIT_ANY, 0, &index, ERR));
    CHECK_CODE(NACRE_ETIMEOUT, nacre_wait(s, ids, 3, NACRE_WAIT_ANY, 30, &index, ERR));
    CHECK_RANGE(28, now_ms() - begin, soon(120));
    let_go();
    CHECK_OK(nacre_wait(s, ids, 3, NACRE_WAIT_ANY, -1, &index, ERR));
    CHECK_EQ_INT(1, index);
    CHECK_RANGE(28, now_ms() - begin, soon(600));
    index = 99;
    CHECK_OK(nacre_wait(s, ids, 3, NACRE_WAIT_ANY, 0, &index, ERR));
    CHECK_EQ_INT(1, index);
    CHECK_OK(nacre_wait(s, ids, 3, NACRE_WAIT_ANY, 0, NULL, ERR));
    close_session(s);
}

TEST(wait_for_all)
{
    nacre_session *s = open_session();
    nacre_id ids[4] = {start_text(s, "sleep 0.05"), start_text(s, gate()), start_text(s, "true"),
                       start_text(s, "sleep 0.1")};
    int64_t begin = now_ms();

    CHECK_CODE(NACRE_ETIMEOUT, nacre_wait(s, ids, 4, NACRE_WAIT_ALL, 100, NULL, ERR));
    CHECK_RANGE(98, now_ms() - begin, soon(300));
    let_go();
    CHECK_OK(nacre_wait(s, ids, 4, NACRE_WAIT_ALL, soon(3000), NULL, ERR));
    for (int i = 0; i < 4; i++)
        CHECK_TEXT(status_of(s, &ids[i]), "exited(0)");
    close_session(s);
}

/* Outcomes end the wait, not trees: what lingers does not hold it up. */
TEST(wait_does_not_wait_for_leftovers)
{
    nacre_session *s = open_session();
    nacre_id id = start_text(s, "sleep 100 & exit 3");
    int64_t begin = now_ms();

    CHECK_OK(nacre_wait(s, &id, 1, NACRE_WAIT_ALL, MS(5000), NULL, ERR));
    CHECK_RANGE(0, now_ms() - begin, soon(300));
    CHECK_TEXT(status_of(s, &id), "exited(3), lingering");
    close_session(s);
}

TEST(wait_for_the_wrong)
{
    nacre_session *s = open_session();
    nacre_id ids[2] = {start_text(s, "sleep 100")};

    memset(&ids[1], 0x77, sizeof(ids[1]));
    CHECK_CODE(NACRE_ENOTFOUND, nacre_wait(s, ids, 2, NACRE_WAIT_ALL, 1000, NULL, ERR));
    CHECK_CODE(NACRE_ENOTFOUND, nacre_wait(s, ids, 2, NACRE_WAIT_ANY, 1000, NULL, ERR));
    CHECK_CODE(NACRE_EINVAL, nacre_wait(s, ids, 0, NACRE_WAIT_ANY, 1000, NULL, ERR));
    close_session(s);
}

TEST(wait_from_another_session_and_after_the_fact)
{
    nacre_session *s = open_session(), *other = open_session();
    nacre_id id = start_text(s, "sleep 0.1; exit 6");

    CHECK_OK(nacre_wait(other, &id, 1, NACRE_WAIT_ANY, MS(3000), NULL, ERR));
    CHECK_TEXT(status_of(other, &id), "exited(6)");
    close_session(s);
    CHECK_OK(nacre_wait(other, &id, 1, NACRE_WAIT_ALL, 0, NULL, ERR));
    CHECK_TEXT(status_of(other, &id), "exited(6)");
    close_session(other);
}

TEST(wait_ends_with_a_kill)
{
    nacre_session *s = open_session();
    nacre_id ids[20];

    for (int i = 0; i < 20; i++)
        ids[i] = start_text(s, "sleep 100");
    int before = fd_count();
    for (int i = 0; i < 20; i++)
        kill_shell(s, &ids[i], -1);
    CHECK_OK(nacre_wait(s, ids, 20, NACRE_WAIT_ALL, MS(2000), NULL, ERR));
    CHECK_EQ_INT(before, fd_count());
    close_session(s);
}

/* -- Watching -------------------------------------------------------------------------------- */

static const char *const kind_names = "-oxse"; /* none, output, exit, settled, end */

struct seen {
    char kinds[256];
    char text[256];
    size_t size;
};

static void note_event(struct seen *seen, const nacre_event *event, const char *buf)
{
    size_t n = strlen(seen->kinds);

    if (event->kind == NACRE_EVENT_OUTPUT) {
        CHECK(seen->size + event->piece.size < sizeof(seen->text));
        memcpy(seen->text + seen->size, buf, event->piece.size);
        seen->size += event->piece.size;
        if (n && seen->kinds[n - 1] == 'o')
            return;
    }
    seen->kinds[n] = kind_names[event->kind];
}

/* Everything a watch says, waited for in a poll loop as a host would. */
static struct seen watch_all(nacre_watch *watch)
{
    struct seen seen = {.size = 0};
    int64_t until = now_ms() + MS(8000);
    nacre_event event = {.kind = NACRE_EVENT_NONE};
    char buf[50];

    while (event.kind != NACRE_EVENT_END) {
        CHECK_OK(nacre_watch_next(watch, buf, sizeof(buf), &event, ERR));
        if (event.kind != NACRE_EVENT_NONE) {
            note_event(&seen, &event, buf);
            continue;
        }
        struct pollfd pfd = {nacre_watch_fd(watch), POLLIN, 0};
        CHECK(pfd.fd >= 0);
        if (poll(&pfd, 1, (int)(until - now_ms() > 0 ? until - now_ms() : 0)) == 0)
            FAIL("the descriptor of the watch stays silent; seen so far: %s", seen.kinds);
    }
    return seen;
}

TEST(watch_of_a_short_command)
{
    nacre_session *s = open_session();
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_watch *watch = NULL;
    nacre_event event;
    nacre_id id;
    char buf[16];

    for (int i = 0; i < 20; i++) {
        command.text = "echo one; echo two";
        CHECK_OK(nacre_start(s, &command, &id, &watch, ERR));
        struct seen seen = watch_all(watch);
        CHECK_TEXT(seen.kinds, "oxse");
        CHECK_TEXT(seen.text, "one\ntwo\n");
        for (int k = 0; k < 3; k++) {
            CHECK_OK(nacre_watch_wait(watch, 1000, buf, sizeof(buf), &event, ERR));
            CHECK_EQ_INT(NACRE_EVENT_END, event.kind);
        }
        nacre_watch_close(watch);
    }
    nacre_watch_close(NULL);
    close_session(s);
}

TEST(watch_of_what_comes_after_the_exit)
{
    nacre_session *s = open_session();
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_watch *watch = NULL;
    nacre_id id;

    command.text = "(sleep 0.6; echo late) & echo early";
    CHECK_OK(nacre_start(s, &command, &id, &watch, ERR));
    struct seen seen = watch_all(watch);
    CHECK_TEXT(seen.kinds, "oxsoe");
    CHECK_TEXT(seen.text, "early\nlate\n");
    nacre_watch_close(watch);
    command.text = "echo early > >(sleep 0.01; cat)";
    CHECK_OK(nacre_start(s, &command, &id, &watch, ERR));
    seen = watch_all(watch);
    /* We may be slower than the sleep, and see it all at once. */
    CHECK(strcmp(seen.kinds, "xose") == 0 || strcmp(seen.kinds, "xsoe") == 0 ||
          strcmp(seen.kinds, "oxse") == 0);
    CHECK_TEXT(seen.text, "early\n");
    nacre_watch_close(watch);
    close_session(s);
}

TEST(watch_from_an_offset)
{
    nacre_session *s = open_session();
    struct run run = run_text(s, "echo 123456789");
    nacre_watch *watch = NULL;

    CHECK_OK(nacre_watch_open(s, &run.record.id, 4, &watch, ERR));
    struct seen seen = watch_all(watch);
    CHECK_TEXT(seen.kinds, "oxse");
    CHECK_TEXT(seen.text, "56789\n");
    nacre_watch_close(watch);
    CHECK_OK(nacre_watch_open(s, &run.record.id, UINT64_MAX, &watch, ERR));
    seen = watch_all(watch);
    CHECK_TEXT(seen.kinds, "xse");
    nacre_watch_close(watch);
    nacre_id unknown;
    memset(&unknown, 0x33, sizeof(unknown));
    CHECK_CODE(NACRE_ENOTFOUND, nacre_watch_open(s, &unknown, 0, &watch, ERR));
    run_done(&run);
    close_session(s);
}

TEST(watch_of_what_is_new)
{
    nacre_session *s = open_session();
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_watch *watch = NULL;

    command.text = "echo old; read x; echo new";
    command.input = NACRE_STDIN_PIPE;
    nacre_id id = start_command(s, &command);
    CHECK(AWAIT(output_has(s, &id, NACRE_OUT, "old"), 2000));
    CHECK_OK(nacre_watch_open(s, &id, UINT64_MAX, &watch, ERR));
    nacre_session *other = open_session();
    CHECK_EQ_INT(1, nacre_input(other, &id, "\n", 1, 0, 1000, ERR));
    struct seen seen = watch_all(watch);
    CHECK_TEXT(seen.text, "new\n");
    CHECK_TEXT(seen.kinds, "oxse");
    nacre_watch_close(watch);
    close_session(other);
    close_session(s);
}

TEST(watch_waits_in_vain)
{
    nacre_session *s = open_session();
    nacre_id id = start_text(s, "sleep 100");
    nacre_watch *watch = NULL;
    nacre_event event;
    char buf[16];
    int before = fd_count();

    CHECK_OK(nacre_watch_open(s, &id, 0, &watch, ERR));
    int64_t begin = now_ms();
    CHECK_OK(nacre_watch_wait(watch, 60, buf, sizeof(buf), &event, ERR));
    CHECK_EQ_INT(NACRE_EVENT_NONE, event.kind);
    CHECK_RANGE(58, now_ms() - begin, soon(300));
    nacre_watch_close(watch);
    CHECK_EQ_INT(before, fd_count());
    CHECK_TEXT(status_of(s, &id), "running");
    close_session(s);
}

/* A silent shell costs its watcher nothing: the descriptor is not readable for ever. */
TEST(watch_does_not_spin)
{
    nacre_session *s = open_session();
    nacre_id id = start_text(s, "echo up; sleep 100");
    nacre_watch *watch = NULL;
    nacre_event event;
    char buf[16];
    int wakes = 0;

    CHECK_OK(nacre_watch_open(s, &id, 0, &watch, ERR));
    int64_t until = now_ms() + 200;
    while (now_ms() < until) {
        struct pollfd pfd = {nacre_watch_fd(watch), POLLIN, 0};
        poll(&pfd, 1, 50);
        wakes++;
        do {
            CHECK_OK(nacre_watch_next(watch, buf, sizeof(buf), &event, ERR));
        } while (event.kind != NACRE_EVENT_NONE);
    }
    CHECK_RANGE(1, wakes, 20);
    nacre_watch_close(watch);
    close_session(s);
}

/* Ten watches in one poll loop; every one of them sees its own shell to the end. */
TEST(watches_in_one_loop)
{
    enum { COUNT = 10 };
    nacre_session *s = open_session();
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_watch *watches[COUNT];
    struct seen seen[COUNT] = {{.size = 0}};
    struct pollfd fds[COUNT];
    nacre_id id;
    int open = COUNT;

    for (int i = 0; i < COUNT; i++) {
        command.text = format("sleep 0.0%d; echo %d", i, i);
        CHECK_OK(nacre_start(s, &command, &id, &watches[i], ERR));
        fds[i] = (struct pollfd){nacre_watch_fd(watches[i]), POLLIN, 0};
    }
    while (open > 0) {
        CHECK(poll(fds, COUNT, (int)MS(3000)) > 0);
        for (int i = 0; i < COUNT; i++) {
            nacre_event event;
            char buf[16];
            if (fds[i].fd < 0 || !fds[i].revents)
                continue;
            do {
                CHECK_OK(nacre_watch_next(watches[i], buf, sizeof(buf), &event, ERR));
                if (event.kind != NACRE_EVENT_NONE)
                    note_event(&seen[i], &event, buf);
            } while (event.kind != NACRE_EVENT_NONE && event.kind != NACRE_EVENT_END);
            if (event.kind == NACRE_EVENT_END) {
                fds[i].fd = -1;
                open--;
            }
        }
    }
    for (int i = 0; i < COUNT; i++) {
        CHECK_TEXT(seen[i].kinds, "oxse");
        CHECK_TEXT(seen[i].text, format("%d\n", i));
        nacre_watch_close(watches[i]);
    }
    close_session(s);
}

/* -- Following ------------------------------------------------------------------------------- */

static int stop_at_third(const nacre_piece *piece, const void *bytes, void *arg)
{
    (void)piece;
    (void)bytes;
    return ++*(int *)arg == 3 ? 42 : 0;
}

TEST(follow_until_told_to_stop)
{
    nacre_session *s = open_session();
    nacre_id id = start_text(s, "while :; do echo x; sleep 0.02; done");
    int calls = 0;

    CHECK_EQ_INT(42, nacre_follow(s, &id, 0, stop_at_third, &calls, ERR));
    CHECK_EQ_INT(3, calls);
    CHECK_TEXT(status_of(s, &id), "running");
    close_session(s);
}

struct arrival {
    int64_t begin;
    int64_t latest;
};

static int note_latency(const nacre_piece *piece, const void *bytes, void *arg)
{
    struct arrival *arrival = arg;
    struct timespec ts;

    (void)bytes;
    clock_gettime(CLOCK_REALTIME, &ts);
    int64_t late = (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000 - piece->time_ms;
    arrival->latest = late > arrival->latest ? late : arrival->latest;
    return 0;
}

/* Pieces come as they are printed, not at the end. */
TEST(follow_is_live)
{
    nacre_session *s = open_session();
    struct arrival arrival = {0, 0};
    nacre_id id = start_text(s, "for i in 1 2 3 4 5; do echo $i; sleep 0.05; done");

    CHECK_OK(nacre_follow(s, &id, 0, note_latency, &arrival, ERR));
    CHECK_RANGE(0, arrival.latest, MS(60));
    close_session(s);
}

static int add_size(const nacre_piece *piece, const void *bytes, void *arg)
{
    (void)bytes;
    *(uint64_t *)arg += piece->size;
    return 0;
}

TEST(follow_of_a_lot)
{
    nacre_session *s = open_session();
    nacre_id id = start_text(s, format("exec %s 20000000 3000000", program("flood")));
    uint64_t size = 0;

    CHECK_OK(nacre_follow(s, &id, 0, add_size, &size, ERR));
    CHECK_EQ_INT(23000000, size);
    size = 0;
    CHECK_OK(nacre_follow(s, &id, 22000000, add_size, &size, ERR));
    CHECK_EQ_INT(1000000, size);
    close_session(s);
}

/* -- Listing --------------------------------------------------------------------------------- */

struct listing {
    int count;
    int64_t last_ms;
    nacre_id ids[16];
};

static int note_listed(const nacre_listed *listed, void *arg)
{
    const nacre_record *record = listed->record;
    struct listing *listing = arg;

    CHECK(record->started_ms >= listing->last_ms);
    CHECK(record->command && record->cwd && record->name);
    listing->last_ms = record->started_ms;
    CHECK(listing->count < 16);
    listing->ids[listing->count++] = record->id;
    return listing->count == 5 ? 77 : 0;
}

TEST(list)
{
    nacre_session *s = open_session(), *other = open_session();
    struct listing all = {0}, alive = {0};
    struct run first = run_text(s, "true");

    pause_ms(2);
    nacre_id second = start_text(s, "sleep 100");
    pause_ms(2);
    struct run third = run_text(other, "sleep 100 & exit 3");
    pause_ms(2);
    struct run fourth = run_text(s, "false");
    CHECK_OK(list_home(other, false, note_listed, &all));
    CHECK_EQ_INT(4, all.count);
    CHECK(nacre_id_equal(&all.ids[0], &first.record.id));
    CHECK(nacre_id_equal(&all.ids[1], &second));
    CHECK(nacre_id_equal(&all.ids[2], &third.record.id));
    CHECK(nacre_id_equal(&all.ids[3], &fourth.record.id));
    CHECK_OK(list_home(s, true, note_listed, &alive));
    CHECK_EQ_INT(2, alive.count);
    CHECK(nacre_id_equal(&alive.ids[0], &second));
    CHECK(nacre_id_equal(&alive.ids[1], &third.record.id));
    run_done(&first);
    run_done(&third);
    run_done(&fourth);
    for (int i = 0; i < 3; i++) {
        struct run more = run_text(s, "true");
        run_done(&more);
    }
    memset(&all, 0, sizeof(all));
    CHECK_EQ_INT(77, list_home(s, false, note_listed, &all));
    CHECK_EQ_INT(5, all.count);
    close_session(other);
    close_session(s);
}

/* Opening a session and looking around creates nothing. */
TEST(looking_creates_nothing)
{
    nacre_session *s = open_session();
    struct listing all = {0};
    nacre_id id;

    CHECK_OK(list_home(s, false, note_listed, &all));
    CHECK_EQ_INT(0, all.count);
    CHECK_CODE(NACRE_ENOTFOUND, nacre_find(s, "abcdef", &id, ERR));
    CHECK(access(test_home(), F_OK) < 0);
    CHECK_EQ_INT(0, count_keepers());
    close_session(s);
    CHECK(access(test_home(), F_OK) < 0);
}

/* It starts nothing; what the home has can be asked for all the same. */
TEST(noop_backend_refuses)
{
    nacre_options options = NACRE_OPTIONS_INIT;
    nacre_command command = NACRE_COMMAND_INIT;
    struct listing all = {0};
    nacre_id id;

    options.backend = nacre_backend_noop();
    nacre_session *s = open_options(&options);
    command.text = "true";
    memset(&id, 1, sizeof(id));
    CHECK_CODE(NACRE_EPERM, nacre_start(s, &command, &id, NULL, ERR));
    CHECK_CODE(NACRE_ENOTFOUND, nacre_kill(s, &id, NULL, NULL, ERR));
    CHECK_OK(nacre_release(s, &id, ERR));
    CHECK_OK(list_home(s, false, note_listed, &all));
    CHECK_EQ_INT(0, all.count);
    close_session(s);
    CHECK(access(test_home(), F_OK) < 0);
}
