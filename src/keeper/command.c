/*
 * Starting the command. A stand-in is there before anybody asks: a child that shares our memory,
 * already in its session, cgroup and streams. It hears the go itself, does what the spec says,
 * writes down what begins, and becomes the command; the library hears of it by a pipe that the exec
 * closes. We sleep meanwhile: whatever wakes us next, we first look what has become of it. Where
 * memory cannot be shared we hear the go ourselves and fork.
 */
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/defs.h"
#include "keeper/birth.h"
#include "keeper/keeper.h"
#include "sys/calls.h"
#include "sys/fd.h"
#include "sys/sock.h"

/* Descriptors that must survive the exec for a moment; the preload or the wrapper closes them. */
#define TEXT_FD       3
#define PRELOAD_FD    4
#define PRELOAD_LINK  "/proc/self/fd/4"
#define TEXT_ENV_MAX  ((size_t)96 * 1024) /* MAX_ARG_STRLEN is 128 KiB */
#define ENTRY_SPACE   4096                /* longer ones do without the preload */
#define POINTERS      512
#define EXTRA_ENTRIES 8
#define SURE_TRIES    32

/* Everything a start needs in memory, in one place, so that it can be given back afterwards. */
static struct {
    _Alignas(4096) struct wire_go go;
    char rest[4096 - sizeof(struct wire_go) % 4096];
    char *pointers[POINTERS];
    char preload_entry[ENTRY_SPACE];
    char run_entry[ENTRY_SPACE];
} space;

_Static_assert(sizeof space % 4096 == 0, "whole pages are given back");

/* What is to be done, ready for the exec. Made by whoever hears the go. */
static struct plan {
    struct spec spec;
    const char *program;
    const char *cwd;
    char **argv;
    char **env;
    int input;
    int text;     /* of a long text, or -EBADF */
    bool preload; /* is read through its descriptor */
} plan;

/* The child's ends of everything, as it knows them: ours may be closed already. */
static struct {
    int stream[2];
    int in;
    int word;
} ends;

static const char *after_prefix(const char *entry, const char *prefix)
{
    size_t n = strlen(prefix);
    return strncmp(entry, prefix, n) == 0 ? entry + n : NULL;
}

struct strings {
    char **list;
    size_t count;
};

static void add(struct strings *strings, const char *s)
{
    strings->list[strings->count++] = (char *)s;
    strings->list[strings->count] = NULL;
}

/* Points at count consecutive strings of the spec. */
static void add_all(struct strings *strings, const char *s, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++, s += strlen(s) + 1)
        add(strings, s);
}

void start_introduce(struct keeper *k)
{
    char link[32];
    struct stat st = {0};
    snprintf(link, sizeof link, "/proc/self/fd/%d", k->text_fd);
    ssize_t n = k->text_fd < 0 ? -1 : readlink(link, k->preload.path, sizeof k->preload.path - 1);
    k->preload.path[n < 0 ? 0 : n] = '\0';
    if (strpbrk(k->preload.path, ": ") || k->preload.path[0] != '/' || fstat(k->text_fd, &st) < 0)
        k->preload.path[0] = '\0';
    k->preload.dev = st.st_dev;
    k->preload.ino = st.st_ino;
}

/* A path is opened faster than a descriptor by its number, but another file may lie there now. */
static bool lies_there(const struct preload *preload)
{
    struct stat st;
    return preload->path[0] && stat(preload->path, &st) == 0 && st.st_ino == preload->ino &&
           st.st_dev == preload->dev;
}

/* Puts our preload in front of whatever the environment already asks for. */
static void add_preload(const struct keeper *k, const struct spec *spec, struct strings *env)
{
    const char *theirs = NULL;
    size_t slot = env->count;
    if (k->text_fd < 0 || !spec->head->preload)
        return;
    for (size_t i = 0; i < env->count; i++) {
        const char *value = after_prefix(env->list[i], "LD_PRELOAD=");
        if (value) {
            theirs = value;
            slot = i;
        }
    }
    bool there = lies_there(&k->preload);
    int n =
        snprintf(space.preload_entry, sizeof space.preload_entry, "LD_PRELOAD=%s%s%s",
                 there ? k->preload.path : PRELOAD_LINK, theirs ? ":" : "", theirs ? theirs : "");
    int m = snprintf(space.run_entry, sizeof space.run_entry, "NACRE_RUN=%s",
                     spec_string(spec, spec->head->run_path));
    if (n < 0 || (size_t)n >= sizeof space.preload_entry || m < 0 ||
        (size_t)m >= sizeof space.run_entry)
        return;
    if (slot == env->count)
        add(env, space.preload_entry);
    else
        env->list[slot] = space.preload_entry;
    add(env, space.run_entry);
    plan.preload = !there;
}

