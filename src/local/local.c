#include "local/local.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "backend/op.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/grow.h"
#include "base/hold.h"
#include "home/keeper_line.h"
#include "home/run_watch.h"
#include "local/questions.h"
#include "run/wire.h"
#include "sys/sock.h"

#define CLOSE_SLACK_MS 5500 /* beyond the longest grace */
#define FAREWELL_MS    1000 /* for keepers that were not wanted to clean up */
#define LOOK_MS        200  /* a keeper that was stopped is found out this soon */
#define REAP_MS        500
#define REAP_ROUND_MS  1
#define SURVIVOR_NAMES 160

/* -- Opening ---------------------------------------------------------------------------------- */

int local_prepare(struct local *l, nacre_error *err)
{
    nacre_error spare = NACRE_ERROR_INIT;
    err = err ? err : &spare;
    int r = home_make_runs(l->home, err);
    if (r < 0 && run_has_no_room(err->sys_errno))
        r = 0; /* there are other places */
    HOLD(&l->lock);
    if (r >= 0 && !l->launcher) {
        r = launcher_new(&l->home->options.session, home_number(l->home), l->keeper, l->tier,
                         &l->launcher, err);
        if (r >= 0)
            launcher_set_policy(l->launcher, l->policy_fd);
    }
    if (r >= 0) {
        launcher_set_home(l->launcher, home_moves(l->home));
        launcher_dismissed(l->launcher, &(int){-1});
    }
    return MIN(r, 0);
}

static bool run_is_over(struct local *l, const nacre_id *id)
{
    cleanup_run struct run run = RUN_NONE;
    struct run_state state;
    if (home_open_run(l->home, id, &run, NULL) < 0) {
        cleanup_close int sock = keeper_line_open(id, -1);
        return sock == -ECONNREFUSED;
    }
    return state_read(run.state_fd, &state) == 0 && state_is_final(&state);
}

static void forget_ended(struct local *l)
{
    size_t kept = 0;
    for (size_t i = 0; i < l->mine_count; i++)
        if (!run_is_over(l, &l->mine[i]))
            l->mine[kept++] = l->mine[i];
    l->mine_count = kept;
}

void local_remember(struct local *l, const nacre_id *id, int64_t grace_ms)
{
    HOLD(&l->lock);
    l->longest_grace_ms = MAX(l->longest_grace_ms, grace_ms);
    if (l->mine_count == l->mine_cap) {
        forget_ended(l);
        if (l->mine_count * 2 >= l->mine_cap)
            GROW(l->mine, l->mine_cap, l->mine_cap);
    }
    if (l->mine_count < l->mine_cap)
        l->mine[l->mine_count++] = *id;
}

/* -- Hearing of ends -------------------------------------------------------------------------- */

static int local_bell(void *self)
{
    struct local *l = self;
    HOLD(&l->lock);
    return l->launcher ? launcher_line(l->launcher) : -EBADF;
}

/* What a keeper says on the line: a ring, or a question. */
union line_word {
    nacre_id ring;
    struct wire_asked asked;
};

static int local_rung(void *self, nacre_id *ret_id)
{
    struct local *l = self;
    union line_word word;
    int line = local_bell(self), fd = -EBADF;
    ssize_t n = 0;
    while (line >= 0 && (n = sock_recv(line, &word, sizeof word, &fd, 1, MSG_DONTWAIT)) > 0) {
        if (n == sizeof word.ring) {
            *ret_id = word.ring;
            return 1;
        }
        question_add(l, &word.asked, (size_t)n, TAKE_FD(fd));
    }
    /* A keeper that was sent away is gone a moment later, and its socket is of no use. */
    if (line >= 0)
        launcher_dismissed(l->launcher, &(int){-1});
    return 0;
}

static int local_look(void *self, const nacre_id *id, nacre_op **ret_op, nacre_error *err)
{
    return home_look(((struct local *)self)->home, id, 0, ret_op, err);
}

/* -- Closing ---------------------------------------------------------------------------------- */

static void local_free(struct local *l, bool forked)
{
    launcher_free(l->launcher);
    fences_done(&l->fences, forked);
    close_fd(&l->policy_fd);
    for (struct local_question *q; (q = local_take_question(l));)
        local_question_free(q);
    pthread_mutex_destroy(&l->lock);
    free(l->keeper);
    free(l->mine);
    free(l);
}

/* The keepers have seen the session's line end and are all at work: each proof is awaited. Those
 * that are held, or too slow, are looked after meanwhile, all at once. */
