/* Whose shells are whose: own ones, those of a session that lives, those of one that has ended. */
#include "harness/harness.h"

#include <dirent.h>
#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static void check_reads(nacre_session *s, const nacre_id *id, int code)
{
    nacre_record record = NACRE_RECORD_INIT;
    nacre_unread unread = NACRE_UNREAD_INIT;
    nacre_watch *watch = NULL;
    nacre_snapshot snapshot = {0};
    uint64_t cursor = 0;
    char buf[16];

    CHECK_CODE(code, nacre_get(s, id, &record, ERR));
    int64_t got = nacre_read(s, id, &cursor, NACRE_BOTH, buf, sizeof buf, NULL, ERR);
    CHECK_CODE(code, got < 0 ? got : 0);
    CHECK_CODE(code, nacre_output(s, id, NACRE_BOTH, 0, &snapshot, ERR));
    CHECK_CODE(code, nacre_watch_open(s, id, 0, &watch, ERR));
    CHECK_CODE(code, nacre_get_unread(s, id, &unread, ERR));
    CHECK_CODE(code, nacre_mark_read(s, id, unread.to, 0, ERR));
    nacre_watch_close(watch);
    free(snapshot.data);
    nacre_record_done(&record);
}

static void check_waits(nacre_session *s, const nacre_id *id, int code)
{
    nacre_id both[2] = {*id, *id};

    CHECK_CODE(code, nacre_wait(s, id, 1, NACRE_WAIT_ALL, 0, NULL, ERR));
    CHECK_CODE(code, nacre_wait(s, both, 2, NACRE_WAIT_ALL, 0, NULL, ERR));
    CHECK_CODE(code, nacre_wait(s, both, 2, NACRE_WAIT_ANY, 0, NULL, ERR));
}

static void check_no_changes(nacre_session *s, const nacre_id *id)
{
    CHECK_CODE(NACRE_EFORBIDDEN, nacre_kill(s, id, NULL, NULL, ERR));
    CHECK_CODE(NACRE_EFORBIDDEN, nacre_release(s, id, ERR));
    CHECK_CODE(NACRE_EFORBIDDEN, nacre_input(s, id, "x", 1, 0, 0, ERR));
    CHECK_CODE(NACRE_EFORBIDDEN, nacre_remove(s, id, ERR));
    CHECK_CODE(NACRE_EFORBIDDEN, nacre_keep(s, id, ERR));
    CHECK_CODE(NACRE_ENOTFOUND, nacre_background(s, id, ERR));
}

/* -- Live sessions --------------------------------------------------------------------------- */

TEST(of_another_live_session_nothing)
{
    nacre_session *one = open_tool(NULL), *two = open_tool(NULL);
    nacre_id background = start_held(one, "echo mine; read x"),
             foreground = start_text(one, "true");

    CHECK(AWAIT(output_has(one, &background, NACRE_OUT, "mine"), 5000));
    wait_outcome(one, &foreground, 5000);
    check_reads(two, &background, NACRE_EFORBIDDEN);
    check_reads(two, &foreground, NACRE_EFORBIDDEN);
    CHECK_STR(ERR->msg, "another session");
    check_waits(two, &background, NACRE_EFORBIDDEN);
    check_waits(two, &foreground, NACRE_EFORBIDDEN);
    check_no_changes(two, &background);
    check_no_changes(two, &foreground);
    CHECK_TEXT(status_of(one, &background), "running");
    check_reads(one, &background, 0);
    check_waits(one, &foreground, 0);
    release_shell(one, &background);
    wait_outcome(one, &background, 5000);
    check_reads(two, &background, NACRE_EFORBIDDEN);
    close_session(two);
    close_session(one);
}

