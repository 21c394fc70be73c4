/* The catalog's file: new, old, newer, foreign, damaged, deleted, read-only, on a full disk. */
#include "catalogs.h"

#include <sched.h>
#include <sqlite3.h>
#include <sys/mount.h>

#include "catalog/schema.h"

#define FILES_MAX 16

static void path_of(const struct home_dir *home, const char *name, char ret_path[PATH_MAX + 256])
{
    snprintf(ret_path, PATH_MAX + 256, "%s/%s", home->path, name);
}

static sqlite3 *open_db(const struct home_dir *home)
{
    char path[PATH_MAX + 256];
    sqlite3 *db;
    path_of(home, CATALOG_DB, path);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    return db;
}

static void run_sql(const struct home_dir *home, const char *sql)
{
    sqlite3 *db = open_db(home);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static bool has(const struct home_dir *home, const char *name)
{
    return faccessat(home->fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

struct names {
    char list[FILES_MAX][NAME_MAX + 1];
    int count;
};

static int note_damaged(const char *name, void *userdata)
{
    struct names *names = userdata;
    size_t prefix = strlen(CATALOG_DAMAGED);
    if (strncmp(name, CATALOG_DAMAGED, prefix) == 0 && !strchr(name + prefix, '-'))
        snprintf(names->list[names->count++], NAME_MAX + 1, "%s", name);
    return 0;
}

/* The databases that were moved aside, without what belongs to them. */
static struct names damaged_files(const struct home_dir *home)
{
    struct names names = {.count = 0};
    assert_int_equal(fd_walk(home->fd, note_damaged, &names), 0);
    return names;
}

static size_t read_file(const struct home_dir *home, const char *name, char *buf, size_t size)
{
    int fd = openat(home->fd, name, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    ssize_t n = fd_read_all(fd, buf, size);
    close(fd);
    assert_true(n >= 0 && (size_t)n < size);
    return (size_t)n;
}

static void put_number(struct catalog *c, uint32_t number)
{
    struct catalog_run run = run_of(number, &runs_session);
    nacre_error err = NACRE_ERROR_INIT;
    if (catalog_put_run(c, &run, &err) != 0)
        fail_msg("%s", err.msg);
}

/* A catalog with some rows, all of it in its main file. */
static void fill(const struct home_dir *home)
{
    struct catalog *c = catalog_at(home->path, true);
    for (uint32_t i = 1; i <= 200; i++)
        put_number(c, i);
    catalog_free(c, false);
    run_sql(home, "PRAGMA wal_checkpoint(TRUNCATE); PRAGMA journal_mode = DELETE");
    run_sql(home, "PRAGMA journal_mode = WAL");
    assert_false(has(home, CATALOG_DB "-wal"));
}

/* -- Versions ---------------------------------------------------------------------------------- */

static const char *const test_steps[] = {
    "CREATE TABLE t (a INTEGER)",
    "ALTER TABLE t ADD COLUMN b INTEGER DEFAULT 5",
    "CREATE TABLE u (c INTEGER); INSERT INTO u SELECT a + b FROM t",
};

static int number_in(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *stmt;
    int value = -1;
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
    if (sqlite3_step(stmt) == SQLITE_ROW)
        value = sqlite3_column_int(stmt, 0);
    sqlite3_finalize(stmt);
    return value;
}

static void steps_are_taken_in_order(void **state)
{
    (void)state;
    struct schema schema = {.application_id = 1234, .version = 1, .steps = test_steps};
    enum schema_state found;
    sqlite3 *db;
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    assert_int_equal(schema_look(db, &schema, &found), SQLITE_OK);
    assert_int_equal(found, SCHEMA_EMPTY);
    assert_int_equal(schema_bring_up(db, &schema), SQLITE_OK);
    assert_int_equal(schema_look(db, &schema, &found), SQLITE_OK);
    assert_int_equal(found, SCHEMA_CURRENT);
    assert_int_equal(sqlite3_exec(db, "INSERT INTO t VALUES (2)", NULL, NULL, NULL), SQLITE_OK);
    schema.version = 3;
    assert_int_equal(schema_look(db, &schema, &found), SQLITE_OK);
    assert_int_equal(found, SCHEMA_OLDER);
    assert_int_equal(schema_bring_up(db, &schema), SQLITE_OK);
    assert_int_equal(number_in(db, "SELECT c FROM u"), 7);
    assert_int_equal(number_in(db, "PRAGMA user_version"), 3);
    assert_int_equal(number_in(db, "PRAGMA application_id"), 1234);
    /* Again it is nothing. */
    assert_int_equal(schema_bring_up(db, &schema), SQLITE_OK);
    assert_int_equal(number_in(db, "SELECT count(*) FROM u"), 1);
    schema.version = 2;
    assert_int_equal(schema_look(db, &schema, &found), SQLITE_OK);
    assert_int_equal(found, SCHEMA_NEWER);
    schema.application_id = 4321;
    assert_int_equal(schema_look(db, &schema, &found), SQLITE_OK);
    assert_int_equal(found, SCHEMA_FOREIGN);
    sqlite3_close(db);
}

static void a_step_that_fails_changes_nothing(void **state)
{
    (void)state;
    static const char *const broken[] = {"CREATE TABLE t (a INTEGER)",
                                         "CREATE TABLE v (a INTEGER); nonsense"};
    struct schema schema = {.application_id = 1234, .version = 1, .steps = broken};
    sqlite3 *db;
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    assert_int_equal(schema_bring_up(db, &schema), SQLITE_OK);
    schema.version = 2;
    assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    assert_int_not_equal(schema_bring_up(db, &schema), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(number_in(db, "PRAGMA user_version"), 1);
    assert_int_equal(number_in(db, "SELECT count(*) FROM sqlite_schema"), 1);
    sqlite3_close(db);
}

/* Who wants to write has this byte of it; nobody else is there yet, so that somebody has to put the
 * index in order, and cannot. */
static void hold_index(void *data)
{
    const struct home_dir *home = data;
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 120, .l_len = 1};
    int fd = openat(home->fd, CATALOG_DB "-shm", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    EXPECT(fd >= 0 && fcntl(fd, F_SETLK, &lock) == 0);
    EXPECT(mkdirat(home->fd, "held", 0700) == 0);
    pause();
}

static void held_before_it_is_open(void **state)
{
    (void)state;
    cleanup_home struct home_dir home = home_make();
    struct catalog *c = NULL;
    nacre_id session = id_of(1, 1);
    fill(&home);
    pid_t holder = unit_fork(hold_index, &home);
    while (!has(&home, "held"))
        unit_pause(1);
    int64_t began = clock_mono_ns();
    assert_int_equal(catalog_open(home.path, false, 100, &c, NULL), 0);
    for (int i = 0; i < 4; i++) {
        struct catalog_run run = run_of(7, &session);
        assert_int_equal(catalog_put_run(c, &run, NULL), NACRE_EBUSY);
        assert_true(count_runs(c, NULL) >= 0);
    }
    /* SQLite alone takes ten seconds for each. */
    assert_true(clock_mono_ns() - began < 8 * NS_PER_S);
    kill(holder, SIGKILL);
    waitpid(holder, NULL, 0);
    struct catalog_run run = run_of(7, &session);
    assert_int_equal(catalog_put_run(c, &run, NULL), 0);
    catalog_free(c, false);
}

/* Neither read nor written, and byte for byte as it was. */
static void assert_refused(const struct home_dir *home, const char *word)
{
    static char before[1 << 20], after[1 << 20];
    nacre_error err = NACRE_ERROR_INIT;
    struct catalog *c = NULL;
    size_t size = read_file(home, CATALOG_DB, before, sizeof before);
    for (int create = 0; create < 2; create++) {
        assert_int_equal(catalog_open(home->path, create, BUSY_MS, &c, &err), NACRE_EUNSUPPORTED);
        assert_non_null(strstr(err.msg, word));
        assert_null(c);
    }
    assert_int_equal(read_file(home, CATALOG_DB, after, sizeof after), size);
    assert_memory_equal(before, after, size);
    assert_int_equal(damaged_files(home).count, 0);
}

static void newer_and_foreign_files_are_refused(void **state)
{
    (void)state;
    cleanup_home struct home_dir newer = home_make(), foreign = home_make(), bare = home_make(),
                                 odd = home_make();
    fill(&newer);
    run_sql(&newer, "PRAGMA user_version = 99");
    run_sql(&newer, "PRAGMA journal_mode = DELETE");
    run_sql(&newer, "PRAGMA journal_mode = WAL");
    assert_refused(&newer, "newer");
    run_sql(&foreign, "PRAGMA application_id = 77; CREATE TABLE t (a)");
    assert_refused(&foreign, "no catalog");
    run_sql(&bare, "CREATE TABLE t (a)");
    assert_refused(&bare, "no catalog");
    fill(&odd);
    run_sql(&odd, "PRAGMA user_version = -1");
    assert_refused(&odd, "no catalog");
}

static void what_is_no_file_is_refused(void **state)
{
    (void)state;
    cleanup_home struct home_dir dir = home_make(), link = home_make();
    nacre_error err = NACRE_ERROR_INIT;
    struct catalog *c;
    assert_int_equal(mkdirat(dir.fd, CATALOG_DB, 0700), 0);
    assert_int_equal(catalog_open(dir.path, true, BUSY_MS, &c, &err), NACRE_EUNSUPPORTED);
    assert_int_equal(symlinkat("/etc/passwd", link.fd, CATALOG_DB), 0);
    assert_int_equal(catalog_open(link.path, true, BUSY_MS, &c, &err), NACRE_EUNSUPPORTED);
    assert_non_null(strstr(err.msg, "no file"));
}

/* A maker that died in the middle left an empty file, and what belonged to one before. */
static void an_empty_file_is_filled(void **state)
{
    (void)state;
    cleanup_home struct home_dir home = home_make();
    close(unit_file(home.fd, CATALOG_DB));
    cleanup_catalog struct catalog *c = catalog_at(home.path, false);
    put_number(c, 1);
    assert_int_equal(count_runs(c, NULL), 1);
    cleanup_home struct home_dir orphan = home_make();
    runs_write(orphan.fd, CATALOG_DB "-wal", "garbage", 7);
    runs_write(orphan.fd, CATALOG_DB "-shm", "garbage", 7);
    cleanup_catalog struct catalog *d = catalog_at(orphan.path, true);
    put_number(d, 1);
    assert_int_equal(count_runs(d, NULL), 1);
    assert_int_equal(damaged_files(&orphan).count, 0);
}

/* -- Without a file ---------------------------------------------------------------------------- */

static void reading_creates_nothing(void **state)
{
    (void)state;
    cleanup_home struct home_dir home = home_make();
    nacre_id one = id_of(RUN, 1), two = id_of(RUN, 2);
    close(rundir_make(home.runs, &one, NACRE_EXITED, NACRE_TREE_EMPTY, false));
    cleanup_catalog struct catalog *c = catalog_at(home.path, false);
    assert_int_equal(count_runs(c, NULL), 1);
    /* What changes is seen. */
    close(rundir_make(home.runs, &two, NACRE_RUNNING, NACRE_TREE_ALIVE, false));
    assert_int_equal(count_runs(c, NULL), 2);
    assert_int_equal(count_runs(c, &(struct catalog_filter){.state = CATALOG_OPEN}), 1);
    nacre_error err = NACRE_ERROR_INIT;
    struct catalog_run run = run_of(3, &runs_session);
    assert_int_equal(catalog_put_run(c, &run, &err), NACRE_ENOTFOUND);
    assert_non_null(strstr(err.msg, "no catalog"));
    assert_false(has(&home, CATALOG_DB) || has(&home, CATALOG_LOCK));
    /* Until it is allowed. */
    assert_int_equal(catalog_create(c, &err), 0);
    assert_true(has(&home, CATALOG_DB));
    put_number(c, 3);
    assert_int_equal(count_runs(c, NULL), 3);
}

static void a_home_that_does_not_exist(void **state)
{
    (void)state;
    cleanup_home struct home_dir home = home_make();
    char path[PATH_MAX + 256];
    nacre_error err = NACRE_ERROR_INIT;
    struct catalog *none;
    path_of(&home, "nowhere", path);
    cleanup_catalog struct catalog *c = catalog_at(path, false);
    assert_int_equal(count_runs(c, NULL), 0);
    assert_int_equal(catalog_open(path, true, BUSY_MS, &none, &err), NACRE_ENOTFOUND);
    assert_false(has(&home, "nowhere"));
}

/* SQLite does not open it; reading goes on without. */
static void a_long_path(void **state)
{
    (void)state;
    cleanup_home struct home_dir home = home_make();
    char path[PATH_MAX + 256], name[201];
    nacre_error err = NACRE_ERROR_INIT;
    struct catalog *none;
    memset(name, 'd', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    path_of(&home, name, path);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(mkdir(path, 0700), 0);
        size_t size = strlen(path);
        snprintf(path + size, sizeof path - size, "/%s", name);
    }
    *strrchr(path, '/') = '\0';
    assert_int_equal(catalog_open(path, true, BUSY_MS, &none, &err), NACRE_EIO);
    cleanup_catalog struct catalog *c = catalog_at(path, false);
    assert_int_equal(count_runs(c, NULL), 0);
    static char huge[PATH_MAX];
    memset(huge, '/', sizeof huge - 1);
    assert_int_equal(catalog_open(huge, true, BUSY_MS, &none, &err), NACRE_EINVAL);
}

/* Another process made it in the meantime. */
static void a_file_that_appears_is_used(void **state)
{
    (void)state;
    cleanup_home struct home_dir home = home_make();
    cleanup_catalog struct catalog *reader = catalog_at(home.path, false);
    assert_int_equal(count_runs(reader, NULL), 0);
    cleanup_catalog struct catalog *writer = catalog_at(home.path, true);
    put_number(writer, 1);
    assert_int_equal(count_runs(reader, NULL), 1);
    put_number(reader, 2);
    assert_int_equal(count_runs(writer, NULL), 2);
}

/* -- Rebuilding -------------------------------------------------------------------------------- */

static void what_directories_say(void **state)
{
    (void)state;
    cleanup_home struct home_dir home = home_make();
    nacre_id one = id_of(RUN, 1), two = id_of(RUN, 2), three = id_of(RUN, 3);
    close(rundir_make(home.runs, &one, NACRE_EXITED, NACRE_TREE_EMPTY, false));
    close(rundir_make(home.runs, &two, NACRE_RUNNING, NACRE_TREE_ALIVE, false));
    close(rundir_make(home.runs, &three, NACRE_EXITED, NACRE_TREE_ALIVE, false));
    /* Not runs, or damaged ones. */
    assert_int_equal(mkdirat(home.runs, nacre_id_format(&(nacre_id){{9}}).s, 0700), 0);
    assert_int_equal(mkdirat(home.runs, "other", 0700), 0);
    cleanup_catalog struct catalog *c = catalog_at(home.path, true);
    assert_int_equal(count_runs(c, NULL), 3);
    assert_int_equal(count_runs(c, &(struct catalog_filter){.state = CATALOG_OPEN}), 2);
    struct catalog_run *run;
    assert_int_equal(catalog_get_run(c, &one, &run, NULL), 0);
    assert_string_equal(run->command, "echo hello | cat");
    assert_string_equal(run->cwd, "/tmp");
    assert_string_equal(run->name, "a name");
    assert_true(nacre_id_equal(&run->session, &runs_session));
    assert_true(run->final && run->bytes == 123 && !run->owed && !run->background);
    assert_true(run->started_ms == 5000 && run->exited_ms == 6000);
    assert_non_null(run->state);
    assert_int_equal(run->state->exit_code, 7);
    free(run);
    assert_int_equal(catalog_get_run(c, &three, &run, NULL), 0);
    assert_true(!run->final && !run->state);
    free(run);
    struct catalog_session *session;
    assert_int_equal(catalog_get_session(c, &runs_session, &session, NULL), 0);
    assert_true(session->boot[0] == 42 && session->pid_ns == 99 && session->opened_ms == 5000);
    free(session);
}

/* A file where the directories were stands for whatever keeps them from being looked at. */
static void what_cannot_be_looked_at_is_still_owed(void **state)
{
    (void)state;
    cleanup_home struct home_dir home = home_make();
    nacre_id one = id_of(RUN, 1), runs[4];
    bool repeated[4];
    char path[PATH_MAX + 16], aside[PATH_MAX + 16];
    close(rundir_make(home.runs, &one, NACRE_EXITED, NACRE_TREE_EMPTY, true));
    cleanup_catalog struct catalog *c = catalog_at(home.path, true);
    snprintf(path, sizeof path, "%s/runs", home.path);
    snprintf(aside, sizeof aside, "%s/aside", home.path);
    assert_int_equal(rename(path, aside), 0);
    close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    assert_int_equal(catalog_refresh(c, &one, NULL), NACRE_EIO);
    assert_int_equal(catalog_offer(c, &runs_session, runs, repeated, 4, NULL), 1);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rename(aside, path), 0);
}

/* It is over and has no directory. */
static void put_removed(struct catalog *c, uint32_t number)
{
    struct catalog_run run = run_of(number, &runs_session);
    run.outcome = NACRE_EXITED;
    run.tree = NACRE_TREE_EMPTY;
    assert_int_equal(catalog_put_run(c, &run, NULL), 0);
}

static void new_and_gone_runs_are_taken_in(void **state)
{
    (void)state;
    cleanup_home struct home_dir home = home_make();
    cleanup_catalog struct catalog *c = catalog_at(home.path, true);
    nacre_id one = id_of(RUN, 1), two = id_of(RUN, 2);
    put_removed(c, 9);
    close(rundir_make(home.runs, &one, NACRE_RUNNING, NACRE_TREE_ALIVE, false));
    assert_int_equal(catalog_sync(c, NULL), 0);
    assert_int_equal(count_runs(c, NULL), 1);
    /* What it knows is not looked at again. */
    assert_int_equal(run_remove(home.runs, &one), 0);
    close(rundir_make(home.runs, &one, NACRE_EXITED, NACRE_TREE_EMPTY, false));
    close(rundir_make(home.runs, &two, NACRE_EXITED, NACRE_TREE_EMPTY, false));
    assert_int_equal(catalog_sync(c, NULL), 0);
    assert_int_equal(count_runs(c, &(struct catalog_filter){.state = CATALOG_OPEN}), 1);
    assert_int_equal(count_runs(c, &(struct catalog_filter){.state = CATALOG_FINAL}), 1);
    assert_int_equal(run_remove(home.runs, &one), 0);
    assert_int_equal(run_remove(home.runs, &two), 0);
    assert_int_equal(catalog_sync(c, NULL), 0);
    /* The catalog was not told that the one was over: its command may have taken it away. */
    assert_int_equal(count_runs(c, NULL), 1);
    assert_int_equal(count_runs(c, &(struct catalog_filter){.state = CATALOG_OPEN}), 1);
}

static void rebuilt_over_what_is_there(void **state)
{
    (void)state;
    cleanup_home struct home_dir home = home_make();
    nacre_id one = id_of(RUN, 1), two = id_of(RUN, 2);
    close(rundir_make(home.runs, &one, NACRE_RUNNING, NACRE_TREE_ALIVE, false));
    cleanup_catalog struct catalog *c = catalog_at(home.path, true);
    nacre_id owner = id_of(SESSION, 8);
    assert_int_equal(catalog_set_read(c, &one, 100, NULL), 0);
    assert_int_equal(catalog_set_owner(c, &one, &owner, NACRE_LIFE_SESSION, NULL), 0);
    put_removed(c, 2);
    assert_int_equal(run_remove(home.runs, &one), 0);
    close(rundir_make(home.runs, &one, NACRE_EXITED, NACRE_TREE_EMPTY, false));
    assert_int_equal(catalog_rebuild(c, NULL), 1);
    struct catalog_run *run;
    assert_int_equal(catalog_get_run(c, &two, &run, NULL), NACRE_ENOTFOUND);
    assert_int_equal(catalog_get_run(c, &one, &run, NULL), 0);
    assert_true(run->read_to == 100 && nacre_id_equal(&run->session, &owner));
    assert_true(run->outcome == NACRE_EXITED && run->final);
    free(run);
}

static void one_run_refreshed(void **state)
{
    (void)state;
    cleanup_home struct home_dir home = home_make();
    cleanup_catalog struct catalog *c = catalog_at(home.path, true);
    nacre_id one = id_of(RUN, 1), two = id_of(RUN, 2);
    nacre_error err = NACRE_ERROR_INIT;
    int dir = rundir_make(home.runs, &one, NACRE_EXITED, NACRE_TREE_EMPTY, false);
    close(rundir_make(home.runs, &two, NACRE_EXITED, NACRE_TREE_EMPTY, false));
    assert_int_equal(count_runs(c, NULL), 0);
    assert_int_equal(catalog_refresh(c, &one, &err), 0);
    assert_int_equal(count_runs(c, NULL), 1);
    /* Damaged: the row is all that is left, and stays. */
    runs_write(dir, "state", "garbage", 7);
    close(dir);
    assert_int_equal(catalog_refresh(c, &one, &err), NACRE_EIO);
    assert_int_equal(count_runs(c, NULL), 1);
    assert_int_equal(run_remove(home.runs, &one), 0);
    assert_int_equal(catalog_refresh(c, &one, &err), NACRE_ENOTFOUND);
    assert_int_equal(count_runs(c, NULL), 0);
}

/* -- Damage ------------------------------------------------------------------------------------ */

static void damage_with(const struct home_dir *home, size_t from, size_t size)
{
    static char noise[1 << 16];
    struct unit_random random = {.state = 7};
    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = (char)unit_next(&random);
    int fd = openat(home->fd, CATALOG_DB, O_WRONLY | O_CLOEXEC);
    assert_int_equal(fd_pwrite_all(fd, noise, size, (off_t)from), 0);
    close(fd);
}

static void garbage_is_moved_aside(void **state)
{
    (void)state;
    static const char *const contents[] = {"garbage", "SQLite format 3"};
    for (size_t i = 0; i < 2; i++) {
        cleanup_home struct home_dir home = home_make();
        nacre_id one = id_of(RUN, 1);
        char kept[64];
        close(rundir_make(home.runs, &one, NACRE_EXITED, NACRE_TREE_EMPTY, false));
        runs_write(home.fd, CATALOG_DB, contents[i], strlen(contents[i]));
        cleanup_catalog struct catalog *c = catalog_at(home.path, i == 0);
        assert_int_equal(count_runs(c, NULL), 1);
        put_number(c, 2);
        struct names aside = damaged_files(&home);
        assert_int_equal(aside.count, 1);
        assert_int_equal(read_file(&home, aside.list[0], kept, sizeof kept), strlen(contents[i]));
        assert_memory_equal(kept, contents[i], strlen(contents[i]));
    }
}

static void truncated_files_are_rebuilt(void **state)
{
    (void)state;
    static const off_t lengths[] = {100, 512, 4096, 5000, 16384};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        cleanup_home struct home_dir home = home_make();
        nacre_id one = id_of(RUN, 999);
        close(rundir_make(home.runs, &one, NACRE_EXITED, NACRE_TREE_EMPTY, false));
        fill(&home);
        char path[PATH_MAX + 256];
        path_of(&home, CATALOG_DB, path);
        assert_int_equal(truncate(path, lengths[i]), 0);
        cleanup_catalog struct catalog *c = catalog_at(home.path, true);
        assert_int_equal(count_runs(c, NULL), 1);
        assert_int_equal(damaged_files(&home).count, 1);
    }
}

/* Its first page is good, so the damage shows in the middle of work. */
static void damage_found_later(void **state)
{
    (void)state;
    cleanup_home struct home_dir home = home_make();
    nacre_id one = id_of(RUN, 999);
    close(rundir_make(home.runs, &one, NACRE_EXITED, NACRE_TREE_EMPTY, false));
    fill(&home);
    cleanup_catalog struct catalog *c = catalog_at(home.path, true);
    damage_with(&home, 4096, 40000);
    put_number(c, 1000);
    assert_int_equal(damaged_files(&home).count, 1);
    assert_int_equal(count_runs(c, NULL), 2);
}

static void the_newest_damaged_ones_are_kept(void **state)
{
    (void)state;
    cleanup_home struct home_dir home = home_make();
    char last[64];
    close(unit_file(home.fd, CATALOG_DAMAGED "1000"));
    close(unit_file(home.fd, CATALOG_DAMAGED "1000-wal"));
    close(unit_file(home.fd, CATALOG_DAMAGED "2000-wal"));
    close(unit_file(home.fd, CATALOG_DAMAGED "2000"));
    close(unit_file(home.fd, CATALOG_DAMAGED "not"));
    runs_write(home.fd, CATALOG_DB, "the latest", 10);
    runs_write(home.fd, CATALOG_DB "-wal", "its wal", 7);
    catalog_free(catalog_at(home.path, true), false);
    assert_false(has(&home, CATALOG_DAMAGED "1000") || has(&home, CATALOG_DAMAGED "1000-wal"));
    assert_true(has(&home, CATALOG_DAMAGED "2000") && has(&home, CATALOG_DAMAGED "2000-wal"));
    assert_true(has(&home, CATALOG_DAMAGED "not"));
    struct names aside = damaged_files(&home);
    assert_int_equal(aside.count, 3);
    for (int i = 0; i < aside.count; i++)
        if (strlen(aside.list[i]) > strlen(CATALOG_DAMAGED "2000"))
            assert_int_equal(read_file(&home, aside.list[i], last, sizeof last), 10);
}

/* -- Gone under our hands ---------------------------------------------------------------------- */

static void put_own_session(struct catalog *c)
{
    struct catalog_session s = {.id = id_of(SESSION, 1), .name = "mine", .pid = 5, .start = 6};
    assert_int_equal(catalog_put_session(c, &s, NULL), 0);
}

static void assert_own_session(struct catalog *c)
{
    nacre_id id = id_of(SESSION, 1);
    struct catalog_session *got;
    assert_int_equal(catalog_get_session(c, &id, &got, NULL), 0);
    assert_true(got->pid == 5 && got->start == 6);
    assert_string_equal(got->name, "mine");
    free(got);
}

static void deleted_under_use(void **state)
{
    (void)state;
    for (int all = 0; all < 2; all++) {
        cleanup_home struct home_dir home = home_make();
        nacre_id one = id_of(RUN, 1);
        close(rundir_make(home.runs, &one, NACRE_EXITED, NACRE_TREE_EMPTY, false));
        cleanup_catalog struct catalog *c = catalog_at(home.path, true);
        put_own_session(c);
        put_number(c, 2);
        assert_int_equal(count_runs(c, NULL), 2);
        assert_int_equal(unlinkat(home.fd, CATALOG_DB, 0), 0);
        if (all) {
            assert_int_equal(unlinkat(home.fd, CATALOG_DB "-wal", 0), 0);
            assert_int_equal(unlinkat(home.fd, CATALOG_DB "-shm", 0), 0);
        }
        put_number(c, 3);
        assert_true(has(&home, CATALOG_DB));
        assert_int_equal(count_runs(c, NULL), 2);
        assert_own_session(c);
        cleanup_catalog struct catalog *other = catalog_at(home.path, true);
        assert_int_equal(count_runs(other, NULL), 2);
    }
}

static void replaced_under_use(void **state)
{
    (void)state;
    cleanup_home struct home_dir home = home_make();
    cleanup_catalog struct catalog *first = catalog_at(home.path, true);
    struct stat before, after;
    put_own_session(first);
    put_number(first, 1);
    assert_int_equal(fstatat(home.fd, CATALOG_DB "-shm", &before, 0), 0);
    assert_int_equal(unlinkat(home.fd, CATALOG_DB, 0), 0);
    cleanup_catalog struct catalog *second = catalog_at(home.path, true);
    put_number(second, 2);
    /* The first one still has its own mapped. */
    assert_int_equal(fstatat(home.fd, CATALOG_DB "-shm", &after, 0), 0);
    assert_true(before.st_ino != after.st_ino);
    /* Closing the old file must not take away what belongs to the new one. */
    put_number(first, 3);
    assert_int_equal(count_runs(first, NULL), 2);
    assert_int_equal(count_runs(second, NULL), 2);
    assert_own_session(second);
}

/* -- Where nothing can be written -------------------------------------------------------------- */

/* A file system of its own on the home, visible to this child alone. */
static bool mount_tiny(const char *path, const char *options)
{
    return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("none", path, "tmpfs", 0, options) == 0;
}

#define CANNOT_MOUNT 77

static void join_or_skip(pid_t pid)
{
    int status = unit_join(pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT_MOUNT)
        SKIP("a catalog on a file system of its own: mounting is not permitted");
    assert_int_equal(status, 0);
}

static void use_read_only_home(void *data)
{
    const char *path = data;
    struct catalog *c;
    nacre_error err = NACRE_ERROR_INIT;
    struct catalog_run run = run_of(9, &runs_session);
    int count = 0;
    EXPECT(catalog_open(path, true, 100, &c, &err) == NACRE_EIO);
    EXPECT(strstr(err.msg, "catalog"));
    EXPECT(catalog_open(path, false, 100, &c, &err) == 0);
    EXPECT(catalog_each_run(c, NULL, count_row, &count, &err) == 0);
    EXPECT(count == 1);
    EXPECT(catalog_put_run(c, &run, &err) < 0);
    EXPECT(catalog_create(c, &err) == NACRE_EIO);
    catalog_free(c, false);
}

static void make_and_use_read_only(void *data)
{
    struct home_dir *home = data;
    if (geteuid() != 0) {
        EXPECT(chmod(home->path, 0500) == 0);
    } else if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
               mount(home->path, home->path, NULL, MS_BIND, NULL) < 0 ||
               mount(NULL, home->path, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL) < 0) {
        _exit(CANNOT_MOUNT);
    }
    use_read_only_home(home->path);
    chmod(home->path, 0700);
}

static void a_read_only_home_can_be_read(void **state)
{
    (void)state;
    /* Without a catalog; with one; with a damaged one. */
    for (int kind = 0; kind < 3; kind++) {
        cleanup_home struct home_dir home = home_make();
        nacre_id one = id_of(RUN, 1);
        close(rundir_make(home.runs, &one, NACRE_EXITED, NACRE_TREE_EMPTY, false));
        if (kind == 1) {
            catalog_free(catalog_at(home.path, true), false);
            run_sql(&home, "PRAGMA wal_checkpoint(TRUNCATE); PRAGMA journal_mode = DELETE");
            run_sql(&home, "PRAGMA journal_mode = WAL");
        }
        if (kind == 2)
            runs_write(home.fd, CATALOG_DB, "garbage", 7);
        join_or_skip(unit_fork(make_and_use_read_only, &home));
    }
}

/* Puts rows of 4 KiB until one fails. */
static uint32_t fill_disk(struct catalog *c, nacre_error *err)
{
    static char command[CATALOG_COMMAND_MAX];
    memset(command, 'x', sizeof command - 1);
    for (uint32_t i = 0; i < 10000; i++) {
        struct catalog_run run = run_of(i, &runs_session);
        run.command = command;
        if (catalog_put_run(c, &run, err) < 0)
            return i;
    }
    return UINT32_MAX;
}

static void use_full_disk(void *data)
{
    const char *path = data;
    struct catalog *c;
    nacre_error err = NACRE_ERROR_INIT;
    if (!mount_tiny(path, "size=1m,mode=0700"))
        _exit(CANNOT_MOUNT);
    EXPECT(catalog_open(path, true, BUSY_MS, &c, &err) == 0);
    uint32_t kept = fill_disk(c, &err);
    EXPECT(kept != UINT32_MAX && kept > 0);
    EXPECT(err.code == NACRE_EIO && strstr(err.msg, "full"));
    /* What was put is there, and what failed is not. */
    int count = 0;
    EXPECT(catalog_each_run(c, NULL, count_row, &count, &err) == 0);
    EXPECT((uint32_t)count == kept);
    catalog_free(c, false);
    EXPECT(catalog_open(path, true, BUSY_MS, &c, &err) == 0);
    count = 0;
    EXPECT(catalog_each_run(c, NULL, count_row, &count, &err) == 0);
    EXPECT((uint32_t)count == kept);
    catalog_free(c, false);
}

static void use_disk_without_room(void *data)
{
    const char *path = data;
    char name[PATH_MAX + 256];
    struct catalog *c;
    nacre_error err = NACRE_ERROR_INIT;
    static const char noise[8192];
    int count = 0;
    if (!mount_tiny(path, "size=16k,mode=0700"))
        _exit(CANNOT_MOUNT);
    snprintf(name, sizeof name, "%s/ballast", path);
    int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    EXPECT(fd >= 0);
    while (write(fd, noise, sizeof noise) > 0)
        ;
    close(fd);
    EXPECT(catalog_open(path, true, BUSY_MS, &c, &err) == NACRE_EIO);
    EXPECT(catalog_open(path, false, BUSY_MS, &c, &err) == 0);
    EXPECT(catalog_each_run(c, NULL, count_row, &count, &err) == 0);
    catalog_free(c, false);
}

static void a_full_disk(void **state)
{
    (void)state;
    cleanup_home struct home_dir home = home_make();
    join_or_skip(unit_fork(use_full_disk, home.path));
    join_or_skip(unit_fork(use_disk_without_room, home.path));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_are_taken_in_order),
        cmocka_unit_test(a_step_that_fails_changes_nothing),
        cmocka_unit_test(held_before_it_is_open),
        cmocka_unit_test(newer_and_foreign_files_are_refused),
        cmocka_unit_test(what_is_no_file_is_refused),
        cmocka_unit_test(an_empty_file_is_filled),
        cmocka_unit_test(reading_creates_nothing),
        cmocka_unit_test(a_home_that_does_not_exist),
        cmocka_unit_test(a_long_path),
        cmocka_unit_test(a_file_that_appears_is_used),
        cmocka_unit_test(what_directories_say),
        cmocka_unit_test(what_cannot_be_looked_at_is_still_owed),
        cmocka_unit_test(new_and_gone_runs_are_taken_in),
        cmocka_unit_test(rebuilt_over_what_is_there),
        cmocka_unit_test(one_run_refreshed),
        cmocka_unit_test(garbage_is_moved_aside),
        cmocka_unit_test(truncated_files_are_rebuilt),
        cmocka_unit_test(damage_found_later),
        cmocka_unit_test(the_newest_damaged_ones_are_kept),
        cmocka_unit_test(deleted_under_use),
        cmocka_unit_test(replaced_under_use),
        cmocka_unit_test(a_read_only_home_can_be_read),
        cmocka_unit_test(a_full_disk),
    };
    return cmocka_run_group_tests(tests, unit_setup, unit_teardown);
}
