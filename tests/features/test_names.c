/* Names: a named start is idempotent, in a session, and for kept shells in the whole home. */
#include "harness/harness.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

static nacre_command named(const char *name, const char *text)
{
    nacre_command command = NACRE_COMMAND_INIT;

    command.name = name;
    command.text = text;
    command.background = 1;
    return command;
}

static nacre_command kept(const char *name, const char *text)
{
    nacre_command command = named(name, text);

    command.lifetime = NACRE_LIFE_KEEP;
    return command;
}

static bool same(const nacre_id *a, const nacre_id *b)
{
    return nacre_id_equal(a, b) != 0;
}

/* -- In a session ---------------------------------------------------------------------------- */

TEST(the_same_start_twice_is_one_shell)
{
    nacre_session *s = open_tool((const char *[]){"shells=1", NULL});
    nacre_command command = named("web", "sleep 300");
    nacre_id first = start_command(s, &command), again;

    for (int i = 0; i < 3; i++) {
        CHECK_EQ_INT(1, nacre_start(s, &command, &again, NULL, ERR));
        CHECK(same(&first, &again));
    }
    CHECK_EQ_INT(1, counts_of(s).running);
    nacre_record record = record_of(s, &first);
    CHECK_TEXT(record.name, "web");
    nacre_record_done(&record);
    close_session(s);
}

TEST(the_watch_of_the_second_start_sees_it_all)
{
    nacre_session *s = open_tool(NULL);
    nacre_command command = named("web", "echo hello; sleep 300");
    nacre_id id = start_command(s, &command), again;
    nacre_watch *watch;
    nacre_event event;
    char text[16] = "";

    CHECK(AWAIT(output_has(s, &id, NACRE_OUT, "hello"), 5000));
    CHECK_EQ_INT(1, nacre_start(s, &command, &again, &watch, ERR));
    CHECK_OK(nacre_watch_wait(watch, soon(2000), text, sizeof text - 1, &event, ERR));
    CHECK_EQ_INT(NACRE_EVENT_OUTPUT, event.kind);
    CHECK_TEXT(text, "hello\n");
    nacre_watch_close(watch);
    close_session(s);
}

TEST(another_command_under_the_name_is_refused)
{
    nacre_session *s = open_tool(NULL);
    nacre_command command = named("web", "sleep 300"), other = named("web", "sleep 301");
    nacre_id first = start_command(s, &command), id;

    CHECK_CODE(NACRE_EBUSY, nacre_start(s, &other, &id, NULL, ERR));
    CHECK_STR(ERR->msg, "web");
    CHECK_STR(ERR->msg, nacre_id_short(&first).s);
    CHECK_STR(ERR->msg, "replace");
    other = named("web", "sleep 300");
    other.cwd = "/";
    CHECK_CODE(NACRE_EBUSY, nacre_start(s, &other, &id, NULL, ERR));
    CHECK_STR(ERR->msg, "elsewhere");
    const char *argv[] = {"sleep", "301", NULL};
    other.text = NULL;
    other.argv = argv;
    CHECK_CODE(NACRE_EBUSY, nacre_start(s, &other, &id, NULL, ERR));
    CHECK_TEXT(status_of(s, &first), "running");
    CHECK_EQ_INT(1, counts_of(s).running);
    other = named("db", "sleep 301");
    nacre_id second = start_command(s, &other);
    CHECK(!same(&first, &second));
    close_session(s);
}

TEST(replace_ends_the_one_that_has_the_name)
{
    nacre_session *s = open_tool((const char *[]){"shells=1", NULL});
    const char *m = marker();
    nacre_command command = named("web", format("sleep 300.%s & sleep 301.%s", m, m));
    nacre_id first = start_command(s, &command), again;

    await_marked(m, 2);
    command.replace = 1;
    CHECK_EQ_INT(1, nacre_start(s, &command, &again, NULL, ERR));
    CHECK(same(&first, &again));
    command.text = "sleep 300";
    CHECK_EQ_INT(0, nacre_start(s, &command, &again, NULL, ERR));
    CHECK(!same(&first, &again));
    CHECK_EQ_INT(0, count_marked(m));
    CHECK_TEXT(status_of(s, &first), "killed");
    CHECK_TEXT(status_of(s, &again), "running");
    CHECK_EQ_INT(1, counts_of(s).running);
    close_session(s);
}

TEST(after_the_end_the_name_is_free)
{
    nacre_session *s = open_tool(NULL);
    nacre_command command = named("job", "true");
    nacre_id ids[3];

    for (int i = 0; i < 3; i++) {
        CHECK_EQ_INT(0, nacre_start(s, &command, &ids[i], NULL, ERR));
        wait_outcome(s, &ids[i], 5000);
        CHECK(i == 0 || !same(&ids[i], &ids[i - 1]));
    }
    command.text = format("%s sleep 300 & exit 0", own_session());
    nacre_id lingering = start_command(s, &command), id;
    wait_outcome(s, &lingering, 5000);
    CHECK_EQ_INT(0, nacre_start(s, &command, &id, NULL, ERR));
    CHECK(!same(&lingering, &id));
    close_session(s);
}

TEST(a_name_in_the_foreground)
{
    nacre_session *s = open_tool(NULL);
    nacre_command command = named("once", "sleep 300");
    nacre_id again;

    command.background = 0;
    nacre_id first = start_command(s, &command);
    CHECK_EQ_INT(1, nacre_start(s, &command, &again, NULL, ERR));
    CHECK(same(&first, &again));
    close_session(s);
}