TEST(a_kept_shell_of_a_live_session_is_not_adopted)
{
    nacre_session *one = open_tool(NULL), *two = open_tool(NULL);
    nacre_command command = NACRE_COMMAND_INIT;

    command.text = "sleep 300";
    command.lifetime = NACRE_LIFE_KEEP;
    command.background = 1;
    nacre_id id = start_command(one, &command);
    CHECK_CODE(NACRE_EFORBIDDEN, nacre_adopt(two, &id, ERR));
    CHECK_OK(nacre_adopt(one, &id, ERR));
    kill_shell(one, &id, 0);
    close_session(two);
    close_session(one);
}

struct host {
    nacre_id id;
    nacre_id kept;
    atomic_int step;
};

static void be_a_session(void *arg)
{
    struct host *host = arg;
    nacre_session *s = open_tool(NULL);
    nacre_command command = NACRE_COMMAND_INIT;

    host->id = start_held(s, "echo mine; read x; exit 3");
    command.text = "echo kept; read x; exit 5";
    command.input = NACRE_STDIN_PIPE;
    command.lifetime = NACRE_LIFE_KEEP;
    command.cwd = "/";
    command.background = 1;
    host->kept = start_command(s, &command);
    CHECK(AWAIT(output_has(s, &host->id, NACRE_OUT, "mine"), 5000));
    CHECK(AWAIT(output_has(s, &host->kept, NACRE_OUT, "kept"), 5000));
    atomic_store(&host->step, 1);
    CHECK(AWAIT(atomic_load(&host->step) == 2, 20000));
    close_session(s);
}

static pid_t begin_host(struct host *host)
{
    pid_t pid = host_fork(be_a_session, host);

    CHECK(AWAIT(atomic_load(&host->step) == 1, 10000));
    return pid;
}

TEST(of_another_process_neither)
{
    struct host *host = shared_memory(sizeof *host);
    pid_t pid = begin_host(host);
    nacre_session *s = open_tool(NULL);

    check_reads(s, &host->id, NACRE_EFORBIDDEN);
    check_waits(s, &host->id, NACRE_EFORBIDDEN);
    check_no_changes(s, &host->id);
    check_no_changes(s, &host->kept);
    CHECK_CODE(NACRE_EFORBIDDEN, nacre_adopt(s, &host->kept, ERR));
    atomic_store(&host->step, 2);
    host_join(pid);
    check_reads(s, &host->id, 0);
    check_reads(s, &host->kept, 0);
    CHECK_OK(nacre_adopt(s, &host->kept, ERR));
    kill_shell(s, &host->kept, 0);
    close_session(s);
}

/* The catalog knows of closed sessions only; who lives is known without it. */
TEST(of_another_process_neither_without_a_catalog)
{
    struct host *host = shared_memory(sizeof *host);
    pid_t pid = begin_host(host);

    CHECK_EQ_INT(0, unlink(format("%s/catalog.db", test_home())));
    nacre_session *s = open_tool(NULL);
    check_reads(s, &host->id, NACRE_EFORBIDDEN);
    check_no_changes(s, &host->id);
    host_kill(pid);
    check_reads(s, &host->id, 0);
    check_no_changes(s, &host->id);
    CHECK_OK(nacre_adopt(s, &host->kept, ERR));
    kill_shell(s, &host->kept, 0);
    close_session(s);
}

/* -- Ended sessions -------------------------------------------------------------------------- */

TEST(of_a_killed_session_to_read)
{
    struct host *host = shared_memory(sizeof *host);
    pid_t pid = begin_host(host);

    host_kill(pid);
    nacre_session *s = open_tool(NULL);
    CHECK(AWAIT(tree_empty(s, &host->id), 10000));
    check_reads(s, &host->id, 0);
    check_waits(s, &host->id, 0);
    check_no_changes(s, &host->id);
    CHECK_STR(status_of(s, &host->id), "killed");
    char *text = output_of(s, &host->id, NACRE_BOTH, NULL);
    CHECK_TEXT(text, "mine\n");
    free(text);
    CHECK_CODE(NACRE_EUNSUPPORTED, nacre_adopt(s, &host->id, ERR));

    check_reads(s, &host->kept, 0);
    check_no_changes(s, &host->kept);
    CHECK_TEXT(status_of(s, &host->kept), "running");
    CHECK_OK(nacre_adopt(s, &host->kept, ERR));
    kill_shell(s, &host->kept, 0);
    close_session(s);
}