/* A text that is too long for a variable goes through memory that the shell reads as fd 3. */
static int long_text(const struct spec *spec)
{
    const struct spec_head *head = spec->head;
    cleanup_close int fd = memfd_create("text", MFD_CLOEXEC);
    if (fd < 0 || fd_write_all(fd, spec_string(spec, head->text), head->text_size) < 0 ||
        lseek(fd, 0, SEEK_SET) < 0)
        return -errno;
    return fd_lift_consume(TAKE_FD(fd));
}

static void shell_arguments(const struct spec *spec, bool is_long, struct strings *argv)
{
    bool bash = spec->head->kind == SPEC_BASH;
    add_all(argv, spec_string(spec, spec->head->argv), 1);
    if (bash)
        add(argv, "--norc");
    add(argv, "-c");
    add(argv, spec_stand_in(spec->head->kind, is_long));
}

/* Room for that many pointers, already there if they are not too many. */
static char **pointer_space(size_t count)
{
    if (count <= POINTERS)
        return space.pointers;
    void *map = mmap(NULL, count * sizeof(char *), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return map == MAP_FAILED ? NULL : map;
}

static int lay_out(const struct keeper *k)
{
    const struct spec *spec = &plan.spec;
    const struct spec_head *head = spec->head;
    char **pointers = pointer_space((size_t)head->argc + head->envc + (size_t)EXTRA_ENTRIES * 2);
    if (!pointers)
        return -ENOMEM;
    struct strings argv = {.list = pointers};
    struct strings env = {.list = pointers + head->argc + EXTRA_ENTRIES};
    bool is_shell = head->kind != SPEC_ARGV;
    bool is_long = is_shell && head->text_size > TEXT_ENV_MAX;
    add_all(&env, spec_string(spec, head->env), head->envc);
    if (is_shell) {
        add_preload(k, spec, &env);
        shell_arguments(spec, is_long, &argv);
        /* The text stands behind its variable's name in the spec. */
        add(&env, is_long ? "NACRE_COMMAND_FD=3"
                          : spec_string(spec, head->text) - strlen(SPEC_TEXT_NAME));
    } else {
        add_all(&argv, spec_string(spec, head->argv), head->argc);
    }
    plan.text = is_long ? long_text(spec) : -EBADF;
    if (is_long && plan.text < 0)
        return plan.text;
    plan.program = spec_string(spec, head->program);
    plan.cwd = spec_string(spec, head->cwd);
    plan.argv = argv.list;
    plan.env = env.list;
    return 0;
}

/* The spec where it arrived, or mapped if it was too long for that. */
static int load_spec(size_t received, int fd)
{
    size_t inside = received - offsetof(struct wire_go, spec);
    if (fd >= 0)
        return spec_map(fd, &plan.spec);
    if (inside != space.go.size)
        return -EBADMSG;
    plan.spec = (struct spec){.head = (const void *)space.go.spec, .size = inside};
    return spec_check(space.go.spec, inside);
}

static struct start_result failed(enum wire_stage stage, int error)
{
    return (struct start_result){.heard = true, .stage = stage, .error = error};
}

/* Hears the go and lays out what it says. plan.input is the caller's to close. */
static struct start_result hear(struct keeper *k)
{
    int fds[2];
    plan = (struct plan){.input = -EBADF, .text = -EBADF};
    ssize_t n;
    do
        n = sock_recv(k->launch_fd, &space.go, sizeof space.go, fds, 2, 0);
    while (n > 0 && space.go.head.type == WIRE_HURRY);
    if (n < (ssize_t)offsetof(struct wire_go, spec) || space.go.head.type != WIRE_GO)
        return (struct start_result){0};
    plan.input = space.go.has_input ? fds[0] : -EBADF;
    cleanup_close int file = space.go.has_input ? fds[1] : fds[0];
    int r = load_spec((size_t)n, file);
    if (r < 0)
        return failed(STAGE_SPEC, -r);
    k->spec = *plan.spec.head;
    k->st.started_ns = clock_real_ns();
    k->st.started_mono_ns = clock_mono_ns();
    r = lay_out(k);
    return r < 0 ? failed(STAGE_EXEC, -r) : (struct start_result){.heard = true};
}

/*
 * What the library finds out after the go. It is there by now or in a moment, and to sleep would
 * take longer than that moment; but the library may be waiting for this very processor.
 */
static bool hear_sure(struct keeper *k)
{
    struct wire_sure sure;
    ssize_t n = -EAGAIN;
    for (int i = 0; i < SURE_TRIES && n == -EAGAIN; i++) {
        n = sock_recv(k->launch_fd, &sure, sizeof sure, NULL, 0, MSG_DONTWAIT);
        if (n == -EAGAIN)
            sched_yield();
    }
    if (n == -EAGAIN)
        n = sock_recv(k->launch_fd, &sure, sizeof sure, NULL, 0, 0);
    if (n != sizeof sure || sure.head.type != WIRE_SURE)
        return false;
    spec_note_host((struct spec_head *)plan.spec.head, &sure.host);
    k->spec = *plan.spec.head;
    return true;
}

/* Tells the library. */
static void say(enum wire_stage stage, int error)
{
    struct wire_started word = {.stage = stage, .error = error};
    (void)fd_write_all(ends.word, &word, sizeof word);
}

static void note_start(struct keeper *k, pid_t pid)
{
    k->st.main_pid = pid;
    k->st.phase = PHASE_RUN;
    k->st.kept = k->spec.lifetime == NACRE_LIFE_KEEP;
    k->st.background = k->spec.background;
    k->st.fleeting = k->spec.fleeting;
}

void start_set_alarm(const struct keeper *k)
{
    int64_t ms = QUIET_NS / NS_PER_MS;
    if (k->spec.timeout_ms > 0)
        ms = MIN(ms, k->spec.timeout_ms);
    struct itimerspec once = {.it_value.tv_nsec = ms * NS_PER_MS};
    timerfd_settime(k->alarm_fd, 0, &once, NULL);
}

/* --- In the child, which never returns. --------------------------------------------------------
 */

static _Noreturn void give_up(const struct keeper *k, enum wire_stage stage, int error)
{
    *k->result = failed(stage, error);
    say(stage, error);
    sys_exit(127);
}

/* All that does not depend on what will be executed. */
static void take_place(const struct keeper *k, pid_t parent, bool outside)
{
    setsid();
    /* The keeper may have been killed before the signal was asked for. */
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != parent)
        sys_exit(127);
    if (outside && fd_poke_at(k->cgroup_fd, "cgroup.procs", "0") < 0)
        k->result->outside = true;
    if (dup2(ends.stream[0], STDOUT_FILENO) < 0 || dup2(ends.stream[1], STDERR_FILENO) < 0)
        give_up(k, STAGE_PREPARE, errno);
    fd_cloexec_from(3);
}

