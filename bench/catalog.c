/* What the catalog costs: one run put into it, the list of a thousand, the counts of a session,
 * and opening it. */
#include "bench.h"

#include <ftw.h>
#include <sqlite3.h>

#include "catalog/catalog.h"

#define RUNS   1000
#define ROUNDS 200

static char home[] = "/tmp/nacre-bench.XXXXXX";

static int unlink_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st;
    (void)kind;
    (void)ftw;
    return remove(path);
}

static void check(int r, const nacre_error *err)
{
    if (r < 0)
        die("catalog", err);
}

static struct catalog_run run_number(uint32_t number)
{
    struct catalog_run run = {
        .command = "cargo test --workspace --all-features -- --nocapture",
        .cwd = "/home/somebody/src/project",
        .started_ms = 1700000000000 + number,
    };
    /* Ids are random: rows do not come in the order of their index. */
    uint64_t mixed = (number + 1) * UINT64_C(0x9e3779b97f4a7c15);
    memcpy(run.id.bytes, &mixed, sizeof mixed);
    run.session.bytes[0] = (uint8_t)(number % 4);
    return run;
}

/* The least that SQLite does for a row on disk. */
static double bare_insert(void)
{
    static double times[RUNS];
    char path[64];
    sqlite3 *db;
    sqlite3_stmt *stmt;
    snprintf(path, sizeof path, "%s/bare.db", home);
    if (sqlite3_open(path, &db) != SQLITE_OK ||
        sqlite3_exec(db,
                     "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
                     "CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)",
                     NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(db, "INSERT INTO t (b) VALUES (?)", -1, &stmt, NULL) != SQLITE_OK)
        die("sqlite", NULL);
    for (size_t i = 0; i < RUNS; i++) {
        double begin = now_us();
        sqlite3_bind_text(stmt, 1, "cargo test --workspace", -1, SQLITE_STATIC);
        sqlite3_step(stmt);
        sqlite3_reset(stmt);
        times[i] = now_us() - begin;
    }
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    return percentile(times, RUNS, 50);
}

static double put_all(struct catalog *c, double *ret_p99)
{
    static double times[RUNS];
    nacre_error err;
    for (uint32_t i = 0; i < RUNS; i++) {
        struct catalog_run run = run_number(i);
        double begin = now_us();
        check(catalog_put_run(c, &run, &err), &err);
        times[i] = now_us() - begin;
    }
    *ret_p99 = percentile(times, RUNS, 99);
    return percentile(times, RUNS, 50);
}

static double end_all(struct catalog *c)
{
    static double times[RUNS];
    struct run_state state = {.format = RUN_FORMAT};
    nacre_error err;
    for (uint32_t i = 0; i < RUNS; i++) {
        struct catalog_run run = run_number(i);
        run.outcome = NACRE_EXITED;
        run.tree = NACRE_TREE_EMPTY;
        run.state = &state;
        double begin = now_us();
        check(catalog_put_run(c, &run, &err), &err);
        times[i] = now_us() - begin;
    }
    return percentile(times, RUNS, 50);
}

static int count_one(const struct catalog_run *run, void *userdata)
{
    *(size_t *)userdata += run->command[0] != '\0';
    return 0;
}

static double list_all(struct catalog *c)
{
    double times[ROUNDS];
    nacre_error err;
    for (size_t i = 0; i < ROUNDS; i++) {
        size_t count = 0;
        double begin = now_us();
        check(catalog_each_run(c, NULL, count_one, &count, &err), &err);
        times[i] = now_us() - begin;
        if (count != RUNS)
            die("a list that is not whole", NULL);
    }
    return percentile(times, ROUNDS, 50);
}

static double count_all(struct catalog *c)
{
    double times[ROUNDS];
    nacre_error err;
    struct catalog_counts counts;
    nacre_id session = run_number(0).session;
    for (size_t i = 0; i < ROUNDS; i++) {
        double begin = now_us();
        check(catalog_counts(c, &session, &counts, &err), &err);
        times[i] = now_us() - begin;
    }
    return percentile(times, ROUNDS, 50);
}

static double open_and_close(void)
{
    double times[ROUNDS];
    nacre_error err;
    struct catalog *c;
    for (size_t i = 0; i < ROUNDS; i++) {
        double begin = now_us();
        check(catalog_open(home, false, CATALOG_BUSY_MS, &c, &err), &err);
        catalog_free(c, false);
        times[i] = now_us() - begin;
    }
    return percentile(times, ROUNDS, 50);
}

int main(void)
{
    nacre_error err;
    struct catalog *c;
    char measured[64];
    double p99;
    if (!mkdtemp(home))
        die("mkdtemp", NULL);
    double bare = bare_insert();
    check(catalog_open(home, true, CATALOG_BUSY_MS, &c, &err), &err);
    double put = put_all(c, &p99);
    snprintf(measured, sizeof measured, "%.0f us, bare insert %.0f, p99 %.0f", put, bare, p99);
    row("a run put into the catalog, p50", measured, put / bare, "x", 8, 0);
    double end = end_all(c);
    snprintf(measured, sizeof measured, "%.0f us, bare insert %.0f", end, bare);
    row("the end of a run in the catalog, p50", measured, end / bare, "x", 8, 0);
    row("the list of a thousand runs, p50", "with their states", list_all(c) / 1000, " ms", 20, 0);
    row("the counts of a session, p50", "250 runs", count_all(c), " us", 1000, 0);
    catalog_free(c, false);
    row("opening and closing the catalog, p50", "with its wal", open_and_close() / 1000, " ms", 10,
        0);
    nftw(home, unlink_one, 16, FTW_DEPTH | FTW_PHYS);
    return 0;
}
