/*
 * The child: it was forked while nobody waited, sleeps until the library says go, and becomes the
 * command. What it is told stands in the spec file; what goes wrong it reports on the start pipe,
 * whose silent end means that the exec worked.
 *
 * Only this process is between fork and exec here, alone in its address space: any function may
 * be called, but nothing is allocated.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/defs.h"
#include "keeper/keeper.h"
#include "sys/fd.h"
#include "sys/sock.h"

/* Descriptors that must survive the exec for a moment; the preload or the wrapper closes them. */
#define TEXT_FD       3
#define PRELOAD_FD    4
#define REPORT_FD     10
#define TEXT_ENV_MAX  ((size_t)96 * 1024) /* MAX_ARG_STRLEN is 128 KiB */
#define PRELOAD_SPACE 4096                /* longer ones do without the preload */
#define SPEC_SPACE    ((size_t)12 * 1024)
#define POINTERS      512
#define STACK_USED    ((size_t)8 * 1024)
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

static char preload_entry[PRELOAD_SPACE];
static char run_entry[PRELOAD_SPACE];

static _Alignas(struct spec_head) char spec_space[SPEC_SPACE];

static int report_fd;

static _Noreturn void give_up(enum wire_stage stage, int error)
{
    struct start_report report = {.stage = stage, .error = error};
    fd_write_all(report_fd, &report, sizeof report);
    _exit(127);
}

static void become_session(const struct keeper *k, pid_t parent, const struct stub_ends *ends)
{
    report_fd = fcntl(ends->start, F_DUPFD_CLOEXEC, REPORT_FD);
    setsid();
    /* The keeper may have been killed before the signal was asked for. */
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != parent)
        _exit(127);
    if (dup2(ends->out, STDOUT_FILENO) < 0 || dup2(ends->err, STDERR_FILENO) < 0)
        give_up(STAGE_PREPARE, errno);
    close(k->in_fd);
    close(k->out_fd[0]);
    close(k->out_fd[1]);
    close(k->start_pipe);
    close(ends->start);
    close(ends->out);
    close(ends->err);
}

/* Room for that many pointers, already there if they are not too many. */
static char **pointer_space(size_t count)
{
    static char *space[POINTERS];
    if (count <= POINTERS)
        return space;
    void *map = mmap(NULL, count * sizeof(char *), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        give_up(STAGE_EXEC, errno);
    return map;
}

/* Takes the page faults of what will be written to now, while nobody waits. */
static void warm_up(void)
{
    explicit_bzero(spec_space, sizeof spec_space);
    explicit_bzero(preload_entry, sizeof preload_entry);
    explicit_bzero(run_entry, sizeof run_entry);
    explicit_bzero(pointer_space(1), POINTERS * sizeof(char *));
    char stack[STACK_USED];
    explicit_bzero(stack, sizeof stack);
}

/* A spec of the usual size goes to memory that is there already. */
static int load_spec(int fd, struct spec *ret_spec)
{
    ssize_t n = fd_pread_all(fd, spec_space, sizeof spec_space, 0);
    if (n < 0)
        return (int)n;
    if ((size_t)n == sizeof spec_space)
        return spec_map(fd, ret_spec);
    *ret_spec = (struct spec){.head = (const void *)spec_space, .size = (size_t)n};
    return spec_check(spec_space, (size_t)n);
}

static void wait_for_go(const struct keeper *k, int *ret_cwd, int *ret_input)
{
    struct wire_go go;
    int fds[2];
    ssize_t n = sock_recv(k->launch_fd, &go, sizeof go, fds, 2, 0);
    if (n != sizeof go || go.head.type != WIRE_GO)
        give_up(STAGE_ABANDON, 0);
    *ret_cwd = fds[0];
    *ret_input = go.has_input ? fds[1] : -EBADF;
}

static void place_input(const struct spec_head *spec, const struct stub_ends *ends, int given)
{
    int fd = -EBADF;
    switch ((nacre_stdin)spec->input) {
    case NACRE_STDIN_NULL:
        return; /* it is, since the keeper was made */
    case NACRE_STDIN_PIPE:
        fd = ends->in;
        break;
    case NACRE_STDIN_BYTES:
    case NACRE_STDIN_FD:
        fd = given;
        break;
    }
    if (fd < 0 || dup2(fd, STDIN_FILENO) < 0)
        give_up(STAGE_STDIN, fd < 0 ? EBADF : errno);
}

/* What may have changed in the host since this child was forked. */
static void take_over(const struct spec_head *spec)
{
    umask(spec->umask);
    for (int i = 0; i < SPEC_LIMITS && i < (int)RLIM_NLIMITS; i++) {
        struct rlimit now, want = {.rlim_cur = (rlim_t)spec->limits[i].soft,
                                   .rlim_max = (rlim_t)spec->limits[i].hard};
        if (getrlimit((__rlimit_resource_t)i, &now) == 0 &&
            (now.rlim_cur != want.rlim_cur || now.rlim_max != want.rlim_max))
            setrlimit((__rlimit_resource_t)i, &want);
    }
    if (getpriority(PRIO_PROCESS, 0) != spec->nice)
        setpriority(PRIO_PROCESS, 0, spec->nice);
}

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
    int n = snprintf(preload_entry, sizeof preload_entry, "LD_PRELOAD=/proc/self/fd/%d%s%s",
                     PRELOAD_FD, theirs ? ":" : "", theirs ? theirs : "");
    int m = snprintf(run_entry, sizeof run_entry, "NACRE_RUN=%s",
                     spec_string(spec, spec->head->run_path));
    if (n < 0 || (size_t)n >= sizeof preload_entry || m < 0 || (size_t)m >= sizeof run_entry)
        return false;
    if (slot == env->count)
        add(env, preload_entry);
    else
        env->list[slot] = preload_entry;
    add(env, run_entry);
    return true;
}

