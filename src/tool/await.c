#include "tool/await.h"

#include <string.h>

#include "base/clock.h"
#include "base/defs.h"
#include "session/session.h"
#include "tool/answer_reading.h"

int await_read(struct await *w, const nacre_call *c, const struct await_args *args,
               nacre_error *err)
{
    int64_t most = call_wait_max(c);
    bool patient = args->until || args->idle >= 0 || args->until_input || args->port >= 0;
    w->cut = args->wait > most;
    w->waited_ms = args->wait >= 0 ? MIN(args->wait, most) : patient ? most : 0;
    return args->until ? match_new("until", args->until, true, &w->until, err) : 0;
}

/* One that has ended is told by what it printed. */
static int listen_for_reader(struct await *w, nacre_call *c, const nacre_id *id, nacre_error *err)
{
    nacre_record record cleanup_record = NACRE_RECORD_INIT;
    nacre_op *op;
    unsigned set = NACRE_READS_TYPED | NACRE_READS_BIT(NACRE_READS_LISTENS);
    int r = call_record(c, id, &record, err);
    if (r < 0 || record.tree == NACRE_TREE_EMPTY)
        return r;
    r = session_reads(c->session, id, set, 0, &op, err);
    return r < 0 ? r : beside_begin(&w->reading, op, follow_fd(w->follow), err);
}

static int listen_for_port(struct await *w, nacre_call *c, const nacre_id *id, int port,
                           nacre_error *err)
{
    nacre_op *op;
    w->port = port;
    int r = session_await_port(c->session, id, port, &op, err);
    return r < 0 ? r : beside_begin(&w->listening, op, follow_fd(w->follow), err);
}

/* 1 = it came. That the shell has ended is heard by the follow. */
static int step_beside(struct beside *b, void *ret, size_t size, nacre_error *err)
{
    int r = b->op ? beside_step(b, err) : 0;
    if (r > 0)
        memcpy(ret, b->op->result, size);
    if (r != 0)
        beside_end(b);
    return r == NACRE_ECLOSED ? 0 : r;
}

int await_listen(struct await *w, nacre_call *c, const struct await_args *args, const nacre_id *ids,
                 const uint64_t *offsets, size_t count, nacre_error *err)
{
    bool beside = args->until_input || args->port >= 0;
    struct follow_want want = {.until = w->until,
                               .idle_ms = args->idle,
                               .all = args->all,
                               .joined = beside,
                               .only_end = beside && !args->until && args->idle < 0};
    await_start(w);
    int r = follow_new(c->session, &want, ids, offsets, count, &w->follow, err);
    if (r == 0 && args->until_input)
        r = listen_for_reader(w, c, ids, err);
    if (r == 0 && args->port >= 0)
        r = listen_for_port(w, c, ids, (int)args->port, err);
    return r;
}

void await_start(struct await *w)
{
    w->deadline_ns = clock_deadline(w->waited_ms);
}

static void wait_beside(const struct beside *b, nacre_call *c)
{
    if (!b->op)
        return;
    /* An operation with nothing to poll for is stepped by time alone. */
    if (b->op->fd >= 0)
        c->fd = beside_fd(b);
    c->wake_ns = MIN(c->wake_ns, beside_wake_ns(b));
}

int await_step(struct await *w, nacre_call *c, nacre_error *err)
{
    int r = follow_step(w->follow, err);
    if (r != 0) {
        w->came_true = r > 0;
        return r;
    }
    r = step_beside(&w->reading, &w->read, sizeof w->read, err);
    if (r == 0)
        r = step_beside(&w->listening, &w->listens, sizeof w->listens, err);
    if (r != 0) {
        w->came_true = r > 0;
        return r;
    }
    if (clock_left_ms(w->deadline_ns) == 0)
        return TOOL_DONE;
    c->fd = follow_fd(w->follow);
    c->wake_ns = MIN(w->deadline_ns, follow_wake_ns(w->follow));
    wait_beside(&w->reading, c);
    wait_beside(&w->listening, c);
    return TOOL_WAIT;
}

/* What came, if that was asked for; that it has not come is said of what runs. */
static void note_beside(const struct await *w, struct answer *a, const nacre_record *record)
{
    bool runs = record->outcome == NACRE_RUNNING;
    if (w->read.size > 0)
        answer_reading(a, record, &w->read);
    else if (w->reading.op && runs)
        answer_note(a, "nobody was seen to read its input yet");
    if (w->listens.size > 0)
        answer_note(a, "%.15s (pid %d) listens on port %d", w->listens.name, w->listens.pid,
                    w->listens.port);
    else if (w->listening.op && runs && w->port > 0)
        answer_note(a, "it does not listen on port %d yet", w->port);
    else if (w->listening.op && runs)
        answer_note(a, "it listens on no port yet");
}

void await_note(const struct await *w, struct answer *a, size_t i, const nacre_record *record)
{
    nacre_id_text id = nacre_id_short(&record->id);
    if (w->until && follow_matched(w->follow, i))
        answer_note(a, "%s: \"until\" matched", id.s);
    else if (w->until && record->outcome != NACRE_RUNNING)
        answer_note(a, "%s: it ended before \"until\" matched", id.s);
    else if (w->until)
        answer_note(a, "%s: \"until\" has not matched yet", id.s);
    note_beside(w, a, record);
}

void await_note_time(const struct await *w, struct answer *a)
{
    if (w->follow && !w->came_true && w->cut)
        answer_note(a, "waited %.10g s, the longest that one call waits; call again to go on",
                    (double)w->waited_ms / 1000);
}

void await_done(struct await *w)
{
    beside_end(&w->reading);
    beside_end(&w->listening);
    follow_free(w->follow);
    match_free(w->until);
}
