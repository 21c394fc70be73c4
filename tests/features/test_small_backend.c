/* The contract of backends, with the small one: what the tests of the tools do not ask for. */
#include "harness/harness.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include "harness/session_ops.h"
#include "small_backend.h"

static nacre_session *open_on(const nacre_backend *backend, int64_t grace_ms)
{
    nacre_options options = NACRE_OPTIONS_INIT;
    options.backend = backend;
    options.grace_ms = grace_ms;
    return open_options(&options);
}

static nacre_session *open_small(void)
{
    nacre_backend backend;
    CHECK_OK(small_backend_new(&backend));
    return open_on(&backend, -1);
}

static nacre_id start_stubborn(nacre_session *s, const char *mark, int64_t grace_ms)
{
    nacre_command command = NACRE_COMMAND_INIT;
    command.text = format("trap '' TERM; exec sleep 300.%s", mark);
    command.background = 1;
    command.grace_ms = grace_ms;
    nacre_id id = start_command(s, &command);
    await_marked(mark, 1);
    return id;
}

/* What a host's loop does that waits for completions and for nothing else. */
static int await_offer(nacre_session *s, int64_t ms)
{
    int64_t until = now_ms() + soon(ms);
    nacre_offer *offer;
    int r;
    while ((r = nacre_offer_take(s, 0, &offer, ERR)) == 0 && now_ms() < until) {
        struct pollfd bell = {.fd = nacre_completion_fd(s, ERR), .events = POLLIN};
        CHECK_OK(bell.fd);
        poll(&bell, 1, (int)(until - now_ms()));
    }
    CHECK_OK(r);
    if (r > 0)
        CHECK_OK(nacre_offer_acknowledge(offer, ERR));
    return r;
}

static int count_one(const nacre_listed *listed, void *userdata)
{
    (void)listed;
    ++*(int *)userdata;
    return 0;
}

/* -- The life of a shell ---------------------------------------------------------------------- */

TEST(counts_offers_and_removal)
{
    nacre_session *s = open_small();
    nacre_id first = start_background(s, "read x"), second = start_background(s, "sleep 300");
    nacre_record record = NACRE_RECORD_INIT;

    CHECK_EQ_INT(2, counts_of(s).running);
    wait_outcome(s, &first, 5000);
    CHECK(AWAIT(tree_empty(s, &first), 5000));
    CHECK_OK(nacre_get(s, &first, &record, ERR));
    CHECK_EQ_INT(1, record.exit_code);
    CHECK_EQ_INT(1, counts_of(s).running);
    CHECK_EQ_INT(1, counts_of(s).finished);
    CHECK_EQ_INT(1, counts_of(s).completions);
    CHECK_EQ_INT(1, await_offer(s, 5000));
    CHECK_EQ_INT(0, counts_of(s).completions);
    CHECK_OK(nacre_mark_read(s, &first, 0, 1, ERR));
    CHECK_CODE(NACRE_EBUSY, nacre_remove(s, &second, ERR));
    CHECK_OK(nacre_remove(s, &first, ERR));
    CHECK_EQ_INT(0, counts_of(s).finished);
    CHECK_OK(nacre_gc(s, NULL, NULL, NULL, NULL, ERR));
    nacre_record_done(&record);
    close_session(s);
}

/* Ended before it was done, a start leaves no shell, no process and no directory. */
TEST(a_start_that_is_ended_was_none)
{
    nacre_session *s = open_small();
    nacre_command command = NACRE_COMMAND_INIT;
    const char *mark = marker();
    nacre_op *op;
    int count = 0;

    command.text = format("sleep 300.%s", mark);
    command.background = 1;
    CHECK_OK(session_start(s, &command, &op, ERR));
    op->end(op);
    CHECK_OK(list_home(s, false, count_one, &count));
    CHECK_EQ_INT(0, count);
    CHECK_EQ_INT(0, count_marked(mark));
    CHECK_EQ_INT(0, counts_of(s).running);
    command.cwd = "/nonexistent";
    CHECK_CODE(NACRE_ESTART, nacre_start(s, &command, &(nacre_id){{0}}, NULL, ERR));
    CHECK_OK(list_home(s, false, count_one, &count));
    CHECK_EQ_INT(0, count);
    close_session(s);
}

/* The kill goes on although nobody steps it, and the end is heard although nobody watches. */
TEST(a_kill_that_is_left_goes_on)
{
    nacre_session *s = open_small();
    const char *mark = marker();
    nacre_id id = start_stubborn(s, mark, 300);
    nacre_op *op;

    CHECK_OK(session_kill(s, &id, NULL, &op, ERR));
    CHECK_EQ_INT(0, op->step(op, ERR));
    op->end(op);
    CHECK_EQ_INT(1, count_marked(mark));
    CHECK_EQ_INT(1, await_offer(s, 5000));
    CHECK_EQ_INT(0, count_marked(mark));
    CHECK_TEXT(status_of(s, &id), "killed");
    close_session(s);
}

