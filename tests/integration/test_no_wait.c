/*
 * What says that it does not wait does not, whatever is the matter with a keeper: it was killed, it
 * was stopped, somebody else holds its lock, its socket has more visitors than it takes. Each call
 * returns at once, and the whole comes to its right end in steps. Nor does it wait for who holds
 * the catalog.
 */
#include "features/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "harness/session_ops.h"
#include "sys/fd.h"

/* -- At once ---------------------------------------------------------------------------------- */

#define WAIT_MAX_NS (INT64_C(200) * 1000000) /* a busy disk may take half of that */
#define RELIEF_MS   700   /* after which a trouble that nobody could end goes away */
#define END_MS      15000 /* for all of it */

/* How a thread has spent its time. */
struct moment {
    int64_t wall, cpu, queued;
};

static int64_t clock_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static struct moment this_moment(void)
{
    struct moment m = {.wall = clock_ns(CLOCK_MONOTONIC), .cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID)};
    char *text = slurp("/proc/thread-self/schedstat", NULL);
    long long ran, queued = 0;
    if (text && sscanf(text, "%lld %lld", &ran, &queued) == 2)
        m.queued = queued;
    free(text);
    return m;
}

/* It may compute, and others may have the processor; it may not sleep. */
static void check_waited(const char *call, int line, struct moment began)
{
    struct moment now = this_moment();
    int64_t waited = now.wall - began.wall - (now.cpu - began.cpu) - (now.queued - began.queued);
    if (waited > WAIT_MAX_NS * time_scale())
        harness_fail(__FILE__, line, "%s waited for %lld ms", call, (long long)waited / 1000000);
}

