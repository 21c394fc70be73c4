/*
 * Starting a command: from a keeper that gets ready to one that says that it runs. The warm keeper
 * is taken if there is one; whatever is wrong with it, a new one gets the same command.
 */
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "backend/op.h"
#include "base/clock.h"
#include "base/err.h"
#include "config/limits.h"
#include "home/keeper_line.h"
#include "home/run_watch.h"
#include "local/find_keeper.h"
#include "local/local.h"
#include "sys/fd.h"
#include "sys/fsize.h"
#include "sys/sock.h"
#include "systemd/ask_scope.h"

#define WARM_MS    500   /* for a warm keeper to be ready */
#define MAKER_MS   20    /* after which its maker may have been stopped */
#define READY_MS   10000 /* for a new one */
#define SCOPE_MS   2000  /* for the service manager to make a scope; without it goes on */
#define FIRST_MS   100   /* to wake a keeper that is awake does no harm */
#define STARTED_MS 1000
#define HOMES_MAX  8
#define WAKES_MAX  10 /* then it is killed */

enum start_phase {
    START_FENCE, /* its fence is not made yet */
    START_GATE,  /* the gate of that is not open yet */
    START_TAKE,  /* a keeper is to be taken */
    START_WARM,  /* the warm one is not ready yet */
    START_SCOPE, /* one that was executed is to get a scope before it gets ready */
    START_NEW,   /* it is not ready yet */
    START_GO,    /* it is ready */
    START_WORD,  /* it has its go: the command begins, or cannot */
    START_LEAVE, /* it cannot: the keeper cleans up */
    START_LOST,  /* the keeper vanished */
};

struct start_op {
    nacre_op op;
    struct local *local;
    const nacre_command *command;
    struct compose compose;
    char cwd[PATH_MAX];
    int input;
    struct buf spec;
    struct made_fence *fence; /* NULL = it runs without */
    int builder;              /* while that is being made */
    char **fenced;            /* its variables in that */
    enum start_phase phase;
    bool had_warm; /* the keeper is the warm one */
    struct launched launched;
    int64_t deadline_ns; /* of the phase */
    int wakes;
    int64_t wake_again_ns; /* a new one, that is not ready yet */
    int spare;             /* how many places beside the home were tried */
    int homes;             /* that were gone before the keeper was ready */
    bool heard;            /* a word of the child */
    struct wire_started word;
    nacre_op *look;
    nacre_started result;
};

/* The phase that follows, which waits for fd, if at all, until limit_ms have passed. */
static int next_phase(struct start_op *s, enum start_phase phase, int fd, int64_t limit_ms)
{
    s->phase = phase;
    s->op.fd = fd;
    s->op.events = phase == START_WORD ? 0 : POLLIN;
    s->op.wake_ns = s->deadline_ns = clock_deadline(limit_ms);
    return 0;
}

static bool phase_is_late(const struct start_op *s)
{
    return clock_left_ms(s->deadline_ns) == 0;
}

/* -- Its fence -------------------------------------------------------------------------------- */

/* Others may wait for the same word: it is looked for every now and then. */
static int need_gate(struct start_op *s, nacre_error *err)
{
    cleanup_close int program = -EBADF;
    struct gate_order order = {.program = -EBADF};
    int fd, r = 0;
    if (!s->fence || s->fence->gate_open || !s->fence->plan.hosts)
        return next_phase(s, START_TAKE, -1, 0);
    if (s->fence->gate.sock < 0)
        r = find_gate(s->local->keeper, &program, err);
    if (r < 0)
        return r;
    order.program = program;
    launcher_fill_gate_order(s->local->launcher, &order);
    r = fences_open_gate(&s->local->fences, s->fence, &order, &fd, err);
    if (r > 0)
        return next_phase(s, START_TAKE, -1, 0);
    s->op.fd = fd;
    s->op.events = POLLIN;
    s->op.wake_ns = clock_deadline(MAKER_MS);
    return r;
}

