/* Calls: one state machine for all tools, driven by the host's loop or by nacre_tool_call(). */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "shell/session.h"
#include "tool/tool.h"
#include "view/brief.h"
#include "view/render.h"

#define SLICE_MS         1000 /* a watch wants to be asked so often, whatever its descriptor says */
#define PROGRESS_BYTES   1024
#define PROGRESS_COLUMNS 120

/* -- What tools need -------------------------------------------------------------------------- */

int64_t call_setting(const nacre_call *c, nacre_setting setting)
{
    return session_setting(c->session, setting);
}

int64_t call_wait_max(const nacre_call *c)
{
    return call_setting(c, c->progress ? NACRE_SETTING_WAIT_PROGRESS : NACRE_SETTING_WAIT);
}

void call_set_budget(nacre_call *c, int64_t tokens)
{
    if (tokens >= 0)
        c->budget = (size_t)tokens * NACRE_TOKEN_BYTES;
    c->budget = MAX(MIN(c->budget, (size_t)CALL_BUDGET_MAX), (size_t)CALL_BUDGET_MIN);
}

int call_find(const nacre_call *c, const char *id, nacre_id *ret_id, nacre_error *err)
{
    int r = nacre_find(c->session, id, ret_id, err);
    if (r == NACRE_ENOTFOUND)
        err_set(err, r, "no background shell with id \"%.40s\" (it may have been evicted)", id);
    return r;
}

/* -- Stepping --------------------------------------------------------------------------------- */

/* The call is over: its answer is made, or the sentence of an error is the answer. */
static int finish(nacre_call *c, int r, nacre_error *error, nacre_error *reterr)
{
    bool structured = call_setting(c, NACRE_SETTING_STRUCTURED) != 0;
    c->phase = CALL_FINISHED;
    c->fd = -1;
    answer_init(&c->answer, c->session, c->budget);
    if (!c->cancelled)
        answer_take_completions(&c->answer);
    if (r >= 0 && !c->cancelled)
        r = c->tool->answer(c, &c->answer, error);
    if (r < 0)
        answer_fail(&c->answer, error);
    c->result = answer_result(&c->answer, structured);
    return c->result ? 1 : err_set(reterr, NACRE_ENOMEM, "out of memory");
}

static int go_on(nacre_call *c, int r, nacre_error *error, nacre_error *reterr)
{
    return r == TOOL_WAIT ? 0 : finish(c, r, error, reterr);
}

int nacre_call_step(nacre_call *call, nacre_error *reterr)
{
    nacre_error error = NACRE_ERROR_INIT;
    int r = session_check(call->session, reterr);
    if (r < 0)
        return r;
    if (call->phase == CALL_FINISHED)
        return call->result ? 1 : err_set(reterr, NACRE_ENOMEM, "out of memory");
    r = call->phase == CALL_ENDS ? call->tool->cancel(call, &error)
                                 : call->tool->step(call, &error);
    return go_on(call, r, &error, reterr);
}

int nacre_call_fd(const nacre_call *call)
{
    return call->phase == CALL_FINISHED ? -1 : call->fd;
}

int64_t nacre_call_timeout(const nacre_call *call)
{
    if (call->phase == CALL_FINISHED)
        return 0;
    int left = clock_left_ms(call->wake_ns);
    return left < 0 ? SLICE_MS : MIN(left, SLICE_MS);
}

/* -- Beginning -------------------------------------------------------------------------------- */

static int read_object(nacre_call *c, const char *json, size_t size, nacre_error *err)
{
    json_error_t error;
    c->object = json ? json_loadb(json, size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error)
                     : json_object();
    if (!c->object && json)
        return err_set(err, NACRE_EINVAL, "the arguments are not valid JSON: %.120s at byte %d",
                       error.text, error.position);
    if (!json_is_object(c->object))
        return err_set(err, NACRE_EINVAL, "the arguments must be an object, such as {}");
    return args_parse(c->tool->args, c->object, c->args, c->tool->args_size, err);
}

/* NULL if out of memory. */
static nacre_call *new_call(nacre_session *session, const struct tool *tool,
                            const nacre_call_options *options)
{
    nacre_call *c = calloc(1, sizeof *c);
    if (c) {
        c->args = calloc(1, tool->args_size + 1);
        c->state = calloc(1, tool->state_size + 1);
    }
    if (!c || !c->args || !c->state) {
        nacre_call_free(c);
        return NULL;
    }
    c->session = session;
    c->tool = tool;
    c->fd = -1;
    c->began_ns = clock_mono_ns();
    c->wake_ns = INT64_MAX;
    c->progress = options && options->progress;
    c->budget = options && options->budget > 0
                    ? (size_t)MIN(options->budget, (uint64_t)CALL_BUDGET_MAX)
                    : (size_t)call_setting(c, NACRE_SETTING_ANSWER);
    call_set_budget(c, -1);
    return c;
}

