/* What is removed from a home, when, and what never is. */
#include "harness/harness.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run/state.h"

enum { DAY_S = 24 * 3600, BIG = 700 * 1024, MIB = 1024 * 1024 };

static nacre_gc_result collect(nacre_session *s, int dry_run)
{
    nacre_gc_options options = NACRE_GC_OPTIONS_INIT;
    nacre_gc_result result = NACRE_GC_RESULT_INIT;

    options.dry_run = dry_run;
    CHECK_OK(nacre_gc(s, &options, NULL, NULL, &result, ERR));
    return result;
}

static bool is_there(const nacre_id *id)
{
    return access(run_path(id, ""), F_OK) == 0;
}

/* A shell that printed so much, and is over. */
static nacre_id print(nacre_session *s, const char *text)
{
    nacre_id id = start_background(s, text);

    wait_outcome(s, &id, 10000);
    CHECK(AWAIT(tree_empty(s, &id), 5000));
    return id;
}

static nacre_id print_big(nacre_session *s)
{
    return print(s, format("head -c %d /dev/zero", BIG));
}

static void tell(nacre_session *s, const nacre_id *id)
{
    CHECK_OK(nacre_mark_read(s, id, UINT64_MAX, 1, ERR));
}

/* Says that it ended so many days ago, as a run that was really left alone for that long would. */
static void age(const nacre_id *id, int days)
{
    struct run_state state;
    int fd = open(run_path(id, "state"), O_RDWR | O_CLOEXEC);

    CHECK(fd >= 0);
    CHECK_EQ_INT(0, state_read(fd, &state));
    int64_t shift = (int64_t)days * DAY_S * 1000000000;
    state.started_ns -= shift;
    state.exited_ns -= shift;
    state.empty_ns -= shift;
    CHECK_EQ_INT(0, state_write(fd, &state));
    close(fd);
}

static void forget_catalog(void)
{
    const char *path = format("%s/catalog.db", test_home());

    unlink(path);
    unlink(format("%s-wal", path));
    unlink(format("%s-shm", path));
}

struct gone {
    nacre_id ids[16];
    int count;
    uint64_t bytes;
    int64_t ended_ms;
};

static void note_gone(const nacre_id *id, uint64_t bytes, int64_t ended_ms, void *arg)
{
    struct gone *gone = arg;

    CHECK(gone->count < 16);
    CHECK(ended_ms >= gone->ended_ms);
    gone->ids[gone->count++] = *id;
    gone->bytes += bytes;
    gone->ended_ms = ended_ms;
}

/* -- By age ---------------------------------------------------------------------------------- */

TEST(too_old_ones_go)
{
    nacre_session *s = open_tool((const char *[]){"home_days=3", NULL});
    nacre_id old = print(s, "echo old"), older = print(s, "echo older"), fresh = print(s, "true");
    struct gone gone = {.count = 0};
    nacre_gc_options options = NACRE_GC_OPTIONS_INIT;
    nacre_gc_result result = NACRE_GC_RESULT_INIT;

    close_session(s);
    age(&old, 4);
    age(&older, 10);
    age(&fresh, 2);
    forget_catalog();
    s = open_tool((const char *[]){"home_days=3", NULL});
    options.dry_run = 1;
    CHECK_OK(nacre_gc(s, &options, note_gone, &gone, &result, ERR));
    CHECK_EQ_INT(2, result.removed);
    CHECK_EQ_INT(1, result.kept);
    CHECK_EQ_INT(2, gone.count);
    CHECK(nacre_id_equal(&gone.ids[0], &older) && nacre_id_equal(&gone.ids[1], &old));
    CHECK(is_there(&old) && is_there(&older) && is_there(&fresh));

    gone = (struct gone){.count = 0};
    options.dry_run = 0;
    CHECK_OK(nacre_gc(s, &options, note_gone, &gone, &result, ERR));
    CHECK_EQ_INT(2, result.removed);
    CHECK_EQ_INT(2, gone.count);
    CHECK(!is_there(&old) && !is_there(&older) && is_there(&fresh));
    CHECK_EQ_INT(0, collect(s, 0).removed);
    nacre_record record = NACRE_RECORD_INIT;
    CHECK_CODE(NACRE_ENOTFOUND, nacre_get(s, &old, &record, ERR));
    close_session(s);
}

