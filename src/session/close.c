/* The end of a session: what still runs is ended, the backends one after the other, and what is
 * owed is written down. */
#include "backend/op.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/hold.h"
#include "catalog/catalog.h"
#include "home/mirror.h"
#include "session/asking.h"
#include "session/deferred.h"
#include "session/session.h"

struct session_closing {
    nacre_op op;
    nacre_session *session;
    bool forked;
    enum { CLOSE_MIRRORS, CLOSE_BACKEND, CLOSE_KEEPERS, CLOSE_REST } stage;
    nacre_op *inner; /* of the stage, if it is under way */
    struct ends_rest *rest;
    int survivors;
};

/* What a stage has to wait for becomes inner; it may be nothing. */
static int begin_stage(struct session_closing *c, nacre_error *err)
{
    nacre_session *s = c->session;
    bool foreign = s->self != s->keepers.self;
    if (c->stage == CLOSE_MIRRORS)
        return foreign && !c->forked && !s->ops.kill ? mirror_kill_all(s->home, &c->inner, err) : 0;
    if (c->stage == CLOSE_BACKEND)
        return foreign && s->ops.close ? s->ops.close(s->self, c->forked, &c->inner, err) : 0;
    return s->keepers.self ? s->keepers.ops->close(s->keepers.self, c->forked, &c->inner, err) : 0;
}

static void end_stage(struct session_closing *c, int r)
{
    const int *survivors = c->inner->result;
    c->survivors += r < 0 ? 1 : survivors ? *survivors : 0;
    op_end(&c->inner);
    c->op.fd = -1;
    c->op.wake_ns = INT64_MAX;
    c->stage++;
}

static int step_closing(nacre_op *op, nacre_error *err)
{
    struct session_closing *c = (struct session_closing *)op;
    nacre_error spare;
    err = err ? err : &spare;
    while (c->stage != CLOSE_REST) {
        if (c->inner) {
            int r = op_step_inner(op, c->inner, err);
            if (r == 0)
                return 0;
            end_stage(c, r);
        } else if (begin_stage(c, err) < 0 || !c->inner) {
            c->stage++;
        }
    }
    return 1;
}

/* Others take a session for alive as long as its process is, unless its row says otherwise. */
static void sign_in(nacre_session *s)
{
    struct catalog *catalog;
    if (s->started && !s->single)
        session_catalog(s, true, &catalog, NULL);
}

/* Nothing starts any more, and nothing is half started. */
static void stop_starting(nacre_session *s)
{
    pthread_mutex_lock(&s->lock);
    s->closing = true;
    pthread_mutex_unlock(&s->lock);
    desk_end(s->desk);
    deferred_end(s);
    HOLD(&s->lock);
    while (s->starting > 0)
        pthread_cond_wait(&s->changed, &s->lock);
}

static void finish_closing(struct session_closing *c)
{
    nacre_session *s = c->session;
    op_end(&c->inner);
    ends_rest_tell_consume(s, c->rest);
    if (!c->forked && s->signed_in)
        catalog_close_session(s->catalog, &s->id, clock_real_ns() / NS_PER_MS, NULL);
    if (!c->forked && !session_setting(s, NACRE_SETTING_HISTORY))
        retention_forget(s);
    session_free(s, c->forked);
}

static void end_closing(nacre_op *op)
{
    finish_closing((struct session_closing *)op);
    free(op);
}

static void begin_closing(struct session_closing *c, nacre_session *s)
{
    *c = (struct session_closing){.op = OP_INIT(step_closing, end_closing), .session = s};
    c->op.result = &c->survivors;
    c->forked = s->owner != getpid();
    if (!c->forked) {
        stop_starting(s);
        sign_in(s);
        retention_now_and_then(s);
        c->rest = ends_rest_new(s);
    }
}

nacre_op *session_close(nacre_session *s)
{
    struct session_closing *c = malloc(sizeof *c);
    if (c)
        begin_closing(c, s);
    return c ? &c->op : NULL;
}

int nacre_close(nacre_session *session, nacre_error *reterr)
{
    struct session_closing c;
    if (!session)
        return 0;
    begin_closing(&c, session);
    op_wait(&c.op, -1, reterr);
    finish_closing(&c);
    return c.survivors;
}

void session_abandon(nacre_session *s)
{
    struct session_closing c = {
        .op = OP_INIT(step_closing, end_closing), .session = s, .forked = true};
    op_wait(&c.op, -1, NULL);
    session_free(s, true);
}