static int need_fence(struct start_op *s, nacre_error *err)
{
    struct local *l = s->local;
    if (!s->fence || s->fence->made)
        return next_phase(s, START_GATE, -1, 0);
    if (s->builder < 0) {
        int r = fences_begin(&l->fences, s->fence, launcher_program(l->launcher), &s->builder, err);
        return r < 0 ? r : next_phase(s, START_FENCE, s->builder, READY_MS);
    }
    int r = fences_hear(&l->fences, s->fence, s->builder, err);
    if (r == 0 && phase_is_late(s))
        return err_sys(err, NACRE_ESTART, ETIMEDOUT, "sandbox",
                       "the sandbox was not made in time; try again");
    if (r <= 0)
        return r;
    close_fd(&s->builder);
    return next_phase(s, START_GATE, -1, 0);
}

/* -- A keeper --------------------------------------------------------------------------------- */

static struct errand errand_of(const struct start_op *s)
{
    return (struct errand){.fences = &s->local->fences,
                           .fence = s->fence,
                           .kept = s->command->lifetime == NACRE_LIFE_KEEP};
}

static int execute_in(struct start_op *s, int runs, nacre_error *err)
{
    struct errand errand = errand_of(s);
    int r = launcher_take_new(s->local->launcher, runs, &errand, &s->launched, err);
    if (r < 0)
        return r;
    s->wake_again_ns = clock_deadline(STARTED_MS);
    return s->launched.ask ? next_phase(s, START_SCOPE, scope_ask_fd(s->launched.ask), SCOPE_MS)
                           : next_phase(s, START_NEW, s->launched.sock, READY_MS);
}

static int await_scope(struct start_op *s, nacre_error *err)
{
    struct errand errand = errand_of(s);
    int r = launcher_greet(s->local->launcher, &errand, &s->launched, phase_is_late(s), err);
    return r <= 0 ? r : next_phase(s, START_NEW, s->launched.sock, READY_MS);
}

/* The next place that may have room: the home is the first. */
static int take_in_spare(struct start_op *s, nacre_error *err)
{
    while (s->spare < RUN_SPARES) {
        cleanup_close int runs = home_make_spare(s->local->home, s->spare++);
        if (runs < 0)
            continue;
        return execute_in(s, runs, err);
    }
    return NACRE_EIO;
}

static int take_new(struct start_op *s, nacre_error *err)
{
    nacre_error why = NACRE_ERROR_INIT;
    s->had_warm = false;
    int runs = home_make_runs(s->local->home, &why);
    if (runs < 0 && run_has_no_room(why.sys_errno) && take_in_spare(s, err) == 0)
        return 0;
    if (runs < 0 && err)
        *err = why;
    return runs < 0 ? runs : execute_in(s, runs, err);
}

/* What is warm has its directory already, and no room for what its command prints. */
static int take_keeper(struct start_op *s, nacre_error *err)
{
    if (home_has_no_room(s->local->home))
        return take_in_spare(s, err) < 0 ? take_new(s, err) : 0;
    struct errand errand = errand_of(s);
    s->had_warm = launcher_take_warm(s->local->launcher, &errand, &s->launched);
    return s->had_warm ? next_phase(s, START_WARM, s->launched.sock, WARM_MS) : take_new(s, err);
}

/* What is wrong with a warm one is no reason to refuse a new one. */
static int await_warm(struct start_op *s, nacre_error *err)
{
    int r = launcher_hear_ready(s->local->launcher, &s->launched, NULL);
    if (r > 0)
        return next_phase(s, START_GO, -1, 0);
    if (r < 0 || phase_is_late(s)) {
        launcher_dismiss(s->local->launcher, &s->launched);
        return take_new(s, err);
    }
    if (s->wakes == 0)
        launched_hurry(&s->launched);
    else if (s->wakes == 1)
        launched_wake(&s->launched);
    s->op.wake_ns = s->wakes++ == 0 ? clock_deadline(MAKER_MS) : s->deadline_ns;
    return 0;
}

/* Somebody removed the home when it was just made. */
static bool home_is_gone_again(struct start_op *s)
{
    return s->launched.error == ENOENT && s->homes++ < HOMES_MAX;
}