/* -- By size --------------------------------------------------------------------------------- */

TEST(the_oldest_go_until_the_home_is_small_enough)
{
    nacre_session *s = open_tool((const char *[]){"home_quota=1MiB", NULL});
    nacre_id ids[3];
    struct gone gone = {.count = 0};
    nacre_gc_result result = NACRE_GC_RESULT_INIT;

    for (int i = 0; i < 3; i++) {
        ids[i] = print_big(s);
        tell(s, &ids[i]);
    }
    result = collect(s, 1);
    CHECK_EQ_INT(2, result.removed);
    CHECK(is_there(&ids[0]) && is_there(&ids[1]) && is_there(&ids[2]));
    CHECK_OK(nacre_gc(s, NULL, note_gone, &gone, &result, ERR));
    CHECK_EQ_INT(2, result.removed);
    CHECK_EQ_INT(1, result.kept);
    CHECK_RANGE(2 * BIG, result.removed_bytes, 2 * BIG + 65536);
    CHECK_RANGE(BIG, result.kept_bytes, BIG + 262144); /* with the catalog */
    CHECK_EQ_INT(result.removed_bytes, gone.bytes);
    CHECK(nacre_id_equal(&gone.ids[0], &ids[0]) && nacre_id_equal(&gone.ids[1], &ids[1]));
    CHECK(!is_there(&ids[0]) && !is_there(&ids[1]) && is_there(&ids[2]));
    CHECK_EQ_INT(1, counts_of(s).finished);
    close_session(s);
}

/* What all of a home takes of the disk, as du(1) counts. */
static uint64_t blocks;

static int add_blocks(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)path;
    (void)kind;
    (void)ftw;
    blocks += (uint64_t)st->st_blocks * 512;
    return 0;
}

static uint64_t home_size(void)
{
    blocks = 0;
    CHECK_EQ_INT(0, nftw(test_home(), add_blocks, 16, FTW_PHYS));
    return blocks;
}

static int64_t home_runs(void)
{
    struct stat st;

    CHECK_EQ_INT(0, stat(format("%s/runs", test_home()), &st));
    return (int64_t)st.st_nlink - 2;
}

/* By sessions of one command each, as on a command line. */
static void run_many(const char *const *settings, int count, const char *text)
{
    for (int i = 0; i < count; i++) {
        nacre_session *s = open_tool(settings);
        struct run run = run_text(s, text);
        run_done(&run);
        close_session(s);
    }
}

/* What is collected is what was said before, and then the home is small enough. */
static void check_collection(void)
{
    nacre_session *s = open_tool((const char *[]){"home_quota=1MiB", NULL});
    nacre_gc_result told = collect(s, 1);
    CHECK(home_size() > MIB);
    nacre_gc_result done = collect(s, 0);

    CHECK_RANGE(told.removed, done.removed, told.removed + 2);
    CHECK_EQ_INT(told.removed + told.kept, done.removed + done.kept);
    CHECK(done.kept > 0);
    CHECK_RANGE(MIB / 2, home_size(), MIB);
    CHECK_RANGE(home_size() / 2, done.kept_bytes, MIB);
    CHECK_EQ_INT(0, collect(s, 0).removed);
    close_session(s);
}

TEST_LIMIT(runs_that_print_nothing_take_room_too, 60)
{
    const char *settings[] = {"home_quota=1GiB", NULL};

    run_many(settings, 120, "true");
    CHECK(home_size() > 3 * MIB / 2);
    check_collection();
    /* The same in one session, which has one log for all. */
    nacre_session *s = open_tool(settings);
    for (int i = 0; i < 60; i++) {
        struct run run = run_text(s, "true");
        run_done(&run);
    }
    close_session(s);
    check_collection();
}

