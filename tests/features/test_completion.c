/* Completions: each end of a background shell reaches somebody, once, whatever happens between. */
#include "harness/harness.h"

#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { IDS_MAX = 1024 };

/* What was offered, in the order of the offers. */
struct heard {
    nacre_id ids[IDS_MAX];
    int repeated[IDS_MAX];
    int count;
};

static void note_offer(struct heard *heard, const nacre_offer *offer)
{
    for (size_t i = 0; i < nacre_offer_count(offer); i++) {
        CHECK(heard->count < IDS_MAX);
        heard->ids[heard->count] = nacre_offer_id(offer, i);
        heard->repeated[heard->count++] = nacre_offer_repeated(offer, i);
    }
}

/* Takes what is there, and says that it arrived. Returns how many there were. */
static int hear(nacre_session *s, struct heard *heard)
{
    nacre_offer *offer = NULL;
    int64_t got = nacre_offer_take(s, 0, &offer, ERR);

    CHECK_OK(got);
    CHECK_EQ_INT(got, nacre_offer_count(offer));
    CHECK((got == 0) == (offer == NULL));
    note_offer(heard, offer);
    CHECK_OK(nacre_offer_acknowledge(offer, ERR));
    return (int)got;
}

static bool heard_all(nacre_session *s, struct heard *heard, int count)
{
    hear(s, heard);
    return heard->count >= count;
}

static void check_heard(const struct heard *heard, int index, const nacre_id *id, int repeated)
{
    CHECK(index < heard->count);
    CHECK_TEXT(nacre_id_format(&heard->ids[index]).s, nacre_id_format(id).s);
    CHECK_EQ_INT(repeated, heard->repeated[index]);
}

static int times_heard(const struct heard *heard, const nacre_id *id)
{
    int times = 0;

    for (int i = 0; i < heard->count; i++)
        times += nacre_id_equal(&heard->ids[i], id);
    return times;
}

static bool is_readable(int fd, int64_t ms)
{
    struct pollfd poller = {.fd = fd, .events = POLLIN};

    CHECK(fd >= 0);
    return poll(&poller, 1, (int)ms) == 1;
}

static nacre_session *open_at(const char *cwd, const char *name)
{
    nacre_options options = NACRE_OPTIONS_INIT;

    options.cwd = cwd;
    options.name = name;
    return open_options(&options);
}

/* -- One session ----------------------------------------------------------------------------- */

TEST(three_that_end_together)
{
    nacre_session *s = open_tool(NULL);
    struct heard heard = {.count = 0};
    nacre_id ids[3];

    for (int i = 0; i < 3; i++)
        ids[i] = start_held(s, "read x; exit 2");
    struct run run = run_text(s, "echo another call meanwhile");
    run_done(&run);
    CHECK_EQ_INT(0, hear(s, &heard));
    CHECK_EQ_INT(0, counts_of(s).completions);
    for (int i = 0; i < 3; i++)
        release_shell(s, &ids[i]);
    CHECK(AWAIT(heard_all(s, &heard, 3), 5000));
    for (int i = 0; i < 3; i++) {
        CHECK_EQ_INT(1, times_heard(&heard, &ids[i]));
        CHECK_EQ_INT(0, heard.repeated[i]);
        CHECK_TEXT(status_of(s, &ids[i]), "exited(2)");
    }
    CHECK_EQ_INT(0, hear(s, &heard));
    CHECK_EQ_INT(0, counts_of(s).completions);
    close_session(s);
}

TEST(the_oldest_end_comes_first)
{
    nacre_session *s = open_tool(NULL);
    struct heard heard = {.count = 0};
    nacre_offer *offer;
    nacre_id ids[3];

    for (int i = 0; i < 3; i++)
        ids[i] = start_held(s, "read x");
    for (int i = 2; i >= 0; i--) {
        release_shell(s, &ids[i]);
        wait_outcome(s, &ids[i], 5000);
        pause_ms(2); /* ends are told apart by the millisecond */
    }
    CHECK(AWAIT(counts_of(s).completions == 3, 5000));
    CHECK_EQ_INT(2, nacre_offer_take(s, 2, &offer, ERR));
    note_offer(&heard, offer);
    CHECK_EQ_INT(1, counts_of(s).completions);
    CHECK_EQ_INT(1, hear(s, &heard));
    CHECK_OK(nacre_offer_acknowledge(offer, ERR));
    for (int i = 0; i < 3; i++)
        check_heard(&heard, i, &ids[2 - i], 0);
    CHECK_EQ_INT(0, hear(s, &heard));
    close_session(s);
}

