/* The catalog's tables: what is put is read, and the rules of runs and completions hold. */
#include "catalogs.h"

#include <sqlite3.h>

struct place {
    struct home_dir home;
    struct catalog *c;
};

static struct place place_open(void)
{
    struct place p = {.home = home_make()};
    p.c = catalog_at(p.home.path, true);
    return p;
}

static void place_done(struct place *p)
{
    catalog_free(p->c, false);
    home_done(&p->home);
}

#define cleanup_place __attribute__((cleanup(place_done)))

static void put(struct catalog *c, const struct catalog_run *run)
{
    nacre_error err = NACRE_ERROR_INIT;
    if (catalog_put_run(c, run, &err) != 0)
        fail_msg("%s", err.msg);
}

static void put_numbers(struct catalog *c, uint32_t first, uint32_t last, const nacre_id *session)
{
    for (uint32_t i = first; i <= last; i++) {
        struct catalog_run run = run_of(i, session);
        put(c, &run);
    }
}

static void end(struct catalog *c, uint32_t number, int64_t when)
{
    nacre_id id = id_of(RUN, number);
    end_run(c, &id, NACRE_EXITED, NACRE_TREE_EMPTY, when);
}

static void run_sql(const struct place *p, const char *sql)
{
    char path[PATH_MAX + 16];
    sqlite3 *db;
    snprintf(path, sizeof path, "%s/" CATALOG_DB, p->home.path);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

/* -- The file ---------------------------------------------------------------------------------- */

static void made_for_its_owner_alone(void **state)
{
    (void)state;
    cleanup_place struct place p = place_open();
    static const char *const files[] = {CATALOG_DB, CATALOG_DB "-wal", CATALOG_DB "-shm",
                                        CATALOG_LOCK};
    struct stat st;
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(fstatat(p.home.fd, files[i], &st, 0), 0);
        assert_int_equal(st.st_mode & 07777, 0600);
    }
    char path[PATH_MAX + 16];
    sqlite3 *db;
    sqlite3_stmt *stmt;
    snprintf(path, sizeof path, "%s/" CATALOG_DB, p.home.path);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    static const char sql[] = "SELECT application_id, user_version, journal_mode FROM"
                              " pragma_application_id, pragma_user_version, pragma_journal_mode";
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    assert_int_equal(sqlite3_column_int(stmt, 0), 0x6e616372);
    assert_int_equal(sqlite3_column_int(stmt, 1), 3);
    assert_string_equal((const char *)sqlite3_column_text(stmt, 2), "wal");
    sqlite3_finalize(stmt);
    sqlite3_close(db);
}

static void nothing_leaks(void **state)
{
    (void)state;
    cleanup_home struct home_dir home = home_make();
    int before = unit_count_fds();
    struct catalog *c = catalog_at(home.path, true);
    put_numbers(c, 1, 10, &runs_session);
    assert_int_equal(count_runs(c, NULL), 10);
    catalog_free(c, false);
    assert_int_equal(unit_count_fds(), before);
    catalog_free(NULL, false);
}

/* -- Sessions ---------------------------------------------------------------------------------- */

static void sessions_as_put(void **state)
{
    (void)state;
    cleanup_place struct place p = place_open();
    struct catalog_session s = {
        .id = id_of(SESSION, 1),
        .name = "mine",
        .cwd = "/a\nb",
        .pid = 77,
        .start = UINT64_MAX,
        .boot = {1, 2, 3},
        .pid_ns = 4026531836,
        .opened_ms = 1700000000000,
    };
    struct catalog_session *got;
    nacre_error err = NACRE_ERROR_INIT;
    assert_int_equal(catalog_get_session(p.c, &s.id, &got, &err), NACRE_ENOTFOUND);
    assert_int_equal(catalog_put_session(p.c, &s, &err), 0);
    assert_int_equal(catalog_get_session(p.c, &s.id, &got, &err), 0);
    assert_string_equal(got->name, "mine");
    assert_string_equal(got->cwd, "/a\nb");
    assert_int_equal(got->pid, 77);
    assert_true(got->start == UINT64_MAX);
    assert_memory_equal(got->boot, s.boot, sizeof s.boot);
    assert_true(got->pid_ns == s.pid_ns && got->opened_ms == s.opened_ms);
    assert_int_equal(got->closed_ms, 0);
    free(got);
    assert_int_equal(catalog_close_session(p.c, &s.id, 1700000000001, &err), 0);
    assert_int_equal(catalog_get_session(p.c, &s.id, &got, &err), 0);
    assert_true(got->closed_ms == 1700000000001);
    free(got);
    assert_int_equal(catalog_remove_session(p.c, &s.id, &err), 0);
    assert_int_equal(catalog_remove_session(p.c, &s.id, &err), 0);
    assert_int_equal(catalog_get_session(p.c, &s.id, &got, &err), NACRE_ENOTFOUND);
    assert_int_equal(catalog_close_session(p.c, &s.id, 1, &err), NACRE_ENOTFOUND);
    assert_non_null(strstr(err.msg, "51000000"));
}

