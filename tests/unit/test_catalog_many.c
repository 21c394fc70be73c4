/* Many at once: processes and threads that write, claim, die in the middle, find the same damage,
 * and fork. */
#include "catalogs.h"

#include <pthread.h>
#include <sqlite3.h>

#define WRITERS 8
#define ROWS    200

/* All begin when the test closes the other end. */
struct crowd {
    char path[PATH_MAX];
    int gate[2];
    uint32_t number;
    int report; /* where a child tells a result */
};

static void wait_for_gate(const struct crowd *crowd)
{
    char byte;
    close(crowd->gate[1]);
    EXPECT(read(crowd->gate[0], &byte, 1) == 0);
}

static struct catalog *open_in_child(const struct crowd *crowd)
{
    struct catalog *c = NULL;
    nacre_error err = NACRE_ERROR_INIT;
    int r = catalog_open(crowd->path, true, BUSY_MS, &c, &err);
    if (r < 0)
        fprintf(stderr, "%s\n", err.msg);
    EXPECT(r == 0);
    return c;
}

static void put_in_child(struct catalog *c, uint32_t number)
{
    struct catalog_run run = run_of(number, &runs_session);
    nacre_error err = NACRE_ERROR_INIT;
    int r = catalog_put_run(c, &run, &err);
    if (r < 0)
        fprintf(stderr, "%s\n", err.msg);
    EXPECT(r == 0);
}

/* Starts them, opens the gate, waits. */
static void run_crowd(struct crowd *crowd, int count, void (*fn)(void *data))
{
    pid_t pids[WRITERS];
    assert_int_equal(fd_pipe(crowd->gate), 0);
    for (int i = 0; i < count; i++) {
        crowd->number = (uint32_t)i;
        pids[i] = unit_fork(fn, crowd);
    }
    close(crowd->gate[0]);
    close(crowd->gate[1]);
    for (int i = 0; i < count; i++)
        assert_int_equal(unit_join(pids[i]), 0);
}

static void write_rows(void *data)
{
    struct crowd *crowd = data;
    wait_for_gate(crowd);
    struct catalog *c = open_in_child(crowd);
    for (uint32_t i = 0; i < ROWS; i++)
        put_in_child(c, crowd->number * ROWS + i);
    catalog_free(c, false);
}

static struct crowd crowd_at(const struct home_dir *home)
{
    struct crowd crowd;
    memcpy(crowd.path, home->path, sizeof crowd.path);
    return crowd;
}

static void assert_sound(const struct home_dir *home)
{
    char path[PATH_MAX + 16];
    sqlite3 *db;
    sqlite3_stmt *stmt;
    snprintf(path, sizeof path, "%s/" CATALOG_DB, home->path);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "PRAGMA integrity_check", -1, &stmt, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    assert_string_equal((const char *)sqlite3_column_text(stmt, 0), "ok");
    sqlite3_finalize(stmt);
    sqlite3_close(db);
}

/* Also the file is made by all of them at once. */
static void no_row_is_lost(void **state)
{
    (void)state;
    cleanup_home struct home_dir home = home_make();
    struct crowd crowd = crowd_at(&home);
    run_crowd(&crowd, WRITERS, write_rows);
    cleanup_catalog struct catalog *c = catalog_at(home.path, false);
    assert_int_equal(count_runs(c, NULL), WRITERS * ROWS);
    assert_sound(&home);
}

static int count_damaged(const char *name, void *userdata)
{
    if (strncmp(name, CATALOG_DAMAGED, strlen(CATALOG_DAMAGED)) == 0 && !strstr(name, "-wal") &&
        !strstr(name, "-shm"))
        ++*(int *)userdata;
    return 0;
}

static void the_same_damage_is_repaired_once(void **state)
{
    (void)state;
    cleanup_home struct home_dir home = home_make();
    struct crowd crowd = crowd_at(&home);
    int damaged = 0;
    runs_write(home.fd, CATALOG_DB, "all of them find this", 21);
    run_crowd(&crowd, WRITERS, write_rows);
    cleanup_catalog struct catalog *c = catalog_at(home.path, false);
    assert_int_equal(count_runs(c, NULL), WRITERS * ROWS);
    assert_int_equal(fd_walk(home.fd, count_damaged, &damaged), 0);
    assert_int_equal(damaged, 1);
    assert_sound(&home);
}