/* A text that is too long for a variable goes through memory that the shell reads as fd 3. */
static void place_long_text(const struct spec *spec)
{
    const struct spec_head *head = spec->head;
    cleanup_close int fd = memfd_create("text", MFD_CLOEXEC);
    if (fd < 0 || fd_write_all(fd, spec_string(spec, head->text), head->text_size) < 0 ||
        lseek(fd, 0, SEEK_SET) < 0)
        give_up(STAGE_EXEC, errno);
    if (dup3(fd, TEXT_FD, O_CLOEXEC) < 0)
        give_up(STAGE_EXEC, errno);
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

/* Everything of ours is closed by the exec; only what was let through stays. */
static void seal(bool text, bool preload, int preload_fd)
{
    fd_cloexec_from(3);
    if (text)
        fcntl(TEXT_FD, F_SETFD, 0);
    if (preload && dup2(preload_fd, PRELOAD_FD) == PRELOAD_FD)
        fcntl(PRELOAD_FD, F_SETFD, 0);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static void execute(const struct keeper *k, const struct spec *spec)
{
    const struct spec_head *head = spec->head;
    char **pointers = pointer_space((size_t)head->argc + head->envc + (size_t)EXTRA_ENTRIES * 2);
    struct strings argv = {.list = pointers};
    struct strings env = {.list = pointers + head->argc + EXTRA_ENTRIES};
    add_all(&env, spec_string(spec, head->env), head->envc);
    bool is_shell = head->kind != SPEC_ARGV;
    bool is_long = is_shell && head->text_size > TEXT_ENV_MAX;
    bool preload = is_shell && add_preload(k, spec, &env);
    if (is_shell) {
        shell_arguments(spec, is_long, &argv);
        if (is_long)
            place_long_text(spec);
        /* The text stands behind its variable's name in the spec. */
        add(&env, is_long ? "NACRE_COMMAND_FD=3"
                          : spec_string(spec, head->text) - strlen(SPEC_TEXT_NAME));
    } else {
        add_all(&argv, spec_string(spec, head->argv), head->argc);
    }
    seal(is_long, preload, k->text_fd);
    execve(spec_string(spec, head->program), argv.list, env.list);
    give_up(STAGE_EXEC, errno);
}

_Noreturn void stub_main(struct keeper *k, const struct stub_ends *ends)
{
    int cwd, input;
    struct spec spec;
    become_session(k, k->st.keeper_pid, ends);
    warm_up();
    wait_for_go(k, &cwd, &input);
    int r = load_spec(k->spec_fd, &spec);
    if (r < 0)
        give_up(STAGE_SPEC, -r);
    place_input(spec.head, ends, input);
    if (fchdir(cwd) < 0)
        give_up(STAGE_CHDIR, errno);
    take_over(spec.head);
    execute(k, &spec);
    _exit(127);
}
