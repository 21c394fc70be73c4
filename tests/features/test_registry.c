/* The shells of a session: what was read of them, places, the list, and how they end. */
#include "harness/harness.h"

#include <ctype.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum { PLACES = 8 };

static nacre_unread unread_of(nacre_session *s, const nacre_id *id)
{
    nacre_unread unread = NACRE_UNREAD_INIT;

    CHECK_OK(nacre_get_unread(s, id, &unread, ERR));
    return unread;
}

static const char *text_between(nacre_session *s, const nacre_id *id, uint64_t from, uint64_t to)
{
    size_t size = 0;
    char *text = calloc(1, to - from + 1);

    CHECK(text);
    while (from < to) {
        int64_t got = nacre_read(s, id, &from, NACRE_BOTH, text + size, to - from, NULL, ERR);
        CHECK_OK(got);
        CHECK(got > 0);
        size += (size_t)got;
    }
    const char *kept = format("%s", text);
    free(text);
    return kept;
}

/* What a tool does: shows what is new, and then says that it was shown. */
static const char *drain(nacre_session *s, const nacre_id *id)
{
    nacre_unread unread = unread_of(s, id);
    const char *text = text_between(s, id, unread.from, unread.to);

    CHECK_OK(nacre_mark_read(s, id, unread.to, 0, ERR));
    return text;
}

static bool has_unread(nacre_session *s, const nacre_id *id, uint64_t bytes)
{
    nacre_unread unread = unread_of(s, id);

    return unread.to - unread.from >= bytes;
}

/* -- Reading --------------------------------------------------------------------------------- */

TEST(new_text_each_time)
{
    nacre_session *s = open_tool(NULL);
    nacre_id id = start_held(s, "echo one; read x; echo two >&2; read x; echo three; exit 5");

    CHECK(AWAIT(has_unread(s, &id, 4), 5000));
    CHECK_EQ_INT(1, counts_of(s).unread);
    CHECK_TEXT(drain(s, &id), "one\n");
    CHECK_TEXT(drain(s, &id), "");
    CHECK_EQ_INT(0, counts_of(s).unread);
    CHECK_TEXT(status_of(s, &id), "running");
    release_shell(s, &id);
    CHECK(AWAIT(has_unread(s, &id, 4), 5000));
    CHECK_TEXT(drain(s, &id), "two\n");
    release_shell(s, &id);
    wait_outcome(s, &id, 5000);
    CHECK_TEXT(status_of(s, &id), "exited(5)");
    CHECK_TEXT(drain(s, &id), "three\n");
    CHECK_TEXT(drain(s, &id), "");
    CHECK_TEXT(text_between(s, &id, 0, 14), "one\ntwo\nthree\n");
    CHECK_TEXT(drain(s, &id), "");
    close_session(s);
}

TEST(unmarked_text_is_shown_again)
{
    nacre_session *s = open_tool(NULL);
    nacre_id id = start_background(s, "echo hello");

    wait_outcome(s, &id, 5000);
    for (int i = 0; i < 2; i++) {
        nacre_unread unread = unread_of(s, &id);
        CHECK_EQ_INT(0, unread.from);
        CHECK_EQ_INT(6, unread.to);
        CHECK_TEXT(text_between(s, &id, unread.from, unread.to), "hello\n");
    }
    CHECK_OK(nacre_mark_read(s, &id, 2, 0, ERR));
    CHECK_TEXT(drain(s, &id), "llo\n");
    CHECK_OK(nacre_mark_read(s, &id, 1, 0, ERR));
    CHECK_EQ_INT(6, unread_of(s, &id).from);
    close_session(s);
}