static int await_new(struct start_op *s, nacre_error *err)
{
    int r = launcher_hear_ready(s->local->launcher, &s->launched, err);
    if (r > 0)
        return next_phase(s, START_GO, -1, 0);
    if (r < 0 && home_is_gone_again(s)) {
        launched_drop(&s->launched);
        r = local_prepare(s->local, err);
        return r < 0 ? r : take_new(s, err);
    }
    if (r < 0 && run_has_no_room(s->launched.error)) {
        launched_drop(&s->launched);
        return take_in_spare(s, err) < 0 ? r : 0;
    }
    if (r == 0 && phase_is_late(s))
        return err_set(err, NACRE_EBACKEND, "nacre-keeper did not get ready in time; try again");
    if (r == 0 && clock_left_ms(s->wake_again_ns) == 0) {
        launched_wake(&s->launched);
        s->wake_again_ns = clock_deadline(STARTED_MS);
    }
    s->op.wake_ns = MIN(s->deadline_ns, s->wake_again_ns);
    return r;
}

/* -- The go ----------------------------------------------------------------------------------- */

/* A spec that does not fit the message travels as a descriptor. */
static int wrap_spec(const struct buf *spec)
{
    FSIZE_SHELTER();
    cleanup_close int fd = fd_lift_consume(memfd_create("spec", MFD_CLOEXEC));
    if (fd < 0)
        return -errno;
    int r = fd_write_all(fd, spec->data, spec->len);
    return r < 0 ? r : TAKE_FD(fd);
}

static int send_go(const struct start_op *s)
{
    const struct buf *spec = &s->spec;
    struct wire_go go;
    int fds[2];
    size_t count = 0;
    bool inside = spec->len <= sizeof go.spec;
    cleanup_close int file = inside ? -EBADF : wrap_spec(spec);
    if (!inside && file < 0)
        return file;
    go.head = keeper_line_head(WIRE_GO);
    go.has_input = s->input >= 0;
    go.size = (uint32_t)spec->len;
    if (inside)
        memcpy(go.spec, spec->data, spec->len);
    if (s->input >= 0)
        fds[count++] = s->input;
    if (!inside)
        fds[count++] = file;
    size_t size = offsetof(struct wire_go, spec) + (inside ? spec->len : 0);
    return sock_send(s->launched.sock, &go, size, fds, count, 0);
}

static int send_sure(const struct start_op *s)
{
    struct wire_sure sure = {.head = keeper_line_head(WIRE_SURE)};
    compose_host(&sure.host);
    int r = sock_send(s->launched.sock, &sure, sizeof sure, NULL, 0, 0);
    /* What could not be started ended before it heard this, and left a word. */
    return r == -EPIPE || r == -ECONNRESET ? 0 : r;
}

static int compose_for(struct start_op *s, nacre_error *err)
{
    char run_path[PATH_MAX + NACRE_ID_DIGITS + 8];
    struct local *l = s->local;
    char runs[PATH_MAX];
    if (s->spare == 0 || run_spare_path(l->home->where.path, s->spare - 1, runs, sizeof runs) < 0)
        snprintf(runs, sizeof runs, "%.*s/runs", PATH_MAX - 8, l->home->where.path);
    snprintf(run_path, sizeof run_path, "%s/%s", runs, nacre_id_format(&s->launched.id).s);
    s->compose.run_path = run_path;
    s->compose.gated = l->policy_fd >= 0;
    if (s->fence) {
        s->compose.sandbox = fences_words(s->fence);
        fences_free_variables(s->fenced);
        s->fenced = fences_variables(s->fence, &s->launched.id);
        if (!s->fenced)
            return err_set(err, NACRE_ENOMEM, "out of memory");
        s->compose.fenced = (const char *const *)s->fenced;
    }
    s->compose.successor =
        !l->single && s->spare == 0 && launcher_wants_warm(l->launcher, &s->launched);
    buf_done(&s->spec);
    return compose_spec(&s->compose, &s->launched.id, s->cwd, &s->spec, err);
}

/* What takes a while to find out about the host is found out when the child is already waking up.
 */