static int gather_session(const struct catalog_session *session, void *userdata)
{
    uint8_t *seen = userdata;
    seen[strlen((char *)seen)] = (uint8_t)('0' + session->id.bytes[4]);
    return 0;
}

static const char *sessions_of(struct catalog *c, const struct catalog_session_filter *filter)
{
    static char seen[32];
    memset(seen, 0, sizeof seen);
    assert_int_equal(catalog_each_session(c, filter, gather_session, seen, NULL), 0);
    return seen;
}

static void sessions_filtered(void **state)
{
    (void)state;
    cleanup_place struct place p = place_open();
    static const char *const names[] = {"", "x", "y", "x"}, *const cwds[] = {"", "/a", "/a", "/b"};
    for (uint32_t i = 1; i <= 3; i++) {
        struct catalog_session s = {.id = id_of(SESSION, i),
                                    .name = names[i],
                                    .cwd = cwds[i],
                                    .opened_ms = 10 - i,
                                    .closed_ms = i == 2};
        assert_int_equal(catalog_put_session(p.c, &s, NULL), 0);
    }
    nacre_id run = id_of(RUN, 1), third = id_of(SESSION, 3);
    assert_int_equal(catalog_owe(p.c, &run, &third, NULL), 0);
    assert_string_equal(sessions_of(p.c, NULL), "321");
    assert_string_equal(sessions_of(p.c, &(struct catalog_session_filter){.name = "x"}), "31");
    assert_string_equal(sessions_of(p.c, &(struct catalog_session_filter){.cwd = "/a"}), "21");
    assert_string_equal(sessions_of(p.c, &(struct catalog_session_filter){.only_owed = true}), "3");
    assert_string_equal(sessions_of(p.c, &(struct catalog_session_filter){.only_open = true}),
                        "31");
    assert_string_equal(
        sessions_of(p.c, &(struct catalog_session_filter){.name = "x", .cwd = "/a"}), "1");
}

/* -- Runs -------------------------------------------------------------------------------------- */

static void runs_as_put(void **state)
{
    (void)state;
    cleanup_place struct place p = place_open();
    nacre_id session = id_of(SESSION, 1);
    struct catalog_run run = run_of(5, &session), *got;
    run.name = "web";
    run.description = "serves";
    run.lifetime = NACRE_LIFE_KEEP;
    run.background = true;
    run.bytes = (uint64_t)1 << 40;
    run.disk_bytes = 4096;
    run.read_to = 17;
    nacre_error err = NACRE_ERROR_INIT;
    assert_int_equal(catalog_get_run(p.c, &run.id, &got, &err), NACRE_ENOTFOUND);
    assert_non_null(strstr(err.msg, "12000000"));
    put(p.c, &run);
    assert_int_equal(catalog_get_run(p.c, &run.id, &got, &err), 0);
    assert_true(nacre_id_equal(&got->id, &run.id) && nacre_id_equal(&got->session, &session));
    assert_string_equal(got->command, "make -j2");
    assert_string_equal(got->cwd, "/src");
    assert_string_equal(got->name, "web");
    assert_int_equal(got->lifetime, NACRE_LIFE_KEEP);
    assert_int_equal(got->outcome, NACRE_RUNNING);
    assert_string_equal(got->description, "serves");
    assert_null(got->state);
    assert_true(got->bytes == run.bytes && got->disk_bytes == 4096 && got->read_to == 17);
    assert_true(got->background && !got->owed && !got->final);
    assert_int_equal(got->started_ms, 1005);
    free(got);
    assert_int_equal(catalog_remove_run(p.c, &run.id, &err), 0);
    assert_int_equal(catalog_remove_run(p.c, &run.id, &err), 0);
    assert_int_equal(catalog_get_run(p.c, &run.id, &got, &err), NACRE_ENOTFOUND);
}

