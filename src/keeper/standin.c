/*
 * The stand-in: a child that is there before anybody asks, hears the go itself and becomes the
 * command; docs/standin.md has the reasons and the races. It runs beside us, in the same memory
 * where that can be. So to it the keeper is const: it writes into its own memory (struct standin)
 * and on the page (struct standin_page), and nowhere else.
 */
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/defs.h"
#include "keeper/keeper.h"
#include "sys/fd.h"
#include "sys/sock.h"
#include "sys/syscalls.h"

/* Descriptors that must survive the exec for a moment; the preload or the wrapper closes them. */
#define TEXT_FD    3
#define PRELOAD_FD 4
#define SURE_TRIES 32

/* Wakes the keeper when a command that begins now has lasted for a while. */
static void set_alarm(int alarm_fd, const struct spec_head *spec)
{
    int64_t ms = QUIET_NS / NS_PER_MS;
    if (spec->timeout_ms > 0)
        ms = MIN(ms, spec->timeout_ms);
    struct itimerspec once = {.it_value.tv_nsec = ms * NS_PER_MS};
    timerfd_settime(alarm_fd, 0, &once, NULL);
}

/* -- In the child, which never returns --------------------------------------------------------- */

/* Tells the library. */
static void say_word(const struct standin *s, enum wire_stage stage, int error)
{
    struct wire_started word = {.stage = stage, .error = error};
    (void)fd_write_all(s->fd[FD_WORD], &word, sizeof word);
}

static _Noreturn void fail_start(const struct keeper *k, enum wire_stage stage, int error)
{
    k->page->stage = stage;
    k->page->error = error;
    say_word(&k->session.room->standin, stage, error);
    sys_exit(127);
}

/* All that does not depend on what will be executed. */
static void take_position(const struct keeper *k, const struct standin *s)
{
    setsid();
    /* The keeper may have been killed before the signal was asked for. */
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != k->st.keeper_pid)
        sys_exit(127);
    if (k->page->outside && fd_poke_at(s->fd[FD_CGROUP], "cgroup.procs", "0") >= 0)
        k->page->outside = false;
    if (dup2(s->fd[FD_CHILD_OUT], STDOUT_FILENO) < 0 ||
        dup2(s->fd[FD_CHILD_ERR], STDERR_FILENO) < 0)
        fail_start(k, STAGE_PREPARE, errno);
    fd_cloexec_from(3);
}

/* Too much of it is as good as nothing: it is asked about again. */
static void copy_granted(struct standin_page *page, const struct spec *spec)
{
    if (spec->head->granted_size == 0 || spec->head->granted_size > sizeof page->granted)
        return;
    page->granted_size = spec->head->granted_size;
    memcpy(page->granted, spec_string(spec, spec->head->granted), page->granted_size);
}

/* Hears the go and lays out what it says. */
static void hear_go(const struct keeper *k, struct standin *s)
{
    struct standin_page *page = k->page;
    int fds[2];
    ssize_t n;
    s->plan = (struct plan){.input = -EBADF, .text = -EBADF};
    do
        n = sock_recv(s->fd[FD_LAUNCH], &s->go, sizeof s->go, fds, 2, 0);
    while (n > 0 && s->go.head.type == WIRE_HURRY);
    if (n < (ssize_t)offsetof(struct wire_go, spec) || s->go.head.type != WIRE_GO)
        sys_exit(127); /* there was none: nothing has happened */
    s->plan.input = s->go.has_input ? fds[0] : -EBADF;
    int r = plan_load(s, (size_t)n, s->go.has_input ? fds[1] : fds[0]);
    if (r < 0)
        fail_start(k, STAGE_SPEC, -r);
    page->spec = *s->plan.spec.head;
    copy_granted(page, &s->plan.spec);
    page->st.started_ns = clock_real_ns();
    page->st.started_mono_ns = clock_mono_ns();
    r = plan_lay_out(k, s);
    if (r < 0)
        fail_start(k, STAGE_EXEC, -r);
}

/*
 * What the library finds out after the go. It is there by now or in a moment, and to sleep would
 * take longer than that moment; but the library may be waiting for this very processor.
 */