static int go(struct start_op *s, nacre_error *err)
{
    bool warm = s->had_warm;
    s->wakes = 0;
    int r = compose_for(s, err);
    if (r < 0)
        return r;
    int e = send_go(s);
    if (e < 0 && warm) {
        launched_drop(&s->launched);
        return take_new(s, err);
    }
    if (e == 0 && warm && !launcher_is_here(s->local->launcher, &s->launched)) {
        launcher_dismiss(s->local->launcher, &s->launched);
        return take_new(s, err);
    }
    if (e == 0)
        e = send_sure(s);
    /* Without that word nothing has begun. */
    if (e < 0 && warm) {
        launched_drop(&s->launched);
        return take_new(s, err);
    }
    if (e < 0)
        return err_sys(err, NACRE_EBACKEND, -e, "keeper", "cannot talk to the keeper");
    return next_phase(s, START_WORD, s->launched.word, FIRST_MS);
}

/* -- What becomes of it ----------------------------------------------------------------------- */

static const char *stage_name(int stage)
{
    static const char *const names[] = {
        [STAGE_SPEC] = "spec",         [STAGE_CHDIR] = "chdir",     [STAGE_STDIN] = "stdin",
        [STAGE_EXEC] = "exec",         [STAGE_PREPARE] = "prepare", [STAGE_LIMITS] = "prepare",
        [STAGE_TERMINAL] = "terminal",
    };
    return stage >= STAGE_SPEC && stage <= STAGE_TERMINAL ? names[stage] : "prepare";
}

static int start_error(const struct start_op *s, nacre_error *err)
{
    const struct spec_head *head = (const void *)s->spec.data;
    bool chdir = s->word.stage == STAGE_CHDIR;
    if (s->word.stage == STAGE_LIMITS)
        return limits_refused((nacre_limit)s->word.error,
                              "no cgroup controller that nacre may use does that", err);
    if (s->word.stage == STAGE_EXEC && s->word.error == E2BIG)
        return err_sys(err, NACRE_ESTART, E2BIG, stage_name(STAGE_EXEC),
                       "the system gives no program %u variables and %zu KiB at once; pass less in "
                       "env, or large values by a file",
                       head->envc, s->spec.len / 1024);
    if (s->word.stage == STAGE_TERMINAL)
        return err_sys(err, NACRE_ESTART, s->word.error, stage_name(STAGE_TERMINAL),
                       "no terminal can be made here (/dev/ptmx); start it without one");
    return err_sys(err, NACRE_ESTART, s->word.error, stage_name(s->word.stage),
                   chdir                         ? "cannot use the directory \"%.150s\""
                   : s->word.stage == STAGE_EXEC ? "cannot execute \"%.150s\""
                                                 : "cannot start \"%.150s\"",
                   s->spec.data + (chdir ? head->cwd : head->program));
}

static int it_runs(struct start_op *s)
{
    if (s->command->lifetime == NACRE_LIFE_SESSION)
        local_remember(s->local, &s->launched.id, s->command->grace_ms);
    launcher_reap(s->local->launcher);
    s->result.id = s->launched.id;
    /* Without memory for a watch it runs all the same. */
    s->result.watch =
        run_watch_of_start(s->local->home, &s->launched.id, TAKE_FD(s->launched.sock), &s->spec);
    return 1;
}

/* At the end of the pipe the last word counts. Whoever may stop a keeper may stop it before there
 * is a command. */
static int hear_word(struct start_op *s, nacre_error *err UNUSED)
{
    const struct spec_head *head = (const void *)s->spec.data;
    struct launched *launched = &s->launched;
    ssize_t n;
    while ((n = RETRY(read(launched->word, &s->word, sizeof s->word))) == sizeof s->word)
        s->heard = true;
    if (n < 0 && errno == EAGAIN) {
        if (!phase_is_late(s))
            return 0;
        bool given_up = ++s->wakes == WAKES_MAX;
        proc_kill(&launched->keeper, given_up ? SIGKILL : SIGCONT);
        return next_phase(s, START_WORD, launched->word, STARTED_MS);
    }
    close_fd(&launched->word);
    if (head->successor)
        launcher_keep(s->local->launcher, launched);
    close_fd(&launched->next);
    if (!s->heard)
        return next_phase(s, START_LOST, -1, 0);
    return s->word.stage == STAGE_NONE ? it_runs(s)
                                       : next_phase(s, START_LEAVE, launched->sock, STARTED_MS);
}