TEST(a_foreground_shell_has_none)
{
    nacre_session *s = open_tool(NULL);
    struct heard heard = {.count = 0};
    struct run run = run_text(s, "true");

    run_done(&run);
    nacre_id id = start_text(s, "true");
    wait_outcome(s, &id, 5000);
    CHECK_EQ_INT(0, hear(s, &heard));
    CHECK_EQ_INT(0, counts_of(s).completions);
    close_session(s);
}

TEST(what_is_retracted_comes_again_unmarked)
{
    nacre_session *s = open_tool(NULL);
    struct heard heard = {.count = 0};
    nacre_id id = start_background(s, "true");
    nacre_offer *offer;

    CHECK(AWAIT(counts_of(s).completions == 1, 5000));
    for (int i = 0; i < 3; i++) {
        CHECK_EQ_INT(1, nacre_offer_take(s, 0, &offer, ERR));
        CHECK_EQ_INT(0, nacre_offer_repeated(offer, 0));
        CHECK_EQ_INT(0, counts_of(s).completions);
        CHECK_EQ_INT(0, hear(s, &heard));
        CHECK_OK(nacre_offer_retract(offer, ERR));
        CHECK_EQ_INT(1, counts_of(s).completions);
    }
    CHECK_EQ_INT(1, hear(s, &heard));
    check_heard(&heard, 0, &id, 0);
    close_session(s);
}

TEST(an_end_that_was_shown_needs_no_completion)
{
    nacre_session *s = open_tool(NULL);
    struct heard heard = {.count = 0};
    nacre_id ids[2];

    for (int i = 0; i < 2; i++) {
        ids[i] = start_background(s, "echo hi");
        wait_outcome(s, &ids[i], 5000);
    }
    CHECK_OK(nacre_mark_read(s, &ids[0], 3, 1, ERR));
    CHECK_OK(nacre_mark_read(s, &ids[1], 3, 0, ERR));
    CHECK(AWAIT(heard_all(s, &heard, 1), 5000));
    CHECK_EQ_INT(1, heard.count);
    check_heard(&heard, 0, &ids[1], 0);
    close_session(s);
    s = open_tool(NULL);
    CHECK_EQ_INT(0, hear(s, &heard));
    close_session(s);
}

/* The end is told when the command has ended, not when its daemons have. */
TEST(a_lingering_shell_has_ended)
{
    nacre_session *s = open_tool(NULL);
    struct heard heard = {.count = 0};
    nacre_id id = start_background(s, format("%s sleep 300 & exit 6", own_session()));

    CHECK(AWAIT(heard_all(s, &heard, 1), 5000));
    check_heard(&heard, 0, &id, 0);
    CHECK_TEXT(status_of(s, &id), "exited(6), lingering");
    kill_shell(s, &id, 0);
    CHECK_EQ_INT(0, hear(s, &heard));
    CHECK_EQ_INT(0, counts_of(s).completions);
    close_session(s);
}

TEST(what_ended_before_it_went_to_the_background_is_due_at_once)
{
    nacre_session *s = open_tool(NULL);
    struct heard heard = {.count = 0};

    for (int looked = 0; looked < 2; looked++) {
        nacre_command command = NACRE_COMMAND_INIT;
        nacre_record record = NACRE_RECORD_INIT;
        command.text = "read x; exit 9";
        command.input = NACRE_STDIN_PIPE;
        CHECK_CODE(NACRE_ETIMEOUT, nacre_run(s, &command, 20, &record, ERR));
        nacre_id id = record.id;
        nacre_record_done(&record);
        release_shell(s, &id);
        CHECK(AWAIT(tree_empty(s, &id) || !looked, 5000));
        if (!looked)
            wait_outcome(s, &id, 5000);
        CHECK_OK(nacre_background(s, &id, ERR));
        CHECK_EQ_INT(1, counts_of(s).completions);
        CHECK_EQ_INT(1, hear(s, &heard));
        check_heard(&heard, looked, &id, 0);
    }
    CHECK_EQ_INT(0, hear(s, &heard));
    close_session(s);
}

