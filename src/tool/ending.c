#include "tool/ending.h"

#include "base/clock.h"
#include "base/defs.h"
#include "tool/tool.h"

#define PROOF_MS 8000 /* beyond the grace: the keeper's five seconds, and a busy machine */

int ending_begin(struct ending *e, nacre_session *session, const nacre_id *id,
                 const nacre_kill_options *options, nacre_error *err)
{
    nacre_kill_options quick = *options;
    nacre_kill_result result;
    quick.no_wait = 1;
    e->begun = true;
    e->id = *id;
    int r = nacre_kill(session, id, &quick, &result, err);
    if (r < 0)
        return r;
    e->was_alive = result.was_alive;
    if (!e->was_alive)
        return TOOL_DONE;
    int64_t grace = options->grace_ms >= 0 ? options->grace_ms
                                           : nacre_settings_number(nacre_session_settings(session),
                                                                   NACRE_SETTING_GRACE);
    e->deadline_ns = clock_deadline(grace + PROOF_MS);
    r = nacre_watch_open(session, id, UINT64_MAX, &e->watch, err);
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

int ending_step(struct ending *e, nacre_call *c, nacre_error *err)
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
    /* The keeper is deaf; the plain kill knows what to do then. */
    int r = is_admitted(e) ? 0 : nacre_kill(c->session, &e->id, NULL, NULL, err);
    return r < 0 ? r : TOOL_DONE;
}

void ending_done(struct ending *e)
{
    nacre_watch_close(e->watch);
    e->watch = NULL;
}