TEST(over_the_setting_head_and_tail)
{
    nacre_session *s = open_tool((const char *[]){"unread=4KiB", NULL});
    nacre_id id = start_held(s, "printf '%04096d' 7; read x; seq 1000000 1009999");

    CHECK(AWAIT(has_unread(s, &id, 4096), 5000));
    nacre_unread unread = unread_of(s, &id);
    CHECK_EQ_INT(4096, unread.to);
    CHECK_EQ_INT(4096, unread.head);
    CHECK_EQ_INT(4096, unread.tail);
    release_shell(s, &id);
    wait_outcome(s, &id, 5000);
    unread = unread_of(s, &id);
    CHECK_EQ_INT(0, unread.from);
    CHECK_EQ_INT(84096, unread.to);
    CHECK_EQ_INT(2048, unread.head);
    CHECK_EQ_INT(84096 - 2048, unread.tail);
    CHECK_OK(nacre_mark_read(s, &id, 4096, 0, ERR));
    unread = unread_of(s, &id);
    CHECK_EQ_INT(4096 + 2048, unread.head);
    CHECK_TEXT(text_between(s, &id, unread.from, unread.from + 16), "1000000\n1000001\n");
    CHECK_TEXT(text_between(s, &id, unread.to - 8, unread.to), "1009999\n");
    CHECK_OK(nacre_mark_read(s, &id, unread.to, 1, ERR));
    unread = unread_of(s, &id);
    CHECK_EQ_INT(84096, unread.from);
    CHECK_EQ_INT(84096, unread.head);
    CHECK_EQ_INT(84096, unread.tail);
    close_session(s);
}

TEST(a_shell_that_left_the_list_keeps_its_cursor)
{
    nacre_session *s = open_tool((const char *[]){"listed=1", NULL});
    nacre_id id = start_background(s, "echo first; echo second");

    wait_outcome(s, &id, 5000);
    CHECK_OK(nacre_mark_read(s, &id, 6, 1, ERR));
    CHECK(AWAIT(counts_of(s).finished == 1, 5000));
    nacre_id next = start_background(s, "true");
    CHECK(AWAIT(counts_of(s).running == 0, 5000));
    CHECK_EQ_INT(1, counts_of(s).finished);
    CHECK_TEXT(drain(s, &id), "second\n");
    CHECK_TEXT(drain(s, &id), "");
    CHECK_TEXT(status_of(s, &next), "exited(0)");
    close_session(s);
}

/* -- Ids ------------------------------------------------------------------------------------- */

static void check_unknown(nacre_session *s, const nacre_id *id)
{
    nacre_record record = NACRE_RECORD_INIT;
    nacre_unread unread = NACRE_UNREAD_INIT;
    nacre_snapshot snapshot;
    uint64_t cursor = 0;
    char byte;

    CHECK_CODE(NACRE_ENOTFOUND, nacre_get(s, id, &record, ERR));
    CHECK_CODE(NACRE_ENOTFOUND, nacre_read(s, id, &cursor, NACRE_BOTH, &byte, 1, NULL, ERR));
    CHECK_CODE(NACRE_ENOTFOUND, nacre_output(s, id, NACRE_BOTH, 0, &snapshot, ERR));
    CHECK_CODE(NACRE_ENOTFOUND, nacre_get_unread(s, id, &unread, ERR));
    CHECK_CODE(NACRE_ENOTFOUND, nacre_mark_read(s, id, 1, 1, ERR));
    CHECK_CODE(NACRE_ENOTFOUND, nacre_wait(s, id, 1, NACRE_WAIT_ALL, 0, NULL, ERR));
    CHECK_CODE(NACRE_ENOTFOUND, nacre_kill(s, id, NULL, NULL, ERR));
    CHECK_CODE(NACRE_ENOTFOUND, nacre_input(s, id, "x", 1, 0, 0, ERR));
    CHECK_CODE(NACRE_ENOTFOUND, nacre_remove(s, id, ERR));
    CHECK_CODE(NACRE_ENOTFOUND, nacre_background(s, id, ERR));
    CHECK_CODE(NACRE_ENOTFOUND, nacre_adopt(s, id, ERR));
    CHECK_CODE(NACRE_ENOTFOUND, nacre_keep(s, id, ERR));
    CHECK_OK(nacre_release(s, id, ERR));
}

TEST(an_unknown_id)
{
    nacre_session *s = open_tool(NULL);
    nacre_session *person = open_session();
    nacre_id id;

    memset(&id, 0x5a, sizeof id);
    check_unknown(s, &id);
    check_unknown(person, &id);
    CHECK(access(test_home(), F_OK) < 0);
    nacre_id real = start_background(s, "true");
    wait_outcome(s, &real, 5000);
    check_unknown(s, &id);
    check_unknown(person, &id);
    close_session(person);
    close_session(s);
}