static void null_strings_are_empty(void **state)
{
    (void)state;
    cleanup_place struct place p = place_open();
    struct catalog_run run = {.id = id_of(RUN, 1)}, *got;
    put(p.c, &run);
    assert_int_equal(catalog_get_run(p.c, &run.id, &got, NULL), 0);
    assert_string_equal(got->command, "");
    assert_string_equal(got->cwd, "");
    assert_string_equal(got->name, "");
    free(got);
}

static void long_commands_are_cut_at_a_character(void **state)
{
    (void)state;
    cleanup_place struct place p = place_open();
    for (size_t shift = 0; shift < 4; shift++) {
        static char text[3 * CATALOG_COMMAND_MAX];
        struct catalog_run run = run_of((uint32_t)shift, &runs_session), *got;
        memset(text, 'a', shift);
        for (size_t at = shift; at + 4 < sizeof text; at += 4)
            memcpy(text + at, "\xf0\x9f\x90\x9a", 5);
        run.command = text;
        put(p.c, &run);
        assert_int_equal(catalog_get_run(p.c, &run.id, &got, NULL), 0);
        size_t size = strlen(got->command);
        assert_in_range(size, CATALOG_COMMAND_MAX - 3, CATALOG_COMMAND_MAX);
        assert_int_equal((size - shift) % 4, 0);
        assert_memory_equal(got->command, text, size);
        free(got);
    }
}

static void the_first_outcome_wins(void **state)
{
    (void)state;
    cleanup_place struct place p = place_open();
    struct catalog_run run = run_of(1, &runs_session), *got;
    run.bytes = 100;
    put(p.c, &run);
    end_run(p.c, &run.id, NACRE_EXITED, NACRE_TREE_ALIVE, 2000);
    assert_int_equal(catalog_get_run(p.c, &run.id, &got, NULL), 0);
    assert_int_equal(got->outcome, NACRE_EXITED);
    assert_false(got->final);
    free(got);
    /* The tree ends later; the outcome stays. */
    struct run_state end;
    state_init(&end, &run.id, &runs_session);
    end.exit_code = 7;
    run.outcome = NACRE_KILLED;
    run.tree = NACRE_TREE_EMPTY;
    run.exited_ms = 3000;
    run.bytes = 50;
    run.state = &end;
    put(p.c, &run);
    /* Nor does a late put bring it back to life. */
    struct catalog_run late = run_of(1, &runs_session);
    put(p.c, &late);
    assert_int_equal(catalog_get_run(p.c, &run.id, &got, NULL), 0);
    assert_int_equal(got->outcome, NACRE_EXITED);
    assert_int_equal(got->tree, NACRE_TREE_EMPTY);
    assert_int_equal(got->exited_ms, 2000);
    assert_true(got->final && got->bytes == 100);
    assert_non_null(got->state);
    assert_memory_equal(got->state, &end, sizeof end);
    free(got);
}

/* Whoever says which of the two, and in whatever order. */
static void an_outcome_and_an_empty_tree_are_final(void **state)
{
    (void)state;
    cleanup_place struct place p = place_open();
    static const nacre_outcome outcomes[2] = {NACRE_EXITED, NACRE_RUNNING};
    static const nacre_tree trees[2] = {NACRE_TREE_ALIVE, NACRE_TREE_EMPTY};
    for (uint32_t i = 0; i < 2; i++) {
        struct catalog_run run = run_of(i, &runs_session), *got;
        for (uint32_t step = 0; step < 2; step++) {
            run.outcome = outcomes[(i + step) % 2];
            run.tree = trees[(i + step) % 2];
            put(p.c, &run);
            assert_int_equal(catalog_get_run(p.c, &run.id, &got, NULL), 0);
            assert_int_equal(got->final, step == 1);
            free(got);
        }
    }
}

/* Of another format, or cut: as if there were none. */
static void a_strange_state_is_not_shown(void **state)
{
    (void)state;
    cleanup_place struct place p = place_open();
    struct catalog_run run = run_of(1, &runs_session), *got;
    struct run_state end;
    state_init(&end, &run.id, &runs_session);
    end.format = RUN_FORMAT + 1;
    run.state = &end;
    put(p.c, &run);
    assert_int_equal(catalog_get_run(p.c, &run.id, &got, NULL), 0);
    assert_null(got->state);
    free(got);
    run_sql(&p, "UPDATE runs SET state = x'00112233'");
    assert_int_equal(catalog_get_run(p.c, &run.id, &got, NULL), 0);
    assert_null(got->state);
    free(got);
}