struct close_op {
    nacre_op op;
    struct local *local;
    enum { CLOSE_DISMISS, CLOSE_AWAIT, CLOSE_REAP } phase;
    int64_t left_ns;     /* when it began */
    int64_t deadline_ns; /* of the phase */
    size_t at;           /* of the list: the shell that is awaited */
    nacre_watch *watch;  /* of it */
    nacre_op **looks;    /* one for each of the list, NULL = none under way */
    int64_t look_ns;     /* when they are looked at again */
    int survivors;
    char names[SURVIVOR_NAMES]; /* of them */
};

/* Its state, if it can be had. */
static bool read_state_of(struct close_op *c, const nacre_id *id, struct run_state *ret_state)
{
    cleanup_run struct run run = RUN_NONE;
    return home_open_run(c->local->home, id, &run, NULL) == 0 &&
           state_read(run.state_fd, ret_state) == 0;
}

/* The shell, and the first of who is left of it, if that is known. */
static void name_survivor(struct close_op *c, const nacre_id *id)
{
    struct run_state state;
    char who[32] = "";
    size_t n = strlen(c->names);
    if (read_state_of(c, id, &state) && state.survivors > 0)
        snprintf(who, sizeof who, " (pid %d)", state.survivor_pids[0]);
    snprintf(c->names + n, sizeof c->names - n, "%s %s%s", n > 0 ? "," : "", nacre_id_short(id).s,
             who);
    c->survivors++;
}

static void begin_looks(struct close_op *c)
{
    if (clock_left_ms(c->look_ns) != 0)
        return;
    c->look_ns = clock_deadline(LOOK_MS);
    for (size_t i = c->at; c->looks && i < c->local->mine_count; i++)
        if (!c->looks[i])
            home_look(c->local->home, &c->local->mine[i], c->left_ns, &c->looks[i], NULL);
}

/* When one of them wants to be stepped again. */
static int64_t look_after_all(struct close_op *c)
{
    int64_t wake_ns = c->look_ns;
    begin_looks(c);
    for (size_t i = c->at; c->looks && i < c->local->mine_count; i++) {
        nacre_op *look = c->looks[i];
        if (look && look->step(look, NULL) != 0)
            op_end(&c->looks[i]);
        else if (look)
            wake_ns = MIN(wake_ns, look->wake_ns);
    }
    return MIN(wake_ns, c->look_ns);
}

/* limit_ms: since the beginning. */
static int enter_phase(struct close_op *c, int phase, int64_t limit_ms)
{
    bool never = limit_ms > (INT64_MAX - c->left_ns) / NS_PER_MS;
    c->phase = phase;
    c->deadline_ns = never ? INT64_MAX : c->left_ns + limit_ms * NS_PER_MS;
    return 0;
}

static int64_t longest_ms(const struct close_op *c)
{
    return MIN(c->local->longest_grace_ms, INT64_MAX / 2) + CLOSE_SLACK_MS;
}

static int await_dismissed(struct close_op *c)
{
    c->op.wake_ns = MIN(c->deadline_ns, c->op.wake_ns);
    if (launcher_dismissed(c->local->launcher, &c->op.fd) > 0 && clock_left_ms(c->deadline_ns) != 0)
        return 0;
    return enter_phase(c, CLOSE_AWAIT, longest_ms(c));
}

/* Whether a shell has to be awaited: not if it was given up before. */
static bool has_to_be_awaited(struct close_op *c, const nacre_id *id)
{
    struct run_state state;
    bool given_up = read_state_of(c, id, &state) && !state_is_final(&state) && state.survivors > 0;
    if (given_up)
        name_survivor(c, id);
    return !given_up;
}

static int open_next(struct close_op *c, const nacre_id *id)
{
    if (!has_to_be_awaited(c, id) ||
        home_watch(c->local->home, id, UINT64_MAX, &c->watch, NULL) < 0)
        return -ENOENT;
    nacre_watch_skip_output(c->watch);
    return 0;
}

/* 1 = it is over, or does not have to be awaited: somebody may have taken it out of the session. Of
 * that its keeper's word counts, and not what a command may have written into its own state. */
