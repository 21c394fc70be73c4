/* What waits for an ACP client, as operations. */
#include <sys/eventfd.h>

#include "acp/agent.h"
#include "backend/op.h"
#include "base/clock.h"
#include "base/err.h"
#include "sys/fd.h"

#define STEP_MS 1 /* between steps without a descriptor to poll */

/* -- Their beginning -------------------------------------------------------------------------- */

/* What is heard while it looks has the next step follow at once. */
static int step_acp(nacre_op *op, nacre_error *err)
{
    struct acp_op *o = (struct acp_op *)op;
    uint64_t count;
    if (!o->agent->options.receive && op->fd >= 0) {
        ssize_t drained UNUSED = read(op->fd, &count, sizeof count);
    }
    int64_t due = acp_tend(o->agent);
    int r = o->see(o, err);
    op->wake_ns = MIN(MIN(due, o->deadline_ns), op->fd < 0 ? clock_deadline(STEP_MS) : INT64_MAX);
    return r;
}

struct acp_op *acp_op_new(nacre_acp_agent *a, size_t size,
                          int (*see)(struct acp_op *, nacre_error *), struct acp_shell *shell,
                          nacre_error *err)
{
    struct acp_op *o = calloc(1, size);
    if (!o) {
        err_set(err, NACRE_ENOMEM, "out of memory");
        return NULL;
    }
    *o = (struct acp_op){.op = OP_INIT(step_acp, acp_op_end),
                         .agent = a,
                         .shell = shell,
                         .deadline_ns = clock_deadline(a->options.answer_ms),
                         .see = see};
    o->op.fd = a->options.receive ? a->options.receive_fd
                                  : fd_lift_consume(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    pthread_mutex_lock(&a->lock);
    o->next = a->ops;
    a->ops = o;
    pthread_mutex_unlock(&a->lock);
    return o;
}

void acp_op_end(nacre_op *op)
{
    struct acp_op *o = (struct acp_op *)op;
    nacre_acp_agent *a = o->agent;
    pthread_mutex_lock(&a->lock);
    UNLINK(a->ops, o);
    pthread_mutex_unlock(&a->lock);
    if (o->call)
        acp_drop_call(a, o->call);
    if (!a->options.receive)
        close_fd(&op->fd);
    free(o);
}

int acp_op_hear(struct acp_op *o, json_t **ret_result, nacre_error *err)
{
    pthread_mutex_lock(&o->agent->lock);
    bool done = o->call->done;
    pthread_mutex_unlock(&o->agent->lock);
    if (!done && clock_left_ms(o->deadline_ns) != 0)
        return 0;
    int r = acp_take_answer(o->call, done, ret_result, err);
    if (r > 0)
        acp_drop_call(o->agent, TAKE_PTR(o->call));
    return r;
}

/* -- Kill ------------------------------------------------------------------------------------- */

struct acp_kill_op {
    struct acp_op base;
    nacre_kill_result result;
};

/* The client says that it has, and then that the command exited, shows the rest of its output, and
 * lets go of the terminal. */
static int see_killed(struct acp_op *o, nacre_error *err)
{
    json_t *result;
    struct acp_shell *shell = o->shell;
    int r = o->call ? acp_op_hear(o, &result, err) : 0;
    if (r < 0 || o->call)
        return r;
    if (r > 0) {
        json_decref(result);
        o->deadline_ns = clock_deadline(ACP_END_MS);
    }
    pthread_mutex_lock(&o->agent->lock);
    bool late = clock_left_ms(o->deadline_ns) == 0;
    bool over = shell->settled || (late && shell->final);
    pthread_mutex_unlock(&o->agent->lock);
    if (over || !late)
        return over;
    return err_set(err, NACRE_EBACKEND, "the client has killed shell %s but reports no exit",
                   nacre_id_short(&shell->id).s);
}

/* There is nothing to wait for. */
static int see_nothing(struct acp_op *o UNUSED, nacre_error *err UNUSED)
{
    return 1;
}

int acp_kill(void *self, const nacre_id *id, const nacre_kill_options *options, nacre_op **ret_op,
             nacre_error *err)
{
    nacre_acp_agent *a = self;
    struct acp_shell *shell = acp_find_shell(a, id);
    struct acp_op *o = acp_op_new(a, sizeof(struct acp_kill_op), see_nothing, shell, err);
    if (!o)
        return NACRE_ENOMEM;
    int r = 0;
    bool alive =
        shell && acp_condemn(a, shell, options->cancel ? NACRE_REASON_CANCEL : NACRE_REASON_KILL);
    struct acp_kill_op *k = (struct acp_kill_op *)o;
    k->result = (nacre_kill_result){.was_alive = alive, .signalled = alive};
    o->op.result = &k->result;
    if (alive && options->no_wait) {
        acp_post(a, ACP_KILL, shell);
    } else if (alive) {
        o->see = see_killed;
        r = acp_ask(o, ACP_KILL, acp_target_of(a, shell->terminal), err);
    }
    if (r < 0)
        acp_op_end(&o->op);
    else
        *ret_op = &o->op;
    return r;
}

/* -- Look ------------------------------------------------------------------------------------- */

struct acp_look_op {
    struct acp_op base;
    uint64_t fetches; /* when it began */
};

/* Of what has exited, all that is still to come of it; for that there is patience already. */
static int see_output(struct acp_op *o, nacre_error *err)
{
    const struct acp_shell *shell = o->shell;
    pthread_mutex_lock(&o->agent->lock);
    if (shell->exited)
        o->deadline_ns = INT64_MAX;
    bool came =
        shell->exited ? shell->settled : shell->fetches != ((struct acp_look_op *)o)->fetches;
    pthread_mutex_unlock(&o->agent->lock);
    if (came || clock_left_ms(o->deadline_ns) != 0)
        return came;
    return err_set(err, NACRE_EBACKEND, "the client does not answer terminal/output");
}

int acp_look(void *self, const nacre_id *id, nacre_op **ret_op, nacre_error *err)
{
    nacre_acp_agent *a = self;
    struct acp_shell *shell = acp_find_shell(a, id);
    struct acp_op *o =
        acp_op_new(a, sizeof(struct acp_look_op), shell ? see_output : see_nothing, shell, err);
    if (!o)
        return NACRE_ENOMEM;
    *ret_op = &o->op;
    if (!shell)
        return 0;
    pthread_mutex_lock(&a->lock);
    bool post = !shell->final && !shell->fetching && !a->gone;
    ((struct acp_look_op *)o)->fetches = shell->fetches;
    shell->fetching = shell->fetching || post;
    pthread_mutex_unlock(&a->lock);
    if (post)
        acp_post(a, ACP_OUTPUT, shell);
    return 0;
}

/* -- Close ------------------------------------------------------------------------------------ */

struct acp_close_op {
    struct acp_op base;
    int left; /* that were not released */
};

/* From here on its shells are nobody's: what is not known of them by now never will be. In a forked
 * child they are the parent's. With the lock. */
static void leave_session(nacre_acp_agent *a, bool forked)
{
    for (struct acp_shell *shell = a->shells; shell; shell = shell->next) {
        if (shell->mirror && !forked)
            acp_note_end(a, shell);
        nacre_mirror_free(TAKE_PTR(shell->mirror));
    }
    a->home = NULL;
}

static int see_released(struct acp_op *o, nacre_error *err)
{
    int *left = &((struct acp_close_op *)o)->left;
    *left = 0;
    pthread_mutex_lock(&o->agent->lock);
    for (const struct acp_shell *shell = o->agent->shells; shell; shell = shell->next)
        *left += shell->mirror != NULL;
    pthread_mutex_unlock(&o->agent->lock);
    if (*left > 0 && clock_left_ms(o->deadline_ns) != 0)
        return 0;
    if (*left > 0)
        err_set(err, NACRE_EBUSY, "the client has not released %d terminals", *left);
    return 1;
}

static void end_close_op(nacre_op *op)
{
    nacre_acp_agent *a = ((struct acp_op *)op)->agent;
    pthread_mutex_lock(&a->lock);
    leave_session(a, false);
    pthread_mutex_unlock(&a->lock);
    acp_op_end(op);
}

static void post_release(nacre_acp_agent *a, struct acp_shell *shell)
{
    pthread_mutex_lock(&a->lock);
    bool post = shell->mirror && !shell->releasing;
    shell->releasing = shell->releasing || post;
    pthread_mutex_unlock(&a->lock);
    if (post)
        acp_post(a, ACP_RELEASE, shell);
}

/* Everything that was not released is, all at once. */
static void release_all(nacre_acp_agent *a)
{
    pthread_mutex_lock(&a->lock);
    struct acp_shell *shells = a->shells;
    pthread_mutex_unlock(&a->lock);
    for (struct acp_shell *shell = shells; shell; shell = shell->next)
        if (acp_condemn(a, shell, NACRE_REASON_OWNER))
            acp_post(a, ACP_KILL, shell);
    for (struct acp_shell *shell = shells; shell; shell = shell->next)
        post_release(a, shell);
}

int acp_close(void *self, int forked, nacre_op **ret_op, nacre_error *err)
{
    nacre_acp_agent *a = self;
    struct acp_op *o =
        forked ? NULL : acp_op_new(a, sizeof(struct acp_close_op), see_released, NULL, err);
    *ret_op = o ? &o->op : NULL;
    if (!o) {
        leave_session(a, forked != 0);
        return forked ? 0 : NACRE_ENOMEM;
    }
    o->op.result = &((struct acp_close_op *)o)->left;
    o->op.end = end_close_op;
    release_all(a);
    return 0;
}