static void single_values(void **state)
{
    (void)state;
    cleanup_place struct place p = place_open();
    struct catalog_run run = run_of(1, &runs_session), *got;
    nacre_id other = id_of(RUN, 2), owner = id_of(SESSION, 9);
    put(p.c, &run);
    assert_int_equal(catalog_set_read(p.c, &run.id, 50, NULL), 0);
    assert_int_equal(catalog_set_read(p.c, &run.id, 20, NULL), 0);
    assert_int_equal(catalog_set_owner(p.c, &run.id, &owner, NACRE_LIFE_KEEP, NULL), 0);
    assert_int_equal(catalog_owe(p.c, &run.id, &owner, NULL), 0);
    assert_int_equal(catalog_get_run(p.c, &run.id, &got, NULL), 0);
    assert_true(got->read_to == 50 && got->owed);
    assert_true(nacre_id_equal(&got->session, &owner) && got->lifetime == NACRE_LIFE_KEEP);
    free(got);
    assert_int_equal(catalog_set_read(p.c, &other, 1, NULL), NACRE_ENOTFOUND);
    assert_int_equal(catalog_set_owner(p.c, &other, &owner, NACRE_LIFE_KEEP, NULL),
                     NACRE_ENOTFOUND);
}

static int gather_run(const struct catalog_run *run, void *userdata)
{
    char *seen = userdata;
    seen[strlen(seen)] = (char)('0' + run->id.bytes[4]);
    return 0;
}

static const char *runs_of(struct catalog *c, struct catalog_filter filter)
{
    static char seen[64];
    memset(seen, 0, sizeof seen);
    assert_int_equal(catalog_each_run(c, &filter, gather_run, seen, NULL), 0);
    return seen;
}

static void lists(void **state)
{
    (void)state;
    cleanup_place struct place p = place_open();
    nacre_id a = id_of(SESSION, 1), b = id_of(SESSION, 2);
    put_numbers(p.c, 1, 3, &a);
    put_numbers(p.c, 4, 5, &b);
    struct catalog_run named = run_of(6, &b);
    named.name = "db";
    named.started_ms = 1005; /* as 5: then the later put is the newer one */
    put(p.c, &named);
    end(p.c, 2, 2000);
    end(p.c, 5, 2000);
    assert_string_equal(runs_of(p.c, (struct catalog_filter){0}), "654321");
    assert_string_equal(runs_of(p.c, (struct catalog_filter){.oldest_first = true}), "123456");
    assert_string_equal(runs_of(p.c, (struct catalog_filter){.session = &a}), "321");
    assert_string_equal(runs_of(p.c, (struct catalog_filter){.limit = 2}), "65");
    assert_string_equal(runs_of(p.c, (struct catalog_filter){.state = CATALOG_OPEN}), "6431");
    assert_string_equal(runs_of(p.c, (struct catalog_filter){.state = CATALOG_FINAL}), "52");
    assert_string_equal(runs_of(p.c, (struct catalog_filter){.since_ms = 1004}), "654");
    assert_string_equal(runs_of(p.c, (struct catalog_filter){.name = "db"}), "6");
    assert_string_equal(runs_of(p.c, (struct catalog_filter){.name = ""}), "");
    assert_string_equal(runs_of(p.c, (struct catalog_filter){.session = &b,
                                                             .state = CATALOG_OPEN,
                                                             .since_ms = 1004,
                                                             .oldest_first = true,
                                                             .limit = 1}),
                        "4");
}

struct removing {
    struct catalog *c;
    int met;
};

static int remove_met(const struct catalog_run *run, void *userdata)
{
    struct removing *removing = userdata;
    assert_int_equal(catalog_remove_run(removing->c, &run->id, NULL), 0);
    return ++removing->met == 3 ? 42 : 0;
}

static void callbacks_may_call_and_end_it(void **state)
{
    (void)state;
    cleanup_place struct place p = place_open();
    put_numbers(p.c, 1, 5, &runs_session);
    struct removing removing = {.c = p.c};
    assert_int_equal(catalog_each_run(p.c, NULL, remove_met, &removing, NULL), 42);
    assert_string_equal(runs_of(p.c, (struct catalog_filter){0}), "21");
}