/* What may have changed in the host since the keeper was made. */
static void take_over(const struct keeper *k)
{
    umask(k->spec.umask);
    for (int i = 0; i < SPEC_LIMITS && i < (int)RLIM_NLIMITS; i++) {
        struct rlimit want = {.rlim_cur = (rlim_t)k->spec.limits[i].soft,
                              .rlim_max = (rlim_t)k->spec.limits[i].hard};
        if (memcmp(&k->spec.limits[i], &k->limits[i], sizeof k->limits[i]) != 0)
            setrlimit((__rlimit_resource_t)i, &want);
    }
    if (k->nice != k->spec.nice)
        setpriority(PRIO_PROCESS, 0, k->spec.nice);
}

/* Everything of ours is closed by the exec; only what is let through here stays. */
static void let_through(const struct keeper *k)
{
    int input = k->spec.input == NACRE_STDIN_PIPE ? ends.in : plan.input;
    if (input >= 0 && dup2(input, STDIN_FILENO) < 0)
        give_up(k, STAGE_STDIN, errno);
    if (plan.preload && dup2(k->text_fd, PRELOAD_FD) == PRELOAD_FD)
        fcntl(PRELOAD_FD, F_SETFD, 0);
    if (plan.text >= 0 && dup2(plan.text, TEXT_FD) < 0)
        give_up(k, STAGE_EXEC, errno);
}

static void prepare(struct keeper *k)
{
    if (chdir(plan.cwd) < 0)
        give_up(k, STAGE_CHDIR, errno);
    if (!hear_sure(k)) {
        *k->result = (struct start_result){0};
        sys_exit(127);
    }
    take_over(k);
    let_through(k); /* last: a long text takes the number of the socket */
}

/* The command may end its keeper at once, so what begins is written down before. The run has its
 * spec, unless the disk is full; it runs all the same. */
