/*
 * Commands that lay hands on the files of their own run, or on the whole home: the shell can be
 * killed, fed, listed, read and waited for as any other, what it printed is there but for what was
 * cut away, its end is told once, and the session goes on.
 */
#include "harness/harness.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* The run directory, in the words of a command. */
#define R "\"$NACRE_HOME/runs/$NACRE_ID\""

static nacre_record record_now(nacre_session *s, const nacre_id *id)
{
    nacre_record record = NACRE_RECORD_INIT;
    CHECK_OK(nacre_get(s, id, &record, ERR));
    return record;
}

static int count_listed(const nacre_listed *listed, void *arg)
{
    *(int *)arg += listed->record->outcome == NACRE_RUNNING;
    return 0;
}

static int count_running(nacre_session *s, nacre_list_which which)
{
    nacre_list_options options = NACRE_LIST_OPTIONS_INIT;
    int count = 0;
    options.which = which;
    CHECK_OK(nacre_list(s, &options, count_listed, &count, ERR));
    return count;
}

/* Completions that are offered now, each acknowledged. */
static int64_t take_completions(nacre_session *s)
{
    nacre_offer *offer = NULL;
    int64_t count = nacre_offer_take(s, 0, &offer, ERR);
    CHECK(count >= 0);
    CHECK_OK(nacre_offer_acknowledge(offer, ERR));
    return count;
}

/* A shell in the background that does something to its files and stays. */
struct victim {
    nacre_session *session;
    const char *mark;
    nacre_id id;
};

static struct victim start_victim(nacre_session *s, const char *damage)
{
    struct victim v = {.session = s, .mark = marker()};
    v.id = start_background(
        s, format("echo before; %s; echo after; exec sleep 300.%s", damage, v.mark));
    await_marked(v.mark, 1);
    return v;
}

/* It is there for everybody, and can be ended. */
static void check_reachable(struct victim *v)
{
    nacre_session *s = v->session;
    nacre_id found;
    CHECK_EQ_INT(1, count_running(s, NACRE_LIST_SESSION));
    CHECK_OK(nacre_find(s, nacre_id_short(&v->id).s, &found, ERR));
    CHECK(nacre_id_equal(&found, &v->id));
    CHECK_CODE(NACRE_ETIMEOUT, nacre_wait(s, &v->id, 1, NACRE_WAIT_ANY, 1, NULL, ERR));
    CHECK_TEXT(status_of(s, &v->id), "running");
    CHECK(AWAIT(output_has(s, &v->id, NACRE_OUT, "after\n"), 5000));
    nacre_session *other = open_session();
    CHECK_EQ_INT(1, count_running(other, NACRE_LIST_HOME));
    CHECK_TEXT(status_of(other, &v->id), "running");
    close_session(other);
}

static void end_victim(struct victim *v)
{
    nacre_session *s = v->session;
    int64_t begin = now_ms();
    nacre_kill_result result = kill_shell(s, &v->id, 0);
    CHECK_EQ_INT(1, result.was_alive);
    CHECK_EQ_INT(0, result.keeper_killed);
    CHECK_RANGE(0, now_ms() - begin, soon(3000));
    CHECK_EQ_INT(0, count_marked(v->mark));
    check_ended(s, &v->id, NACRE_KILLED, NACRE_REASON_KILL);
    CHECK_EQ_INT(1, take_completions(s));
    CHECK_EQ_INT(0, take_completions(s));
    CHECK_EQ_INT(0, count_running(s, NACRE_LIST_SESSION));
    CHECK(output_has(s, &v->id, NACRE_OUT, "after\n"));
}

/* All of it, with or without what was printed before. */
static void damage_and_end(const char *damage, bool keeps)
{
    nacre_session *s = open_tool(NULL);
    struct victim v = start_victim(s, damage);

    check_reachable(&v);
    nacre_record record = record_now(s, &v.id);
    CHECK_EQ_INT(13, record.bytes[0]);
    CHECK_EQ_INT(2, record.lines[0]);
    if (keeps) {
        CHECK(output_has(s, &v.id, NACRE_OUT, "before\nafter\n"));
        CHECK_EQ_INT(0, record.dropped_bytes[0]);
    } else {
        CHECK(record.dropped_errno != 0);
        CHECK_EQ_INT(7, record.dropped_bytes[0]);
        CHECK_EQ_INT(1, record.dropped_lines[0]);
    }
    nacre_record_done(&record);
    end_victim(&v);
    struct run run = run_text(s, "echo next");
    CHECK_TEXT(run.out, "next\n");
    run_done(&run);
    CHECK_OK(nacre_remove(s, &v.id, ERR));
    CHECK(access(run_path(&v.id, ""), F_OK) < 0);
    close_session(s);
}