/* In the same process, so that only what is written down can tell. */
static void check_closed_session(bool background)
{
    nacre_session *one = open_tool(NULL), *two = open_tool(NULL);
    nacre_command command = NACRE_COMMAND_INIT;

    command.text = "echo mine";
    command.background = background;
    nacre_id id = start_command(one, &command);
    wait_outcome(one, &id, 5000);
    command.text = "sleep 300";
    command.lifetime = NACRE_LIFE_KEEP;
    command.cwd = "/";
    nacre_id kept = start_command(one, &command);
    check_reads(two, &id, NACRE_EFORBIDDEN);
    close_session(one);
    check_reads(two, &id, 0);
    check_waits(two, &id, 0);
    check_no_changes(two, &id);
    check_reads(two, &kept, 0);
    check_no_changes(two, &kept);
    CHECK_OK(nacre_adopt(two, &kept, ERR));
    kill_shell(two, &kept, 0);
    close_session(two);
}

TEST(a_closed_session_has_ended)
{
    check_closed_session(true);
}

TEST(a_closed_session_without_background_shells_has_ended)
{
    check_closed_session(false);
}

/* Whoever works in the directory of a kept shell goes on with it. */
TEST(what_is_kept_is_left_to_its_directory)
{
    nacre_session *one = open_tool(NULL), *there = open_tool(NULL);
    nacre_command command = NACRE_COMMAND_INIT;

    command.text = "read x; echo heard $x; sleep 300";
    command.input = NACRE_STDIN_PIPE;
    command.lifetime = NACRE_LIFE_KEEP;
    command.background = 1;
    nacre_id id = start_command(one, &command);
    check_no_changes(there, &id);
    close_session(one);
    CHECK_OK(nacre_input(there, &id, "me\n", 3, 1, 2000, ERR));
    CHECK(AWAIT(output_has(there, &id, NACRE_OUT, "heard me"), 5000));
    kill_shell(there, &id, 0);
    CHECK_TEXT(status_of(there, &id), "killed");
    close_session(there);
}

/* -- Adoption -------------------------------------------------------------------------------- */

TEST(an_adopted_shell_is_ones_own)
{
    struct host *host = shared_memory(sizeof *host);

    host_kill(begin_host(host));
    nacre_session *s = open_tool(NULL), *other = open_tool(NULL);
    CHECK_EQ_INT(0, counts_of(s).running);
    CHECK_OK(nacre_adopt(s, &host->kept, ERR));
    CHECK_OK(nacre_adopt(s, &host->kept, ERR));
    CHECK_EQ_INT(1, counts_of(s).running);
    check_reads(other, &host->kept, NACRE_EFORBIDDEN);
    CHECK_CODE(NACRE_EFORBIDDEN, nacre_adopt(other, &host->kept, ERR));
    release_shell(s, &host->kept);
    wait_outcome(s, &host->kept, 5000);
    CHECK_TEXT(status_of(s, &host->kept), "exited(5)");
    CHECK(AWAIT(counts_of(s).finished == 1, 5000));
    close_session(other);
    close_session(s);
}

TEST(an_adopted_shell_survives_its_session_again)
{
    struct host *host = shared_memory(sizeof *host);

    host_kill(begin_host(host));
    for (int i = 0; i < 3; i++) {
        nacre_session *s = open_tool(NULL);
        CHECK_TEXT(status_of(s, &host->kept), "running");
        CHECK_OK(nacre_adopt(s, &host->kept, ERR));
        close_session(s);
    }
    nacre_session *s = open_tool(NULL);
    CHECK_OK(nacre_adopt(s, &host->kept, ERR));
    kill_shell(s, &host->kept, 0);
    close_session(s);
}