TEST(ids_are_32_lowercase_digits_and_never_the_same)
{
    enum { STARTS = 40 };
    nacre_session *s = open_tool((const char *[]){"shells=100", NULL});
    nacre_id_text ids[STARTS];

    for (int i = 0; i < STARTS; i++) {
        nacre_id id = start_background(s, "true");
        ids[i] = nacre_id_format(&id);
        CHECK_EQ_INT(32, strlen(ids[i].s));
        for (const char *c = ids[i].s; *c; c++)
            CHECK(isdigit((unsigned char)*c) || (*c >= 'a' && *c <= 'f'));
        for (int k = 0; k < i; k++)
            CHECK(strcmp(ids[i].s, ids[k].s) != 0);
    }
    CHECK(AWAIT(counts_of(s).running == 0, 10000));
    close_session(s);
}

/* -- Places ---------------------------------------------------------------------------------- */

static int try_start(nacre_session *s, const char *text, nacre_id *ret_id)
{
    nacre_command command = NACRE_COMMAND_INIT;

    command.text = text;
    command.background = 1;
    return nacre_start(s, &command, ret_id, NULL, ERR);
}

TEST(the_ninth_is_refused_with_the_eight_named)
{
    nacre_session *s = open_tool(NULL);
    nacre_id ids[PLACES], id;

    ids[0] = start_held(s, "read x");
    for (int i = 1; i < PLACES; i++)
        ids[i] = start_background(s, "sleep 300");
    CHECK_CODE(NACRE_ELIMIT, try_start(s, "true", &id));
    for (int i = 0; i < PLACES; i++)
        CHECK_STR(ERR->msg, nacre_id_short(&ids[i]).s);
    CHECK_EQ_INT(PLACES, counts_of(s).running);
    struct run run = run_text(s, "echo foreground");
    CHECK_TEXT(run.out, "foreground\n");
    run_done(&run);

    kill_shell(s, &ids[3], 0);
    CHECK_OK(try_start(s, "sleep 300", &id));
    CHECK_CODE(NACRE_ELIMIT, try_start(s, "true", &ids[3]));
    CHECK(!strstr(ERR->msg, nacre_id_short(&ids[3]).s));
    CHECK_STR(ERR->msg, nacre_id_short(&id).s);

    release_shell(s, &ids[0]);
    wait_outcome(s, &ids[0], 5000);
    CHECK_OK(try_start(s, "sleep 300", &id));
    CHECK_CODE(NACRE_ELIMIT, try_start(s, "true", &id));
    close_session(s);
}

TEST(a_start_that_fails_gives_its_place_back)
{
    nacre_session *s = open_tool((const char *[]){"shells=1", NULL});
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_id id;

    command.text = "true";
    command.cwd = "/nowhere/at/all";
    command.background = 1;
    for (int i = 0; i < 3; i++)
        CHECK_CODE(NACRE_ESTART, nacre_start(s, &command, &id, NULL, ERR));
    CHECK_OK(try_start(s, "sleep 300", &id));
    CHECK_EQ_INT(1, counts_of(s).running);
    close_session(s);
}

TEST(what_yielded_counts_and_is_never_refused)
{
    nacre_session *s = open_tool((const char *[]){"shells=2", NULL});
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_record record = NACRE_RECORD_INIT;
    nacre_id ids[2], id;

    for (int i = 0; i < 2; i++)
        ids[i] = start_background(s, "sleep 300");
    command.text = "echo so far; sleep 300";
    CHECK_CODE(NACRE_ETIMEOUT, nacre_run(s, &command, 100, &record, ERR));
    nacre_id yielded = record.id;
    CHECK_EQ_INT(0, record.background);
    nacre_record_done(&record);
    CHECK_EQ_INT(2, counts_of(s).running);
    CHECK_OK(nacre_background(s, &yielded, ERR));
    CHECK_OK(nacre_background(s, &yielded, ERR));
    CHECK_EQ_INT(3, counts_of(s).running);
    record = record_of(s, &yielded);
    CHECK_EQ_INT(1, record.background);
    nacre_record_done(&record);

    kill_shell(s, &ids[0], 0);
    CHECK_CODE(NACRE_ELIMIT, try_start(s, "true", &id));
    CHECK_STR(ERR->msg, nacre_id_short(&yielded).s);
    kill_shell(s, &yielded, 0);
    CHECK_OK(try_start(s, "sleep 300", &id));
    close_session(s);
}