/* Says each number that was put, until it is killed. */
static void write_until_killed(void *data)
{
    struct crowd *crowd = data;
    wait_for_gate(crowd);
    struct catalog *c = open_in_child(crowd);
    for (uint32_t i = 0;; i++) {
        put_in_child(c, i);
        EXPECT(write(crowd->report, &i, sizeof i) == sizeof i);
    }
}

static void a_killed_writer_harms_nobody(void **state)
{
    (void)state;
    cleanup_home struct home_dir home = home_make();
    for (int round = 0; round < 20; round++) {
        struct crowd crowd = crowd_at(&home);
        int pipe_fds[2];
        uint32_t said = 0, put = 0;
        assert_int_equal(fd_pipe(pipe_fds), 0);
        assert_int_equal(fd_pipe(crowd.gate), 0);
        crowd.report = pipe_fds[1];
        pid_t pid = unit_fork(write_until_killed, &crowd);
        close(crowd.gate[0]);
        close(crowd.gate[1]);
        close(pipe_fds[1]);
        while (said < (uint32_t)(20 + round))
            assert_int_equal(read(pipe_fds[0], &said, sizeof said), sizeof said);
        kill(pid, SIGKILL);
        int status = unit_join(pid);
        assert_true(WIFSIGNALED(status));
        while (read(pipe_fds[0], &put, sizeof put) == sizeof put)
            said = put;
        close(pipe_fds[0]);
        struct catalog *after = catalog_at(home.path, true);
        assert_in_range(count_runs(after, NULL), said + 1, UINT32_MAX);
        struct catalog_run run = run_of(1000000 + (uint32_t)round, &runs_session);
        assert_int_equal(catalog_put_run(after, &run, NULL), 0);
        catalog_free(after, false);
    }
    assert_sound(&home);
}

/* -- One of many gets it ----------------------------------------------------------------------- */

static void claim_in_child(void *data)
{
    struct crowd *crowd = data;
    nacre_id ours = id_of(SESSION, 100 + crowd->number), dead = id_of(SESSION, 1);
    wait_for_gate(crowd);
    struct catalog *c = open_in_child(crowd);
    int n = catalog_claim(c, &ours, &dead, 1, NULL);
    EXPECT(n >= 0);
    EXPECT(write(crowd->report, &n, sizeof n) == sizeof n);
    catalog_free(c, false);
}

static void each_completion_has_one_owner(void **state)
{
    (void)state;
    cleanup_home struct home_dir home = home_make();
    struct catalog *c = catalog_at(home.path, true);
    nacre_id dead = id_of(SESSION, 1);
    for (uint32_t i = 0; i < 50; i++) {
        struct catalog_run run = run_of(i, &dead);
        assert_int_equal(catalog_put_run(c, &run, NULL), 0);
        assert_int_equal(catalog_owe(c, &run.id, &dead, NULL), 0);
    }
    catalog_free(c, false);
    struct crowd crowd = crowd_at(&home);
    int pipe_fds[2], n, claimed = 0;
    assert_int_equal(fd_pipe(pipe_fds), 0);
    crowd.report = pipe_fds[1];
    run_crowd(&crowd, WRITERS, claim_in_child);
    close(pipe_fds[1]);
    while (read(pipe_fds[0], &n, sizeof n) == sizeof n)
        claimed += n;
    close(pipe_fds[0]);
    assert_int_equal(claimed, 50);
}

/* Reading and writing are one step: each is offered to one of those that share a session. */
static void offer_in_child(void *data)
{
    struct crowd *crowd = data;
    nacre_id session = id_of(SESSION, 1), run;
    bool repeated;
    int n, total = 0;
    wait_for_gate(crowd);
    struct catalog *c = open_in_child(crowd);
    while ((n = catalog_offer(c, &session, &run, &repeated, 1, NULL)) == 1)
        total++;
    EXPECT(n == 0);
    EXPECT(write(crowd->report, &total, sizeof total) == sizeof total);
    catalog_free(c, false);
}

static void each_completion_is_offered_once(void **state)
{
    (void)state;
    cleanup_home struct home_dir home = home_make();
    struct catalog *c = catalog_at(home.path, true);
    nacre_id session = id_of(SESSION, 1);
    for (uint32_t i = 0; i < ROWS; i++) {
        struct catalog_run run = run_of(i, &session);
        run.outcome = NACRE_EXITED;
        assert_int_equal(catalog_put_run(c, &run, NULL), 0);
        assert_int_equal(catalog_owe(c, &run.id, &session, NULL), 0);
    }
    catalog_free(c, false);
    struct crowd crowd = crowd_at(&home);
    int pipe_fds[2], n, offered = 0;
    assert_int_equal(fd_pipe(pipe_fds), 0);
    crowd.report = pipe_fds[1];
    run_crowd(&crowd, WRITERS, offer_in_child);
    close(pipe_fds[1]);
    while (read(pipe_fds[0], &n, sizeof n) == sizeof n)
        offered += n;
    close(pipe_fds[0]);
    assert_int_equal(offered, ROWS);
}