/* -- The descriptor -------------------------------------------------------------------------- */

/* Waits as a host does: by the descriptor alone. */
static void hear_by_fd(nacre_session *s, struct heard *heard, int count, int64_t ms)
{
    int64_t until = now_ms() + soon(ms);
    int fd = nacre_completion_fd(s, ERR);

    while (heard->count < count) {
        int64_t left = until - now_ms();
        if (left <= 0 || !is_readable(fd, left))
            FAIL("%d of %d completions after %lld ms", heard->count, count, (long long)soon(ms));
        hear(s, heard);
    }
}

TEST(the_descriptor_tells)
{
    nacre_session *s = open_tool(NULL);
    struct heard heard = {.count = 0};
    int fd = nacre_completion_fd(s, ERR);

    CHECK_OK(fd);
    CHECK(!is_readable(fd, 0));
    nacre_id first = start_held(s, "read x");
    CHECK_EQ_INT(fd, nacre_completion_fd(s, ERR));
    CHECK(!is_readable(fd, 0));
    release_shell(s, &first);
    hear_by_fd(s, &heard, 1, 900);
    check_heard(&heard, 0, &first, 0);
    CHECK(AWAIT(tree_empty(s, &first), 5000));
    CHECK(AWAIT(hear(s, &heard) == 0 && !is_readable(fd, 0), 5000));

    nacre_id second = start_background(s, "true");
    CHECK(AWAIT(counts_of(s).completions == 1, 5000));
    CHECK(is_readable(fd, 0));
    nacre_offer *offer;
    CHECK_EQ_INT(1, nacre_offer_take(s, 0, &offer, ERR));
    CHECK_OK(nacre_offer_retract(offer, ERR));
    CHECK(is_readable(fd, 0));
    hear_by_fd(s, &heard, 2, 900);
    check_heard(&heard, 1, &second, 0);
    close_session(s);
}

TEST(the_descriptor_tells_of_a_keeper_that_was_killed)
{
    nacre_session *s = open_tool(NULL);
    struct heard heard = {.count = 0};

    CHECK_OK(nacre_completion_fd(s, ERR));
    nacre_id id = start_background(s, "sleep 300");
    CHECK_EQ_INT(0, kill(keeper_of(s, &id).pid, SIGKILL));
    hear_by_fd(s, &heard, 1, 2500);
    check_heard(&heard, 0, &id, 0);
    CHECK_TEXT(status_of(s, &id), "lost");
    close_session(s);
}

TEST(the_descriptor_tells_of_what_went_to_the_background)
{
    nacre_session *s = open_tool(NULL);
    struct heard heard = {.count = 0};
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_record record = NACRE_RECORD_INIT;

    CHECK_OK(nacre_completion_fd(s, ERR));
    command.text = "read x";
    command.input = NACRE_STDIN_PIPE;
    CHECK_CODE(NACRE_ETIMEOUT, nacre_run(s, &command, 20, &record, ERR));
    CHECK_OK(nacre_background(s, &record.id, ERR));
    release_shell(s, &record.id);
    hear_by_fd(s, &heard, 1, 900);
    check_heard(&heard, 0, &record.id, 0);
    nacre_record_done(&record);
    close_session(s);
}

static nacre_id start_kept(nacre_session *s, const char *text)
{
    nacre_command command = NACRE_COMMAND_INIT;

    command.text = text;
    command.background = 1;
    command.lifetime = NACRE_LIFE_KEEP;
    command.input = NACRE_STDIN_PIPE;
    return start_command(s, &command);
}