TEST(texts_and_environments_take_room_too)
{
    nacre_session *s = open_tool((const char *[]){"home_quota=1GiB", NULL});
    static char text[200000], variable[100000];
    const char *env[] = {variable, NULL};
    nacre_command command = NACRE_COMMAND_INIT;

    memset(text, ' ', sizeof(text) - 1);
    memset(variable, 'x', sizeof(variable) - 1);
    memcpy(variable, "LONG=", 5);
    command.text = text;
    command.env = env;
    for (int i = 0; i < 6; i++) {
        struct run run = run_command(s, &command);
        run_done(&run);
    }
    close_session(s);
    check_collection();
}

/* Not only when an hour is over: there may be a lot by then. */
TEST_LIMIT(a_close_collects_when_many_have_come, 60)
{
    run_many((const char *[]){"home_quota=1MiB", NULL}, 260, "true");
    CHECK_RANGE(10, home_runs(), 200);
    CHECK(home_size() < 5 * MIB);
}

static void set_time(const char *path, int days_ago)
{
    struct timespec times[2];

    clock_gettime(CLOCK_REALTIME, &times[0]);
    times[0].tv_sec -= (time_t)days_ago * DAY_S;
    times[1] = times[0];
    CHECK_EQ_INT(0, utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW));
}

/* Whether it is over cannot be said; that nothing has come of it for long can. */
TEST(damaged_ones_go_when_nothing_comes_any_more)
{
    const char *settings[] = {"home_quota=1MiB", NULL},
               *files[] = {"spec", "log", "spans", "state"};
    nacre_session *s = open_tool(settings);
    nacre_id old = print_big(s), fresh = print_big(s), good = print(s, "echo good");
    nacre_id running = start_background(s, format("head -c %d /dev/zero; echo; sleep 300", BIG));

    CHECK(AWAIT(output_has(s, &running, NACRE_OUT, "\n"), 5000));
    spit(run_path(&old, "state"), "garbage", 7);
    spit(run_path(&fresh, "state"), "garbage", 7);
    forget_catalog();
    for (int i = 0; i < 4; i++)
        set_time(run_path(&old, files[i]), 2);
    nacre_gc_result result = collect(s, 1);
    CHECK(is_there(&old));
    CHECK(result.removed >= 1);
    collect(s, 0);
    CHECK(!is_there(&old) && is_there(&fresh) && is_there(&running) && !is_there(&good));
    kill_shell(s, &running, 0);
    close_session(s);
}

TEST(catalogs_that_were_set_aside_go_first)
{
    nacre_session *s = open_tool((const char *[]){"home_quota=1MiB", NULL});
    nacre_id id = print(s, "echo hi");
    const char *aside = format("%s/catalog.db.damaged-1", test_home());
    char *data = calloc(1, 2 * MIB);

    CHECK(data);
    spit(aside, data, 2 * MIB);
    free(data);
    CHECK_EQ_INT(0, collect(s, 1).removed);
    CHECK_EQ_INT(0, access(aside, F_OK));
    CHECK_EQ_INT(0, collect(s, 0).removed);
    CHECK(access(aside, F_OK) < 0);
    CHECK(is_there(&id));
    close_session(s);
}

TEST(what_nobody_heard_of_goes_last)
{
    nacre_session *s = open_tool((const char *[]){"home_quota=1MiB", NULL});
    nacre_id untold = print_big(s), told = print_big(s);

    tell(s, &told);
    CHECK_EQ_INT(1, collect(s, 0).removed);
    CHECK(is_there(&untold) && !is_there(&told));
    nacre_id newer = print_big(s);
    CHECK_EQ_INT(1, collect(s, 0).removed);
    CHECK(!is_there(&untold) && is_there(&newer));
    CHECK(AWAIT(counts_of(s).running == 0, 5000));
    CHECK_EQ_INT(1, counts_of(s).completions);
    close_session(s);
}