/* -- The directory ---------------------------------------------------------------------------- */

TEST(directory_removed)
{
    damage_and_end("rm -rf " R, true);
}

TEST(directory_moved)
{
    damage_and_end("mv " R " \"$PWD/elsewhere\"", true);
}

TEST(directory_moved_and_removed)
{
    damage_and_end("mv " R " gone; rm -rf gone", true);
}

TEST(directory_replaced_by_a_file)
{
    damage_and_end("rm -rf " R "; echo x >" R, true);
}

TEST(directory_replaced_by_a_fifo)
{
    damage_and_end("rm -rf " R "; mkfifo " R, true);
}

TEST(directory_replaced_by_a_link)
{
    damage_and_end("rm -rf " R "; mkdir trap; ln -s \"$PWD/trap\" " R, true);
    CHECK(access("trap/state", F_OK) < 0);
}

TEST(directory_replaced_by_a_directory)
{
    damage_and_end("rm -rf " R "; mkdir -p " R "/state/x", true);
}

TEST(directory_locked)
{
    damage_and_end("chmod 0 " R "/* " R, true);
}

TEST(directory_locked_with_nobody_left_to_unlock_it)
{
    nacre_session *s = open_session();
    struct run run = run_text(s, "echo before");
    CHECK_OK(chmod(run_path(&run.record.id, ""), 0));
    CHECK_TEXT(status_of(s, &run.record.id), "exited(0)");
    CHECK(output_has(s, &run.record.id, NACRE_OUT, "before\n"));
    run_done(&run);
    close_session(s);
}

TEST(directories_of_all_removed)
{
    damage_and_end("rm -rf \"$NACRE_HOME\"/runs", true);
}

TEST(home_gone)
{
    damage_and_end("rm -rf \"$NACRE_HOME\"", true);
}

/* -- With nobody to tell of it -------------------------------------------------------------------
 */

/* Nobody else writes to the catalog for as long as this is held. */
static sqlite3 *hold_catalog(void)
{
    sqlite3 *db;
    CHECK_EQ_INT(SQLITE_OK, sqlite3_open(format("%s/catalog.db", test_home()), &db));
    CHECK_EQ_INT(SQLITE_OK, sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL));
    return db;
}

static void let_catalog_go(sqlite3 *db)
{
    CHECK_EQ_INT(SQLITE_OK, sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL));
    sqlite3_close(db);
}

/* A shell that is kept, started while somebody holds the catalog, so that no row leads to it; who
 * started it is gone, and nobody but its command knew where it is. */
static nacre_id start_unwritten(const char *damage, const char *mark, int64_t timeout_ms,
                                sqlite3 **ret_db)
{
    nacre_session *s = open_session();
    nacre_command command = NACRE_COMMAND_INIT;
    struct run first = run_text(s, "true");
    run_done(&first);
    *ret_db = hold_catalog();
    command.text = format("R=%s/runs/$NACRE_ID; %s; exec sleep 300.%s", test_home(), damage, mark);
    command.lifetime = NACRE_LIFE_KEEP;
    command.timeout_ms = timeout_ms;
    nacre_id id = start_command(s, &command);
    await_marked(mark, 1);
    close_session(s);
    return id;
}

/* Its time is over, and its keeper will not end it. */
static void ended_by_a_look(const char *damage, bool is_held)
{
    sqlite3 *db;
    const char *mark = marker();
    nacre_id id = start_unwritten(damage, mark, 1000, &db);
    if (!is_held)
        let_catalog_go(db);
    nacre_session *s = open_session();
    CHECK(AWAIT((count_running(s, NACRE_LIST_HOME), count_marked(mark) == 0), 8000));
    CHECK(AWAIT(strcmp(status_of(s, &id), "timed_out") == 0, 5000));
    if (is_held)
        let_catalog_go(db);
    close_session(s);
}

TEST_LIMIT(unwritten_moved_and_stopped, 30)
{
    ended_by_a_look("mv $R $R.away; kill -STOP $PPID", false);
}