TEST(the_descriptor_tells_of_an_adopted_shell)
{
    struct heard heard = {.count = 0};
    nacre_session *first = open_at("/", "");
    nacre_id id = start_kept(first, "read x; exit 3");

    close_session(first);
    nacre_session *s = open_tool(NULL);
    CHECK_OK(nacre_completion_fd(s, ERR));
    CHECK_OK(nacre_adopt(s, &id, ERR));
    CHECK_EQ_INT(0, hear(s, &heard));
    release_shell(s, &id);
    hear_by_fd(s, &heard, 1, 2500);
    check_heard(&heard, 0, &id, 0);
    CHECK_TEXT(status_of(s, &id), "exited(3)");
    CHECK_EQ_INT(0, hear(s, &heard));
    close_session(s);
}

/* -- Later sessions -------------------------------------------------------------------------- */

struct host {
    nacre_id ids[8];
    atomic_int ready;
    int take;
    const char *cwd;
    const char *name;
};

static void start_and_wait_to_be_killed(void *arg)
{
    struct host *host = arg;
    nacre_session *s = open_at(host->cwd, host->name);
    nacre_offer *offer = NULL;

    for (int i = 0; i < 3; i++)
        host->ids[i] = start_background(s, "exit 4");
    CHECK(AWAIT(counts_of(s).completions == 3, 5000));
    if (host->take > 0)
        CHECK_EQ_INT(host->take, nacre_offer_take(s, (size_t)host->take, &offer, ERR));
    atomic_store(&host->ready, 1);
    for (;;)
        pause();
}

static void run_host(struct host *host)
{
    pid_t pid = host_fork(start_and_wait_to_be_killed, host);

    CHECK(AWAIT(atomic_load(&host->ready) == 1, 10000));
    host_kill(pid);
}

TEST(offered_and_not_acknowledged_comes_again_marked)
{
    struct host *host = shared_memory(sizeof *host);
    struct heard heard = {.count = 0};

    host->take = 2;
    run_host(host);
    nacre_session *s = open_tool(NULL);
    CHECK_EQ_INT(3, hear(s, &heard));
    for (int i = 0; i < 3; i++) {
        CHECK_EQ_INT(1, times_heard(&heard, &host->ids[i]));
        CHECK_TEXT(status_of(s, &host->ids[i]), "exited(4)");
    }
    CHECK_EQ_INT(2, heard.repeated[0] + heard.repeated[1] + heard.repeated[2]);
    CHECK_EQ_INT(0, hear(s, &heard));
    close_session(s);
    s = open_tool(NULL);
    CHECK_EQ_INT(0, hear(s, &heard));
    close_session(s);
}

static int hear_at(const char *cwd, const char *name)
{
    struct heard heard = {.count = 0};
    nacre_session *s = open_at(cwd, name);
    int count = hear(s, &heard);

    for (int i = 0; i < count; i++)
        CHECK_EQ_INT(0, heard.repeated[i]);
    close_session(s);
    return count;
}

TEST(they_are_claimed_in_the_same_directory)
{
    struct host *host = shared_memory(sizeof *host);

    host->cwd = "/usr";
    host->name = "painter";
    run_host(host);
    CHECK_EQ_INT(0, hear_at("/", ""));
    CHECK_EQ_INT(0, hear_at(NULL, "plumber"));
    CHECK_EQ_INT(3, hear_at("/usr", "plumber"));
    CHECK_EQ_INT(0, hear_at("/usr", "plumber"));
    CHECK_EQ_INT(0, hear_at("/usr", "painter"));
}

TEST(they_are_claimed_under_the_same_name)
{
    struct host *host = shared_memory(sizeof *host);

    host->cwd = "/usr";
    host->name = "painter";
    run_host(host);
    CHECK_EQ_INT(0, hear_at("/", ""));
    setenv("NACRE_SESSION", "painter", 1);
    CHECK_EQ_INT(0, hear_at("/", ""));
    CHECK_EQ_INT(3, hear_at("/", NULL));
    CHECK_EQ_INT(0, hear_at("/", NULL));
}