static int await_one(struct close_op *c, const nacre_id *id)
{
    nacre_event event;
    if (c->looks && c->looks[c->at] && clock_left_ms(c->deadline_ns) != 0)
        return 0; /* who looks after it is to say how it ended */
    if (!c->watch && open_next(c, id) < 0)
        return 1;
    int r;
    do
        r = nacre_watch_next(c->watch, NULL, 0, &event, NULL);
    while (r == 0 && event.kind != NACRE_EVENT_NONE && event.kind != NACRE_EVENT_END);
    bool over = r == 0 && (run_watch_is_over(c->watch) || run_watch_is_kept(c->watch));
    c->op.fd = run_watch_fd(c->watch);
    c->op.wake_ns = MIN(c->deadline_ns, c->op.wake_ns);
    if (r == 0 && !over && clock_left_ms(c->deadline_ns) != 0)
        return 0;
    /* What cannot be seen from here is nothing that could be waited for. */
    if (!over && r != NACRE_EPERM && r != NACRE_ENOTFOUND)
        name_survivor(c, id);
    nacre_watch_close(TAKE_PTR(c->watch));
    return 1;
}

static int await_all(struct close_op *c)
{
    while (c->at < c->local->mine_count) {
        if (await_one(c, &c->local->mine[c->at]) == 0)
            return 0;
        c->at++;
    }
    int64_t passed_ms = (clock_mono_ns() - c->left_ns) / NS_PER_MS;
    return enter_phase(c, CLOSE_REAP, passed_ms + REAP_MS);
}

static int step_close(nacre_op *op, nacre_error *err)
{
    struct close_op *c = (struct close_op *)op;
    int r = 0;
    op->fd = -1;
    op->wake_ns = look_after_all(c);
    if (c->phase == CLOSE_DISMISS)
        r = await_dismissed(c);
    if (r == 0 && c->phase == CLOSE_AWAIT)
        r = await_all(c);
    if (c->phase != CLOSE_REAP)
        return r;
    op->wake_ns = clock_deadline(REAP_ROUND_MS);
    bool waits = launcher_reap(c->local->launcher) > 0 || !fences_are_left(&c->local->fences);
    if (waits && clock_left_ms(c->deadline_ns) != 0)
        return 0;
    if (c->survivors > 0)
        err_set(err, NACRE_EBUSY, "%d shells of the session could not be ended in time:%s",
                c->survivors, c->names);
    return 1;
}

static void end_close(nacre_op *op)
{
    struct close_op *c = (struct close_op *)op;
    nacre_watch_close(c->watch);
    for (size_t i = 0; c->looks && i < c->local->mine_count; i++)
        op_end(&c->looks[i]);
    free(c->looks);
    local_free(c->local, false);
    free(c);
}

static int local_close(void *self, int forked, nacre_op **ret_op, nacre_error *err)
{
    struct local *l = self;
    struct close_op *c = forked || !l->launcher ? NULL : calloc(1, sizeof *c);
    *ret_op = NULL;
    if (!c) {
        bool unheard = !forked && l->launcher;
        local_free(l, forked);
        return unheard ? err_set(err, NACRE_ENOMEM, "out of memory") : 0;
    }
    *c = (struct close_op){.op = OP_INIT(step_close, end_close),
                           .local = l,
                           .left_ns = clock_mono_ns(),
                           .look_ns = clock_deadline(LOOK_MS),
                           .looks = calloc(l->mine_count + 1, sizeof *c->looks)};
    c->op.result = &c->survivors;
    launcher_end_session(l->launcher);
    fences_let_go(&l->fences);
    enter_phase(c, CLOSE_DISMISS, FAREWELL_MS);
    *ret_op = &c->op;
    return 0;
}

static const nacre_backend_ops local_ops = {
    .version = NACRE_BACKEND_VERSION,
    .size = sizeof local_ops,
    .name = "local",
    .start = local_start,
    .kill = local_kill,
    .input = local_input,
    .signal = local_signal,
    .resize = local_resize,
    .reads = local_reads,
    .change = local_change,
    .look = local_look,
    .bell = local_bell,
    .rung = local_rung,
    .close = local_close,
};

int local_new(nacre_home *home, const char *keeper, nacre_tier tier, bool single,
              const struct fence_wish *wish, nacre_backend *ret_backend, nacre_error *err)
{
    struct local *l = calloc(1, sizeof *l);
    char *path = keeper ? strdup(keeper) : NULL;
    if (!l || (keeper && !path)) {
        free(l);
        free(path);
        return err_set(err, NACRE_ENOMEM, "out of memory");
    }
    *l = (struct local){.home = home,
                        .keeper = path,
                        .tier = tier,
                        .single = single,
                        .policy_fd = -EBADF,
                        .longest_grace_ms = home->options.grace_ms};
    pthread_mutex_init(&l->lock, NULL);
    fences_init(&l->fences, wish);
    *ret_backend = (nacre_backend){.ops = &local_ops, .self = l};
    return 0;
}