TEST(what_ended_and_was_told_is_not_told_again)
{
    nacre_session *one = open_tool(NULL), *two = open_tool(NULL);
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_offer *offer;

    command.text = "true";
    command.lifetime = NACRE_LIFE_KEEP;
    command.background = 1;
    nacre_id told = start_command(one, &command), untold = start_command(one, &command);
    wait_outcome(one, &told, 5000);
    wait_outcome(one, &untold, 5000);
    CHECK_OK(nacre_mark_read(one, &told, 0, 1, ERR));
    close_session(one);
    CHECK_OK(nacre_adopt(two, &told, ERR));
    CHECK_OK(nacre_adopt(two, &untold, ERR));
    CHECK_EQ_INT(1, nacre_offer_take(two, 0, &offer, ERR));
    nacre_id id = nacre_offer_id(offer, 0);
    CHECK(nacre_id_equal(&id, &untold));
    CHECK_OK(nacre_offer_acknowledge(offer, ERR));
    CHECK_EQ_INT(0, nacre_offer_take(two, 0, &offer, ERR));
    close_session(two);
}

TEST(what_was_read_before_the_adoption_stays_read)
{
    struct host *host = shared_memory(sizeof *host);
    nacre_unread unread = NACRE_UNREAD_INIT;

    host_kill(begin_host(host));
    nacre_session *s = open_tool(NULL);
    CHECK_OK(nacre_get_unread(s, &host->kept, &unread, ERR));
    CHECK_EQ_INT(0, unread.from);
    CHECK_OK(nacre_mark_read(s, &host->kept, 5, 0, ERR));
    CHECK_OK(nacre_adopt(s, &host->kept, ERR));
    CHECK_OK(nacre_get_unread(s, &host->kept, &unread, ERR));
    CHECK_EQ_INT(5, unread.from);
    kill_shell(s, &host->kept, 0);
    close_session(s);
}

/* -- Keeping --------------------------------------------------------------------------------- */

TEST(what_is_kept_survives_its_session)
{
    nacre_session *s = open_tool(NULL), *other = open_tool(NULL);
    nacre_id background = start_background(s, "sleep 300"), ended = start_background(s, "true");
    nacre_id foreground = start_text(s, "sleep 300"), dies = start_background(s, "sleep 300");

    CHECK_CODE(NACRE_EFORBIDDEN, nacre_keep(other, &background, ERR));
    CHECK(AWAIT(tree_empty(s, &ended), 5000));
    CHECK_CODE(NACRE_ECLOSED, nacre_keep(s, &ended, ERR));
    CHECK_OK(nacre_keep(s, &background, ERR));
    CHECK_OK(nacre_keep(s, &foreground, ERR));
    CHECK_EQ_INT(1, counts_of(s).running);
    close_session(s);
    CHECK_TEXT(status_of(other, &background), "running");
    CHECK_TEXT(status_of(other, &foreground), "running");
    CHECK_TEXT(status_of(other, &dies), "killed");
    CHECK_OK(nacre_adopt(other, &background, ERR));
    CHECK_OK(nacre_adopt(other, &foreground, ERR));
    CHECK_EQ_INT(2, counts_of(other).running);
    kill_shell(other, &background, 0);
    kill_shell(other, &foreground, 0);
    close_session(other);
}

TEST(a_person_keeps_it_from_outside)
{
    struct host *host = shared_memory(sizeof *host);
    pid_t pid = begin_host(host);
    nacre_session *person = open_session();

    CHECK_OK(nacre_keep(person, &host->id, ERR));
    host_kill(pid);
    pause_ms(50); /* long enough for a keeper that was not told to begin its kill */
    CHECK_TEXT(status_of(person, &host->id), "running");
    nacre_session *s = open_tool(NULL);
    CHECK_OK(nacre_adopt(s, &host->id, ERR));
    release_shell(s, &host->id);
    wait_outcome(s, &host->id, 5000);
    CHECK_TEXT(status_of(s, &host->id), "exited(3)");
    close_session(s);
    kill_shell(person, &host->kept, 0);
    close_session(person);
}

