/* What run directories say of completions, and what the catalog believes of it. */
#include "catalogs.h"

static void mark_told(int runs_fd, const nacre_id *id)
{
    cleanup_run struct run run = RUN_NONE;
    struct run_state state;
    assert_int_equal(run_open(runs_fd, id, &run, NULL), 0);
    assert_int_equal(run_read_state(&run, &state, NULL), 0);
    assert_int_equal(run_set_told(&run, &state), 0);
}

static void what_directories_owe(void **state)
{
    (void)state;
    cleanup_home struct home_dir home = home_make();
    nacre_id one = id_of(RUN, 1), two = id_of(RUN, 2), three = id_of(RUN, 3), runs[4];
    bool repeated[4];
    close(rundir_make(home.runs, &one, NACRE_EXITED, NACRE_TREE_EMPTY, true));
    close(rundir_make(home.runs, &two, NACRE_EXITED, NACRE_TREE_EMPTY, true));
    close(rundir_make(home.runs, &three, NACRE_RUNNING, NACRE_TREE_ALIVE, true));
    mark_told(home.runs, &one);
    cleanup_catalog struct catalog *c = catalog_at(home.path, true);
    assert_int_equal(catalog_offer(c, &runs_session, runs, repeated, 4, NULL), 1);
    assert_true(nacre_id_equal(&runs[0], &two) && !repeated[0]);
    /* What the catalog knows already stays as it is. */
    assert_int_equal(catalog_rebuild(c, NULL), 3);
    assert_int_equal(catalog_offer(c, &runs_session, runs, repeated, 4, NULL), 0);
    /* Told, then acknowledged: no refresh brings it back. */
    mark_told(home.runs, &two);
    assert_int_equal(catalog_ack(c, &two, 1, NULL), 0);
    assert_int_equal(catalog_refresh(c, &two, NULL), 0);
    assert_int_equal(catalog_offer(c, &runs_session, runs, repeated, 4, NULL), 0);
}

/* A command may make the file itself, with whatever it likes but the moment of its own exit. */
static void a_command_cannot_say_that_it_was_told(void **state)
{
    (void)state;
    cleanup_home struct home_dir home = home_make();
    static const int64_t zero, wrong = 1;
    nacre_id ids[3];
    for (unsigned i = 0; i < 3; i++) {
        ids[i] = id_of(RUN, (uint8_t)(i + 1));
        int dir = rundir_make(home.runs, &ids[i], NACRE_EXITED, NACRE_TREE_EMPTY, true);
        runs_write(dir, "told", i == 1 ? &zero : &wrong, i == 0 ? 0 : sizeof zero);
        close(dir);
    }
    cleanup_catalog struct catalog *c = catalog_at(home.path, true);
    assert_int_equal(catalog_offer(c, &runs_session, (nacre_id[4]){0}, (bool[4]){0}, 4, NULL), 3);
    /* Told after that, all of it. */
    for (unsigned i = 0; i < 3; i++)
        mark_told(home.runs, &ids[i]);
    assert_int_equal(catalog_ack(c, ids, 3, NULL), 0);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(catalog_remove_run(c, &ids[i], NULL), 0);
    assert_int_equal(catalog_sync(c, NULL), 0);
    assert_int_equal(count_runs(c, NULL), 3);
    assert_int_equal(catalog_offer(c, &runs_session, (nacre_id[4]){0}, (bool[4]){0}, 4, NULL), 0);
}

/* Nor that it was not: what the catalog knows, no directory makes it forget. */
static void what_was_told_is_not_owed_again(void **state)
{
    (void)state;
    cleanup_home struct home_dir home = home_make();
    nacre_id one = id_of(RUN, 1);
    int dir = rundir_make(home.runs, &one, NACRE_EXITED, NACRE_TREE_ALIVE, true);
    cleanup_catalog struct catalog *c = catalog_at(home.path, true);
    assert_int_equal(catalog_offer(c, &runs_session, (nacre_id[4]){0}, (bool[4]){0}, 4, NULL), 1);
    mark_told(home.runs, &one);
    assert_int_equal(catalog_ack(c, &one, 1, NULL), 0);
    assert_int_equal(unlinkat(dir, "told", 0), 0);
    close(dir);
    assert_int_equal(catalog_refresh(c, &one, NULL), 0);
    assert_int_equal(catalog_offer(c, &runs_session, (nacre_id[4]){0}, (bool[4]){0}, 4, NULL), 0);
}

/* It may be that its command took it away before anybody looked. */
static void what_is_awaited_needs_no_directory(void **state)
{
    (void)state;
    cleanup_home struct home_dir home = home_make();
    cleanup_catalog struct catalog *c = catalog_at(home.path, true);
    struct catalog_run known = {.id = id_of(RUN, 1),
                                .session = runs_session,
                                .command = "mv",
                                .background = true,
                                .started_ms = 7};
    assert_int_equal(catalog_take_awaited(c, &known, NULL), 0);
    assert_int_equal(catalog_offer(c, &runs_session, (nacre_id[4]){0}, (bool[4]){0}, 4, NULL), 0);
    assert_int_equal(catalog_sync(c, NULL), 0);
    assert_int_equal(catalog_refresh(c, &known.id, NULL), NACRE_ENOTFOUND);
    struct catalog_run *run;
    assert_int_equal(catalog_get_run(c, &known.id, &run, NULL), 0);
    assert_true(run->owed && !run->final && strcmp(run->command, "mv") == 0);
    free(run);
    known.command = "";
    known.outcome = NACRE_LOST;
    known.tree = NACRE_TREE_EMPTY;
    assert_int_equal(catalog_take_awaited(c, &known, NULL), 0);
    assert_int_equal(catalog_get_run(c, &known.id, &run, NULL), 0);
    assert_true(run->final && strcmp(run->command, "mv") == 0);
    free(run);
    assert_int_equal(catalog_offer(c, &runs_session, (nacre_id[4]){0}, (bool[4]){0}, 4, NULL), 1);
    /* It is over: now that it has no directory says that somebody removed it. */
    assert_int_equal(catalog_sync(c, NULL), 0);
    assert_int_equal(count_runs(c, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_directories_owe),
        cmocka_unit_test(a_command_cannot_say_that_it_was_told),
        cmocka_unit_test(what_was_told_is_not_owed_again),
        cmocka_unit_test(what_is_awaited_needs_no_directory),
    };
    return cmocka_run_group_tests(tests, unit_setup, unit_teardown);
}