int nacre_call_begin(nacre_session *session, const char *tool, const char *json, size_t json_size,
                     const nacre_call_options *options, nacre_call **ret_call, nacre_error *reterr)
{
    nacre_error error = NACRE_ERROR_INIT;
    const struct tool *found = tool_find(tool);
    int r = session_check(session, reterr);
    if (r < 0)
        return r;
    if (options && options->size != sizeof *options)
        return err_set(reterr, NACRE_EINVAL, "the options must start from NACRE_CALL_OPTIONS_INIT");
    if (!found)
        return err_set(reterr, NACRE_ENOTFOUND, "there is no tool \"%.40s\"", tool ? tool : "");
    nacre_call *c = new_call(session, found, options);
    if (!c)
        return err_set(reterr, NACRE_ENOMEM, "out of memory");
    r = read_object(c, json, json_size, &error);
    if (r == 0)
        r = found->begin(c, &error);
    r = go_on(c, r, &error, reterr);
    if (r < 0) {
        nacre_call_free(c);
        return r;
    }
    *ret_call = c;
    return 0;
}

/* -- The end ---------------------------------------------------------------------------------- */

const char *nacre_call_result(nacre_call *call)
{
    return call->result;
}

void nacre_call_delivered(nacre_call *call)
{
    if (call->phase != CALL_FINISHED || call->cancelled || call->delivered)
        return;
    call->delivered = true;
    answer_delivered(&call->answer);
}

void nacre_call_cancel(nacre_call *call)
{
    nacre_error error = NACRE_ERROR_INIT;
    if (call->cancelled)
        return;
    call->cancelled = true;
    if (call->phase == CALL_FINISHED)
        return;
    call->phase = CALL_ENDS;
    int r = call->tool->cancel ? call->tool->cancel(call, &error) : TOOL_DONE;
    go_on(call, r, &error, NULL);
}

void nacre_call_free(nacre_call *call)
{
    if (!call)
        return;
    bool ours = call->tool && session_check(call->session, NULL) == 0;
    if (ours && call->phase == CALL_WAITS)
        nacre_call_cancel(call);
    if (call->tool && call->tool->done)
        call->tool->done(call);
    if (call->phase == CALL_FINISHED)
        answer_done(&call->answer);
    json_decref(call->object);
    free(call->args);
    free(call->state);
    free(call->result);
    free(call->told);
    free(call);
}

/* -- Progress --------------------------------------------------------------------------------- */

/* The last line with something in it, as a person would see it. */
static int last_line(const nacre_call *c, const nacre_id *id, struct buf *out)
{
    struct render_options options = {.first_line = 1, .line_max = PROGRESS_BYTES};
    nacre_snapshot snapshot = {0};
    struct buf text cleanup_buf;
    buf_init(&text, 8 * (size_t)PROGRESS_BYTES);
    int r = nacre_output(c->session, id, NACRE_BOTH, PROGRESS_BYTES, &snapshot, NULL);
    if (r < 0)
        return r;
    r = render_text(&text, snapshot.data, snapshot.size, &options);
    free(snapshot.data);
    while (r == 0 && text.len > 0 && strchr(" \t\n", text.data[text.len - 1]))
        text.data[--text.len] = '\0';
    if (r < 0 || text.len == 0)
        return r;
    const char *newline = strrchr(text.data, '\n');
    return brief_line(out, newline ? newline + 1 : text.data, PROGRESS_COLUMNS);
}

const char *nacre_call_progress(nacre_call *call)
{
    struct buf text cleanup_buf;
    buf_init(&text, 4 * (size_t)PROGRESS_BYTES);
    if (call->phase != CALL_WAITS)
        return NULL;
    const nacre_id *id = call->tool->subject ? call->tool->subject(call) : NULL;
    if (id && last_line(call, id, &text) < 0)
        return NULL;
    if (text.len == 0)
        buf_printf(&text, "waiting for %lld s",
                   (long long)((clock_mono_ns() - call->began_ns) / NS_PER_S));
    if (text.len == 0 || (call->told && strcmp(call->told, text.data) == 0))
        return NULL;
    free(call->told);
    call->told = buf_take(&text);
    return call->told;
}

/* -- Blocking --------------------------------------------------------------------------------- */

int nacre_tool_call(nacre_session *session, const char *tool, const char *json, char **ret_json,
                    nacre_error *reterr)
{
    nacre_call *call;
    int r = nacre_call_begin(session, tool, json, json ? strlen(json) : 0, NULL, &call, reterr);
    if (r < 0)
        return r;
    while ((r = nacre_call_step(call, reterr)) == 0) {
        struct pollfd poller = {.fd = nacre_call_fd(call), .events = POLLIN};
        poll(&poller, 1, (int)nacre_call_timeout(call));
    }
    if (r > 0) {
        *ret_json = strdup(call->result);
        r = *ret_json ? 0 : err_set(reterr, NACRE_ENOMEM, "out of memory");
    }
    if (r == 0)
        nacre_call_delivered(call);
    nacre_call_free(call);
    return r;
}