/* A start that failed leaves nothing behind: its keeper sees to that before it goes. */
static int await_leave(struct start_op *s, nacre_error *err)
{
    char byte;
    ssize_t n;
    while ((n = sock_recv(s->launched.sock, &byte, sizeof byte, NULL, 0, MSG_DONTWAIT)) > 0)
        continue;
    return n == -EAGAIN && !phase_is_late(s) ? 0 : start_error(s, err);
}

/* What became of the run is found out like of any other. A warm keeper may have died before its go:
 * nothing has begun then, and a new one gets the same command. */
static int find_out(struct start_op *s, nacre_error *err)
{
    int r = s->look ? 0 : home_look(s->local->home, &s->launched.id, 0, &s->look, err);
    if (r == 0)
        r = op_step_inner(&s->op, s->look, err);
    if (r == NACRE_ENOTFOUND && s->had_warm) {
        launched_drop(&s->launched);
        op_end(&s->look);
        return take_new(s, err);
    }
    if (r < 0)
        return err_set(
            err, NACRE_EBACKEND,
            "the command was not started: its keeper, or what was to become it, was killed");
    return r > 0 ? it_runs(s) : 0;
}

/* -- The whole -------------------------------------------------------------------------------- */

static int step_local_start(nacre_op *op, nacre_error *err)
{
    static int (*const phases[])(struct start_op *, nacre_error *) = {
        [START_FENCE] = need_fence,
        [START_GATE] = need_gate,
        [START_TAKE] = take_keeper,
        [START_WARM] = await_warm,
        [START_SCOPE] = await_scope,
        [START_NEW] = await_new,
        [START_GO] = go,
        [START_WORD] = hear_word,
        [START_LEAVE] = await_leave,
        [START_LOST] = find_out,
    };
    struct start_op *s = (struct start_op *)op;
    for (;;) {
        enum start_phase phase = s->phase;
        int r = phases[phase](s, err);
        if (r != 0 || s->phase == phase)
            return r;
    }
}

/* A keeper that waits for its go cleans up by itself. One that has it hears on the same connection,
 * as soon as the command runs, that it is not wanted any more. */
static void end_local_start(nacre_op *op)
{
    struct start_op *s = (struct start_op *)op;
    struct wire_kill request = {
        .head = keeper_line_head(WIRE_KILL), .signal = SIGKILL, .reason = NACRE_REASON_CANCEL};
    if (s->phase == START_WORD && s->launched.word >= 0)
        sock_send(s->launched.sock, &request, sizeof request, NULL, 0, MSG_DONTWAIT);
    if (s->phase == START_LEAVE || !s->local->launcher)
        launched_drop(&s->launched);
    else
        launcher_dismiss(s->local->launcher, &s->launched);
    nacre_watch_close(s->result.watch);
    op_end(&s->look);
    close_fd(&s->builder);
    fences_free_variables(s->fenced);
    if (s->fence)
        fences_give_back(&s->local->fences, s->fence);
    close_fd(&s->input);
    buf_done(&s->spec);
    free(s);
}

void local_grant(nacre_op *start, const char *granted, size_t size)
{
    struct start_op *s = (struct start_op *)start;
    s->compose.granted = granted;
    s->compose.granted_size = size;
}

int local_start(void *self, const nacre_command *command, nacre_op **ret_op, nacre_error *err)
{
    struct local *l = self;
    int r = compose_check(command, err);
    if (r < 0)
        return r;
    struct start_op *s = calloc(1, sizeof *s);
    if (!s)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    *s = (struct start_op){.op = OP_INIT(step_local_start, end_local_start),
                           .local = l,
                           .command = command,
                           .compose = home_compose(l->home, command),
                           .input = -EBADF,
                           .builder = -EBADF,
                           .launched = LAUNCHED_NONE};
    s->op.result = &s->result;
    r = compose_cwd(&s->compose, s->cwd, err);
    if (r == 0)
        r = compose_input(command, &s->input, err);
    if (r == 0)
        r = local_prepare(l, err);
    if (r == 0)
        r = fences_want(&l->fences, l->home, command, launcher_program(l->launcher), &s->fence,
                        err);
    if (r < 0)
        end_local_start(&s->op);
    else
        *ret_op = &s->op;
    return r;
}