TEST(what_runs_or_lingers_stays)
{
    nacre_session *s = open_tool((const char *[]){"home_quota=1MiB", NULL});
    nacre_id running = start_background(s, format("head -c %d /dev/zero; echo; sleep 300", BIG));
    nacre_id lingering = start_background(
        s, format("head -c %d /dev/zero; %s sleep 300 & exit 0", BIG, own_session()));

    wait_outcome(s, &lingering, 5000);
    tell(s, &lingering);
    CHECK(AWAIT(output_has(s, &running, NACRE_OUT, "\n"), 5000));
    nacre_gc_result result = collect(s, 0);
    CHECK_EQ_INT(0, result.removed);
    CHECK_EQ_INT(2, result.kept);
    CHECK(is_there(&running) && is_there(&lingering));
    kill_shell(s, &lingering, 0);
    CHECK_EQ_INT(1, collect(s, 0).removed);
    CHECK(is_there(&running) && !is_there(&lingering));
    CHECK_TEXT(status_of(s, &running), "running");
    close_session(s);
}

/* In the foreground, killed by a close, and after a crash: nobody has told the catalog. */
TEST(what_ended_unheard_is_collected)
{
    const char *settings[] = {"home_quota=1MiB", NULL};
    nacre_session *s = open_tool(settings);
    nacre_id killed = start_background(s, format("head -c %d /dev/zero; echo; sleep 300", BIG));

    CHECK(AWAIT(output_has(s, &killed, NACRE_OUT, "\n"), 5000));
    CHECK_EQ_INT(1, collect(s, 1).kept);
    close_session(s);
    s = open_tool(settings);
    struct run run = run_text(s, format("head -c %d /dev/zero", BIG));
    nacre_gc_result result = collect(s, 0);
    CHECK_EQ_INT(1, result.removed);
    CHECK_EQ_INT(1, result.kept);
    CHECK(is_there(&killed) != is_there(&run.record.id));
    run_done(&run);
    close_session(s);
}

/* -- What is not nacre's --------------------------------------------------------------------- */

TEST(foreign_files_stay)
{
    const char *settings[] = {"home_days=1", NULL};
    nacre_session *s = open_tool(settings);
    nacre_id id = print(s, "echo hi"), mixed = print(s, "echo hi");

    close_session(s);
    spit(format("%s/letter", test_home()), "x", 1);
    spit(format("%s/runs/letter", test_home()), "x", 1);
    CHECK_EQ_INT(0, mkdir(format("%s/runs/0123", test_home()), 0700));
    CHECK_EQ_INT(0, mkdir(format("%s/runs/%032d", test_home(), 0), 0700));
    spit(format("%s/runs/%032d/letter", test_home(), 0), "x", 1);
    spit(run_path(&mixed, "letter"), "x", 1);
    age(&id, 5);
    age(&mixed, 5);
    forget_catalog();
    s = open_tool(settings);
    collect(s, 0);
    CHECK(!is_there(&id));
    CHECK_EQ_INT(0, access(format("%s/letter", test_home()), F_OK));
    CHECK_EQ_INT(0, access(format("%s/runs/letter", test_home()), F_OK));
    CHECK_EQ_INT(0, access(format("%s/runs/0123", test_home()), F_OK));
    CHECK_EQ_INT(0, access(format("%s/runs/%032d/letter", test_home(), 0), F_OK));
    /* What is put into the directory of a shell goes with it. */
    CHECK(access(run_path(&mixed, ""), F_OK) < 0);
    close_session(s);
}

TEST(an_empty_home_has_nothing_to_collect)
{
    nacre_session *s = open_tool(NULL);
    nacre_gc_result result = collect(s, 0);

    CHECK_EQ_INT(0, result.removed);
    CHECK_EQ_INT(0, result.kept);
    CHECK(access(test_home(), F_OK) < 0);
    close_session(s);
}

/* -- Without a history ----------------------------------------------------------------------- */