TEST(a_person_keeps_it_and_its_session_is_closed)
{
    struct host *host = shared_memory(sizeof *host);
    pid_t pid = begin_host(host);
    nacre_session *person = open_session();

    CHECK_OK(nacre_keep(person, &host->id, ERR));
    atomic_store(&host->step, 2);
    host_join(pid);
    CHECK_TEXT(status_of(person, &host->id), "running");
    kill_shell(person, &host->id, 0);
    kill_shell(person, &host->kept, 0);
    close_session(person);
}

/* -- People ---------------------------------------------------------------------------------- */

static int count_home(const nacre_listed *listed, void *arg)
{
    (void)listed;
    ++*(int *)arg;
    return 0;
}

TEST(a_person_sees_and_ends_all)
{
    struct host *host = shared_memory(sizeof *host);
    pid_t pid = begin_host(host);
    nacre_session *person = open_session();
    int count = 0;

    CHECK_OK(list_home(person, true, count_home, &count));
    CHECK_EQ_INT(2, count);
    check_reads(person, &host->id, 0);
    CHECK_EQ_INT(1, nacre_input(person, &host->kept, "\n", 1, 0, 1000, ERR));
    wait_outcome(person, &host->kept, 5000);
    CHECK_TEXT(status_of(person, &host->kept), "exited(5)");
    kill_shell(person, &host->id, 0);
    CHECK_TEXT(status_of(person, &host->id), "killed");
    CHECK_OK(nacre_remove(person, &host->id, ERR));
    atomic_store(&host->step, 2);
    host_join(pid);
    close_session(person);
}

/* What a session may not read it does not see in the list of the home either. */
TEST(a_tool_lists_what_it_may_read)
{
    struct host *host = shared_memory(sizeof *host);
    pid_t pid = begin_host(host);
    nacre_session *s = open_tool(NULL);
    int count = 0;

    nacre_id own = start_background(s, "true");
    wait_outcome(s, &own, 5000);
    CHECK_OK(list_home(s, false, count_home, &count));
    CHECK_EQ_INT(1, count);
    host_kill(pid);
    count = 0;
    CHECK_OK(list_home(s, false, count_home, &count));
    CHECK_EQ_INT(3, count);
    CHECK_OK(nacre_adopt(s, &host->kept, ERR));
    kill_shell(s, &host->kept, 0);
    close_session(s);
}

struct sessions {
    nacre_id own;
    int count, alive, running, shells, completions;
};

static int note_session(const nacre_session_info *info, void *arg)
{
    struct sessions *sessions = arg;

    sessions->count++;
    sessions->alive += info->alive;
    sessions->running += info->running;
    sessions->shells += info->shells;
    sessions->completions += info->completions;
    if (nacre_id_equal(&info->id, &sessions->own)) {
        CHECK_EQ_INT(getpid(), info->pid);
        CHECK_TEXT(info->name, "painter");
        CHECK_TEXT(info->cwd, "/usr");
        CHECK(info->alive && !info->closed_ms);
        CHECK_EQ_INT(2, info->shells);
        CHECK_EQ_INT(1, info->running);
        CHECK_EQ_INT(1, info->completions);
    }
    return 0;
}

TEST(sessions_are_listed)
{
    nacre_options options = NACRE_OPTIONS_INIT;
    nacre_session *closed = open_tool(NULL), *person = open_session();
    struct sessions sessions = {.count = 0};

    CHECK_OK(nacre_list_sessions(person, note_session, &sessions, ERR));
    CHECK_EQ_INT(0, sessions.count);
    nacre_id id = start_background(closed, "true");
    wait_outcome(closed, &id, 5000);
    close_session(closed);
    options.name = "painter";
    options.cwd = "/usr";
    nacre_session *s = open_options(&options);
    start_background(s, "sleep 300");
    start_background(s, "true");
    CHECK(AWAIT(counts_of(s).completions == 1, 5000));
    sessions.own = nacre_session_id(s);
    CHECK_OK(nacre_list_sessions(person, note_session, &sessions, ERR));
    CHECK_EQ_INT(2, sessions.count);
    CHECK_EQ_INT(1, sessions.alive);
    CHECK_EQ_INT(1, sessions.running);
    CHECK_EQ_INT(3, sessions.shells);
    CHECK_EQ_INT(2, sessions.completions);
    close_session(s);
    close_session(person);
}