TEST(a_deadline_is_kept_unwatched)
{
    nacre_session *s = open_small();
    nacre_command command = NACRE_COMMAND_INIT;

    command.text = "exec sleep 300";
    command.background = 1;
    command.timeout_ms = 200;
    nacre_id id = start_command(s, &command);
    CHECK_EQ_INT(1, await_offer(s, 5000));
    CHECK_TEXT(status_of(s, &id), "timed_out");
    close_session(s);
}

/* -- The end of a session --------------------------------------------------------------------- */

TEST(closing_ends_all_at_once)
{
    nacre_session *s = open_small();
    const char *mark = marker();

    for (int i = 0; i < 4; i++)
        start_stubborn(s, format("%s%d", mark, i), 500);
    int64_t begin = now_ms();
    close_session(s);
    CHECK_RANGE(500, now_ms() - begin, soon(1200));
    CHECK_EQ_INT(0, count_marked(mark));
}

static void close_in_child(void *session)
{
    CHECK_CODE(NACRE_EFORKED, nacre_kill(session, &(nacre_id){{0}}, NULL, NULL, ERR));
    CHECK_EQ_INT(0, nacre_close(session, ERR));
}

TEST(a_forked_child_ends_nothing)
{
    nacre_session *s = open_small();
    nacre_id id = start_background(s, "sleep 300");

    host_join(host_fork(close_in_child, s));
    CHECK_TEXT(status_of(s, &id), "running");
    close_session(s);
}

struct killed_host {
    _Atomic int ready;
    nacre_id id;
    const char *mark;
};

static void run_and_wait(void *arg)
{
    struct killed_host *host = arg;
    nacre_session *s = open_small();
    host->id = start_background(s, format("exec sleep 300.%s", host->mark));
    host->ready = 1;
    pause();
}

/* Nobody else writes a mirror: what its process left is lost, and the command is out of reach. */
TEST(what_a_killed_host_ran_is_lost)
{
    struct killed_host *host = shared_memory(sizeof *host);
    struct process left;

    host->mark = marker();
    pid_t pid = host_fork(run_and_wait, host);
    CHECK(AWAIT(host->ready, 5000));
    nacre_session *s = open_session();
    CHECK_TEXT(status_of(s, &host->id), "running");
    CHECK_CODE(NACRE_EUNSUPPORTED, nacre_kill(s, &host->id, NULL, NULL, ERR));
    host_kill(pid);
    CHECK_TEXT(status_of(s, &host->id), "lost");
    CHECK_EQ_INT(1, find_marked(host->mark, &left, 1));
    kill(left.pid, SIGKILL);
    await_marked(host->mark, 0);
    close_session(s);
}

/* -- The table -------------------------------------------------------------------------------- */

/* What an older table does not reach is not there, whatever lies behind it. */
TEST(a_table_that_ends_early)
{
    nacre_backend backend;
    CHECK_OK(small_backend_new(&backend));
    nacre_backend_ops ops = *backend.ops;
    const nacre_backend_ops *whole = backend.ops;
    ops.size = offsetof(nacre_backend_ops, input);
    backend.ops = &ops;
    nacre_session *s = open_on(&backend, -1);
    nacre_id id = start_held(s, "cat");

    CHECK_CODE(NACRE_EUNSUPPORTED, nacre_input(s, &id, "x", 1, 0, 0, ERR));
    CHECK_STR(ERR->msg, "small");
    CHECK_CODE(NACRE_EUNSUPPORTED, nacre_signal(s, &id, SIGINT, ERR));
    CHECK_OK(nacre_background(s, &id, ERR));
    CHECK_OK(whole->signal(backend.self, &id, SIGKILL, NULL, ERR));
    CHECK(AWAIT(whole->pump(backend.self, &id, 1) == INT64_MAX, 5000));
    CHECK_TEXT(status_of(s, &id), "signaled(SIGKILL)");
    CHECK_EQ_INT(0, nacre_close(s, ERR));
    CHECK_OK(whole->close(backend.self, 1, NULL, ERR));
}

TEST(a_table_of_another_version)
{
    nacre_backend_ops ops = *nacre_backend_noop()->ops;
    nacre_backend backend = {.ops = &ops};
    nacre_options options = NACRE_OPTIONS_INIT;
    nacre_session *s;

    ops.version = NACRE_BACKEND_VERSION + 1;
    options.backend = &backend;
    CHECK_CODE(NACRE_EUNSUPPORTED, nacre_open(&options, &s, ERR));
}

/* What is done at once needs no operation. */
static int resize_at_once(void *self, const nacre_id *id, int columns, int rows, nacre_op **ret_op,
                          nacre_error *err)
{
    (void)self, (void)id, (void)columns, (void)rows, (void)ret_op, (void)err;
    return 0;
}

TEST(a_size_that_is_taken_at_once)
{
    nacre_backend backend;

    CHECK_OK(small_backend_new(&backend));
    nacre_backend_ops ops = *backend.ops;
    ops.resize = resize_at_once;
    backend.ops = &ops;
    nacre_session *s = open_on(&backend, -1);
    nacre_id id = start_stubborn(s, marker(), 100);
    CHECK_OK(nacre_resize(s, &id, 100, 30, ERR));
    kill_shell(s, &id, 0);
    close_session(s);
}