static void hear_sure(const struct keeper *k, struct standin *s)
{
    struct wire_sure sure;
    int launch = s->fd[FD_LAUNCH];
    ssize_t n = -EAGAIN;
    for (int i = 0; i < SURE_TRIES && n == -EAGAIN; i++) {
        n = sock_recv(launch, &sure, sizeof sure, NULL, 0, MSG_DONTWAIT);
        if (n == -EAGAIN)
            sched_yield();
    }
    if (n == -EAGAIN)
        n = sock_recv(launch, &sure, sizeof sure, NULL, 0, 0);
    if (n != sizeof sure || sure.head.type != WIRE_SURE)
        sys_exit(127); /* it was taken back: likewise */
    spec_note_host((struct spec_head *)s->plan.spec.head, &sure.host);
    k->page->spec = *s->plan.spec.head;
}

/* What may have changed in the host since the keeper was made. */
static void take_host_limits(const struct keeper_session *session, const struct spec_head *spec)
{
    umask(spec->umask);
    for (int i = 0; i < SPEC_LIMITS && i < (int)RLIM_NLIMITS; i++) {
        struct rlimit want = {.rlim_cur = (rlim_t)spec->limits[i].soft,
                              .rlim_max = (rlim_t)spec->limits[i].hard};
        if (memcmp(&spec->limits[i], &session->limits[i], sizeof spec->limits[i]) != 0)
            setrlimit((__rlimit_resource_t)i, &want);
    }
    if (session->nice != spec->nice)
        setpriority(PRIO_PROCESS, 0, spec->nice);
}

/* Everything of ours is closed by the exec; only what is let through here stays. */
static void let_through(const struct keeper *k, const struct standin *s)
{
    const struct plan *plan = &s->plan;
    int input = k->page->spec.input == NACRE_STDIN_PIPE ? s->fd[FD_CHILD_IN] : plan->input;
    if (k->page->spec.columns > 0)
        input = -EBADF; /* it has its terminal */
    int r = input >= 0 && input == plan->input ? enter_hold_file(k, input) : 0;
    if (r < 0)
        fail_start(k, STAGE_STDIN, -r);
    if (input >= 0 && dup2(input, STDIN_FILENO) < 0)
        fail_start(k, STAGE_STDIN, errno);
    if (plan->preload && dup2(s->fd[FD_TEXT], PRELOAD_FD) == PRELOAD_FD)
        fcntl(PRELOAD_FD, F_SETFD, 0);
    if (plan->text >= 0 && dup2(plan->text, TEXT_FD) < 0)
        fail_start(k, STAGE_EXEC, errno);
}

/* The command may end its keeper at once, so what begins is written down before. The run has its
 * spec, unless the disk is full; it runs all the same. */
static void write_down(const struct keeper *k, const struct standin *s)
{
    const struct spec_head *spec = &k->page->spec;
    struct run_state *st = &k->page->st;
    st->main_pid = getpid();
    st->columns = spec->columns;
    st->rows = spec->rows;
    st->phase = PHASE_RUN;
    st->kept = spec->lifetime == NACRE_LIFE_KEEP;
    st->background = spec->background;
    st->fleeting = spec->fleeting;
    state_write(s->fd[FD_STATE], st);
}

/* Where its groups are stands in the spec, before they are made. */
static void take_bounds(const struct keeper *k, const struct standin *s)
{
    (void)fd_pwrite_all(s->fd[FD_SPEC], s->plan.spec.head, s->plan.spec.size, 0);
    nacre_limit loose = bound_take(k, s);
    if (loose != NACRE_LIMIT_NONE)
        fail_start(k, STAGE_LIMITS, (int)loose);
}

/* That a shell reads the text is no word of the text. */
static void execute_plan(const struct keeper *k, const struct standin *s)
{
    const struct plan *plan = &s->plan;
    if (k->session.policy && k->page->spec.kind != SPEC_ARGV)
        (void)filter_pass_execve(&s->wish, plan->program, plan->argv, plan->env);
    else
        execve(plan->program, plan->argv, plan->env);
}

static _Noreturn void become_command(const struct keeper *k, const struct standin *s)
{
    let_through(k, s); /* after the last word: a long text takes the number of the socket */
    set_alarm(s->fd[FD_ALARM], &k->page->spec);
    take_bounds(k, s);
    write_down(k, s);
    take_host_limits(&k->session, &k->page->spec); /* a limit of the command's is not one of ours */
    bound_take_own(&k->page->spec, &k->page->st.limits);
    say_word(s, STAGE_NONE, 0);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execute_plan(k, s);
    fail_start(k, STAGE_EXEC, errno);
}