TEST_LIMIT(unwritten_removed_and_stopped, 30)
{
    ended_by_a_look("rm -rf $R; kill -STOP $PPID", false);
}

TEST_LIMIT(unwritten_home_gone_and_stopped, 30)
{
    ended_by_a_look("rm -rf \"$NACRE_HOME\"; kill -STOP $PPID", false);
}

/* Whoever holds the catalog may be the very command. */
TEST_LIMIT(unwritten_and_the_catalog_held, 30)
{
    ended_by_a_look("kill -STOP $PPID", true);
    ended_by_a_look("mv $R $R.away; kill -STOP $PPID", true);
}

/* One that nobody stopped is listed as what it is. */
TEST(unwritten_and_listed)
{
    sqlite3 *db;
    const char *mark = marker();
    nacre_id id = start_unwritten("mv $R $R.away", mark, 0, &db);
    nacre_session *s = open_session();
    CHECK_EQ_INT(1, count_running(s, NACRE_LIST_HOME));
    let_catalog_go(db);
    CHECK_EQ_INT(1, count_running(s, NACRE_LIST_HOME));
    kill_shell(s, &id, 0);
    CHECK_EQ_INT(0, count_marked(mark));
    close_session(s);
}

/* -- Each of its files ------------------------------------------------------------------------ */

/* The file is $f in the words of the damage. */
static void each_file(const char *damage)
{
    static const char *const files[] = {"state", "spec", "log", "spans", "ctl"};
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        damage_and_end(format("f=" R "/%s; %s", files[i], damage), true);
}

TEST_LIMIT(files_removed, 40)
{
    each_file("rm $f");
}

TEST_LIMIT(files_replaced_by_fifos, 40)
{
    each_file("rm $f; mkfifo $f");
}

TEST_LIMIT(files_replaced_by_links, 40)
{
    each_file("echo >target; rm $f; ln -s \"$PWD/target\" $f");
}

TEST_LIMIT(files_replaced_by_directories, 40)
{
    each_file("rm $f; mkdir $f");
}

TEST_LIMIT(files_replaced_by_others, 40)
{
    each_file("echo other >other; mv other $f");
}

TEST_LIMIT(files_swapped_for_devices, 40)
{
    if (geteuid() != 0)
        SKIP("only root makes devices");
    each_file("rm $f; mknod $f c 1 5");
}

TEST(state_cut)
{
    damage_and_end(": >" R "/state", true);
}

TEST(state_overwritten)
{
    damage_and_end("head -c 4096 /dev/urandom >" R "/state", true);
}

/* Between the first word and the damage is a moment: what is cut away was in the files. */
static const char *cut(const char *file)
{
    return format("while test ! -s " R "/%s; do :; done; : >" R "/%s", file, file);
}

TEST(log_cut)
{
    damage_and_end(cut("log"), false);
}

TEST(spans_cut)
{
    damage_and_end(cut("spans"), false);
}

TEST(spec_cut)
{
    damage_and_end(": >" R "/spec", true);
}

/* -- The ring --------------------------------------------------------------------------------- */

/* A long output: its head and its tail come back with the directory. */
TEST(much_output_survives)
{
    nacre_session *s = open_session();
    nacre_command command = NACRE_COMMAND_INIT;
    command.text = format("seq 1 100000; %s; rm -rf " R "; echo after; touch done; %s",
                          "while test ! -s " R "/tail; do :; done", gate());
    command.quota = 256 * 1024;
    nacre_id id = start_command(s, &command);
    CHECK(AWAIT(access("done", F_OK) == 0, 5000));
    CHECK(AWAIT(output_has(s, &id, NACRE_OUT, "99999\n100000\nafter\n"), 5000));
    CHECK(output_has(s, &id, NACRE_OUT, "1\n2\n3\n4\n"));
    let_go();
    wait_outcome(s, &id, 5000);
    nacre_record record = record_now(s, &id);
    CHECK_EQ_INT(588901, record.bytes[0]);
    CHECK_EQ_INT(0, record.dropped_errno);
    nacre_record_done(&record);
    CHECK(output_has(s, &id, NACRE_OUT, "99999\n100000\nafter\n"));
    close_session(s);
}