struct tally {
    struct catalog_counts counts[3]; /* by the number of the session */
};

static int tally_session(const struct catalog_session *session, void *userdata)
{
    struct tally *tally = userdata;
    for (uint8_t i = 1; i < 3; i++) {
        nacre_id id = id_of(SESSION, i);
        if (nacre_id_equal(&session->id, &id))
            tally->counts[i] = session->counts;
    }
    return 0;
}

static void counted_with_the_sessions(void **state)
{
    (void)state;
    cleanup_place struct place p = place_open();
    nacre_id a = id_of(SESSION, 1), b = id_of(SESSION, 2), one = id_of(RUN, 1), two = id_of(RUN, 2);
    struct catalog_session rows[] = {{.id = a, .name = "", .cwd = ""},
                                     {.id = b, .name = "", .cwd = ""}};
    struct tally plain = {0}, tally = {0};
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        assert_int_equal(catalog_put_session(p.c, &rows[i], NULL), 0);
    put_numbers(p.c, 1, 4, &a);
    end(p.c, 2, 2000);
    assert_int_equal(catalog_owe(p.c, &one, &a, NULL), 0);
    assert_int_equal(catalog_owe(p.c, &two, &b, NULL), 0);
    struct catalog_session_filter with_counts = {.counts = true};
    assert_int_equal(catalog_each_session(p.c, NULL, tally_session, &plain, NULL), 0);
    assert_int_equal(plain.counts[1].runs, 0);
    assert_int_equal(catalog_each_session(p.c, &with_counts, tally_session, &tally, NULL), 0);
    assert_int_equal(tally.counts[1].runs, 4);
    assert_int_equal(tally.counts[1].running, 3);
    assert_int_equal(tally.counts[1].due, 0);
    assert_int_equal(tally.counts[2].runs, 0);
    assert_int_equal(tally.counts[2].running, 0);
    assert_int_equal(tally.counts[2].due, 1);
}

static void counted(void **state)
{
    (void)state;
    cleanup_place struct place p = place_open();
    nacre_id a = id_of(SESSION, 1), b = id_of(SESSION, 2), one = id_of(RUN, 1), two = id_of(RUN, 2);
    struct catalog_counts n;
    assert_int_equal(catalog_counts(p.c, &a, &n, NULL), 0);
    assert_int_equal(n.runs + n.running + n.due, 0);
    put_numbers(p.c, 1, 4, &a);
    put_numbers(p.c, 7, 7, &b);
    end(p.c, 2, 2000);
    assert_int_equal(catalog_owe(p.c, &one, &a, NULL), 0);
    assert_int_equal(catalog_owe(p.c, &two, &a, NULL), 0);
    assert_int_equal(catalog_counts(p.c, &a, &n, NULL), 0);
    assert_int_equal(n.runs, 4);
    assert_int_equal(n.running, 3);
    assert_int_equal(n.due, 1);
}

/* -- Completions ------------------------------------------------------------------------------- */

static int offer(struct catalog *c, const nacre_id *session, char *ret_seen, size_t max)
{
    nacre_id runs[8];
    bool repeated[8];
    int n = catalog_offer(c, session, runs, repeated, max, NULL);
    for (int i = 0; i < n; i++) {
        *ret_seen++ = (char)('0' + runs[i].bytes[4]);
        if (repeated[i])
            *ret_seen++ = 'r';
    }
    *ret_seen = '\0';
    return n;
}

static void owe_numbers(struct catalog *c, uint32_t first, uint32_t last, const nacre_id *session)
{
    for (uint32_t i = first; i <= last; i++) {
        nacre_id id = id_of(RUN, i);
        assert_int_equal(catalog_owe(c, &id, session, NULL), 0);
    }
}

