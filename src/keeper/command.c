/*
 * Starting the command. What it is told stands in the spec; all of it is laid out first, and then
 * a child that shares our memory takes its place in its own session, streams and limits, and
 * executes. It reports what goes wrong through a shared page, at once: we stand still until then.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/defs.h"
#include "keeper/keeper.h"
#include "keeper/vfork.h"
#include "sys/calls.h"
#include "sys/fd.h"
#include "sys/sock.h"

/* Descriptors that must survive the exec for a moment; the preload or the wrapper closes them. */
#define TEXT_FD       3
#define PRELOAD_FD    4
#define TEXT_ENV_MAX  ((size_t)96 * 1024) /* MAX_ARG_STRLEN is 128 KiB */
#define ENTRY_SPACE   4096                /* longer ones do without the preload */
#define POINTERS      512
#define EXTRA_ENTRIES 8

/*
 * How a shell gets its text where the preload cannot be used (a static shell): from the variable
 * NACRE_COMMAND, or from a descriptor when it is too long. OPTERR is 1 at the start of bash and
 * is 1 again when the text runs, so that no trace is left.
 */
#define BASH_EVAL "eval \"$OPTERR${_[OPTERR=1]:+}\""
static char bash_short[] = "OPTERR=$NACRE_COMMAND; unset -v NACRE_COMMAND; " BASH_EVAL;
static char bash_long[] = "IFS= read -rd \"\" OPTERR <&3; exec 3<&-; " BASH_EVAL;
static char sh_short[] = "eval \"unset NACRE_COMMAND;$NACRE_COMMAND\"";
static char sh_long[] = "eval \"exec 3<&-;$(cat <&3)\"";

/* Everything a start needs in memory, in one place, so that it can be given back afterwards. */
static struct {
    _Alignas(4096) struct wire_go go;
    char rest[4096 - sizeof(struct wire_go) % 4096];
    char *pointers[POINTERS];
    char preload_entry[ENTRY_SPACE];
    char run_entry[ENTRY_SPACE];
} space;

_Static_assert(sizeof space % 4096 == 0, "whole pages are given back");

/* What the child is to do, ready for the exec. */
struct plan {
    const struct keeper *k;
    const struct spec_head *spec;
    const char *program;
    const char *cwd;
    char **argv;
    char **env;
    int input;
    int text;    /* of a long text, or -EBADF */
    int preload; /* or -EBADF */
    bool walk_in;
    pid_t parent;
    struct start_result *result; /* shared with the child */
};

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