TEST(no_name_is_not_a_name)
{
    struct host *host = shared_memory(sizeof *host);

    host->cwd = "/usr";
    host->name = "";
    run_host(host);
    CHECK_EQ_INT(0, hear_at("/", ""));
    CHECK_EQ_INT(3, hear_at("/usr", ""));
}

TEST(a_person_takes_nothing_from_tools)
{
    struct host *host = shared_memory(sizeof *host);
    struct heard heard = {.count = 0};

    run_host(host);
    nacre_session *person = open_session();
    CHECK_EQ_INT(0, hear(person, &heard));
    close_session(person);
    CHECK_EQ_INT(3, hear_at(NULL, NULL));
}

/* Closed properly, in a process that lives on, and with what the close itself ended. */
TEST(a_closed_session_leaves_them_too)
{
    struct heard heard = {.count = 0};
    nacre_session *s = open_tool(NULL);
    nacre_id ended = start_background(s, "exit 1"), running = start_background(s, "sleep 300");

    wait_outcome(s, &ended, 5000);
    close_session(s);
    s = open_tool(NULL);
    CHECK_EQ_INT(2, hear(s, &heard));
    CHECK_EQ_INT(1, times_heard(&heard, &ended));
    CHECK_EQ_INT(1, times_heard(&heard, &running));
    CHECK_TEXT(status_of(s, &running), "killed");
    close_session(s);
}

static void start_and_wait(void *arg)
{
    struct host *host = arg;
    nacre_session *s = open_tool(NULL);

    host->ids[0] = start_background(s, "trap '' TERM; echo ready; while :; do sleep 0.05; done");
    CHECK(AWAIT(output_has(s, &host->ids[0], NACRE_OUT, "ready"), 5000));
    atomic_store(&host->ready, 1);
    for (;;)
        pause();
}

/* The next session looks while what the last one left is still being ended. */
TEST(what_ends_after_the_first_look_is_heard_too)
{
    struct host *host = shared_memory(sizeof *host);
    struct heard heard = {.count = 0};
    pid_t pid = host_fork(start_and_wait, host);

    CHECK(AWAIT(atomic_load(&host->ready) == 1, 10000));
    host_kill(pid);
    nacre_session *s = open_tool(NULL);
    CHECK_EQ_INT(0, hear(s, &heard));
    hear_by_fd(s, &heard, 1, 6000);
    check_heard(&heard, 0, &host->ids[0], 0);
    /* The news is of the command; its child may be gone a moment later. */
    CHECK(AWAIT(strcmp(status_of(s, &host->ids[0]), "killed") == 0, 2000));
    CHECK_EQ_INT(0, hear(s, &heard));
    close_session(s);
}

static void claim_when_told(void *arg)
{
    struct host *host = arg;
    struct heard heard = {.count = 0};
    nacre_session *s = open_tool(NULL);

    atomic_fetch_add(&host->ready, 1);
    while (atomic_load(&host->ready) < 100)
        pause_ms(0);
    hear(s, &heard);
    for (int i = 0; i < heard.count; i++) {
        CHECK_EQ_INT(0, heard.repeated[i]);
        atomic_fetch_add((atomic_int *)&host->take, 1);
    }
    close_session(s);
}

TEST(of_two_claimers_one_gets_each)
{
    for (int round = 0; round < 5; round++) {
        struct host *host = shared_memory(sizeof *host), *claims = shared_memory(sizeof *claims);
        run_host(host);
        pid_t claimers[2];
        for (int i = 0; i < 2; i++)
            claimers[i] = host_fork(claim_when_told, claims);
        CHECK(AWAIT(atomic_load(&claims->ready) == 2, 5000));
        atomic_store(&claims->ready, 100);
        for (int i = 0; i < 2; i++)
            host_join(claimers[i]);
        CHECK_EQ_INT(3, claims->take);
    }
}

/* -- Many ------------------------------------------------------------------------------------ */

static int64_t own_rss_kb(void)
{
    return process_rss_kb(getpid());
}