static _Noreturn void become(struct keeper *k)
{
    sigset_t none;
    sigemptyset(&none);
    note_start(k, getpid());
    (void)fd_pwrite_all(k->spec_fd, plan.spec.head, plan.spec.size, 0);
    state_write(k->state_fd, &k->st);
    say(STAGE_NONE, 0);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execve(plan.program, plan.argv, plan.env);
    give_up(k, STAGE_EXEC, errno);
}

struct stand_in {
    struct keeper *k;
    pid_t parent;
    bool outside;
};

static void stand_in(void *argument)
{
    const struct stand_in *self = argument;
    struct keeper *k = self->k;
    take_place(k, self->parent, self->outside);
    struct start_result result = hear(k);
    result.outside = k->result->outside;
    *k->result = result;
    if (!result.heard)
        sys_exit(127);
    if (result.stage != STAGE_NONE)
        give_up(k, result.stage, result.error);
    prepare(k);
    start_set_alarm(k);
    become(k);
}

/* --- In the keeper. ----------------------------------------------------------------------------
 */

static void make_stand_in(struct keeper *k)
{
    static struct stand_in self;
    if (!BIRTH_SHARES)
        return;
    k->alarm_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (k->alarm_fd < 0)
        return;
    self = (struct stand_in){.k = k, .parent = getpid()};
    loop_add(k, k->alarm_fd, EPOLLIN, TAG_ALARM, 0);
    pid_t pid = birth(k->cgroup_fd, stand_in, &self, &self.outside);
    k->main = MAX(pid, 0);
}

static void close_child_ends(struct keeper *k)
{
    close_fd(&k->child_fd[0]);
    close_fd(&k->child_fd[1]);
    close_fd(&k->child_in);
    close_fd(&k->word_fd);
}

int start_prepare(struct keeper *k)
{
    int pipe[2];
    int r = fd_pipe(pipe);
    if (r < 0)
        return r;
    k->born_fd = pipe[0];
    k->word_fd = pipe[1];
    ends.stream[0] = k->child_fd[0];
    ends.stream[1] = k->child_fd[1];
    ends.in = k->child_in;
    ends.word = k->word_fd;
    explicit_bzero(&space, sizeof space); /* takes the page faults ahead of time */
    make_stand_in(k);
    if (k->main > 0)
        close_child_ends(k);
    else
        loop_add(k, k->launch_fd, EPOLLIN, TAG_LAUNCH, 0);
    return 0;
}

void start_dismiss(struct keeper *k)
{
    if (k->main <= 0 || k->main_reaped)
        return;
    kill(k->main, SIGKILL);
    (void)RETRY(waitpid(k->main, NULL, 0));
    k->main = 0;
}

void start_forget(struct keeper *k)
{
    const struct spec_head *head = plan.spec.head;
    size_t count = head ? (size_t)head->argc + head->envc + (size_t)EXTRA_ENTRIES * 2 : 0;
    if (plan.argv && count > POINTERS)
        munmap(plan.argv, count * sizeof(char *));
    if (head && head != (const void *)space.go.spec)
        spec_unmap(&plan.spec);
    plan = (struct plan){.input = -EBADF, .text = -EBADF};
    madvise(&space, sizeof space, MADV_DONTNEED);
    birth_over();
    close_fd(&k->spec_fd);
    loop_close(k, &k->born_fd);
    loop_close(k, &k->alarm_fd);
}

struct start_result start_born(struct keeper *k)
{
    struct pollfd poller = {.fd = k->born_fd};
    if (k->main <= 0 || poll(&poller, 1, 0) <= 0)
        return (struct start_result){.waits = true};
    return *k->result;
}

/* The child has written the state from a copy of our memory. */
static void catch_up(struct keeper *k)
{
    struct run_state written;
    note_start(k, k->main);
    if (state_read(k->state_fd, &written) == 0)
        k->st.generation = written.generation;
}

struct start_result start_by_fork(struct keeper *k)
{
    pid_t parent = getpid();
    *k->result = hear(k);
    if (k->result->heard && k->result->stage == STAGE_NONE) {
        k->main = birth_copy();
        if (k->main == 0) {
            take_place(k, parent, k->cgroup_fd >= 0);
            prepare(k);
            become(k);
        }
        if (k->main < 0)
            *k->result = failed(STAGE_PREPARE, -k->main);
    }
    if (k->result->stage != STAGE_NONE && k->main <= 0)
        say(k->result->stage, k->result->error);
    else if (k->result->heard && k->result->stage == STAGE_NONE)
        catch_up(k);
    close_fd(&plan.input);
    close_fd(&plan.text);
    close_child_ends(k); /* and so says what has happened */
    return *k->result;
}