/* The same where it has a terminal. */
static void become_command_there(const struct keeper *k, int error)
{
    if (error < 0)
        fail_start(k, STAGE_TERMINAL, -error);
    become_command(k, &k->session.room->standin);
}

static void stand_in(void *argument)
{
    const struct keeper *k = argument;
    struct standin *s = &k->session.room->standin;
    take_position(k, s);
    if (enter_is_needed(k))
        enter_all(k, s);
    hear_go(k, s);
    if (chdir(s->plan.cwd) < 0)
        fail_start(k, STAGE_CHDIR, errno);
    hear_sure(k, s);
    if (k->page->spec.columns == 0)
        become_command(k, s);
    int r = tty_become(k, s, become_command_there);
    if (r < 0)
        fail_start(k, STAGE_TERMINAL, -r);
    sys_exit(0);
}

/* -- In the keeper ----------------------------------------------------------------------------- */

static int open_lines(struct keeper *k)
{
    int pipe[2];
    int r = fd_pipe(pipe);
    if (r < 0)
        return r;
    k->fd[FD_BORN] = pipe[0];
    k->fd[FD_WORD] = pipe[1];
    k->fd[FD_ALARM] = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    loop_watch(k, FD_ALARM);
    void *page =
        mmap(NULL, sizeof *k->page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (k->fd[FD_ALARM] < 0 || page == MAP_FAILED)
        return -errno;
    k->page = page;
    k->page->st = k->st;
    return 0;
}

int standin_make(struct keeper *k)
{
    static const enum keeper_fd theirs[] = {FD_CHILD_OUT, FD_CHILD_ERR, FD_CHILD_IN, FD_TTY_WORD,
                                            FD_WORD};
    struct standin *s = &k->session.room->standin;
    int r = open_lines(k);
    if (r == 0)
        r = tty_open_line(k);
    if (r == 0)
        r = enter_open(k);
    if (r < 0)
        return r;
    /* Takes the page faults ahead of time. */
    explicit_bzero((char *)s + sizeof s->stack, sizeof *s - sizeof s->stack);
    memcpy(s->fd, k->fd, sizeof s->fd);
    r = enter_prepare(k, s);
    if (r < 0)
        return r;
    k->main = birth(k->fd[FD_CGROUP], s->stack, stand_in, k, &k->page->outside);
    for (size_t i = 0; i < ARRAY_SIZE(theirs); i++)
        close_fd(&k->fd[theirs[i]]);
    return MIN(k->main, 0);
}

/* Takes over what it has left for us, also if it came to nothing. */
static void adopt_page(struct keeper *k)
{
    k->spec = k->page->spec;
    k->st = k->page->st;
    k->granted_size = k->page->granted_size;
    memcpy(k->session.room->granted, k->page->granted, k->granted_size);
    k->leader = k->page->leader;
    if (k->page->command > 0)
        k->main = k->page->command;
}

bool standin_is_over(struct keeper *k)
{
    struct pollfd poller = {.fd = k->fd[FD_BORN]};
    if (poll(&poller, 1, 0) <= 0)
        return false;
    adopt_page(k);
    return true;
}

void standin_dismiss(struct keeper *k)
{
    if (k->main <= 0)
        return;
    const pid_t all[] = {k->main, k->page->leader, k->page->command};
    for (size_t i = 0; i < ARRAY_SIZE(all); i++)
        if (all[i] > 0) {
            kill(all[i], SIGKILL);
            (void)RETRY(waitpid(all[i], NULL, 0));
        }
    adopt_page(k);
    k->main = k->leader = 0;
}

void standin_alarm(struct keeper *k)
{
    if (k->state == ST_WARM)
        set_alarm(k->fd[FD_ALARM], &k->page->spec);
    else
        loop_close(k, FD_ALARM);
}

void standin_forget(struct keeper *k)
{
    struct standin *s = &k->session.room->standin;
    plan_forget(s);
    madvise(s, sizeof *s, MADV_DONTNEED);
    munmap(k->page, sizeof *k->page);
    k->page = NULL;
    loop_close(k, FD_BORN);
    loop_close(k, FD_ALARM);
}