/* A short command: what it printed before and after is in its answer. */
TEST(short_commands)
{
    nacre_session *s = open_session();
    static const char *const damages[] = {"rm -rf " R, "mv " R " \"$PWD/m$$\"", "rm " R "/log",
                                          "rm " R "/state", "rm -rf \"$NACRE_HOME\""};
    for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
        struct run run = run_text(s, format("echo one; %s; echo two; exit 3", damages[i]));
        CHECK_EQ_INT(NACRE_EXITED, run.record.outcome);
        CHECK_EQ_INT(3, run.record.exit_code);
        CHECK_TEXT(run.out, "one\ntwo\n");
        run_done(&run);
    }
    close_session(s);
}

/* -- Others ----------------------------------------------------------------------------------- */

/* Whoever follows it meanwhile reads everything, once. */
static int gather(const nacre_piece *piece, const void *bytes, void *arg)
{
    char *text = arg;
    CHECK_EQ_INT(0, piece->gap_bytes);
    strncat(text, bytes, piece->size);
    if (strstr(text, "before"))
        let_go();
    return 0;
}

TEST(followed)
{
    nacre_session *s = open_session();
    char text[256] = "";
    nacre_id id = start_background(
        s, format("echo before; %s; rm -rf " R " 2>/dev/null; echo after; exit 4", gate()));
    CHECK_OK(nacre_follow(s, &id, 0, gather, text, ERR));
    CHECK_TEXT(text, "before\nafter\n");
    CHECK_TEXT(status_of(s, &id), "exited(4)");
    close_session(s);
}

/* Input, signals and the background reach it. */
TEST(fed_and_signalled)
{
    nacre_session *s = open_tool(NULL);
    nacre_id id = start_held(s, "rm -rf " R "; echo gone; read x; echo got; read y; echo \"$y\"");
    CHECK(AWAIT(output_has(s, &id, NACRE_OUT, "gone"), 5000));
    CHECK_EQ_INT(2, nacre_input(s, &id, "a\n", 2, 0, 3000, ERR));
    CHECK(AWAIT(output_has(s, &id, NACRE_OUT, "got"), 5000));
    CHECK(access(run_path(&id, "state"), F_OK) == 0);
    struct run run = run_text(s, format("rm -rf %s", run_path(&id, "")));
    run_done(&run);
    CHECK_OK(nacre_signal(s, &id, SIGCONT, ERR));
    CHECK_EQ_INT(2, nacre_input(s, &id, "b\n", 2, 0, 3000, ERR));
    wait_outcome(s, &id, 5000);
    CHECK_TEXT(status_of(s, &id), "exited(0)");
    CHECK(output_has(s, &id, NACRE_OUT, "gone\ngot\nb\n"));
    close_session(s);
}

/* Quietly: nothing is printed after the damage, and nobody has asked since. */
TEST(killed_from_elsewhere)
{
    nacre_session *s = open_tool(NULL), *person = open_session();
    const char *mark = marker();
    nacre_id found,
        id = start_background(s, format("rm -rf \"$NACRE_HOME\"; exec sleep 300.%s", mark));
    await_marked(mark, 1);
    CHECK_OK(nacre_find(person, nacre_id_short(&id).s, &found, ERR));
    kill_shell(person, &found, 0);
    CHECK_EQ_INT(0, count_marked(mark));
    CHECK(AWAIT(take_completions(s) == 1, 5000));
    close_session(person);
    close_session(s);
}

/* But not from another home, whoever asks. */
TEST(not_found_in_another_home)
{
    nacre_session *s = open_session();
    nacre_options options = NACRE_OPTIONS_INIT;
    nacre_id found, id = start_text(s, "exec sleep 300");

    options.home = format("%s/another", test_base());
    options.person = 1;
    nacre_session *other = open_options(&options);
    CHECK_CODE(NACRE_ENOTFOUND, nacre_find(other, nacre_id_format(&id).s, &found, ERR));
    CHECK_TEXT(status_of(s, &id), "running");
    close_session(other);
    close_session(s);
}

/* A keeper that was stopped, too: it is woken by whoever comes. */
TEST(keeper_stopped_as_well)
{
    nacre_session *s = open_tool(NULL);
    const char *mark = marker();
    nacre_id id =
        start_background(s, format("kill -STOP $PPID; rm -rf " R "; exec sleep 300.%s", mark));
    await_marked(mark, 1);
    kill_shell(s, &id, 0);
    CHECK_EQ_INT(0, count_marked(mark));
    CHECK_EQ_INT(1, take_completions(s));
    close_session(s);
}