TEST_LIMIT(hundreds_that_nobody_heard, 120)
{
    enum { AT_ONCE = 25 };
    const int MANY = rounds(long_tests() ? 1000 : 400);
    const char *settings[] = {"shells=2000", NULL};
    nacre_session *s = open_tool(settings);
    struct heard *heard = calloc(1, sizeof *heard);
    nacre_id *ids = calloc((size_t)MANY, sizeof *ids);
    const char *argv[] = {"/bin/true", NULL};
    nacre_command command = NACRE_COMMAND_INIT;
    int64_t before = 0;

    CHECK(heard && ids);
    command.argv = argv;
    command.background = 1;
    for (int i = 0; i < MANY; i++) {
        ids[i] = start_command(s, &command);
        if (i % AT_ONCE == 0)
            wait_outcome(s, &ids[i], 10000);
        if (i == MANY / 10)
            before = own_rss_kb();
    }
    CHECK(AWAIT(counts_of(s).running == 0, 20000));
    CHECK_EQ_INT(MANY, counts_of(s).completions);
    CHECK_EQ_INT(32, counts_of(s).finished);
    CHECK(sanitized() || own_rss_kb() < before + 2048);
    CHECK_EQ_INT(MANY, hear(s, heard));
    for (int i = 0; i < MANY; i++)
        CHECK_EQ_INT(1, times_heard(heard, &ids[i]));
    CHECK_EQ_INT(0, counts_of(s).completions);
    CHECK_EQ_INT(0, hear(s, heard));
    free(heard);
    free(ids);
    close_session(s);
}

/* More sessions than one look can hold, each of which left one. */
TEST_LIMIT(of_many_sessions, 60)
{
    enum { SESSIONS = 260 };
    struct heard *heard = calloc(1, sizeof *heard);

    CHECK(heard);
    for (int i = 0; i < SESSIONS; i++) {
        nacre_options options = NACRE_OPTIONS_INIT;
        options.single = 1;
        nacre_session *s = open_options(&options);
        start_background(s, "true");
        close_session(s);
    }
    nacre_session *s = open_tool(NULL);
    CHECK(AWAIT(heard_all(s, heard, SESSIONS), 5000));
    CHECK_EQ_INT(SESSIONS, heard->count);
    close_session(s);
    free(heard);
}

/* -- A catalog that is lost ------------------------------------------------------------------ */

static void damage_catalog(int kind)
{
    static const char garbage[] = "this was never a database, and it will not become one\n";
    const char *path = format("%s/catalog.db", test_home());

    CHECK_EQ_INT(0, access(path, F_OK));
    unlink(format("%s-wal", path));
    unlink(format("%s-shm", path));
    if (kind == 0)
        CHECK_EQ_INT(0, unlink(path));
    else
        spit(path, garbage, sizeof garbage);
}

/* The home has to be one that nobody has open: what SQLite holds mapped must not be cut. */
static void check_later_session(int kind)
{
    struct host *host = shared_memory(sizeof *host);
    struct heard heard = {.count = 0};

    run_host(host);
    damage_catalog(kind);
    nacre_session *s = open_tool(NULL);
    CHECK_EQ_INT(3, hear(s, &heard));
    CHECK_EQ_INT(0, hear(s, &heard));
    close_session(s);
    damage_catalog(kind);
    s = open_tool(NULL);
    CHECK_EQ_INT(0, hear(s, &heard));
    close_session(s);
}

TEST(a_deleted_catalog_and_a_later_session)
{
    check_later_session(0);
}

TEST(a_catalog_of_garbage_and_a_later_session)
{
    check_later_session(1);
}

TEST(a_catalog_deleted_under_a_session)
{
    nacre_session *s = open_tool(NULL);
    struct heard heard = {.count = 0};
    nacre_id told = start_background(s, "true");

    CHECK(AWAIT(heard_all(s, &heard, 1), 5000));
    nacre_id ended = start_background(s, "true"), running = start_held(s, "read x");
    CHECK(AWAIT(counts_of(s).completions == 1, 5000));
    damage_catalog(0);
    release_shell(s, &running);
    CHECK(AWAIT(heard_all(s, &heard, 3), 5000));
    CHECK_EQ_INT(0, hear(s, &heard));
    CHECK_EQ_INT(1, times_heard(&heard, &told));
    CHECK_EQ_INT(1, times_heard(&heard, &ended));
    CHECK_EQ_INT(1, times_heard(&heard, &running));
    CHECK_EQ_INT(0, counts_of(s).completions);
    close_session(s);
}