/* Puts our preload in front of whatever the environment already asks for. */
static bool add_preload(const struct keeper *k, const struct spec *spec, struct strings *env)
{
    const char *theirs = NULL;
    size_t slot = env->count;
    if (k->text_fd < 0 || !spec->head->preload)
        return false;
    for (size_t i = 0; i < env->count; i++) {
        const char *value = after_prefix(env->list[i], "LD_PRELOAD=");
        if (value) {
            theirs = value;
            slot = i;
        }
    }
    int n =
        snprintf(space.preload_entry, sizeof space.preload_entry, "LD_PRELOAD=/proc/self/fd/%d%s%s",
                 PRELOAD_FD, theirs ? ":" : "", theirs ? theirs : "");
    int m = snprintf(space.run_entry, sizeof space.run_entry, "NACRE_RUN=%s",
                     spec_string(spec, spec->head->run_path));
    if (n < 0 || (size_t)n >= sizeof space.preload_entry || m < 0 ||
        (size_t)m >= sizeof space.run_entry)
        return false;
    if (slot == env->count)
        add(env, space.preload_entry);
    else
        env->list[slot] = space.preload_entry;
    add(env, space.run_entry);
    return true;
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
    add(argv, bash ? (is_long ? bash_long : bash_short) : (is_long ? sh_long : sh_short));
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

static int lay_out(const struct keeper *k, const struct spec *spec, struct plan *plan)
{
    const struct spec_head *head = spec->head;
    char **pointers = pointer_space((size_t)head->argc + head->envc + (size_t)EXTRA_ENTRIES * 2);
    if (!pointers)
        return -ENOMEM;
    struct strings argv = {.list = pointers};
    struct strings env = {.list = pointers + head->argc + EXTRA_ENTRIES};
    bool is_shell = head->kind != SPEC_ARGV;
    bool is_long = is_shell && head->text_size > TEXT_ENV_MAX;
    add_all(&env, spec_string(spec, head->env), head->envc);
    if (is_shell && add_preload(k, spec, &env))
        plan->preload = k->text_fd;
    if (is_shell) {
        shell_arguments(spec, is_long, &argv);
        /* The text stands behind its variable's name in the spec. */
        add(&env, is_long ? "NACRE_COMMAND_FD=3"
                          : spec_string(spec, head->text) - strlen(SPEC_TEXT_NAME));
    } else {
        add_all(&argv, spec_string(spec, head->argv), head->argc);
    }
    plan->text = is_long ? long_text(spec) : -EBADF;
    if (is_long && plan->text < 0)
        return plan->text;
    plan->program = spec_string(spec, head->program);
    plan->cwd = spec_string(spec, head->cwd);
    plan->argv = argv.list;
    plan->env = env.list;
    return 0;
}

/* --- In the child: system calls only, and never a return. --------------------------------------
 */

static _Noreturn void give_up(const struct plan *plan, enum wire_stage stage, int error)
{
    plan->result->stage = stage;
    plan->result->error = error;
    sys_exit(127);
}

/* What may have changed in the host since the keeper was made. */
static void take_over(const struct plan *plan)
{
    const struct spec_head *spec = plan->spec;
    umask(spec->umask);
    for (int i = 0; i < SPEC_LIMITS && i < (int)RLIM_NLIMITS; i++) {
        struct rlimit want = {.rlim_cur = (rlim_t)spec->limits[i].soft,
                              .rlim_max = (rlim_t)spec->limits[i].hard};
        if (memcmp(&spec->limits[i], &plan->k->limits[i], sizeof spec->limits[i]) != 0)
            setrlimit((__rlimit_resource_t)i, &want);
    }
    if (plan->k->nice != spec->nice)
        setpriority(PRIO_PROCESS, 0, spec->nice);
}

/* Everything of ours is closed by the exec; only what was let through stays. */
static void seal(const struct plan *plan)
{
    fd_cloexec_from(3);
    if (plan->text >= 0 && dup2(plan->text, TEXT_FD) < 0)
        give_up(plan, STAGE_EXEC, errno);
    if (plan->preload >= 0 && dup2(plan->preload, PRELOAD_FD) == PRELOAD_FD)
        fcntl(PRELOAD_FD, F_SETFD, 0);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static _Noreturn void become(const struct plan *plan)
{
    setsid();
    /* The keeper may have been killed before the signal was asked for. */
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != plan->parent)
        sys_exit(127);
    if (plan->walk_in && fd_poke_at(plan->k->cgroup_fd, "cgroup.procs", "0") < 0)
        plan->result->outside = true;
    if (plan->input >= 0 && dup2(plan->input, STDIN_FILENO) < 0)
        give_up(plan, STAGE_STDIN, errno);
    if (dup2(plan->k->child_fd[0], STDOUT_FILENO) < 0 ||
        dup2(plan->k->child_fd[1], STDERR_FILENO) < 0)
        give_up(plan, STAGE_PREPARE, errno);
    if (chdir(plan->cwd) < 0)
        give_up(plan, STAGE_CHDIR, errno);
    take_over(plan);
    seal(plan);
    execve(plan->program, plan->argv, plan->env);
    give_up(plan, STAGE_EXEC, errno);
}

/* --- In the keeper again. ----------------------------------------------------------------------
 */

/* Born in its cgroup; where clone3 is not to be had it walks in by itself. */
static pid_t give_birth(struct keeper *k, struct plan *plan)
{
    struct clone_args args;
    vfork_arguments(k->cgroup_fd, &args);
    pid_t pid = (pid_t)keeper_clone3(&args, sizeof args);
    if (pid == 0)
        become(plan);
    if (pid > 0)
        return pid;
    plan->walk_in = k->cgroup_fd >= 0;
    pid = vfork_plain();
    if (pid == 0)
        become(plan);
    return pid;
}

/* The spec where it arrived, or mapped if it was too long for that. */
static int load_spec(size_t received, int fd, struct spec *ret_spec)
{
    size_t inside = received - offsetof(struct wire_go, spec);
    if (fd >= 0)
        return spec_map(fd, ret_spec);
    if (inside != space.go.size)
        return -EBADMSG;
    *ret_spec = (struct spec){.head = (const void *)space.go.spec, .size = inside};
    return spec_check(space.go.spec, inside);
}

static void clean_up(struct spec *spec, struct plan *plan)
{
    size_t count = (size_t)spec->head->argc + spec->head->envc + (size_t)EXTRA_ENTRIES * 2;
    if (count > POINTERS)
        munmap(plan->argv, count * sizeof(char *));
    close_fd(&plan->text);
    if (spec->head != (const void *)space.go.spec)
        spec_unmap(spec);
    madvise(&space, sizeof space, MADV_DONTNEED);
}

void start_warm_up(void)
{
    explicit_bzero(&space, sizeof space);
}

static struct start_result failed(enum wire_stage stage, int error)
{
    return (struct start_result){.stage = stage, .error = error};
}

static struct start_result start_with(struct keeper *k, const struct spec *spec, struct plan *plan)
{
    int r = lay_out(k, spec, plan);
    if (r < 0)
        return failed(STAGE_EXEC, -r);
    *plan->result = (struct start_result){0};
    k->main = give_birth(k, plan);
    if (k->main < 0)
        return failed(STAGE_PREPARE, -k->main);
    if (plan->result->stage != STAGE_NONE)
        (void)RETRY(waitpid(k->main, NULL, 0));
    return *plan->result;
}

/* The pipe of a command that takes input, or what was given. */
static int place_input(struct keeper *k, int given, int *ret_fd)
{
    int pipe[2];
    *ret_fd = given;
    if (k->spec.input != NACRE_STDIN_PIPE)
        return 0;
    int r = fd_pipe(pipe);
    if (r < 0)
        return r;
    fd_set_nonblock(pipe[1]);
    k->in_fd = pipe[1];
    *ret_fd = pipe[0];
    return 0;
}

static struct start_result start(struct keeper *k, struct spec *spec, int given)
{
    struct plan plan = {.k = k,
                        .spec = &k->spec,
                        .text = -EBADF,
                        .preload = -EBADF,
                        .parent = getpid(),
                        .result = k->result};
    k->spec = *spec->head;
    int r = place_input(k, given, &plan.input);
    if (r < 0)
        return failed(STAGE_STDIN, -r);
    struct start_result result = start_with(k, spec, &plan);
    /* A run that can be seen has its spec, unless the disk is full; it runs all the same. */
    if (result.stage == STAGE_NONE)
        (void)fd_pwrite_all(k->spec_fd, spec->head, spec->size, 0);
    if (plan.input != given)
        close_fd(&plan.input);
    clean_up(spec, &plan);
    return result;
}

enum start_answer start_on_go(struct keeper *k, struct start_result *ret_result)
{
    int fds[2];
    struct spec spec;
    ssize_t n = sock_recv(k->launch_fd, &space.go, sizeof space.go, fds, 2, MSG_DONTWAIT);
    if (n == -EAGAIN)
        return START_NOT_YET;
    if (n < (ssize_t)offsetof(struct wire_go, spec) || space.go.head.type != WIRE_GO)
        return START_NEVER;
    cleanup_close int input = space.go.has_input ? fds[0] : -EBADF;
    cleanup_close int file = space.go.has_input ? fds[1] : fds[0];
    int r = load_spec((size_t)n, file, &spec);
    *ret_result = r < 0 ? failed(STAGE_SPEC, -r) : start(k, &spec, input);
    return START_TRIED;
}