#define AT_ONCE(call)                          \
    ({                                         \
        struct moment began_ = this_moment();  \
        __typeof__(call) result_ = (call);     \
        check_waited(#call, __LINE__, began_); \
        result_;                               \
    })

/* -- Troubles --------------------------------------------------------------------------------- */

struct rig;

struct trouble {
    void (*make)(struct rig *rig);
    void (*relieve)(struct rig *rig); /* NULL = it is for ever */
    bool lost;                        /* the keeper is gone */
};

struct rig {
    const struct trouble *trouble;
    nacre_session *s;
    const char *mark;
    nacre_id id;
    struct process keeper;
    int64_t relief_at; /* 0 = there is none to come */
    int fds[256];
    size_t fd_count;
};

/* The keeper after it was forked from it, and has its lock until it has closed what it inherited.
 */
static void die(struct rig *rig)
{
    int fd = open(run_path(&rig->id, "state"), O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    kill(rig->keeper.pid, SIGKILL);
    CHECK(AWAIT(!process_alive(rig->keeper) && lock_held(fd) == 0, 5000));
    close(fd);
}

static void stop(struct rig *rig)
{
    kill(rig->keeper.pid, SIGSTOP);
    CHECK(AWAIT(process_state(rig->keeper.pid) == 'T', 5000));
}

static void let_go_of_fds(struct rig *rig)
{
    while (rig->fd_count > 0)
        close(rig->fds[--rig->fd_count]);
}

/* As another front end does that sweeps, and was stopped in the middle of it. */
static void lose_lock(struct rig *rig)
{
    int fd = open(run_path(&rig->id, "state"), O_RDWR | O_CLOEXEC);
    CHECK(fd >= 0);
    die(rig);
    CHECK(AWAIT(lock_take(fd) >= 0, 5000));
    rig->fds[rig->fd_count++] = fd;
}

static void crowd(struct rig *rig)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int dir = open(run_path(&rig->id, ""), O_PATH | O_CLOEXEC), r = 0;
    CHECK(dir >= 0);
    snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/ctl", dir);
    stop(rig);
    while (r == 0) {
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        CHECK(fd >= 0 && rig->fd_count < sizeof rig->fds / sizeof rig->fds[0]);
        rig->fds[rig->fd_count++] = fd;
        r = connect(fd, (const struct sockaddr *)&address, sizeof address);
    }
    CHECK_EQ_INT(EAGAIN, errno);
    close(dir);
}

static const struct trouble dead = {die, NULL, true}, stopped = {stop, NULL, false},
                            locked = {lose_lock, let_go_of_fds, true},
                            crowded = {crowd, let_go_of_fds, false};

#define EACH_TROUBLE(ident)                           \
    static void ident(const struct trouble *trouble); \
    TEST_LIMIT(ident##_dead, 40)                      \
    {                                                 \
        ident(&dead);                                 \
    }                                                 \
    TEST_LIMIT(ident##_stopped, 40)                   \
    {                                                 \
        ident(&stopped);                              \
    }                                                 \
    TEST_LIMIT(ident##_locked, 40)                    \
    {                                                 \
        ident(&locked);                               \
    }                                                 \
    TEST_LIMIT(ident##_crowded, 40)                   \
    {                                                 \
        ident(&crowded);                              \
    }                                                 \
    static void ident(const struct trouble *trouble)

/* -- Rigs ------------------------------------------------------------------------------------- */

static void begin_trouble(struct rig *rig)
{
    rig->trouble->make(rig);
    rig->relief_at = rig->trouble->relieve ? now_ms() + RELIEF_MS : 0;
}

/* A shell with a stdin that ends at SIGINT, and its keeper. */
static struct rig open_rig(const struct trouble *trouble, bool background, nacre_lifetime lifetime)
{
    struct rig rig = {.trouble = trouble, .s = open_tool(NULL), .mark = marker()};
    nacre_command command = NACRE_COMMAND_INIT;
    command.text = format("exec sleep 300.%s", rig.mark);
    command.input = NACRE_STDIN_PIPE;
    command.background = background;
    command.lifetime = lifetime;
    rig.id = start_command(rig.s, &command);
    await_marked(rig.mark, 1);
    rig.keeper = keeper_of(rig.s, &rig.id);
    return rig;
}

static struct rig open_troubled(const struct trouble *trouble)
{
    struct rig rig = open_rig(trouble, true, NACRE_LIFE_SESSION);
    begin_trouble(&rig);
    return rig;
}

/* Nothing of the trouble is left, nor of the shell. */
static void close_rig(struct rig *rig)
{
    let_go_of_fds(rig);
    kill_shell(rig->s, &rig->id, 200);
    if (rig->trouble->lost)
        CHECK_TEXT(status_of(rig->s, &rig->id), "lost");
    await_marked(rig->mark, 0);
    close_session(rig->s);
}

/* As a host's loop waits: for the descriptor, until the time that was said, and not for ever. */
static void wait_a_little(struct rig *rig, int fd, int events, int64_t ms)
{
    struct pollfd poller = {.fd = fd, .events = (short)events};
    int64_t most = rig->relief_at ? rig->relief_at - now_ms() : 1000;
    if (most <= 0) {
        rig->trouble->relieve(rig);
        rig->relief_at = 0;
        return;
    }
    ms = ms < 0 || ms > most ? most : ms;
    poll(&poller, 1, (int)ms);
}

static int drive_op(struct rig *rig, nacre_op *op)
{
    int64_t until = now_ms() + soon(END_MS);
    int r;
    while ((r = AT_ONCE(op->step(op, ERR))) == 0) {
        int64_t left_ns = op->wake_ns - clock_ns(CLOCK_MONOTONIC);
        CHECK(now_ms() < until);
        wait_a_little(rig, op->fd, op->events,
                      op->wake_ns == INT64_MAX ? -1
                      : left_ns > 0            ? left_ns / 1000000 + 1
                                               : 0);
    }
    return r;
}

static struct reply drive_call(struct rig *rig, nacre_call *c)
{
    int64_t until = now_ms() + soon(END_MS);
    int r;
    while ((r = AT_ONCE(nacre_call_step(c, ERR))) == 0) {
        CHECK(now_ms() < until);
        wait_a_little(rig, nacre_call_fd(c), POLLIN, nacre_call_timeout(c));
    }
    CHECK_OK(r);
    return read_reply(nacre_call_result(c));
}

static nacre_call *begin_at_once(nacre_session *s, const char *tool, const char *arguments)
{
    nacre_call *c = NULL;
    CHECK_OK(AT_ONCE(nacre_call_begin(s, tool, arguments, strlen(arguments), NULL, &c, ERR)));
    return c;
}

/* -- Looking around --------------------------------------------------------------------------- */

static nacre_event_kind next_event(struct rig *rig, nacre_watch *watch)
{
    char bytes[64];
    nacre_event event;
    CHECK_OK(AT_ONCE(nacre_watch_next(watch, bytes, sizeof bytes, &event, ERR)));
    if (event.kind == NACRE_EVENT_NONE)
        wait_a_little(rig, nacre_watch_fd(watch), POLLIN, 1000);
    return event.kind;
}

EACH_TROUBLE(watches)
{
    struct rig rig = open_rig(trouble, true, NACRE_LIFE_SESSION);
    nacre_watch *before, *after;
    int64_t until = now_ms() + soon(END_MS);
    CHECK_OK(AT_ONCE(nacre_watch_open(rig.s, &rig.id, 0, &before, ERR)));
    begin_trouble(&rig);
    CHECK_OK(AT_ONCE(nacre_watch_open(rig.s, &rig.id, 0, &after, ERR)));
    /* A keeper that was stopped is woken by who watches. */
    while (!trouble->lost && process_state(rig.keeper.pid) == 'T') {
        next_event(&rig, before);
        next_event(&rig, after);
        CHECK(now_ms() < until);
    }
    if (!trouble->lost)
        kill_shell(rig.s, &rig.id, 100);
    while (next_event(&rig, before) != NACRE_EVENT_END)
        CHECK(now_ms() < until);
    while (next_event(&rig, after) != NACRE_EVENT_END)
        CHECK(now_ms() < until);
    nacre_watch_close(before);
    nacre_watch_close(after);
    close_rig(&rig);
}

/* For long enough that the session looks after those that are silent, too. */
EACH_TROUBLE(counts_and_completions)
{
    struct rig rig = open_troubled(trouble);
    nacre_counts counts = NACRE_COUNTS_INIT;
    nacre_unread unread = NACRE_UNREAD_INIT;
    nacre_offer *offer = NULL;
    int64_t until = now_ms() + (trouble->lost ? soon(END_MS) : 2500), taken = 0;
    while (taken == 0 && now_ms() < until) {
        int fd = AT_ONCE(nacre_completion_fd(rig.s, ERR));
        CHECK_OK(fd);
        wait_a_little(&rig, fd, POLLIN, 1000);
        CHECK_OK(AT_ONCE(nacre_get_counts(rig.s, &counts, ERR)));
        CHECK_OK(AT_ONCE(nacre_get_unread(rig.s, &rig.id, &unread, ERR)));
        taken = AT_ONCE(nacre_offer_take(rig.s, 0, &offer, ERR));
        CHECK_OK(taken);
    }
    CHECK_EQ_INT(trouble->lost, taken);
    if (taken > 0)
        CHECK_OK(nacre_offer_acknowledge(offer, ERR));
    close_rig(&rig);
}

/* -- Operations ------------------------------------------------------------------------------- */

EACH_TROUBLE(kills)
{
    struct rig rig = open_troubled(trouble);
    nacre_op *op;
    CHECK_OK(AT_ONCE(session_kill(rig.s, &rig.id, NULL, &op, ERR)));
    CHECK_OK(drive_op(&rig, op));
    const nacre_kill_result *result = op->result;
    CHECK_EQ_INT(0, result->survivors);
    op->end(op);
    CHECK_EQ_INT(0, count_marked(rig.mark));
    close_rig(&rig);
}

EACH_TROUBLE(inputs)
{
    struct rig rig = open_troubled(trouble);
    nacre_op *op;
    CHECK_OK(AT_ONCE(session_input(rig.s, &rig.id, "text\n", 5, 1, &op, ERR)));
    int r = drive_op(&rig, op);
    CHECK_EQ_INT(r == 1 ? 5 : 0, *(const size_t *)op->result);
    if (!trouble->lost)
        CHECK_OK(r);
    CHECK_EQ_INT(trouble->lost, r < 0);
    op->end(op);
    close_rig(&rig);
}

EACH_TROUBLE(signals)
{
    struct rig rig = open_troubled(trouble);
    nacre_op *op;
    CHECK_OK(AT_ONCE(session_signal(rig.s, &rig.id, SIGINT, &op, ERR)));
    int r = drive_op(&rig, op);
    if (!trouble->lost)
        CHECK_OK(r);
    CHECK_EQ_INT(trouble->lost, r < 0);
    op->end(op);
    if (r == 1)
        await_marked(rig.mark, 0);
    close_rig(&rig);
}

EACH_TROUBLE(moves_into_the_background)
{
    struct rig rig = open_rig(trouble, false, NACRE_LIFE_SESSION);
    nacre_op *op;
    begin_trouble(&rig);
    CHECK_OK(AT_ONCE(session_background(rig.s, &rig.id, &op, ERR)));
    CHECK_OK(drive_op(&rig, op));
    op->end(op);
    nacre_counts counts = counts_of(rig.s);
    CHECK_EQ_INT(1, counts.running + counts.lingering + counts.finished);
    close_rig(&rig);
}

EACH_TROUBLE(looks)
{
    struct rig rig = open_troubled(trouble);
    nacre_op *op = NULL;
    CHECK_OK(AT_ONCE(session_look(rig.s, &rig.id, &op, ERR)));
    if (op) {
        CHECK_OK(drive_op(&rig, op));
        op->end(op);
    }
    /* Who holds the lock of a run is taken for its keeper. */
    if (trouble == &dead)
        CHECK_TEXT(status_of(rig.s, &rig.id), "lost");
    close_rig(&rig);
}

/* A kept shell, whose session has ended. */
EACH_TROUBLE(adoptions)
{
    struct rig rig = open_rig(trouble, true, NACRE_LIFE_KEEP);
    nacre_op *op = NULL;
    close_session(rig.s);
    rig.s = open_session();
    begin_trouble(&rig);
    int r = AT_ONCE(session_adopt(rig.s, &rig.id, &op, ERR));
    if (r == 0) {
        r = drive_op(&rig, op);
        op->end(op);
    }
    if (!trouble->lost)
        CHECK_OK(r);
    close_rig(&rig);
}

/* The keeper that is kept warm for the next command: a start has to do without it. */
static struct process warm_keeper(const struct rig *rig)
{
    struct process found[64];
    size_t count = find_marked("nacre-keeper", found, 64);
    for (size_t i = 0; i < count && i < 64; i++)
        if (found[i].pid != rig->keeper.pid && process_parent(found[i].pid) == getppid())
            return found[i];
    return (struct process){0, 0};
}

static int note_id(const nacre_listed *listed, void *userdata)
{
    *(nacre_id *)userdata = listed->record->id;
    return 0;
}

static bool is_gone_or_stopped(struct process process)
{
    return !process_alive(process) || process_state(process.pid) == 'T';
}

static void start_without(int signal)
{
    struct rig rig = open_rig(&stopped, true, NACRE_LIFE_SESSION);
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_op *op;
    struct process warm;
    CHECK(AWAIT((warm = warm_keeper(&rig)).pid > 0 && process_state(warm.pid) == 'S', 5000));
    pause_ms(50); /* it has said that it is ready */
    /* Nor can the other one make another. */
    kill(warm.pid, signal);
    kill(rig.keeper.pid, signal);
    CHECK(AWAIT(is_gone_or_stopped(warm) && is_gone_or_stopped(rig.keeper), 5000));
    command.text = "echo text";
    CHECK_OK(AT_ONCE(session_start(rig.s, &command, &op, ERR)));
    CHECK_OK(drive_op(&rig, op));
    nacre_id id = ((struct session_started *)op->result)->started.id;
    op->end(op);
    wait_outcome(rig.s, &id, 5000);
    CHECK_TEXT(status_of(rig.s, &id), "exited(0)");
    /* What became of no run is found by who lists all. */
    CHECK_OK(list_home(rig.s, false, note_id, &id));
    close_rig(&rig);
}

TEST(starts_with_a_stopped_keeper)
{
    start_without(SIGSTOP);
}

TEST(starts_with_a_dead_keeper)
{
    start_without(SIGKILL);
}

/* -- The catalog ------------------------------------------------------------------------------ */

/* A program that began to write it and does not go on: whoever meets that first waits for a moment,
 * and from then on nobody, though every one of these calls has something to write. */
TEST(a_catalog_that_somebody_holds)
{
    sqlite3 *db;
    nacre_op *op;
    nacre_offer *offer;
    struct rig rig = open_rig(&stopped, true, NACRE_LIFE_SESSION);
    nacre_id ended = start_background(rig.s, "exit 3");
    wait_outcome(rig.s, &ended, 5000);
    CHECK_EQ_INT(SQLITE_OK, sqlite3_open(format("%s/catalog.db", test_home()), &db));
    CHECK_EQ_INT(SQLITE_OK, sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL));
    (void)nacre_offer_take(rig.s, 0, &offer, ERR);
    for (int i = 0; i < 3; i++)
        (void)AT_ONCE(nacre_offer_take(rig.s, 0, &offer, ERR));
    CHECK_OK(AT_ONCE(session_kill(rig.s, &rig.id, NULL, &op, ERR)));
    CHECK_OK(drive_op(&rig, op));
    AT_ONCE((op->end(op), 0));
    CHECK_EQ_INT(0, count_marked(rig.mark));
    CHECK_EQ_INT(SQLITE_OK, sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL));
    sqlite3_close(db);
    close_session(rig.s);
}

/* -- Tools ------------------------------------------------------------------------------------ */

/* The shell of a call that waits for it. */
static struct rig open_calling(const struct trouble *trouble, const char *more, nacre_call **ret)
{
    struct rig rig = {.trouble = trouble, .s = open_tool(NULL), .mark = marker()};
    *ret = begin_at_once(rig.s, "bash",
                         format("{\"command\": \"exec sleep 300.%s\"%s}", rig.mark, more));
    CHECK(!drive(*ret, 100));
    await_marked(rig.mark, 1);
    /* It runs, and on a busy machine the call learns that only now. */
    CHECK(!drive(*ret, 10));
    CHECK_OK(list_home(rig.s, true, note_id, &rig.id));
    rig.keeper = keeper_of(rig.s, &rig.id);
    begin_trouble(&rig);
    return rig;
}

EACH_TROUBLE(commands_that_yield)
{
    nacre_call *c;
    struct rig rig = open_calling(trouble, ", \"yield\": 1", &c);
    struct reply r = drive_call(&rig, c);
    CHECK(!r.error);
    CHECK(trouble == &locked ||
          contains(r.text, trouble->lost ? "ost" : "Still running after 1 s"));
    nacre_call_delivered(c);
    nacre_call_free(c);
    close_rig(&rig);
}

EACH_TROUBLE(commands_that_are_cancelled)
{
    nacre_call *c;
    struct rig rig = open_calling(trouble, "", &c);
    AT_ONCE((nacre_call_cancel(c), 0));
    drive_call(&rig, c);
    CHECK_EQ_INT(0, count_marked(rig.mark));
    AT_ONCE((nacre_call_free(c), 0));
    close_rig(&rig);
}

static struct reply call_at_once(struct rig *rig, const char *tool, const char *more)
{
    nacre_id_text id = nacre_id_format(&rig->id);
    nacre_call *c = begin_at_once(rig->s, tool, format("{\"id\": \"%s\"%s}", id.s, more));
    struct reply r = drive_call(rig, c);
    nacre_call_delivered(c);
    AT_ONCE((nacre_call_free(c), 0));
    return r;
}

EACH_TROUBLE(reading)
{
    struct rig rig = open_troubled(trouble);
    struct reply r = call_at_once(&rig, "bash_output", ", \"wait\": 1");
    CHECK(!r.error);
    CHECK_STR(r.text, trouble == &dead ? "lost]" : trouble == &locked ? "]" : "running]");
    close_rig(&rig);
}

EACH_TROUBLE(feeding)
{
    struct rig rig = open_troubled(trouble);
    struct reply r = call_at_once(&rig, "bash_input", ", \"input\": \"text\", \"keys\": \"C-c\"");
    if (!trouble->lost)
        CHECK_STR(r.text, "wrote 4 bytes, sent SIGINT");
    CHECK_EQ_INT(trouble->lost, r.error);
    close_rig(&rig);
}

EACH_TROUBLE(killing)
{
    struct rig rig = open_troubled(trouble);
    struct reply r = call_at_once(&rig, "kill_shell", "");
    CHECK(!r.error);
    CHECK_EQ_INT(0, count_marked(rig.mark));
    close_rig(&rig);
}

EACH_TROUBLE(listing)
{
    struct rig rig = open_troubled(trouble);
    nacre_call *c = begin_at_once(rig.s, "list_shells", "{}");
    struct reply r = drive_call(&rig, c);
    CHECK_STR(r.text, nacre_id_short(&rig.id).s);
    nacre_call_free(c);
    close_rig(&rig);
}

EACH_TROUBLE(searching)
{
    struct rig rig = open_troubled(trouble);
    struct reply r = call_at_once(&rig, "recall", ", \"pattern\": \"text\"");
    CHECK(!r.error);
    close_rig(&rig);
}

/* -- Terminals of clients --------------------------------------------------------------------- */

struct answers {
    int count;
    char last[4096];
};

static void note_answer(const char *message, size_t size, void *userdata)
{
    struct answers *answers = userdata;
    snprintf(answers->last, sizeof answers->last, "%.*s", (int)size, message);
    answers->count++;
}

/* The request, and its answer. */
static void ask_host(struct rig *rig, nacre_acp_host *host, struct answers *answers,
                     const char *method, const char *params)
{
    int64_t until = now_ms() + soon(END_MS);
    int before = answers->count;
    const char *request =
        format("{\"jsonrpc\": \"2.0\", \"id\": %d, \"method\": \"terminal/%s\", \"params\": "
               "{\"sessionId\": \"a\", %s}}",
               before, method, params);
    CHECK_EQ_INT(1, AT_ONCE(nacre_acp_host_feed(host, request, strlen(request), ERR)));
    while (answers->count == before) {
        CHECK(now_ms() < until);
        wait_a_little(rig, nacre_acp_host_fd(host), POLLIN, -1);
        CHECK_OK(AT_ONCE(nacre_acp_host_dispatch(host, ERR)));
    }
}

EACH_TROUBLE(terminals)
{
    struct rig rig = {.trouble = trouble, .s = open_session(), .mark = marker()};
    struct answers answers = {.count = 0};
    nacre_acp_host_options options = NACRE_ACP_HOST_OPTIONS_INIT;
    nacre_acp_host *host;
    options.send = note_answer;
    options.userdata = &answers;
    CHECK_OK(nacre_acp_host_open(rig.s, &options, &host, ERR));
    ask_host(&rig, host, &answers, "create",
             format("\"command\": \"sleep\", \"args\": [\"300.%s\"]", rig.mark));
    const char *id = strstr(answers.last, "\"terminalId\":\"");
    CHECK(id);
    char text[33];
    snprintf(text, sizeof text, "%s", id + strlen("\"terminalId\":\""));
    CHECK_OK(nacre_id_parse(text, &rig.id));
    const char *terminal = format("\"terminalId\": \"%s\"", text);
    await_marked(rig.mark, 1);
    rig.keeper = keeper_of(rig.s, &rig.id);
    begin_trouble(&rig);
    ask_host(&rig, host, &answers, "output", terminal);
    CHECK_STR(answers.last, "\"output\":\"\"");
    ask_host(&rig, host, &answers, "kill", terminal);
    CHECK_EQ_INT(0, count_marked(rig.mark));
    ask_host(&rig, host, &answers, "wait_for_exit", terminal);
    ask_host(&rig, host, &answers, "release", terminal);
    CHECK_STR(answers.last, "\"result\":");
    AT_ONCE((nacre_acp_host_close(host), 0));
    close_rig(&rig);
}
