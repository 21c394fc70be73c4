/*
 * Homes: whose they are, read-only, full, elsewhere; and where the keeper comes from. Errors are
 * clear, shells that run go on, and nothing is deleted.
 */
#include "harness/harness.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run/spare.h"

static struct stat stat_of(const char *path)
{
    struct stat st;

    if (lstat(path, &st) < 0)
        FAIL("%s: %s", path, strerror(errno));
    return st;
}

/* -- Where it is and who may look ------------------------------------------------------------ */

TEST(modes)
{
    nacre_session *s = open_session();
    static const char *const files[] = {"spec", "state", "log"};

    umask(0);
    struct run run = run_text(s, "echo hi");
    CHECK_EQ_INT(0700, stat_of(test_home()).st_mode & 07777);
    CHECK_EQ_INT(0700, stat_of(format("%s/runs", test_home())).st_mode & 07777);
    CHECK_EQ_INT(0700, stat_of(run_path(&run.record.id, "")).st_mode & 07777);
    for (int i = 0; i < 3; i++)
        CHECK_EQ_INT(0600, stat_of(run_path(&run.record.id, files[i])).st_mode & 07777);
    nacre_id id = start_text(s, "sleep 100");
    CHECK_EQ_INT(0, stat_of(run_path(&id, "ctl")).st_mode & 0077);
    run_done(&run);
    close_session(s);
}

TEST(home_by_option_and_environment)
{
    nacre_options options = NACRE_OPTIONS_INIT;
    const char *path, *note, *a = format("%s/a/deep/home", test_base());

    options.home = a;
    nacre_session *s = open_options(&options);
    CHECK_OK(nacre_session_home(s, &path, &note, ERR));
    CHECK_TEXT(path, a);
    CHECK(!note);
    struct run run = run_text(s, "true");
    CHECK(S_ISDIR(stat_of(format("%s/runs/%s", a, nacre_id_format(&run.record.id).s)).st_mode));
    run_done(&run);
    close_session(s);

    unsetenv("NACRE_HOME");
    setenv("XDG_STATE_HOME", format("%s/xdg", test_base()), 1);
    s = open_session();
    CHECK_OK(nacre_session_home(s, &path, NULL, ERR));
    CHECK_TEXT(path, format("%s/xdg/nacre", test_base()));
    close_session(s);
    unsetenv("XDG_STATE_HOME");
    setenv("HOME", test_base(), 1);
    s = open_session();
    CHECK_OK(nacre_session_home(s, &path, NULL, ERR));
    CHECK_TEXT(path, format("%s/.local/state/nacre", test_base()));
    close_session(s);
}

/* A path longer than a socket address. */
TEST(home_with_a_long_path)
{
    nacre_options options = NACRE_OPTIONS_INIT;
    char long_name[201];

    memset(long_name, 'x', 200);
    long_name[200] = 0;
    options.home = format("%s/%s/home", test_base(), long_name);
    nacre_session *s = open_options(&options);
    nacre_command command = NACRE_COMMAND_INIT;
    command.text = "cat; sleep 100";
    command.input = NACRE_STDIN_PIPE;
    nacre_id id = start_command(s, &command);
    CHECK_EQ_INT(2, nacre_input(s, &id, "x\n", 2, 1, 2000, ERR));
    CHECK(AWAIT(output_has(s, &id, NACRE_OUT, "x\n"), 2000));
    kill_shell(s, &id, -1);
    close_session(s);
}

TEST(home_that_is_no_directory)
{
    nacre_options options = NACRE_OPTIONS_INIT;
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_id id;

    command.text = "true";
    spit("file", "keep me", 7);
    options.home = format("%s/work/file", test_base());
    nacre_session *s = open_options(&options);
    CHECK(nacre_start(s, &command, &id, NULL, ERR) < 0);
    CHECK_STR(harness_error.msg, "work/file");
    close_session(s);
    options.home = "/proc/nacre-cannot-be-here";
    s = open_options(&options);
    CHECK_CODE(NACRE_EIO, nacre_start(s, &command, &id, NULL, ERR));
    close_session(s);
    char *kept = slurp("file", NULL);
    CHECK_TEXT(kept, "keep me");
    free(kept);
}