/* -- Forked children ------------------------------------------------------------------------- */

static void use_inherited(void *arg)
{
    nacre_session *s = *(nacre_session **)arg;
    nacre_id id = *(nacre_id *)((char *)arg + sizeof(void *));
    nacre_counts counts = NACRE_COUNTS_INIT;
    nacre_unread unread = NACRE_UNREAD_INIT;
    nacre_offer *offer;

    CHECK_CODE(NACRE_EFORKED, nacre_get_counts(s, &counts, ERR));
    CHECK_CODE(NACRE_EFORKED, nacre_list(s, NULL, count_home, NULL, ERR));
    CHECK_CODE(NACRE_EFORKED, nacre_get_unread(s, &id, &unread, ERR));
    CHECK_CODE(NACRE_EFORKED, nacre_mark_read(s, &id, 0, 1, ERR));
    CHECK_CODE(NACRE_EFORKED, nacre_background(s, &id, ERR));
    CHECK_CODE(NACRE_EFORKED, nacre_adopt(s, &id, ERR));
    CHECK_CODE(NACRE_EFORKED, nacre_keep(s, &id, ERR));
    CHECK_CODE(NACRE_EFORKED, nacre_gc(s, NULL, NULL, NULL, NULL, ERR));
    CHECK_CODE(NACRE_EFORKED, nacre_list_sessions(s, note_session, NULL, ERR));
    CHECK_CODE(NACRE_EFORKED, nacre_completion_fd(s, ERR));
    CHECK_CODE(NACRE_EFORKED, nacre_offer_take(s, 0, &offer, ERR));
    CHECK_CODE(NACRE_EFORKED, nacre_kill(s, &id, NULL, NULL, ERR));
    CHECK_EQ_INT(0, nacre_close(s, ERR));
}

TEST(handles_are_of_no_use_in_a_forked_child)
{
    struct {
        nacre_session *session;
        nacre_id id;
    } both = {.session = open_tool(NULL)};
    nacre_offer *offer;

    nacre_id ended = start_background(both.session, "true");
    both.id = start_background(both.session, "sleep 300");
    CHECK(AWAIT(counts_of(both.session).completions == 1, 5000));
    host_join(host_fork(use_inherited, &both));
    CHECK_TEXT(status_of(both.session, &both.id), "running");
    CHECK_EQ_INT(1, nacre_offer_take(both.session, 0, &offer, ERR));
    nacre_id told = nacre_offer_id(offer, 0);
    CHECK(nacre_id_equal(&told, &ended));
    CHECK_OK(nacre_offer_acknowledge(offer, ERR));
    CHECK_EQ_INT(1, counts_of(both.session).running);
    close_session(both.session);
}

/* -- Other users ----------------------------------------------------------------------------- */

static void be_somebody_else(void *arg)
{
    const nacre_id *id = arg;
    nacre_options options = NACRE_OPTIONS_INIT;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    nacre_session *s = NULL;
    nacre_record record = NACRE_RECORD_INIT;

    CHECK_EQ_INT(0, setgroups(0, NULL));
    CHECK_EQ_INT(0, setgid(65534));
    CHECK_EQ_INT(0, setuid(65534));
    CHECK(!opendir(test_home()) && errno == EACCES);
    CHECK(!opendir(run_path(id, "")) && errno == EACCES);
    CHECK(access(run_path(id, "log"), R_OK) < 0 && errno == EACCES);
    strncpy(address.sun_path, run_path(id, "ctl"), sizeof address.sun_path - 1);
    int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    CHECK(sock >= 0);
    CHECK(connect(sock, (struct sockaddr *)&address, sizeof address) < 0 && errno == EACCES);
    close(sock);

    options.person = 1;
    options.home = test_home();
    CHECK_OK(nacre_open(&options, &s, ERR));
    CHECK(nacre_get(s, id, &record, ERR) < 0 && ERR->sys_errno == EACCES);
    CHECK(nacre_kill(s, id, NULL, NULL, ERR) < 0 && ERR->sys_errno == EACCES);
    CHECK_EQ_INT(0, nacre_close(s, NULL));
}