TEST(lingering_ones_do_not_count_and_stay_listed)
{
    nacre_session *s = open_tool((const char *[]){"shells=2", "listed=2", NULL});
    nacre_id ids[4];
    const char *m = marker();

    for (int i = 0; i < 4; i++) {
        ids[i] = start_background(s, format("%s sleep 300.%s & exit 4", own_session(), m));
        wait_outcome(s, &ids[i], 5000);
    }
    CHECK(AWAIT(counts_of(s).lingering == 4, 5000));
    CHECK_EQ_INT(0, counts_of(s).running);
    CHECK_EQ_INT(0, counts_of(s).finished);
    CHECK_TEXT(status_of(s, &ids[0]), "exited(4), lingering");
    await_marked(m, 4);
    kill_shell(s, &ids[0], 0);
    CHECK_EQ_INT(3, counts_of(s).lingering);
    CHECK_TEXT(status_of(s, &ids[0]), "exited(4)");
    close_session(s);
    CHECK_EQ_INT(0, count_marked(m));
}

TEST(a_foreground_shell_that_lingers_is_listed_until_it_is_over)
{
    nacre_session *s = open_tool(NULL);
    const char *m = marker();
    struct run run = run_text(s, format("%s sleep 300.%s & echo hi", own_session(), m));

    CHECK_TEXT(run.out, "hi\n");
    CHECK(AWAIT(counts_of(s).lingering == 1, 5000));
    CHECK_EQ_INT(0, counts_of(s).running);
    kill_shell(s, &run.record.id, 0);
    CHECK_EQ_INT(0, counts_of(s).lingering);
    CHECK_EQ_INT(0, counts_of(s).finished);
    run_done(&run);
    close_session(s);
}

/* -- Lists ----------------------------------------------------------------------------------- */

struct seen {
    nacre_id ids[64];
    uint64_t unread[64];
    int count;
};

static int see(const nacre_listed *listed, void *arg)
{
    struct seen *seen = arg;

    CHECK(seen->count < 64);
    CHECK_EQ_INT(1, listed->background);
    seen->ids[seen->count] = listed->record->id;
    seen->unread[seen->count++] = listed->unread;
    return 0;
}

static struct seen list_of(nacre_session *s, int only_alive)
{
    nacre_list_options options = NACRE_LIST_OPTIONS_INIT;
    struct seen seen = {.count = 0};

    options.only_alive = only_alive;
    CHECK_OK(nacre_list(s, &options, see, &seen, ERR));
    return seen;
}

static void check_listed(const struct seen *seen, int index, const nacre_id *id)
{
    CHECK(index < seen->count);
    CHECK_TEXT(nacre_id_format(&seen->ids[index]).s, nacre_id_format(id).s);
}

TEST(a_list_is_in_the_order_of_the_starts)
{
    nacre_session *s = open_tool(NULL);
    nacre_id ids[4];

    ids[0] = start_background(s, "sleep 300");
    ids[1] = start_background(s, "printf 12345");
    ids[2] = start_background(s, "sleep 300");
    ids[3] = start_background(s, "true");
    wait_outcome(s, &ids[1], 5000);
    wait_outcome(s, &ids[3], 5000);
    struct run run = run_text(s, "echo foreground shells are not listed");
    run_done(&run);
    struct seen seen = list_of(s, 0);
    CHECK_EQ_INT(4, seen.count);
    for (int i = 0; i < 4; i++)
        check_listed(&seen, i, &ids[i]);
    CHECK_EQ_INT(5, seen.unread[1]);
    CHECK(AWAIT(counts_of(s).finished == 2, 5000));
    seen = list_of(s, 1);
    CHECK_EQ_INT(2, seen.count);
    check_listed(&seen, 0, &ids[0]);
    check_listed(&seen, 1, &ids[2]);
    close_session(s);
}