static void offered_once_and_acknowledged(void **state)
{
    (void)state;
    cleanup_place struct place p = place_open();
    nacre_id a = id_of(SESSION, 1), b = id_of(SESSION, 2);
    char seen[32];
    put_numbers(p.c, 1, 4, &a);
    owe_numbers(p.c, 1, 4, &a);
    assert_int_equal(offer(p.c, &a, seen, 8), 0);
    end(p.c, 3, 2000);
    end(p.c, 1, 3000);
    end(p.c, 2, 4000);
    assert_int_equal(offer(p.c, &b, seen, 8), 0);
    assert_int_equal(offer(p.c, &a, seen, 2), 2);
    assert_string_equal(seen, "31");
    assert_int_equal(offer(p.c, &a, seen, 8), 1);
    assert_string_equal(seen, "2");
    assert_int_equal(offer(p.c, &a, seen, 8), 0);
    /* The answer was not written: they come again, as if for the first time. */
    nacre_id back[] = {id_of(RUN, 3), id_of(RUN, 2)};
    assert_int_equal(catalog_retract(p.c, &b, back, 2, NULL), 0);
    assert_int_equal(offer(p.c, &a, seen, 8), 0);
    assert_int_equal(catalog_retract(p.c, &a, back, 2, NULL), 0);
    assert_int_equal(offer(p.c, &a, seen, 8), 2);
    assert_string_equal(seen, "32");
    nacre_id all[] = {id_of(RUN, 1), id_of(RUN, 2), id_of(RUN, 3), id_of(RUN, 9)};
    assert_int_equal(catalog_ack(p.c, all, 4, NULL), 0);
    assert_int_equal(catalog_retract(p.c, &a, all, 4, NULL), 0);
    struct catalog_counts n;
    assert_int_equal(catalog_counts(p.c, &a, &n, NULL), 0);
    assert_int_equal(n.due, 0);
    assert_int_equal(offer(p.c, &a, seen, 8), 0);
}

static void claimed_from_the_ended(void **state)
{
    (void)state;
    cleanup_place struct place p = place_open();
    nacre_id a = id_of(SESSION, 1), b = id_of(SESSION, 2), c = id_of(SESSION, 3);
    char seen[32];
    put_numbers(p.c, 1, 3, &a);
    put_numbers(p.c, 4, 4, &b);
    owe_numbers(p.c, 1, 3, &a);
    owe_numbers(p.c, 4, 4, &b);
    for (uint32_t i = 1; i <= 4; i++)
        end(p.c, i, 2000 + i);
    assert_int_equal(offer(p.c, &a, seen, 1), 1);
    assert_int_equal(offer(p.c, &b, seen, 8), 1);
    nacre_id ended[] = {a, b, c};
    assert_int_equal(catalog_claim(p.c, &c, ended, 1, NULL), 3);
    assert_int_equal(catalog_claim(p.c, &c, ended, 3, NULL), 1);
    assert_int_equal(catalog_claim(p.c, &c, ended, 3, NULL), 0);
    assert_int_equal(offer(p.c, &c, seen, 8), 4);
    assert_string_equal(seen, "1r234r");
    /* A second time of dying marks the rest too. */
    assert_int_equal(catalog_claim(p.c, &a, &c, 1, NULL), 4);
    assert_int_equal(offer(p.c, &a, seen, 8), 4);
    assert_string_equal(seen, "1r2r3r4r");
}

static void a_removed_run_owes_nothing(void **state)
{
    (void)state;
    cleanup_place struct place p = place_open();
    nacre_id a = id_of(SESSION, 1), one = id_of(RUN, 1);
    char seen[32];
    put_numbers(p.c, 1, 1, &a);
    end(p.c, 1, 2000);
    owe_numbers(p.c, 1, 1, &a);
    assert_int_equal(catalog_remove_run(p.c, &one, NULL), 0);
    put_numbers(p.c, 1, 1, &a);
    end(p.c, 1, 2000);
    assert_int_equal(offer(p.c, &a, seen, 8), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(made_for_its_owner_alone),
        cmocka_unit_test(nothing_leaks),
        cmocka_unit_test(sessions_as_put),
        cmocka_unit_test(sessions_filtered),
        cmocka_unit_test(runs_as_put),
        cmocka_unit_test(null_strings_are_empty),
        cmocka_unit_test(long_commands_are_cut_at_a_character),
        cmocka_unit_test(the_first_outcome_wins),
        cmocka_unit_test(an_outcome_and_an_empty_tree_are_final),
        cmocka_unit_test(a_strange_state_is_not_shown),
        cmocka_unit_test(single_values),
        cmocka_unit_test(lists),
        cmocka_unit_test(callbacks_may_call_and_end_it),
        cmocka_unit_test(counted),
        cmocka_unit_test(counted_with_the_sessions),
        cmocka_unit_test(offered_once_and_acknowledged),
        cmocka_unit_test(claimed_from_the_ended),
        cmocka_unit_test(a_removed_run_owes_nothing),
    };
    return cmocka_run_group_tests(tests, unit_setup, unit_teardown);
}
