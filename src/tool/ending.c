#include "tool/ending.h"

#include "base/clock.h"
#include "base/defs.h"
#include "shell/session.h"
#include "tool/tool.h"

#define PROOF_MS 8000 /* beyond the grace, for a shell that runs elsewhere */

/* -- Elsewhere -------------------------------------------------------------------------------- */

static int64_t grace_of(const nacre_session *session, const nacre_kill_options *options)
{
    return options->grace_ms >= 0 ? options->grace_ms
                                  : session_setting(session, NACRE_SETTING_GRACE);
}

static int begin_elsewhere(struct ending *e, const nacre_kill_options *options, nacre_error *err)
{
    nacre_kill_options quick = *options;
    nacre_kill_result result;
    quick.no_wait = 1;
    int r = nacre_kill(e->session, &e->id, &quick, &result, err);
    if (r < 0)
        return r;
    e->was_alive = result.was_alive;
    if (!e->was_alive)
        return TOOL_DONE;
    e->deadline_ns = clock_deadline(grace_of(e->session, options) + PROOF_MS);
    r = nacre_watch_open(e->session, &e->id, UINT64_MAX, &e->watch, err);
    if (r == 0)
        nacre_watch_skip_output(e->watch);
    return r;
}

/* Somebody is left whom SIGKILL did not end. */
static bool is_admitted(const struct ending *e)
{
    nacre_record record = NACRE_RECORD_INIT;
    bool admitted = nacre_watch_record(e->watch, &record, NULL) == 0 && record.survivors > 0;
    nacre_record_done(&record);
    return admitted;
}

static int step_elsewhere(struct ending *e, nacre_call *c, nacre_error *err)
{
    c->fd = nacre_watch_fd(e->watch);
    c->wake_ns = e->deadline_ns;
    for (;;) {
        nacre_event event;
        int r = nacre_watch_next(e->watch, NULL, 0, &event, err);
        if (r < 0)
            return r;
        if (event.kind == NACRE_EVENT_END)
            return TOOL_DONE;
        if (event.kind == NACRE_EVENT_SETTLED && is_admitted(e))
            return TOOL_DONE;
        if (event.kind == NACRE_EVENT_NONE)
            break;
    }
    if (clock_left_ms(e->deadline_ns) > 0)
        return TOOL_WAIT;
    int r = is_admitted(e) ? 0 : nacre_kill(e->session, &e->id, NULL, NULL, err);
    return r < 0 ? r : TOOL_DONE;
}

/* -- With a keeper ---------------------------------------------------------------------------- */

static int take_result(struct ending *e, int r)
{
    if (r > 0)
        e->was_alive = e->killing.result.was_alive;
    return r < 0 ? r : r > 0 ? TOOL_DONE : TOOL_WAIT;
}

int ending_begin(struct ending *e, nacre_session *session, const nacre_id *id,
                 const nacre_kill_options *options, nacre_error *err)
{
    e->begun = true;
    e->session = session;
    e->id = *id;
    int r = session_kill_begin(session, id, options, &e->killing, err);
    return r == NACRE_EUNSUPPORTED ? begin_elsewhere(e, options, err) : take_result(e, r);
}

int ending_step(struct ending *e, nacre_call *c, nacre_error *err)
{
    if (e->watch)
        return step_elsewhere(e, c, err);
    int r = take_result(e, session_kill_step(e->session, &e->killing, err));
    c->fd = killing_fd(&e->killing);
    c->wake_ns = e->killing.wake_ns;
    return r;
}

bool ending_is_sure(const struct ending *e)
{
    return !e->begun || e->watch || killing_is_promised(&e->killing);
}

void ending_done(struct ending *e)
{
    if (e->begun)
        session_kill_end(e->session, &e->killing);
    nacre_watch_close(e->watch);
    e->watch = NULL;
}