TEST(a_catalog_deleted_between_offer_and_acknowledgement)
{
    nacre_session *s = open_tool(NULL);
    struct heard heard = {.count = 0};
    nacre_offer *offer;

    start_background(s, "true");
    CHECK(AWAIT(counts_of(s).completions == 1, 5000));
    CHECK_EQ_INT(1, nacre_offer_take(s, 0, &offer, ERR));
    damage_catalog(0);
    CHECK_OK(nacre_offer_acknowledge(offer, ERR));
    CHECK_EQ_INT(0, hear(s, &heard));
    close_session(s);
    CHECK_EQ_INT(0, hear_at(NULL, NULL));
}

/* -- A command that would rather not be heard of ------------------------------------------------
 */

/* Before anybody looks: the directory of the next shell is there already, and a command can write
 * in it. */
TEST(a_shell_that_says_that_it_was_told)
{
    nacre_session *s = open_tool(NULL);
    struct heard heard = {.count = 0};

    struct run run = run_text(s, "cd \"$NACRE_HOME/runs\"; until [ $(ls | wc -l) -gt 1 ]; do "
                                 "sleep 0.02; done; for d in *; do : >$d/told; done");
    run_done(&run);
    nacre_id id = start_background(s, "exit 4");
    CHECK(AWAIT(heard_all(s, &heard, 1), 5000));
    check_heard(&heard, 0, &id, 0);
    CHECK_EQ_INT(0, hear(s, &heard));
    close_session(s);
}

/* What it leaves takes the word back that its end was told. */
TEST(a_shell_that_says_that_it_was_not_told)
{
    nacre_session *s = open_tool(NULL);
    struct heard heard = {.count = 0};
    nacre_id id =
        start_background(s, format("(%s sh -c 'until [ -e go ]; do sleep 0.02; done; rm -f "
                                   "\"$NACRE_HOME/runs/$NACRE_ID/told\"' >/dev/null 2>&1 &)",
                                   own_session()));

    CHECK(AWAIT(heard_all(s, &heard, 1), 5000));
    CHECK_TEXT(status_of(s, &id), "exited(0), lingering");
    spit("go", "", 0);
    CHECK(AWAIT(tree_empty(s, &id), 5000));
    CHECK_EQ_INT(0, hear(s, &heard));
    CHECK_EQ_INT(0, counts_of(s).completions);
    close_session(s);
    CHECK_EQ_INT(0, hear_at(NULL, NULL));
}

/* Somebody holds the catalog for longer than anybody waits for it. */
TEST(a_catalog_that_was_busy_when_the_shell_ended)
{
    nacre_session *s = open_tool(NULL);
    struct heard heard = {.count = 0};
    nacre_id id = start_held(s, "read x; exit 8");

    if (!have_program("sqlite3"))
        SKIP("there is no sqlite3");
    nacre_session *other = open_at("/", "");
    nacre_id holder = start_text(
        other, format("(echo 'BEGIN IMMEDIATE; SELECT 1;'; sleep 300) | sqlite3 %s/catalog.db",
                      test_home()));
    CHECK(AWAIT(output_has(other, &holder, NACRE_OUT, "1"), 5000));
    release_shell(s, &id);
    wait_outcome(s, &id, 5000);
    CHECK(AWAIT(counts_of(s).running == 0, 5000));
    nacre_offer *offer;
    (void)nacre_offer_take(s, 0, &offer, ERR);
    CHECK(!offer);
    kill_shell(other, &holder, 0);
    CHECK(AWAIT(heard_all(s, &heard, 1), 5000));
    check_heard(&heard, 0, &id, 0);
    CHECK_EQ_INT(0, hear(s, &heard));
    close_session(other);
    close_session(s);
}
