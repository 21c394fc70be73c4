#include "tool/await.h"

#include "base/clock.h"
#include "base/defs.h"

int await_read(struct await *w, const nacre_call *c, const struct await_args *args,
               nacre_error *err)
{
    int64_t most = call_wait_max(c);
    bool patient = args->until || args->idle >= 0;
    w->cut = args->wait > most;
    w->waited_ms = args->wait >= 0 ? MIN(args->wait, most) : patient ? most : 0;
    return args->until ? match_new("until", args->until, true, &w->until, err) : 0;
}

int await_listen(struct await *w, nacre_call *c, const struct await_args *args, const nacre_id *ids,
                 const uint64_t *offsets, size_t count, nacre_error *err)
{
    struct follow_want want = {.until = w->until, .idle_ms = args->idle, .all = args->all};
    await_start(w);
    return follow_new(c->session, &want, ids, offsets, count, &w->follow, err);
}

void await_start(struct await *w)
{
    w->deadline_ns = clock_deadline(w->waited_ms);
}

int await_step(struct await *w, nacre_call *c, nacre_error *err)
{
    int r = follow_step(w->follow, err);
    if (r != 0) {
        w->came_true = r > 0;
        return r;
    }
    if (clock_left_ms(w->deadline_ns) == 0)
        return TOOL_DONE;
    c->fd = follow_fd(w->follow);
    c->wake_ns = MIN(w->deadline_ns, follow_wake_ns(w->follow));
    return TOOL_WAIT;
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
}

void await_note_time(const struct await *w, struct answer *a)
{
    if (w->follow && !w->came_true && w->cut)
        answer_note(a, "waited %.10g s, the longest that one call waits; call again to go on",
                    (double)w->waited_ms / 1000);
}

void await_done(struct await *w)
{
    follow_free(w->follow);
    match_free(w->until);
}