static void look_as_another(void *arg)
{
    const nacre_id *id = arg;
    nacre_options options = NACRE_OPTIONS_INIT;
    nacre_session *s = NULL;
    nacre_record record = NACRE_RECORD_INIT;
    const char *home = test_home();

    CHECK(setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0);
    CHECK(open(home, O_RDONLY | O_DIRECTORY) < 0 && errno == EACCES);
    CHECK(open(run_path(id, "log"), O_RDONLY) < 0 && errno == EACCES);
    options.home = home;
    CHECK_OK(nacre_open(&options, &s, ERR));
    int code = nacre_get(s, id, &record, ERR);
    CHECK(code < 0 && harness_error.msg[0]);
    code = nacre_kill(s, id, NULL, NULL, ERR);
    CHECK(code < 0);
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_id mine;
    command.text = "true";
    CHECK(nacre_start(s, &command, &mine, NULL, ERR) < 0);
    nacre_close(s, NULL);
}

/* Even where somebody has opened all the doors, the keeper itself looks who is asking. */
static void connect_as_another(void *arg)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    static const int types[] = {SOCK_SEQPACKET, SOCK_STREAM, SOCK_DGRAM};
    const uint32_t order[6] = {7, 1, 9, 1, 0, 0}; /* kill, by SIGKILL */
    int connected = 0;

    CHECK(setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0);
    CHECK(fchdir(*(int *)arg) == 0);
    snprintf(address.sun_path, sizeof(address.sun_path), "ctl");
    for (int i = 0; i < 3; i++) {
        int fd = socket(AF_UNIX, types[i] | SOCK_CLOEXEC, 0);
        if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0) {
            char answer[4096];
            connected++;
            send(fd, order, sizeof(order), MSG_NOSIGNAL);
            struct timeval limit = {1, 0};
            setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
            CHECK(recv(fd, answer, sizeof(answer), 0) <= 0);
        }
        close(fd);
    }
    CHECK_EQ_INT(1, connected);
}

