/* The keeper's binary: where it is found, what happens if it is another one, and its size. */
#include "harness/harness.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "home/compose.h"
#include "local/launch.h"
#include "run/state.h"
#include "run/wire.h"
#include "sys/sock.h"

/* The directory of the keeper in use: a build folder. */
static const char *build_folder(void)
{
    const char *keeper = getenv("NACRE_KEEPER");

    if (!keeper || !strrchr(keeper, '/'))
        SKIP("NACRE_KEEPER is not set, and this program lies in no build folder");
    return format("%.*s", (int)(strrchr(keeper, '/') - keeper), keeper);
}

static const char *this_program(void)
{
    char path[PATH_MAX];
    ssize_t size = readlink("/proc/self/exe", path, sizeof(path) - 1);

    CHECK(size > 0);
    return format("%.*s", (int)size, path);
}

static int shell(const char *text)
{
    int status = system(text);

    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void make(const char *path)
{
    CHECK_EQ_INT(0, shell(format("mkdir -p %s", path)));
}

static void copy(const char *from, const char *to)
{
    if (shell(format("cp -p %s %s", from, to)) != 0)
        FAIL("cannot copy %s to %s", from, to);
}

static void check_works(const char *keeper)
{
    nacre_options options = NACRE_OPTIONS_INIT;

    options.keeper = keeper;
    nacre_session *s = open_options(&options);
    struct run run = run_text(s, "echo $0; sh -c 'exit 3' | cat");
    CHECK_TEXT(run.out, "bash\n");
    run_done(&run);
    close_session(s);
}

/* -- Found ----------------------------------------------------------------------------------- */

/* A build folder, and any other place that has the program and its keeper side by side. */
TEST(beside_the_program)
{
    const char *build = build_folder();

    unsetenv("NACRE_KEEPER");
    make("flat");
    copy(format("%s/nacre-keeper", build), "flat/");
    copy(format("%s/nacre-text.so", build), "flat/");
    copy(this_program(), "flat/host");
    CHECK_EQ_INT(0, shell("flat/host -x works"));
    CHECK_EQ_INT(0, shell("cd flat && ./host -x works"));
    CHECK(symlink("flat/host", "link") == 0);
    CHECK_EQ_INT(0, shell("./link -x works"));
}

TEST(by_option_and_environment)
{
    const char *build = build_folder();

    make("elsewhere");
    copy(format("%s/nacre-keeper", build), "elsewhere/kept-here");
    copy(format("%s/nacre-text.so", build), "elsewhere/nacre-text.so");
    const char *path = format("%s/work/elsewhere/kept-here", test_base());
    check_works(path);
    setenv("NACRE_KEEPER", path, 1);
    check_works(NULL);
}

/* Without its preload beside it a keeper still works; only the text may then be seen. */
TEST(without_its_preload)
{
    const char *build = build_folder();

    make("bare");
    copy(format("%s/nacre-keeper", build), "bare/nacre-keeper");
    check_works(format("%s/work/bare/nacre-keeper", test_base()));
}

/* The program with its keeper, in the places where an installation puts them, also when moved. */
TEST(in_an_installed_prefix_and_a_moved_one)
{
    const char *build = build_folder();
    static const char *const dirs[] = {"bin", "lib", "lib/x86_64-linux-gnu"};
    static const char *const prefixes[] = {"prefix", "moved"};
    const char *self = this_program();

    unsetenv("NACRE_KEEPER");
    make("prefix/libexec/nacre");
    copy(format("%s/nacre-keeper", build), "prefix/libexec/nacre/");
    copy(format("%s/nacre-text.so", build), "prefix/libexec/nacre/");
    for (int i = 0; i < 3; i++) {
        make(format("prefix/%s", dirs[i]));
        copy(self, format("prefix/%s/host", dirs[i]));
    }
    for (int p = 0; p < 2; p++) {
        for (int i = 0; i < 3; i++) {
            const char *host = format("%s/%s/host -x works", prefixes[p], dirs[i]);
            if (shell(host) != 0)
                FAIL("%s did not work", host);
        }
        if (p == 0)
            CHECK(rename("prefix", "moved") == 0);
    }
    copy(self, "alone");
    CHECK(shell("./alone -x not_found") == 0);
}

/* The shared library looks from where it lies itself, not from its program. */
static void check_library(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    if (!library)
        FAIL("%s", dlerror());
    __typeof__(&nacre_open) open_it = (__typeof__(&nacre_open))dlsym(library, "nacre_open");
    __typeof__(&nacre_run) run_it = (__typeof__(&nacre_run))dlsym(library, "nacre_run");
    __typeof__(&nacre_close) close_it = (__typeof__(&nacre_close))dlsym(library, "nacre_close");
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_record record = NACRE_RECORD_INIT;
    nacre_session *s = NULL;

    CHECK(open_it && run_it && close_it);
    CHECK_OK(open_it(NULL, &s, ERR));
    command.text = "exit 5";
    CHECK_OK(run_it(s, &command, -1, &record, ERR));
    CHECK_EQ_INT(5, record.exit_code);
    nacre_record_done(&record);
    CHECK_EQ_INT(0, close_it(s, ERR));
}

TEST(beside_the_shared_library)
{
    const char *build = build_folder();

    unsetenv("NACRE_KEEPER");
    if (access(format("%s/libnacre.so", build), R_OK) < 0)
        SKIP("there is no shared library in the build folder");
    make("so/lib/some-machine");
    make("so/libexec/nacre");
    copy(format("%s/nacre-keeper", build), "so/libexec/nacre/");
    copy(format("%s/nacre-text.so", build), "so/libexec/nacre/");
    copy(format("-L %s/libnacre.so", build), "so/lib/libnacre.so");
    copy(format("-L %s/libnacre.so", build), "so/lib/some-machine/libnacre.so");
    check_library(format("%s/libnacre.so", build));
    check_library(format("%s/work/so/lib/libnacre.so", test_base()));
    check_library(format("%s/work/so/lib/some-machine/libnacre.so", test_base()));
}

HOST(works)
{
    check_works(NULL);
}

HOST(not_found)
{
    nacre_session *s = open_session();
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_id id;

    command.text = "true";
    int result = nacre_start(s, &command, &id, NULL, ERR);
    if (result >= 0) { /* one is installed on this machine */
        wait_outcome(s, &id, 3000);
    } else {
        CHECK_CODE(NACRE_EBACKEND, result);
        CHECK_STR(harness_error.msg, "NACRE_KEEPER");
    }
    close_session(s);
}

/* -- Refused --------------------------------------------------------------------------------- */

static void check_refused(const char *keeper, const char *named)
{
    nacre_options options = NACRE_OPTIONS_INIT;
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_id id;

    options.keeper = keeper;
    nacre_session *s = open_options(&options);
    command.text = "true";
    int64_t begin = now_ms();
    CHECK_CODE(NACRE_EBACKEND, nacre_start(s, &command, &id, NULL, ERR));
    CHECK_STR(harness_error.msg, named);
    CHECK_RANGE(0, now_ms() - begin, soon(3000));
    CHECK_CODE(NACRE_EBACKEND, nacre_start(s, &command, &id, NULL, ERR));
    close_session(s);
    CHECK_RANGE(0, now_ms() - begin, soon(5000));
}

TEST(that_does_not_exist)
{
    check_refused("/no/such/keeper", "/no/such/keeper");
}

TEST(that_is_not_executable)
{
    spit("keeper", "x", 1);
    check_refused(format("%s/work/keeper", test_base()), "work/keeper");
}

TEST(that_is_garbage)
{
    spit("keeper", "\177ELF garbage", 12);
    CHECK(chmod("keeper", 0755) == 0);
    check_refused(format("%s/work/keeper", test_base()), "keeper");
}

TEST(that_is_another_program)
{
    check_refused("/bin/true", "keeper");
}

TEST(of_another_format)
{
    check_refused(program("fake-keeper"), "nacre-keeper (of an unknown version, format 4711)");
    check_refused(program("fake-keeper"), "this library (" NACRE_VERSION ", format ");
}

/* Of the same format, but it does not say what it should. */
TEST(of_another_build)
{
    check_refused(program("keeper-without-pipe"), "nacre-keeper (0.0.9, format ");
    check_refused(program("keeper-that-says-less"), "nacre-keeper (of an unknown version, ");
    check_refused(program("keeper-that-says-less"), "install the two together");
}

/* -- Pinned ---------------------------------------------------------------------------------- */

TEST(replaced_under_a_running_session)
{
    const char *build = build_folder();
    nacre_options options = NACRE_OPTIONS_INIT;

    make("pin");
    copy(format("%s/nacre-keeper", build), "pin/nacre-keeper");
    copy(format("%s/nacre-text.so", build), "pin/nacre-text.so");
    options.keeper = format("%s/work/pin/nacre-keeper", test_base());
    nacre_session *s = open_options(&options);
    struct run run = run_text(s, "true");
    run_done(&run);
    CHECK(unlink("pin/nacre-keeper") == 0 && unlink("pin/nacre-text.so") == 0);
    spit("pin/nacre-keeper", "of another format", 17);
    spit("pin/nacre-text.so", "of another time", 15);
    for (int i = 0; i < 4; i++) {
        run = run_text(s, "echo works; (exit 3) | true");
        CHECK_TEXT(run.out, "works\n");
        CHECK_TEXT(run.err, "");
        CHECK_EQ_INT(2, run.record.pipestatus_count);
        run_done(&run);
    }
    close_session(s);
}

/* -- Small ----------------------------------------------------------------------------------- */

static long memory_kb(pid_t pid, const char *kind)
{
    char *text = slurp(format("/proc/%d/smaps_rollup", (int)pid), NULL);
    const char *line = text ? strstr(text, format("\n%s", kind)) : NULL;
    long kb = line ? atol(line + 1 + strlen(kind)) : -1;

    free(text);
    return kb;
}

/* What an ordinary user may not see of a keeper (and its stand-in) root may. */
static bool can_look_into_keepers(void)
{
    return geteuid() == 0;
}

#define NOT_FOR_USERS "an ordinary user cannot look into a keeper"

static long mean_pss(nacre_session *s, const nacre_id *ids, int count)
{
    long total = 0;
    for (int i = 0; i < count; i++)
        total += memory_kb(keeper_of(s, &ids[i]).pid, "Pss:");
    return total / count;
}

/* Idle is one whose command has lasted for a moment: it has made the next one then, and given back
 * what it does not need to wait. */
TEST(size_of_an_idle_keeper)
{
    if (sanitized())
        SKIP("memory cannot be judged under a sanitizer");
    if (!can_look_into_keepers())
        SKIP(NOT_FOR_USERS);
    nacre_session *s = open_session();
    nacre_id ids[8];

    for (int i = 0; i < 8; i++)
        ids[i] = start_text(s, "echo hello; exec sleep 300");
    for (int i = 0; i < 8; i++)
        CHECK(AWAIT(output_has(s, &ids[i], NACRE_OUT, "hello"), 3000));
    CHECK(AWAIT(mean_pss(s, ids, 8) <= 128, 2000));
    CHECK_RANGE(1, mean_pss(s, ids, 8), 128);
    close_session(s);
}

/* -- One run after another -------------------------------------------------------------------- */

static int count_descriptors(pid_t pid)
{
    DIR *dir = opendir(format("/proc/%d/fd", (int)pid));
    int count = 0;

    CHECK(dir);
    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

static bool start_is_noted(const nacre_id *id)
{
    struct run_state state;
    int fd = open(run_path(id, "state"), O_RDONLY | O_CLOEXEC);

    CHECK_OK(fd);
    CHECK_OK(state_read(fd, &state));
    close(fd);
    return state.main_start != 0;
}

/* The keeper of a command that lasts, and has been left alone for long enough: it has nothing more
 * to do. */
static pid_t idle_keeper(nacre_session *s)
{
    nacre_id id = start_text(s, "exec sleep 300");

    CHECK(AWAIT(start_is_noted(&id), 3000));
    return keeper_of(s, &id).pid;
}

/* A keeper goes on as the next one: nothing of a run stays with it, however much it was. */
TEST(nothing_of_a_run_stays)
{
    if (!can_look_into_keepers())
        SKIP(NOT_FOR_USERS);
    nacre_session *s = open_session();
    struct run run = run_text(s, "true");

    run_done(&run);
    pid_t first = idle_keeper(s);
    for (int i = 0; i < 50; i++) {
        run = run_text(s, i % 10 ? "true" : "head -c 300000 /dev/zero; echo $PPID >&2");
        CHECK_EQ_INT(i % 10 ? 0 : 300000, run.out_size);
        run_done(&run);
    }
    pid_t keeper = idle_keeper(s);
    CHECK(AWAIT(count_descriptors(keeper) == count_descriptors(first), 2000));
    if (!sanitized())
        CHECK_RANGE(1, memory_kb(keeper, "Anonymous:"), 128);
    CHECK(AWAIT(count_keepers() <= 3, 3000));
    close_session(s);
}

/* Beside another, which has one. */
static pid_t warm_keeper(pid_t other)
{
    char *children = slurp(format("/proc/%d/task/%d/children", getppid(), getppid()), NULL);
    pid_t found = 0;
    for (char *end, *at = children; found == 0; at = end) {
        pid_t pid = (pid_t)strtol(at, &end, 10);
        if (end == at)
            break;
        found = pid != other && pid != getpid() ? pid : 0;
    }
    free(children);
    CHECK(found > 0);
    return found;
}

static int ignore_listed(const nacre_listed *listed, void *arg)
{
    (void)listed;
    (void)arg;
    return 0;
}

static void stop_warm(pid_t warm)
{
    CHECK(kill(warm, SIGSTOP) == 0);
}

/* Now it is not what a new one would be. */
static void become_another(pid_t warm)
{
    (void)warm;
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
}

/* What belongs to it is not kept until the next start, nor does it stay itself. */
static void send_away(void (*trouble)(pid_t warm))
{
    nacre_session *s = open_session();
    pid_t idle = idle_keeper(s);
    CHECK(AWAIT(count_keepers() == 2, 3000));
    int before = count_descriptors(getpid());
    trouble(warm_keeper(idle));
    struct run run = run_text(s, "true");
    run_done(&run);
    CHECK(AWAIT((nacre_list(s, NULL, ignore_listed, NULL, ERR) == 0 &&
                 count_descriptors(getpid()) <= before),
                5000));
    close_session(s);
}

TEST(a_keeper_that_is_stopped_before_it_is_ready)
{
    send_away(stop_warm);
}

TEST(a_keeper_that_was_sent_away_leaves_nothing)
{
    send_away(become_another);
}

/* Somebody who starts several at once does not wait until the first is done or has lasted. */
TEST(the_next_one_is_made_when_it_is_wanted)
{
    nacre_session *s = open_session();
    nacre_id ids[4];

    for (size_t i = 0; i < 4; i++)
        ids[i] = start_text(s, "exec sleep 300");
    for (size_t i = 0; i < 4; i++)
        for (size_t j = 0; j < i; j++)
            CHECK(keeper_of(s, &ids[i]).pid != keeper_of(s, &ids[j]).pid);
    close_session(s);
}

/* A command is of the same user as its keeper, and may neither look into it nor hold it. */
TEST(keeper_cannot_be_looked_into)
{
    if (can_look_into_keepers())
        SKIP("root may look into everything");
    nacre_session *s = open_session();
    nacre_id id = start_text(s, "exec sleep 300");
    pid_t keeper = keeper_of(s, &id).pid;

    CHECK(open(format("/proc/%d/mem", (int)keeper), O_RDWR | O_CLOEXEC) < 0);
    CHECK_EQ_INT(EACCES, errno);
    CHECK(ptrace(PTRACE_SEIZE, keeper, NULL, NULL) < 0);
    CHECK_EQ_INT(EPERM, errno);
    close_session(s);
}

/* It has nothing of the host: not its directory, descriptors, terminal or group. */
TEST(keeper_has_nothing_of_the_host)
{
    if (!can_look_into_keepers())
        SKIP(NOT_FOR_USERS);
    nacre_session *s = open_session();
    int extra = open("/dev/zero", O_RDONLY);
    nacre_id id = start_text(s, "exec sleep 300");
    pid_t keeper = keeper_of(s, &id).pid;
    char link[PATH_MAX];

    CHECK(extra >= 0);
    ssize_t size = readlink(format("/proc/%d/cwd", (int)keeper), link, sizeof(link) - 1);
    CHECK_EQ_INT(1, size);
    CHECK(getsid(keeper) != getsid(0) && getpgid(keeper) != getpgid(0));
    CHECK(process_parent(keeper) != getpid());
    for (int fd = 0; fd < 256; fd++) {
        size = readlink(format("/proc/%d/fd/%d", (int)keeper, fd), link, sizeof(link) - 1);
        link[size > 0 ? size : 0] = 0;
        CHECK(!strstr(link, "/dev/zero"));
    }
    close(extra);
    close_session(s);
}

/* -- Not before it is sure ------------------------------------------------------------------- */

/* Whether a child of it has gone to where its command is to run. */
static bool child_is_in(pid_t keeper, const char *directory)
{
    char children[64] = "", link[PATH_MAX] = "";
    FILE *file = fopen(format("/proc/%d/task/%d/children", (int)keeper, (int)keeper), "re");

    CHECK(file);
    if (!fgets(children, sizeof(children), file))
        children[0] = 0;
    fclose(file);
    return readlink(format("/proc/%d/cwd", atoi(children)), link, sizeof(link) - 1) > 0 &&
           strcmp(link, directory) == 0;
}

static void send_go(const struct launched *launched, const nacre_id *session, const char *text,
                    const char *cwd)
{
    static struct compose_shells shells = {.lock = PTHREAD_MUTEX_INITIALIZER};
    nacre_command command = NACRE_COMMAND_INIT;
    struct compose c = {.command = &command,
                        .shells = &shells,
                        .session = session,
                        .run_path = run_path(&launched->id, "")};
    struct wire_go go = {.head = {.type = WIRE_GO, .format = RUN_FORMAT}};
    cleanup_buf struct buf spec = {0};

    command.text = text;
    CHECK_OK(compose_spec(&c, &launched->id, cwd, &spec, ERR));
    CHECK(spec.len <= sizeof(go.spec));
    go.size = (uint32_t)spec.len;
    memcpy(go.spec, spec.data, spec.len);
    CHECK_OK(sock_send(launched->sock, &go, offsetof(struct wire_go, spec) + spec.len, NULL, 0, 0));
}

/* The child is ready to become the command. Who told it so turns out not to be what the keeper was
 * made for, or dies. */
TEST(begins_nothing_before_it_is_sure)
{
    if (!can_look_into_keepers())
        SKIP(NOT_FOR_USERS);
    const char *cwd = format("%s/work", test_base());
    const char *runs = format("%s/runs", test_home());
    nacre_id session = {{1, 2, 3}};
    struct launcher *launcher;

    CHECK(mkdir(test_home(), 0700) == 0 && mkdir(runs, 0700) == 0);
    int fd = open(runs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_OK(fd);
    CHECK_OK(
        launcher_new(&session, 0, getenv("NACRE_KEEPER"), NACRE_TIER_SUBREAPER, &launcher, ERR));
    for (int i = 0; i < 2; i++) {
        struct launched launched = LAUNCHED_NONE;
        CHECK_OK(launcher_take_new(launcher, fd, &(struct errand){0}, &launched, ERR));
        CHECK(AWAIT(launcher_hear_ready(launcher, &launched, NULL) > 0, 2000));
        struct process keeper = process_of(launched.keeper.pid);
        send_go(&launched, &session, "touch begun", cwd);
        CHECK(AWAIT(child_is_in(keeper.pid, cwd), 2000));
        if (i == 0)
            launcher_dismiss(launcher, &launched);
        else
            launched_drop(&launched);
        CHECK(AWAIT(!process_alive(keeper), 2000));
        CHECK(access("begun", F_OK) < 0);
        CHECK(access(run_path(&launched.id, ""), F_OK) < 0);
    }
    launcher_end_session(launcher);
    CHECK_EQ_INT(0, launcher_dismissed(launcher, &(int){0}));
    launcher_reap(launcher);
    launcher_free(launcher);
    close(fd);
}