TEST(an_empty_name_is_none)
{
    nacre_session *s = open_tool(NULL);
    nacre_command command = named("", "sleep 300");
    nacre_id first = start_command(s, &command), second = start_command(s, &command);

    CHECK(!same(&first, &second));
    close_session(s);
}

TEST(names_of_two_sessions_do_not_meet)
{
    nacre_session *one = open_tool(NULL), *two = open_tool(NULL);
    nacre_command command = named("web", "sleep 300"), other = named("web", "sleep 301");
    nacre_id first = start_command(one, &command), id;

    CHECK_EQ_INT(0, nacre_start(two, &other, &id, NULL, ERR));
    CHECK(!same(&first, &id));
    /* Nor do kept ones meet those that are not. */
    other = kept("web", "sleep 302");
    nacre_id keep = start_command(two, &other);
    CHECK_EQ_INT(1, nacre_start(one, &command, &id, NULL, ERR));
    CHECK(same(&first, &id));
    kill_shell(two, &keep, 0);
    close_session(two);
    close_session(one);
}

/* -- Of kept shells -------------------------------------------------------------------------- */

TEST(a_kept_name_comes_back_in_a_later_session)
{
    nacre_session *s = open_tool(NULL);
    nacre_command command = kept("web", "echo up; sleep 300"), other = kept("web", "sleep 301");
    nacre_id first = start_command(s, &command), id;

    CHECK_EQ_INT(1, nacre_start(s, &command, &id, NULL, ERR));
    close_session(s);
    s = open_tool(NULL);
    CHECK_CODE(NACRE_EBUSY, nacre_start(s, &other, &id, NULL, ERR));
    CHECK_EQ_INT(1, nacre_start(s, &command, &id, NULL, ERR));
    CHECK(same(&first, &id));
    CHECK_EQ_INT(1, counts_of(s).running);
    kill_shell(s, &id, 0);
    CHECK_EQ_INT(0, nacre_start(s, &other, &id, NULL, ERR));
    kill_shell(s, &id, 0);
    close_session(s);
}

TEST(a_kept_name_of_a_live_session_is_in_its_hands)
{
    nacre_session *one = open_tool(NULL), *two = open_tool(NULL);
    nacre_command command = kept("web", "sleep 300");
    nacre_id first = start_command(one, &command), id;

    CHECK_CODE(NACRE_EFORBIDDEN, nacre_start(two, &command, &id, NULL, ERR));
    command.text = "sleep 301";
    CHECK_CODE(NACRE_EBUSY, nacre_start(two, &command, &id, NULL, ERR));
    command.replace = 1;
    CHECK_CODE(NACRE_EFORBIDDEN, nacre_start(two, &command, &id, NULL, ERR));
    CHECK_TEXT(status_of(one, &first), "running");
    kill_shell(one, &first, 0);
    close_session(two);
    close_session(one);
}

struct race {
    atomic_int ready, done, new, old, refused;
};

static void start_the_name(void *arg)
{
    struct race *race = arg;
    nacre_session *s = open_tool(NULL);
    nacre_command command = kept("web", "sleep 300");
    nacre_id id;

    atomic_fetch_add(&race->ready, 1);
    while (atomic_load(&race->ready) < 100)
        pause_ms(0);
    int r = nacre_start(s, &command, &id, NULL, ERR);
    atomic_fetch_add(r == 0 ? &race->new : r == 1 ? &race->old : &race->refused, 1);
    if (r < 0)
        CHECK_CODE(NACRE_EFORBIDDEN, r);
    atomic_fetch_add(&race->done, 1);
    CHECK(AWAIT(atomic_load(&race->done) >= 10, 20000));
    close_session(s);
}

static int end_it(const nacre_listed *listed, void *arg)
{
    nacre_id *ids = arg;

    memmove(&ids[1], &ids[0], sizeof ids[0]);
    ids[0] = listed->record->id;
    return 0;
}

TEST_LIMIT(ten_processes_start_one_name_once, 60)
{
    struct race *race = shared_memory(sizeof *race);
    pid_t pids[10];
    nacre_id ids[2] = {{{0}}, {{0}}}, none = {{0}};

    for (int i = 0; i < 10; i++)
        pids[i] = host_fork(start_the_name, race);
    CHECK(AWAIT(atomic_load(&race->ready) == 10, 10000));
    atomic_store(&race->ready, 100);
    for (int i = 0; i < 10; i++)
        host_join(pids[i]);
    CHECK_EQ_INT(1, race->new);
    CHECK_EQ_INT(9, race->refused);
    nacre_session *person = open_session();
    CHECK_OK(list_home(person, true, end_it, ids));
    CHECK(!same(&ids[0], &none));
    CHECK(same(&ids[1], &none));
    kill_shell(person, &ids[0], 0);
    close_session(person);
}

static void start_kept(void *arg)
{
    nacre_session *s = open_tool(NULL);
    nacre_command command = kept("web", "sleep 300");

    *(nacre_id *)arg = start_command(s, &command);
    close_session(s);
}

/* The catalog finds names; without one the directories do. */
TEST(a_kept_name_is_found_without_a_catalog)
{
    nacre_command command = kept("web", "sleep 300");
    nacre_id *first = shared_memory(sizeof *first), id;

    host_join(host_fork(start_kept, first));
    CHECK_EQ_INT(0, unlink(format("%s/catalog.db", test_home())));
    nacre_session *s = open_tool(NULL);
    CHECK_EQ_INT(1, nacre_start(s, &command, &id, NULL, ERR));
    CHECK(same(first, &id));
    kill_shell(s, &id, 0);
    close_session(s);
}