/* And one that is gone: the shell is lost, its place free, what it left is ended. */
TEST(keeper_killed_as_well)
{
    nacre_session *s = open_tool((const char *[]){"shells=1", NULL});
    const char *mark = marker();
    nacre_id id = start_background(s, format("%s sleep 300.%s & rm -rf " R "; kill -9 $PPID; "
                                             "exec sleep 301.%s",
                                             own_session(), mark, mark));
    CHECK(AWAIT(take_completions(s) == 1, 8000));
    CHECK_EQ_INT(0, take_completions(s));
    CHECK_EQ_INT(0, count_marked(mark));
    CHECK_TEXT(status_of(s, &id), "lost");
    nacre_id next = start_background(s, "true");
    wait_outcome(s, &next, 5000);
    close_session(s);
}

/* As many as there may be, all at once. */
TEST_LIMIT(all_places_taken, 40)
{
    nacre_session *s = open_tool(NULL);
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_id ids[8], ninth;
    const char *mark = marker();

    for (int i = 0; i < 8; i++)
        ids[i] = start_background(s, format("rm -rf \"$NACRE_HOME\"; exec sleep 300.%s", mark));
    await_marked(mark, 8);
    CHECK_EQ_INT(8, counts_of(s).running);
    CHECK_EQ_INT(8, count_running(s, NACRE_LIST_SESSION));
    command.text = "true";
    command.background = 1;
    CHECK_CODE(NACRE_ELIMIT, nacre_start(s, &command, &ninth, NULL, ERR));
    struct run run = run_text(s, "echo foreground");
    CHECK_TEXT(run.out, "foreground\n");
    run_done(&run);
    for (int i = 0; i < 8; i++)
        kill_shell(s, &ids[i], 0);
    CHECK_EQ_INT(0, count_marked(mark));
    ninth = start_background(s, "true");
    wait_outcome(s, &ninth, 5000);
    int64_t told = 0;
    CHECK(AWAIT((told += take_completions(s)) >= 9, 5000));
    CHECK_EQ_INT(9, told);
    close_session(s);
}

/* Takes the state of each run away as soon as it is there, once, and says so. */
static void take_states_away(int runs, int news, int done)
{
    _Alignas(struct inotify_event) char buf[4096];
    for (;;) {
        ssize_t n = read(news, buf, sizeof buf);
        for (char *at = buf; n > 0 && at < buf + n;) {
            const struct inotify_event *event = (const void *)at;
            const char *state = format("%s/state", event->name);
            int64_t until = now_ms() + 1000;
            while (unlinkat(runs, state, 0) < 0 && now_ms() < until)
                continue;
            CHECK(write(done, "", 1) == 1);
            at += sizeof *event + event->len;
        }
    }
}

/* A warm run may lose files before its keeper has looked at them for the first time. */
TEST_LIMIT(states_taken_away_while_they_are_made, 60)
{
    nacre_session *s = open_session();
    int done[2];
    char byte;
    struct run run = run_text(s, "true");
    run_done(&run);
    int runs = open(format("%s/runs", test_home()), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int news = inotify_init1(IN_CLOEXEC);
    CHECK(runs >= 0 && inotify_add_watch(news, format("%s/runs", test_home()), IN_CREATE) >= 0);
    CHECK_OK(pipe2(done, O_CLOEXEC));
    pid_t thief = fork();
    if (thief == 0)
        take_states_away(runs, news, done[1]);
    run = run_text(s, "true");
    for (int i = 0; i < 25; i++) {
        run_done(&run);
        CHECK(read(done[0], &byte, 1) == 1); /* the next run is warm, and robbed */
        run = run_text(s, "echo here");
        CHECK_TEXT(run.out, "here\n");
    }
    run_done(&run);
    CHECK_OK(kill(thief, SIGKILL));
    CHECK(waitpid(thief, NULL, 0) == thief);
    close(done[0]);
    close(done[1]);
    close(news);
    close(runs);
    close_session(s);
}

/* The session ends: so do they, and it takes no longer. */
TEST(the_session_closes)
{
    nacre_session *s = open_tool(NULL);
    const char *mark = marker();
    for (int i = 0; i < 4; i++)
        start_background(
            s, format("rm -rf %s; exec sleep 300.%s", i % 2 ? R : "\"$NACRE_HOME\"", mark));
    await_marked(mark, 4);
    int64_t begin = now_ms();
    close_session(s);
    CHECK_RANGE(0, now_ms() - begin, soon(5000));
    CHECK_EQ_INT(0, count_marked(mark));
}
