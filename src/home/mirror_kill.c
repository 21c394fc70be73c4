/*
 * The end of mirrors whose backend knows signals only: the first one, the grace, SIGKILL, and the
 * word of the backend that nothing is left.
 */
#include <signal.h>
#include <stdlib.h>

#include <nacre/session.h>

#include "backend/op.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/hold.h"
#include "home/home.h"
#include "home/mirror.h"

#define ROUND_MS 5
#define PROOF_MS 8000 /* after SIGKILL, for the backend to say that it is over */

static void send_signal(nacre_home *h, const nacre_id *id, int signal)
{
    nacre_op *op = NULL;
    nacre_error ignored;
    if (h->ops->signal && h->ops->signal(h->self, id, signal, &op, &ignored) == 0 && op)
        op->step(op, &ignored);
    op_end(&op);
}

/* With the lock. An end that the command found by itself stays what it is. */
static void condemn(nacre_mirror *m, nacre_reason reason, int64_t grace_ms)
{
    if (!m->exited && m->reason == NACRE_REASON_NONE)
        m->reason = reason;
    m->deadline_ns = INT64_MAX;
    m->kill_ns = MIN(m->kill_ns, clock_deadline(grace_ms));
}

/* With the lock: what has to be sent now, or 0. */
static int due_signal(nacre_mirror *m)
{
    if (clock_left_ms(m->kill_ns) == 0) {
        m->kill_ns = INT64_MAX;
        m->forced = true;
        return SIGKILL;
    }
    if (m->exited || clock_left_ms(m->deadline_ns) != 0)
        return 0;
    condemn(m, NACRE_REASON_DEADLINE, m->grace_ms);
    return SIGTERM;
}

int64_t mirror_keep_time(nacre_home *h, const nacre_id *id)
{
    int64_t next = INT64_MAX;
    int signal = 0;
    if (h->ops->kill)
        return next;
    pthread_mutex_lock(&h->lock);
    nacre_mirror *m = mirror_of(h, id);
    if (m) {
        signal = due_signal(m);
        next = MIN(m->deadline_ns, m->kill_ns);
    }
    pthread_mutex_unlock(&h->lock);
    if (signal)
        send_signal(h, id, signal);
    return next;
}

/* -- One -------------------------------------------------------------------------------------- */

struct mirror_kill_op {
    nacre_op op;
    nacre_home *home;
    nacre_id id;
    bool no_wait;
    int64_t deadline_ns;
    nacre_kill_result result;
};

static int step_mirror_kill(nacre_op *op, nacre_error *err UNUSED)
{
    struct mirror_kill_op *k = (struct mirror_kill_op *)op;
    int64_t next = home_pump(k->home, &k->id, true);
    bool left = mirror_find(k->home, &k->id);
    k->result.survivors = left;
    op->wake_ns = MIN(next, clock_deadline(ROUND_MS));
    return !left || k->no_wait || clock_left_ms(k->deadline_ns) == 0;
}

static void end_mirror_kill(nacre_op *op)
{
    free(op);
}

/* The first signal is sent once; what is stopped shall hear it too. */
int mirror_kill(nacre_home *h, const nacre_id *id, const struct nacre_kill_options *options,
                nacre_op **ret_op, nacre_error *err)
{
    if (!h->ops->signal)
        return err_set(err, NACRE_EUNSUPPORTED, "the %s backend cannot end shells", h->ops->name);
    struct mirror_kill_op *k = calloc(1, sizeof *k);
    if (!k)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    int signal = options->signal ? options->signal : SIGTERM;
    *k = (struct mirror_kill_op){.op = OP_INIT(step_mirror_kill, end_mirror_kill),
                                 .home = h,
                                 .id = *id,
                                 .no_wait = options->no_wait};
    k->op.result = &k->result;
    pthread_mutex_lock(&h->lock);
    nacre_mirror *m = mirror_of(h, id);
    bool first = m && m->kill_ns == INT64_MAX && !m->forced;
    int64_t grace_ms = !m ? 0 : options->grace_ms >= 0 ? options->grace_ms : m->grace_ms;
    if (m)
        condemn(m, options->cancel ? NACRE_REASON_CANCEL : NACRE_REASON_KILL,
                signal == SIGKILL ? 0 : grace_ms);
    pthread_mutex_unlock(&h->lock);
    k->result.was_alive = k->result.signalled = m != NULL;
    k->deadline_ns = clock_deadline(grace_ms + PROOF_MS);
    if (first && signal != SIGKILL) {
        send_signal(h, id, signal);
        send_signal(h, id, SIGCONT);
    }
    *ret_op = &k->op;
    return 0;
}

/* -- All -------------------------------------------------------------------------------------- */

struct mirrors_kill_op {
    nacre_op op;
    nacre_home *home;
    int64_t deadline_ns;
    int survivors;
};

/* Those that are still written, to be freed; NULL if out of memory. */
static nacre_id *list_mirrors(nacre_home *h, size_t *ret_count)
{
    size_t count = 0, room = 1;
    HOLD(&h->lock);
    for (const nacre_mirror *m = h->mirrors; m; m = m->next)
        room++;
    nacre_id *ids = malloc(room * sizeof *ids);
    for (const nacre_mirror *m = h->mirrors; ids && m; m = m->next)
        if (m->begun && !m->over)
            ids[count++] = m->st.id;
    *ret_count = count;
    return ids;
}

/* Whether it is to be told for the first time. */
static bool end_with_session(nacre_home *h, const nacre_id *id, int64_t *deadline_ns)
{
    pthread_mutex_lock(&h->lock);
    nacre_mirror *m = mirror_of(h, id);
    bool first = m && m->kill_ns == INT64_MAX && !m->forced;
    if (first) {
        condemn(m, NACRE_REASON_OWNER, m->grace_ms);
        *deadline_ns = MAX(*deadline_ns, clock_deadline(m->grace_ms + PROOF_MS));
    }
    pthread_mutex_unlock(&h->lock);
    return first;
}

static int step_kill_all(nacre_op *op, nacre_error *err)
{
    struct mirrors_kill_op *k = (struct mirrors_kill_op *)op;
    size_t count;
    cleanup_free nacre_id *ids = list_mirrors(k->home, &count);
    k->survivors = 0;
    for (size_t i = 0; i < count; i++) {
        if (end_with_session(k->home, &ids[i], &k->deadline_ns)) {
            send_signal(k->home, &ids[i], SIGTERM);
            send_signal(k->home, &ids[i], SIGCONT);
        }
        home_pump(k->home, &ids[i], true);
        k->survivors += mirror_find(k->home, &ids[i]);
    }
    op->wake_ns = clock_deadline(ROUND_MS);
    if (k->survivors > 0 && clock_left_ms(k->deadline_ns) != 0)
        return 0;
    if (k->survivors > 0)
        err_set(err, NACRE_EBUSY, "%d shells of the session could not be ended in time",
                k->survivors);
    return 1;
}

int mirror_kill_all(nacre_home *h, nacre_op **ret_op, nacre_error *err)
{
    struct mirrors_kill_op *k = calloc(1, sizeof *k);
    if (!k)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    *k = (struct mirrors_kill_op){.op = OP_INIT(step_kill_all, end_mirror_kill), .home = h};
    k->op.result = &k->survivors;
    *ret_op = &k->op;
    return 0;
}