/* -- Threads ----------------------------------------------------------------------------------- */

struct task {
    struct catalog *c;
    uint32_t number;
    int failures;
};

static void *write_in_thread(void *data)
{
    struct task *task = data;
    for (uint32_t i = 0; i < ROWS; i++) {
        struct catalog_run run = run_of(task->number * ROWS + i, &runs_session), *got = NULL;
        struct catalog_counts counts;
        task->failures += catalog_put_run(task->c, &run, NULL) != 0;
        task->failures += catalog_get_run(task->c, &run.id, &got, NULL) != 0;
        task->failures += catalog_counts(task->c, &runs_session, &counts, NULL) != 0;
        free(got);
    }
    return NULL;
}

static void threads_share_a_handle(void **state)
{
    (void)state;
    cleanup_home struct home_dir home = home_make();
    cleanup_catalog struct catalog *c = catalog_at(home.path, true);
    pthread_t threads[4];
    struct task tasks[4];
    for (uint32_t i = 0; i < 4; i++) {
        tasks[i] = (struct task){.c = c, .number = i};
        assert_int_equal(pthread_create(&threads[i], NULL, write_in_thread, &tasks[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(tasks[i].failures, 0);
    }
    assert_int_equal(count_runs(c, NULL), 4 * ROWS);
}

/* Some make runs known and read them, one compares rows with directories all the time. */
struct comparing {
    struct catalog *c;
    _Atomic(bool) over;
    int failures;
};

static void *compare_in_thread(void *data)
{
    struct comparing *comparing = data;
    while (!comparing->over)
        comparing->failures += catalog_sync(comparing->c, NULL) != 0;
    return NULL;
}

struct starting {
    struct catalog *c;
    int runs_fd;
    uint32_t number;
    int failures;
};

static void *start_in_thread(void *data)
{
    struct starting *starting = data;
    for (uint32_t i = 0; i < ROWS; i++) {
        nacre_id id = id_of(RUN, starting->number * ROWS + i);
        close(rundir_make(starting->runs_fd, &id, NACRE_EXITED, NACRE_TREE_EMPTY, true));
        starting->failures += catalog_refresh(starting->c, &id, NULL) != 0;
        starting->failures += catalog_set_read(starting->c, &id, 1, NULL) != 0;
    }
    return NULL;
}

static int count_read(const struct catalog_run *run, void *userdata)
{
    *(int *)userdata += run->read_to == 1;
    return 0;
}

/* A row that went and came back would have lost how far it was read. */
static void what_starts_meanwhile_is_not_gone(void **state)
{
    (void)state;
    cleanup_home struct home_dir home = home_make();
    cleanup_catalog struct catalog *c = catalog_at(home.path, true);
    struct comparing comparing = {.c = c};
    struct starting starting[4];
    int count = 0;
    pthread_t comparer, starters[4];
    assert_int_equal(pthread_create(&comparer, NULL, compare_in_thread, &comparing), 0);
    for (uint32_t i = 0; i < 4; i++) {
        starting[i] = (struct starting){.c = c, .runs_fd = home.runs, .number = i};
        assert_int_equal(pthread_create(&starters[i], NULL, start_in_thread, &starting[i]), 0);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(starters[i], NULL);
    comparing.over = true;
    pthread_join(comparer, NULL);
    for (int i = 0; i < 4; i++)
        assert_int_equal(starting[i].failures, 0);
    assert_int_equal(comparing.failures, 0);
    assert_int_equal(catalog_each_run(c, NULL, count_read, &count, NULL), 0);
    assert_int_equal(count, 4 * ROWS);
}

/* -- In the way -------------------------------------------------------------------------------- */

static void a_busy_catalog_is_said_and_nothing_changed(void **state)
{
    (void)state;
    cleanup_home struct home_dir home = home_make();
    struct catalog *c;
    char path[PATH_MAX + 16];
    sqlite3 *db;
    nacre_error err = NACRE_ERROR_INIT;
    struct catalog_run run = run_of(1, &runs_session);
    assert_int_equal(catalog_open(home.path, true, 20, &c, &err), 0);
    snprintf(path, sizeof path, "%s/" CATALOG_DB, home.path);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    int64_t before = clock_mono_ns();
    assert_int_equal(catalog_put_run(c, &run, &err), NACRE_EBUSY);
    assert_true(clock_mono_ns() - before >= 15 * NS_PER_MS);
    assert_non_null(strstr(err.msg, "another process"));
    /* Reading does not wait. */
    assert_int_equal(count_runs(c, NULL), 0);
    nacre_id offered[1];
    bool repeated[1];
    assert_int_equal(catalog_offer(c, &runs_session, offered, repeated, 1, NULL), 0);
    assert_int_equal(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    assert_int_equal(catalog_put_run(c, &run, &err), 0);
    catalog_free(c, false);
}

/* Who holds it for ever is waited for once, not by each call: in the best of a few tries nothing at
 * all passes. */
static void a_catalog_that_is_held_is_waited_for_once(void **state)
{
    (void)state;
    cleanup_home struct home_dir home = home_make();
    struct catalog *c;
    char path[PATH_MAX + 16];
    sqlite3 *db;
    struct catalog_run run = run_of(1, &runs_session);
    int64_t best = INT64_MAX;
    assert_int_equal(catalog_open(home.path, true, 100, &c, NULL), 0);
    snprintf(path, sizeof path, "%s/" CATALOG_DB, home.path);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
        int64_t before = clock_mono_ns();
        assert_int_equal(catalog_put_run(c, &run, NULL), NACRE_EBUSY);
        assert_true(clock_mono_ns() - before >= 90 * NS_PER_MS);
        for (int i = 0; i < 5; i++) {
            before = clock_mono_ns();
            assert_int_equal(catalog_put_run(c, &run, NULL), NACRE_EBUSY);
            best = MIN(best, clock_mono_ns() - before);
        }
        assert_true(best < 50 * NS_PER_MS);
        assert_int_equal(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
        /* Once it was to be had, it is worth waiting for again. */
        assert_int_equal(catalog_put_run(c, &run, NULL), 0);
    }
    sqlite3_close(db);
    catalog_free(c, false);
}

/* -- Forks ------------------------------------------------------------------------------------- */

struct forked {
    struct catalog *c;
    const char *path;
};

static void forget_in_child(void *data)
{
    struct forked *forked = data;
    struct catalog *c;
    nacre_error err = NACRE_ERROR_INIT;
    catalog_free(forked->c, true);
    /* SQLite believes that this process has the locks of its parent. */
    EXPECT(catalog_open(forked->path, true, BUSY_MS, &c, &err) == NACRE_EIO);
    EXPECT(strstr(err.msg, "forked"));
    EXPECT(catalog_open(forked->path, false, BUSY_MS, &c, &err) == 0);
    int count = 0;
    EXPECT(catalog_each_run(c, NULL, count_row, &count, &err) == 0);
    EXPECT(count == 1);
    catalog_free(c, false);
}

static void a_forked_child_leaves_it_alone(void **state)
{
    (void)state;
    cleanup_home struct home_dir home = home_make();
    nacre_id one = id_of(RUN, 1);
    close(rundir_make(home.runs, &one, NACRE_EXITED, NACRE_TREE_EMPTY, false));
    cleanup_catalog struct catalog *c = catalog_at(home.path, true);
    struct catalog_run run = run_of(2, &runs_session);
    assert_int_equal(catalog_put_run(c, &run, NULL), 0);
    struct forked forked = {.c = c, .path = home.path};
    unit_in_child(forget_in_child, &forked);
    assert_int_equal(faccessat(home.fd, CATALOG_DB "-wal", F_OK, 0), 0);
    assert_int_equal(count_runs(c, NULL), 2);
    run.id = id_of(RUN, 3);
    assert_int_equal(catalog_put_run(c, &run, NULL), 0);
    assert_sound(&home);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_row_is_lost),
        cmocka_unit_test(the_same_damage_is_repaired_once),
        cmocka_unit_test(a_killed_writer_harms_nobody),
        cmocka_unit_test(each_completion_has_one_owner),
        cmocka_unit_test(each_completion_is_offered_once),
        cmocka_unit_test(threads_share_a_handle),
        cmocka_unit_test(what_starts_meanwhile_is_not_gone),
        cmocka_unit_test(a_busy_catalog_is_said_and_nothing_changed),
        cmocka_unit_test(a_catalog_that_is_held_is_waited_for_once),
        cmocka_unit_test(a_forked_child_leaves_it_alone),
    };
    return cmocka_run_group_tests(tests, unit_setup, unit_teardown);
}
