/* A host that may not make large files: nothing dies of it, and nothing of it is changed. */
#include "harness/harness.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static struct rlimit lift_limit(void)
{
    struct rlimit limit;

    CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    limit.rlim_cur = limit.rlim_max;
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    return limit;
}

static void set_limit(rlim_t size)
{
    struct rlimit limit = lift_limit();

    limit.rlim_cur = size;
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

static void check_signals(bool blocked, bool pending)
{
    struct sigaction action;
    sigset_t mask, waiting;

    CHECK(pthread_sigmask(SIG_BLOCK, NULL, &mask) == 0);
    CHECK_EQ_INT(blocked, sigismember(&mask, SIGXFSZ));
    CHECK(sigpending(&waiting) == 0);
    CHECK_EQ_INT(pending, sigismember(&waiting, SIGXFSZ));
    CHECK(sigaction(SIGXFSZ, NULL, &action) == 0 && action.sa_handler == SIG_DFL);
}

static int count_shell(const nacre_listed *listed, void *arg)
{
    (void)listed;
    ++*(int *)arg;
    return 0;
}

/* All that writes: the catalog, the log of commands, long texts, bytes for stdin. */
static void use_everything(nacre_session *s)
{
    nacre_command command = NACRE_COMMAND_INIT;
    static char input[100000];
    static char text[300000];

    struct run run = run_text(s, "echo hi; ulimit -S -f; echo oops >&2");
    CHECK_TEXT(run.out, "hi\n0\n");
    CHECK_TEXT(run.err, "oops\n");
    run_done(&run);
    nacre_id id = start_background(s, "seq 1 5000");
    wait_outcome(s, &id, 10000);
    CHECK_TEXT(status_of(s, &id), "exited(0)");
    CHECK(output_has(s, &id, NACRE_OUT, "\n5000\n"));
    nacre_mark_read(s, &id, UINT64_MAX, 1, ERR);
    memset(text, ' ', sizeof(text) - 1);
    command.text = text;
    nacre_record record = NACRE_RECORD_INIT;
    nacre_run(s, &command, -1, &record, ERR);
    nacre_record_done(&record);
    command.text = "wc -c";
    command.input = NACRE_STDIN_BYTES;
    command.input_data = input;
    command.input_size = sizeof(input);
    nacre_run(s, &command, -1, &record, ERR);
    nacre_record_done(&record);
    int shells = 0;
    CHECK_OK(list_home(s, false, count_shell, &shells));
    CHECK(shells >= 2);
}

TEST(library_of_a_host_with_a_limit)
{
    nacre_session *s = open_tool(NULL);

    set_limit(0);
    use_everything(s);
    check_signals(false, false);
    close_session(s);
    check_signals(false, false);
    lift_limit();
}

/* What the host has blocked stays so, and what waits for it is not taken. */
TEST(signal_that_the_host_waits_for)
{
    nacre_session *s = open_tool(NULL);
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGXFSZ);
    CHECK(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
    set_limit(0);
    use_everything(s);
    check_signals(true, false);
    CHECK(raise(SIGXFSZ) == 0);
    use_everything(s);
    check_signals(true, true);
    close_session(s);
    check_signals(true, true);
    CHECK_EQ_INT(SIGXFSZ, sigtimedwait(&set, NULL, &(struct timespec){0}));
    lift_limit();
}

/* The limit is the command's, not that of its log. */
TEST(output_is_kept_beyond_the_limit)
{
    nacre_session *s = open_session();

    set_limit(4096);
    struct run run = run_text(s, "seq 1 20000; exec 2>/dev/null; (seq 1 20000 > file); echo $?");
    CHECK_EQ_INT(0, run.record.dropped_bytes[0]);
    CHECK_STR(run.out, "\n20000\n153\n");
    run_done(&run);
    close_session(s);
    lift_limit();
}

/* A limit that cannot be lifted: what does not fit is dropped, counted, and its cause is said. */
TEST(output_is_dropped_at_a_hard_limit)
{
    nacre_session *s = open_session();
    struct rlimit limit = {65536, 65536};

    signal(SIGXFSZ, SIG_IGN); /* for the report of the case */
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    struct run run = run_text(s, "seq 1 50000; echo end");
    CHECK_TEXT(status_of(s, &run.record.id), "exited(0)");
    CHECK(run.record.dropped_bytes[0] > 0);
    CHECK_EQ_INT(EFBIG, run.record.dropped_errno);
    run_done(&run);
    close_session(s);
}
