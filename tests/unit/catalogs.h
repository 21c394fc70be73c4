/* Catalogs in homes of their own, rows to put into them, and run directories beside them. */
#ifndef TESTS_UNIT_CATALOGS_H
#define TESTS_UNIT_CATALOGS_H

#include "runs.h"

#include "base/clock.h"
#include "catalog/catalog.h"
#include "catalog/catalog_file.h"

#define BUSY_MS 5000 /* longer than a busy machine needs */

/* A home with its directory of runs. */
struct home_dir {
    char path[PATH_MAX];
    int fd;
    int runs;
};

UNIT struct home_dir home_make(void)
{
    struct home_dir home;
    home.fd = unit_dir(home.path);
    assert_int_equal(mkdirat(home.fd, "runs", 0700), 0);
    home.runs = openat(home.fd, "runs", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(home.runs >= 0);
    return home;
}

UNIT void home_done(struct home_dir *home)
{
    close(home->runs);
    close(home->fd);
}

#define cleanup_home __attribute__((cleanup(home_done)))

UNIT void catalog_done(struct catalog **c)
{
    catalog_free(*c, false);
}

#define cleanup_catalog __attribute__((cleanup(catalog_done)))

UNIT struct catalog *catalog_at(const char *path, bool create)
{
    struct catalog *c = NULL;
    nacre_error err = NACRE_ERROR_INIT;
    if (catalog_open(path, create, BUSY_MS, &c, &err) < 0)
        fail_msg("%s", err.msg);
    return c;
}

UNIT nacre_id id_of(uint8_t kind, uint32_t number)
{
    nacre_id id = {{kind}};
    memcpy(&id.bytes[1], &(uint32_t){__builtin_bswap32(number)}, 4);
    return id;
}

#define SESSION 0x51
#define RUN     0x12

UNIT struct catalog_run run_of(uint32_t number, const nacre_id *session)
{
    return (struct catalog_run){
        .id = id_of(RUN, number),
        .session = *session,
        .command = "make -j2",
        .cwd = "/src",
        .name = "",
        .started_ms = 1000 + number,
    };
}

/* The run as it is in the catalog, with an end. */
UNIT void end_run(struct catalog *c, const nacre_id *id, nacre_outcome outcome, nacre_tree tree,
                  int64_t exited_ms)
{
    struct catalog_run *run;
    assert_int_equal(catalog_get_run(c, id, &run, NULL), 0);
    run->outcome = outcome;
    run->tree = tree;
    run->exited_ms = exited_ms;
    assert_int_equal(catalog_put_run(c, run, NULL), 0);
    free(run);
}

UNIT int count_row(const struct catalog_run *run, void *userdata)
{
    (void)run;
    ++*(int *)userdata;
    return 0;
}

UNIT int count_runs(struct catalog *c, const struct catalog_filter *filter)
{
    int count = 0;
    assert_int_equal(catalog_each_run(c, filter, count_row, &count, NULL), 0);
    return count;
}

/* A run directory that says this much. A background run owes a completion. */
UNIT int rundir_make(int runs_fd, const nacre_id *id, nacre_outcome outcome, nacre_tree tree,
                     bool background)
{
    struct run_state state;
    state_init(&state, id, &runs_session);
    state.phase = PHASE_RUN;
    state.outcome = outcome;
    state.tree = tree;
    state.exit_code = outcome == NACRE_EXITED ? 7 : -1;
    state.started_ns = 5000 * NS_PER_MS;
    state.exited_ns = outcome == NACRE_RUNNING ? 0 : 6000 * NS_PER_MS;
    state.background = background;
    state.log.end = 123;
    state.pid_ns = 99;
    state.boot[0] = 42;
    return runs_make(runs_fd, id, &state);
}

#endif