TEST(finished_ones_leave_the_list_and_read_ones_first)
{
    nacre_session *s = open_tool((const char *[]){"listed=3", NULL});
    nacre_id running = start_background(s, "sleep 300"), ids[4];

    for (int i = 0; i < 2; i++) {
        ids[i] = start_background(s, "echo x");
        wait_outcome(s, &ids[i], 5000);
    }
    CHECK_OK(nacre_mark_read(s, &ids[1], 2, 1, ERR));
    for (int i = 2; i < 4; i++) {
        ids[i] = start_background(s, "echo x");
        wait_outcome(s, &ids[i], 5000);
        CHECK(AWAIT(counts_of(s).running == 1, 5000));
        struct seen seen = list_of(s, 0);
        CHECK_EQ_INT(3, seen.count);
        check_listed(&seen, 0, &running);
        check_listed(&seen, 1, i == 2 ? &ids[0] : &ids[2]);
        check_listed(&seen, 2, &ids[i]);
    }
    for (int i = 0; i < 4; i++)
        CHECK_TEXT(status_of(s, &ids[i]), "exited(0)");
    close_session(s);
}

TEST(more_run_than_a_list_shows)
{
    nacre_session *s = open_tool((const char *[]){"listed=2", NULL});

    for (int i = 0; i < 4; i++)
        start_background(s, "sleep 300");
    CHECK_EQ_INT(4, list_of(s, 0).count);
    CHECK_EQ_INT(4, counts_of(s).running);
    close_session(s);
}

TEST(a_removed_shell_is_not_listed)
{
    nacre_session *s = open_tool(NULL);
    nacre_id gone = start_background(s, "true"), alive = start_background(s, "sleep 300");
    nacre_record record = NACRE_RECORD_INIT;

    wait_outcome(s, &gone, 5000);
    CHECK(AWAIT(tree_empty(s, &gone), 5000));
    CHECK_CODE(NACRE_EBUSY, nacre_remove(s, &alive, ERR));
    CHECK_OK(nacre_remove(s, &gone, ERR));
    CHECK_CODE(NACRE_ENOTFOUND, nacre_get(s, &gone, &record, ERR));
    CHECK_CODE(NACRE_ENOTFOUND, nacre_remove(s, &gone, ERR));
    CHECK_EQ_INT(1, list_of(s, 0).count);
    CHECK_EQ_INT(0, counts_of(s).finished);
    close_session(s);
}

/* -- Ends ------------------------------------------------------------------------------------ */

TEST(what_has_ended_is_not_killed)
{
    nacre_session *s = open_tool(NULL);
    nacre_id id = start_background(s, "exit 3");
    nacre_kill_result result;

    wait_outcome(s, &id, 5000);
    CHECK(AWAIT(tree_empty(s, &id), 5000));
    for (int i = 0; i < 2; i++) {
        CHECK_OK(nacre_kill(s, &id, NULL, &result, ERR));
        CHECK_EQ_INT(0, result.was_alive);
        CHECK_EQ_INT(0, result.signalled);
        check_ended(s, &id, NACRE_EXITED, NACRE_REASON_NONE);
        CHECK_TEXT(status_of(s, &id), "exited(3)");
    }
    close_session(s);
}

TEST(a_lost_shell_frees_its_place)
{
    nacre_session *s = open_tool((const char *[]){"shells=1", NULL});
    const char *m = marker();
    nacre_id id = start_background(s, format("sleep 300.%s & wait", m)), next;
    nacre_offer *offer;

    await_marked(m, 1);
    CHECK_CODE(NACRE_ELIMIT, try_start(s, "true", &next));
    CHECK_EQ_INT(0, kill(keeper_of(s, &id).pid, SIGKILL));
    CHECK(AWAIT(try_start(s, "sleep 300", &next) == 0, 5000));
    CHECK_TEXT(status_of(s, &id), "lost");
    CHECK_EQ_INT(0, count_marked(m));
    CHECK_EQ_INT(1, nacre_offer_take(s, 0, &offer, ERR));
    nacre_id told = nacre_offer_id(offer, 0);
    CHECK(nacre_id_equal(&told, &id));
    CHECK_OK(nacre_offer_acknowledge(offer, ERR));
    close_session(s);
}

/* Many in the foreground leave nothing behind in the session. */
TEST(foreground_shells_leave_the_session)
{
    nacre_session *s = open_tool(NULL);

    for (int i = 0; i < 50; i++) {
        struct run run = run_text(s, "true");
        run_done(&run);
    }
    nacre_counts counts = counts_of(s);
    CHECK_EQ_INT(0, counts.running + counts.lingering + counts.finished + counts.completions);
    CHECK_EQ_INT(0, list_of(s, 0).count);
    close_session(s);
}