TEST(another_user_is_refused)
{
    if (geteuid() != 0)
        SKIP("needs root to become somebody else");
    nacre_session *s = open_session();
    nacre_id id = start_text(s, "echo secret; exec sleep 300");

    CHECK(chmod(test_base(), 0755) == 0);
    CHECK(AWAIT(output_has(s, &id, NACRE_OUT, "secret"), 3000));
    host_join(host_fork(look_as_another, &id));
    CHECK_TEXT(status_of(s, &id), "running");
    CHECK(chmod(test_home(), 0755) == 0 && chmod(format("%s/runs", test_home()), 0755) == 0);
    CHECK(chmod(run_path(&id, ""), 0755) == 0 && chmod(run_path(&id, "ctl"), 0777) == 0);
    int dir = open(run_path(&id, ""), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    host_join(host_fork(connect_as_another, &dir));
    close(dir);
    pause_ms(20);
    CHECK_TEXT(status_of(s, &id), "running");
    close_session(s);
}

TEST(home_of_another_user_is_refused)
{
    if (geteuid() != 0)
        SKIP("needs root to give a directory away");
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_session *s = open_session();
    nacre_id id;

    CHECK(mkdir(test_home(), 0777) == 0 && chown(test_home(), 65534, 65534) == 0);
    command.text = "true";
    CHECK_CODE(NACRE_EPERM, nacre_start(s, &command, &id, NULL, ERR));
    CHECK(access(format("%s/runs", test_home()), F_OK) < 0);
    close_session(s);
}

static void check_home(const char *home, int code, const char *sentence)
{
    nacre_options options = NACRE_OPTIONS_INIT;
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_record record = NACRE_RECORD_INIT;

    options.home = home;
    command.text = "true";
    nacre_session *s = open_options(&options);
    int r = nacre_run(s, &command, -1, &record, ERR);
    if (code == 0) {
        CHECK_OK(r);
        CHECK_EQ_INT(0, record.exit_code);
    } else {
        CHECK_CODE(code, r);
        CHECK_STR(harness_error.msg, sentence);
        CHECK_CODE(code, list_home(s, false, NULL, NULL));
    }
    nacre_record_done(&record);
    close_session(s);
}

TEST(home_others_may_write_to)
{
    const char *home = test_home(), *runs = format("%s/runs", home);

    CHECK(mkdir(home, 0700) == 0 && chmod(home, 0777) == 0);
    check_home(home, NACRE_EPERM, format("chmod go-w %s", home));
    CHECK(access(runs, F_OK) < 0);
    CHECK(chmod(home, 01777) == 0);
    check_home(home, NACRE_EPERM, format("chmod go-w %s", home));
    CHECK(chmod(home, 0755) == 0);
    check_home(home, 0, NULL);
    CHECK(chmod(runs, 0770) == 0);
    check_home(home, NACRE_EPERM, format("chmod go-w %s", runs));
    CHECK(chmod(runs, 0700) == 0);
    check_home(home, 0, NULL);
    /* As /tmp is. */
    const char *open = format("%s/open", test_base());
    CHECK(mkdir(open, 0700) == 0 && chmod(open, 01777) == 0);
    check_home(format("%s/home", open), 0, NULL);
}

TEST(home_by_a_link)
{
    const char *home = test_home(), *link = format("%s/link", test_base());
    const char *place = format("%s/place", test_base());

    CHECK(mkdir(home, 0700) == 0 && symlink(home, link) == 0);
    check_home(link, 0, NULL);
    check_home(format("%s//", link), 0, NULL);
    /* Where others could have made it, or another one in its place. */
    CHECK(mkdir(place, 0700) == 0 && symlink(home, format("%s/link", place)) == 0);
    check_home(format("%s/link", place), 0, NULL);
    CHECK(chmod(place, 0777) == 0);
    check_home(format("%s/link", place), NACRE_EPERM, "others may write to");
    check_home(format("%s/link/", place), NACRE_EPERM, "others may write to");
    CHECK(chmod(place, 01777) == 0);
    check_home(format("%s/link", place), 0, NULL);
    if (geteuid() == 0) {
        CHECK(lchown(format("%s/link", place), 65534, 65534) == 0);
        check_home(format("%s/link", place), NACRE_EPERM, "is a link that uid 65534 made");
    }
}

TEST(links_in_a_home)
{
    const char *home = test_home(), *away = format("%s/away", test_base());
    const char *files[] = {"catalog.db",     "catalog.lock", "catalog.db-wal",
                           "catalog.db-shm", "collected",    "names"};

    CHECK(mkdir(home, 0700) == 0 && mkdir(away, 0700) == 0);
    CHECK(symlink(away, format("%s/runs", home)) == 0);
    check_home(home, NACRE_EPERM, "runs is a link, which is not followed; remove it");
    CHECK(rmdir(away) == 0); /* nothing was made in it */
    CHECK(unlink(format("%s/runs", home)) == 0);
    check_home(home, 0, NULL);
    /* None of them is worth a command, or worth being followed. */
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        const char *path = format("%s/%s", home, files[i]);
        unlink(path);
        CHECK(symlink(away, path) == 0);
        check_home(home, 0, NULL);
        CHECK(access(away, F_OK) < 0);
        unlink(path);
    }
    check_home(home, 0, NULL);
}

/* -- Read-only and full ---------------------------------------------------------------------- */