TEST(another_user_is_refused)
{
    if (geteuid() != 0)
        SKIP("only root can become somebody else");
    /* All the way down but for the home itself. */
    CHECK_EQ_INT(0, chmod(test_base(), 0755));
    nacre_session *s = open_tool(NULL);
    nacre_id id = start_background(s, "sleep 300");
    host_join(host_fork(be_somebody_else, &id));
    CHECK_TEXT(status_of(s, &id), "running");
    close_session(s);
}

static void start_as_somebody_else(void *arg)
{
    struct host *host = arg;

    CHECK_EQ_INT(0, setgroups(0, NULL));
    CHECK_EQ_INT(0, setgid(65534));
    CHECK_EQ_INT(0, setuid(65534));
    CHECK_EQ_INT(0, chdir("/"));
    setenv("NACRE_HOME", format("%s/theirs/home", test_base()), 1);
    if (access(getenv("NACRE_KEEPER"), X_OK) < 0 ||
        access(format("%s/theirs", test_base()), W_OK) < 0) {
        atomic_store(&host->step, 3);
        return;
    }
    nacre_session *s = open_tool(NULL);
    host->id = start_background(s, "sleep 300");
    atomic_store(&host->step, 1);
    CHECK(AWAIT(atomic_load(&host->step) == 2, 20000));
    close_session(s);
}

static int list_owners(void)
{
    int foreign = 0;
    const char *home = format("%s/theirs/home", test_base());
    DIR *dir = opendir(home);
    struct stat st;

    CHECK(dir);
    for (struct dirent *e; (e = readdir(dir));)
        foreign += stat(format("%s/%s", home, e->d_name), &st) == 0 && st.st_uid != 65534 &&
                   strcmp(e->d_name, "..") != 0;
    closedir(dir);
    return foreign;
}

/* As under sudo: root could read everything, and would leave files that are root's. */
TEST(a_home_of_another_user_is_left_alone)
{
    struct host *host = shared_memory(sizeof *host);
    nacre_options options = NACRE_OPTIONS_INIT;
    struct sessions sessions = {.count = 0};
    nacre_offer *offer;
    int count = 0;

    if (geteuid() != 0)
        SKIP("only root can become somebody else");
    CHECK_EQ_INT(0, chmod(test_base(), 0755));
    CHECK_EQ_INT(0, mkdir(format("%s/theirs", test_base()), 0700));
    CHECK_EQ_INT(0, chown(format("%s/theirs", test_base()), 65534, 65534));
    pid_t pid = host_fork(start_as_somebody_else, host);
    CHECK(AWAIT(atomic_load(&host->step) != 0, 10000));
    if (atomic_load(&host->step) == 3)
        SKIP("the keeper or the directory of the case is out of the other user's reach");
    options.home = format("%s/theirs/home", test_base());
    for (options.person = 0; options.person < 2; options.person++) {
        nacre_session *s = open_options(&options);
        CHECK_CODE(NACRE_EPERM, list_home(s, false, count_home, &count));
        CHECK_CODE(NACRE_EPERM, nacre_list_sessions(s, note_session, &sessions, ERR));
        CHECK_CODE(NACRE_EPERM, nacre_gc(s, NULL, NULL, NULL, NULL, ERR));
        CHECK_CODE(NACRE_EPERM, nacre_adopt(s, &host->id, ERR));
        CHECK_EQ_INT(0, nacre_offer_take(s, 0, &offer, ERR));
        close_session(s);
    }
    CHECK_EQ_INT(0, count);
    CHECK_EQ_INT(0, list_owners());
    atomic_store(&host->step, 2);
    host_join(pid);
}