static int count_runs(void)
{
    DIR *dir = opendir(format("%s/runs", test_home()));
    int count = 0;

    CHECK(dir);
    for (struct dirent *e; (e = readdir(dir));)
        count += strlen(e->d_name) == 32;
    closedir(dir);
    return count;
}

static nacre_id start_kept(nacre_session *s, const char *text)
{
    nacre_command command = NACRE_COMMAND_INIT;

    command.text = text;
    command.background = 1;
    command.lifetime = NACRE_LIFE_KEEP;
    return start_command(s, &command);
}

static int count_session(const nacre_session_info *info, void *arg)
{
    (void)info;
    ++*(int *)arg;
    return 0;
}

TEST(without_a_history_nothing_is_left)
{
    nacre_session *s = open_tool((const char *[]){"history=off", "audit=on", NULL});
    nacre_id id = print(s, "echo secret"), session = nacre_session_id(s);
    const char *log = format("%s/audit/%s.jsonl", test_home(), nacre_id_format(&session).s);
    int sessions = 0;

    start_background(s, "sleep 300");
    struct run run = run_text(s, "echo secret");
    CHECK_TEXT(run.out, "secret\n");
    run_done(&run);
    CHECK(output_has(s, &id, NACRE_OUT, "secret"));
    CHECK_EQ_INT(0, access(log, F_OK));
    close_session(s);
    CHECK_EQ_INT(0, count_runs());
    CHECK(access(log, F_OK) < 0);
    s = open_tool(NULL);
    nacre_offer *offer;
    CHECK_EQ_INT(0, nacre_offer_take(s, 0, &offer, ERR));
    CHECK_OK(nacre_list_sessions(s, count_session, &sessions, ERR));
    CHECK_EQ_INT(0, sessions);
    close_session(s);
}

TEST(without_a_history_kept_ones_stay)
{
    nacre_session *s = open_tool((const char *[]){"history=off", NULL});
    nacre_id kept = start_kept(s, "sleep 300");

    print(s, "echo secret");
    close_session(s);
    s = open_tool(NULL);
    CHECK_EQ_INT(0, collect(s, 0).removed);
    CHECK_EQ_INT(1, count_runs());
    CHECK_TEXT(status_of(s, &kept), "running");
    CHECK_OK(nacre_adopt(s, &kept, ERR));
    kill_shell(s, &kept, 0);
    close_session(s);
}

struct host {
    nacre_id id;
    nacre_id kept;
    atomic_int ready;
};

static void be_killed(void *arg)
{
    struct host *host = arg;
    nacre_session *s = open_tool((const char *[]){"history=off", NULL});

    struct run run = run_text(s, "echo secret");
    run_done(&run);
    print(s, "echo secret");
    host->id = start_background(s, "sleep 300");
    host->kept = start_kept(s, "sleep 300");
    atomic_store(&host->ready, 1);
    for (;;)
        pause();
}

TEST(without_a_history_and_killed)
{
    struct host *host = shared_memory(sizeof *host);
    pid_t pid = host_fork(be_killed, host);

    CHECK(AWAIT(atomic_load(&host->ready) == 1, 10000));
    nacre_session *person = open_session();
    CHECK_EQ_INT(0, collect(person, 0).removed);
    host_kill(pid);
    CHECK(AWAIT(tree_empty(person, &host->id), 10000));
    nacre_gc_result result = collect(person, 0);
    CHECK_EQ_INT(3, result.removed);
    CHECK_EQ_INT(1, result.kept);
    CHECK(is_there(&host->kept));
    kill_shell(person, &host->kept, 0);
    close_session(person);
}

/* Sessions do it by themselves, too. */
TEST(a_close_collects)
{
    const char *settings[] = {"home_days=3", NULL};
    nacre_session *s = open_tool(settings);
    nacre_id old = print(s, "echo old");

    close_session(s);
    age(&old, 4);
    forget_catalog();
    unlink(format("%s/collected", test_home()));
    s = open_tool(settings);
    nacre_id fresh = print(s, "true");
    close_session(s);
    CHECK(!is_there(&old));
    CHECK(is_there(&fresh));
}