/* Mounts of its own: as root, or where the system lets ordinary users have namespaces. */
static void own_mounts(void)
{
    uid_t uid = geteuid();
    gid_t gid = getegid();
    const char *users = format("%u %u 1", uid, uid), *groups = format("%u %u 1", gid, gid);

    if (unshare(uid == 0 ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER) < 0)
        SKIP("no mount namespace of its own is permitted here");
    if (uid != 0) {
        spit("/proc/self/uid_map", users, strlen(users));
        spit("/proc/self/setgroups", "deny", 4);
        spit("/proc/self/gid_map", groups, strlen(groups));
    }
    CHECK(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
}

static void check_refused(int error)
{
    nacre_session *s = open_session();
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_record record = NACRE_RECORD_INIT;
    nacre_id id;

    command.text = "true";
    for (int i = 0; i < 2; i++) {
        CHECK_CODE(NACRE_EIO, nacre_start(s, &command, &id, NULL, ERR));
        CHECK_EQ_INT(error, harness_error.sys_errno);
        CHECK_CODE(NACRE_EIO, nacre_run(s, &command, 1000, &record, ERR));
    }
    close_session(s);
}

static int count_spare(const nacre_listed *listed, void *arg)
{
    const char *command = listed->record->command;
    *(int *)arg += strstr(command, "echo out") || strstr(command, "echo up");
    return 0;
}

/* A home without room: the shell lives in a spare, and is like any other. */
static void check_spare(void)
{
    nacre_session *s = open_session();
    nacre_session *other = open_session();
    const char *m = marker();
    int listed = 0;

    struct run run = run_text(s, "echo out; echo err >&2; exit 3");
    CHECK_EQ_INT(3, run.record.exit_code);
    CHECK_EQ_INT(1, run.record.spare);
    CHECK_TEXT(run.out, "out\n");
    CHECK_TEXT(run.err, "err\n");
    nacre_id id = start_background(s, format("echo up; exec sleep 300.%s", m)), found;
    await_marked(m, 1);
    CHECK_OK(nacre_find(other, nacre_id_short(&id).s, &found, ERR));
    CHECK(AWAIT(output_has(other, &id, NACRE_OUT, "up\n"), 5000));
    CHECK_OK(list_home(other, false, count_spare, &listed));
    CHECK_EQ_INT(2, listed);
    kill_shell(other, &id, 0);
    CHECK_EQ_INT(0, count_marked(m));
    check_ended(s, &id, NACRE_KILLED, NACRE_REASON_KILL);
    CHECK_OK(nacre_remove(s, &id, ERR));
    CHECK_OK(nacre_remove(s, &run.record.id, ERR));
    run_done(&run);
    close_session(other);
    close_session(s);
    char spare[PATH_MAX];
    for (int i = 0; i < RUN_SPARES; i++) {
        CHECK_EQ_INT(0, run_spare_path(test_home(), i, spare, sizeof(spare)));
        CHECK(access(spare, F_OK) < 0);
    }
}

TEST(read_only_home)
{
    if (geteuid() == 0) {
        own_mounts();
        CHECK(mkdir(test_home(), 0700) == 0);
        CHECK(mount(test_home(), test_home(), NULL, MS_BIND, NULL) == 0);
        CHECK(mount(NULL, test_home(), NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL) == 0);
        check_spare();
    } else {
        CHECK(mkdir(test_home(), 0500) == 0);
        check_refused(EACCES);
        CHECK(chmod(test_home(), 0700) == 0);
    }
}

/* What was written before it became read-only can still be read. */
TEST(reading_in_a_read_only_home)
{
    own_mounts();
    nacre_session *s = open_session();
    struct run run = run_text(s, "echo before; exit 3");

    close_session(s);
    CHECK(mount(test_home(), test_home(), NULL, MS_BIND, NULL) == 0);
    CHECK(mount(NULL, test_home(), NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL) == 0);
    s = open_session();
    CHECK_TEXT(status_of(s, &run.record.id), "exited(3)");
    CHECK(output_has(s, &run.record.id, NACRE_OUT, "before\n"));
    CHECK(nacre_remove(s, &run.record.id, ERR) < 0);
    run_done(&run);
    close_session(s);
}

static void mount_small(const char *options)
{
    own_mounts();
    CHECK(mkdir(test_home(), 0700) == 0);
    CHECK(mount("none", test_home(), "tmpfs", 0, options) == 0);
}

/* A disk that fills up while the command prints: it goes on, and the gap is named exactly. */
TEST(disk_full_while_it_prints)
{
    mount_small("size=600k,mode=0700");
    nacre_session *s = open_session();
    nacre_command command = NACRE_COMMAND_INIT;

    command.text = "seq 1 400000; echo done >&2; exit 7";
    struct run run = run_command(s, &command);
    CHECK_EQ_INT(NACRE_EXITED, run.record.outcome);
    CHECK_EQ_INT(7, run.record.exit_code);
    CHECK_EQ_INT(2688895, run.record.bytes[0]);
    CHECK_EQ_INT(400000, run.record.lines[0]);
    CHECK_EQ_INT(5, run.record.bytes[1]);
    CHECK_EQ_INT(ENOSPC, run.record.dropped_errno);
    CHECK_EQ_INT(2688895, run.out_size + run.record.dropped_bytes[0]);
    CHECK_EQ_INT(5, run.err_size + run.record.dropped_bytes[1]);
    CHECK(run.out_size > 100000);
    CHECK(memcmp(run.out, "1\n2\n3\n4\n", 8) == 0);
    uint64_t lines = 0;
    for (size_t i = 0; i < run.out_size; i++)
        lines += run.out[i] == '\n';
    CHECK_EQ_INT(400000, lines + run.record.dropped_lines[0]);
    run_done(&run);
    close_session(s);
}

TEST(disk_full_and_a_kill)
{
    mount_small("size=400k,mode=0700");
    nacre_session *s = open_session();
    const char *m = marker();
    nacre_id id = start_text(s, format("%s sleep 300.%s & exec yes %s", own_session(), m, m));

    CHECK(AWAIT(({
                    nacre_record record = record_of(s, &id);
                    bool full = record.dropped_errno == ENOSPC;
                    nacre_record_done(&record);
                    full;
                }),
                5000));
    CHECK_TEXT(status_of(s, &id), "running");
    kill_shell(s, &id, -1);
    CHECK_EQ_INT(0, count_marked(m));
    CHECK_TEXT(status_of(s, &id), "killed");
    close_session(s);
}

/* No room at all: shells live in a spare until there is some again. */
static void fill_up(const char *ballast)
{
    static char zeros[65536];
    int fd = open(ballast, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    for (ssize_t size = sizeof(zeros); fd >= 0 && size > 0; size /= 2) {
        while (write(fd, zeros, (size_t)size) == size)
            ;
    }
    if (fd >= 0)
        close(fd);
}

TEST(disk_full_at_the_start)
{
    mount_small("size=1m,mode=0700");
    const char *ballast = format("%s/ballast", test_home());
    nacre_session *s = open_session();
    struct run first = run_text(s, "echo first");
    nacre_id running = start_text(s, "read x; echo \"still here\"; exec sleep 300");

    fill_up(ballast);
    check_spare();
    CHECK_TEXT(status_of(s, &running), "running");
    CHECK(output_has(s, &first.record.id, NACRE_OUT, "first\n"));
    struct run rm = run_text(s, format("rm %s", ballast));
    CHECK_EQ_INT(0, rm.record.exit_code);
    CHECK_EQ_INT(1, rm.record.spare);
    struct run again = run_text(s, "echo again");
    CHECK_TEXT(again.out, "again\n");
    CHECK_EQ_INT(0, again.record.spare);
    CHECK_OK(nacre_remove(s, &rm.record.id, ERR));
    run_done(&first);
    run_done(&rm);
    run_done(&again);
    close_session(s);
}

/* The catalog cannot be written: a session of a tool goes on, and hears of its shells, at the
 * latest when there is room again. */
TEST(disk_full_for_a_tool)
{
    mount_small("size=1m,mode=0700");
    nacre_session *s = open_tool(NULL);
    struct run first = run_text(s, "true");
    nacre_offer *offer = NULL;

    fill_up(format("%s/ballast", test_home()));
    nacre_id id = start_background(s, "echo there; exit 5");
    wait_outcome(s, &id, 5000);
    CHECK_TEXT(status_of(s, &id), "exited(5)");
    CHECK(output_has(s, &id, NACRE_OUT, "there\n"));
    int64_t n = nacre_offer_take(s, 0, &offer, ERR);
    CHECK(unlink(format("%s/ballast", test_home())) == 0);
    CHECK(AWAIT(n > 0 || (n = nacre_offer_take(s, 0, &offer, ERR)) > 0, 5000));
    CHECK_EQ_INT(1, n);
    CHECK_OK(nacre_offer_acknowledge(offer, ERR));
    CHECK_EQ_INT(0, nacre_offer_take(s, 0, &offer, ERR));
    CHECK_OK(nacre_remove(s, &id, ERR));
    run_done(&first);
    close_session(s);
}

TEST(no_inodes_left)
{
    mount_small("size=8m,nr_inodes=24,mode=0700");
    nacre_session *s = open_session();
    nacre_id spare[12];
    int count = 0;

    for (int i = 0; i < 12; i++) {
        struct run run = run_text(s, "echo hi");
        CHECK_TEXT(run.out, "hi\n");
        if (run.record.spare)
            spare[count++] = run.record.id;
        run_done(&run);
    }
    CHECK_RANGE(1, count, 11);
    for (int i = 0; i < count; i++)
        CHECK_OK(nacre_remove(s, &spare[i], ERR));
    close_session(s);
}

/* -- The home disappears --------------------------------------------------------------------- */

/* Somebody removes the directory of a running shell: its keeper puts it back. */
TEST(directory_of_a_running_shell_removed)
{
    nacre_session *s = open_session();
    const char *m = marker();
    nacre_id id = start_text(s, format("echo up; exec sleep 300.%s", m));
    nacre_record record = NACRE_RECORD_INIT;

    CHECK(AWAIT(output_has(s, &id, NACRE_OUT, "up"), 3000));
    await_marked(m, 1);
    struct run run = run_text(s, format("rm -rf %s", run_path(&id, "")));
    run_done(&run);
    CHECK_EQ_INT(1, count_marked(m));
    CHECK_OK(nacre_get(s, &id, &record, ERR));
    CHECK_EQ_INT(NACRE_RUNNING, record.outcome);
    nacre_record_done(&record);
    CHECK(output_has(s, &id, NACRE_OUT, "up"));
    run = run_text(s, "echo next");
    CHECK_TEXT(run.out, "next\n");
    run_done(&run);
    int64_t begin = now_ms();
    nacre_close(s, NULL);
    CHECK_RANGE(0, now_ms() - begin, soon(5000));
    CHECK(AWAIT(count_marked(m) == 0, 4000));
}

/* The whole home is removed under a session with a warm keeper; the next start makes it anew. */
TEST(home_removed)
{
    nacre_session *s = open_session();
    nacre_command command = NACRE_COMMAND_INIT;
    struct run run = run_text(s, "true");
    nacre_id id;

    run_done(&run);
    command.text = "echo hi";
    CHECK(rename(test_home(), format("%s/gone", test_base())) == 0);
    CHECK_OK(nacre_start(s, &command, &id, NULL, ERR));
    wait_outcome(s, &id, 3000);
    CHECK(output_has(s, &id, NACRE_OUT, "hi\n"));
    CHECK(access(run_path(&id, "state"), F_OK) == 0);
    close_session(s);
    s = open_session();
    run = run_text(s, "echo anew");
    CHECK_TEXT(run.out, "anew\n");
    run_done(&run);
    close_session(s);
}
