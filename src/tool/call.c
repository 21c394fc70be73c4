/* The tools, and their calls: one state machine for all, driven by the host's loop or by
 * nacre_tool_call(). */
#include "tool/call.h"

#include <stdio.h>
#include <string.h>

#include "backend/op.h"
#include "base/clock.h"
#include "base/err.h"
#include "screen/render.h"
#include "session/deferred.h"
#include "session/session.h"
#include "text/brief.h"
#include "text/frame.h"
#include "tool/tool.h"

#define SLICE_MS         1000 /* a watch wants to be asked so often, whatever its descriptor says */
#define TEXT_MAX         16384 /* of a description */
#define PROGRESS_BYTES   1024
#define PROGRESS_COLUMNS 120

/* -- The table of tools, as data for clients -------------------------------------------------- */

static const struct tool *const tools[] = {
    &tool_bash,       &tool_bash_output, &tool_bash_input,
    &tool_kill_shell, &tool_list_shells, &tool_recall,
};

static const char instructions_template[] =
    "Shell commands that never hang, leak or forget. bash runs one; it answers after {yield} at "
    "the latest, and a command that is not done by then goes on in the background. Start servers "
    "and other long commands with background: true, read them with bash_output (which can wait for "
    "a text, for silence or for the end), and end them with kill_shell: their whole process tree "
    "dies. Up to {shells} run at a time. The end of a background shell is told in front of the "
    "next answer of any of these tools; there is no need to poll. Everything ever printed stays "
    "searchable with recall. Lines that begin with a backslash are a command's own words that "
    "look like ours. Where an id is wanted, a name that a shell was given will do, or any unique "
    "beginning of the id of four or more digits.";

const struct tool *tool_at(size_t i)
{
    return i < ARRAY_SIZE(tools) ? tools[i] : NULL;
}

static const struct tool *tool_find(const char *name)
{
    for (size_t i = 0; name && i < ARRAY_SIZE(tools); i++)
        if (strcmp(tools[i]->name, name) == 0)
            return tools[i];
    return NULL;
}

static char *fill_template(const char *template, const nacre_settings *settings)
{
    struct buf text cleanup_buf = BUF_UP_TO(TEXT_MAX);
    return args_fill(&text, template, settings) == 0 ? buf_take(&text) : NULL;
}

static json_t *annotations_of(const struct tool *tool)
{
    return json_pack("{s:s, s:b, s:b, s:b, s:b}", "title", tool->title, "readOnlyHint",
                     (int)tool->read_only, "destructiveHint", (int)tool->destructive,
                     "idempotentHint", (int)tool->idempotent, "openWorldHint",
                     (int)tool->open_world);
}

static json_t *describe_tool(const struct tool *tool, const nacre_settings *settings)
{
    cleanup_free char *description = fill_template(tool->description, settings);
    if (!description)
        return NULL;
    return json_pack("{s:s, s:s, s:s, s:o, s:o, s:{s:b}}", "name", tool->name, "title", tool->title,
                     "description", description, "inputSchema", args_schema(tool->args, settings),
                     "annotations", annotations_of(tool), "_meta", "anthropic/alwaysLoad", 1);
}

json_t *tool_list(const nacre_session *session)
{
    json_t *array = json_array();
    for (size_t i = 0; i < ARRAY_SIZE(tools); i++)
        if (json_array_append_new(array, describe_tool(tools[i], session->settings)) < 0) {
            json_decref(array);
            return NULL;
        }
    return array;
}

int nacre_tools_json(nacre_session *session, char **ret_json, nacre_error *reterr)
{
    int r = session_check(session, reterr);
    if (r < 0)
        return r;
    json_auto_t *array = tool_list(session);
    *ret_json = json_dumps(array, JSON_COMPACT);
    return *ret_json ? 0 : err_set(reterr, NACRE_ENOMEM, "out of memory");
}

int nacre_instructions(nacre_session *session, char **ret_text, nacre_error *reterr)
{
    int r = session_check(session, reterr);
    if (r < 0)
        return r;
    *ret_text = fill_template(instructions_template, session->settings);
    return *ret_text ? 0 : err_set(reterr, NACRE_ENOMEM, "out of memory");
}

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
    int asked = r == NACRE_ENOTFOUND ? deferred_find(c->session, id, ret_id, err) : r;
    if (asked != NACRE_ENOTFOUND && asked != r)
        return asked;
    if (r == NACRE_ENOTFOUND || r == NACRE_EINVAL)
        err_set(err, r, "no shell has the id or name \"%.40s\"; list_shells shows those there are",
                id);
    return r;
}

int call_record(const nacre_call *c, const nacre_id *id, nacre_record *ret_record, nacre_error *err)
{
    int r = session_check_id(c->session, id, false, err);
    return r < 0 ? r : session_record(c->session, id, HOME_FULL, ret_record, NULL, err);
}

int call_step_op(nacre_call *c, nacre_op *op, nacre_error *err)
{
    int r = op->step(op, err);
    c->fd = op->fd;
    c->wake_ns = op->wake_ns;
    return r;
}

/* -- Stepping --------------------------------------------------------------------------------- */

/* Looks at the shells of the call, one after the other. One that cannot be looked at is shown as it
 * is known. */
static int look_at_subjects(nacre_call *c)
{
    size_t count = 0;
    const nacre_id *ids = c->tool->subjects ? c->tool->subjects(c, &count) : NULL;
    for (; c->looked < count; c->looked++) {
        if (!c->look && session_look(c->session, &ids[c->looked], &c->look, NULL) < 0)
            continue;
        if (c->look && call_step_op(c, c->look, NULL) == 0)
            return TOOL_WAIT;
        op_end(&c->look);
    }
    return TOOL_DONE;
}

/* What a call has begun goes on, whatever becomes of its answer: that names it. */
static void name_begun(const nacre_call *c, nacre_error *error)
{
    size_t count = 0, used = strlen(error->msg);
    const nacre_id *id = c->tool->begins ? c->tool->subjects(c, &count) : NULL;
    if (count > 0)
        snprintf(error->msg + used, sizeof error->msg - used,
                 "; shell %s was started: bash_output(id: \"%s\") says how it stands",
                 nacre_id_short(id).s, nacre_id_short(id).s);
}

int call_no_memory(const nacre_call *c, nacre_error *err)
{
    err_set(err, NACRE_ENOMEM, "out of memory");
    name_begun(c, err);
    return NACRE_ENOMEM;
}

/* The call is over: its answer is made, or the sentence of an error is the answer. */
static int finish_call(nacre_call *c, int r, nacre_error *error, nacre_error *reterr)
{
    bool structured = call_setting(c, NACRE_SETTING_STRUCTURED) != 0;
    c->phase = CALL_FINISHED;
    c->fd = -1;
    answer_init(&c->answer, c->session, c->budget);
    if (!c->cancelled)
        answer_take_completions(&c->answer);
    if (r >= 0 && !c->cancelled)
        r = c->tool->answer(c, &c->answer, error);
    if (r < 0) {
        name_begun(c, error);
        answer_fail(&c->answer, error);
    }
    c->result = answer_result(&c->answer, structured);
    if (c->result)
        return 1;
    return call_no_memory(c, reterr ? reterr : error);
}

/* What a verb said: there is something to wait for, or the call is over. */
static int wait_or_finish(nacre_call *c, int r, nacre_error *error, nacre_error *reterr)
{
    if (r == TOOL_DONE && !c->cancelled && !c->fresh) {
        c->phase = CALL_LOOKS;
        r = look_at_subjects(c);
    }
    return r == TOOL_WAIT ? 0 : finish_call(c, r, error, reterr);
}

int nacre_call_step(nacre_call *call, nacre_error *reterr)
{
    nacre_error error = NACRE_ERROR_INIT;
    int r = session_check(call->session, reterr);
    if (r < 0)
        return r;
    if (call->phase == CALL_FINISHED)
        return call->result ? 1 : err_set(reterr, NACRE_ENOMEM, "out of memory");
    r = call->phase == CALL_ENDS    ? call->tool->cancel(call, &error)
        : call->phase == CALL_LOOKS ? TOOL_DONE
                                    : call->tool->step(call, &error);
    return wait_or_finish(call, r, &error, reterr);
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

/* fault is what is wrong with the arguments already, if anything is; it becomes the answer. */
static int begin_call(nacre_session *session, const char *tool, json_t *object, nacre_error *fault,
                      const nacre_call_options *options, nacre_call **ret_call, nacre_error *reterr)
{
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
    c->object = json_incref(object);
    r = fault->code;
    if (r == 0)
        r = args_parse(found->args, object, c->args, found->args_size, fault);
    if (r == 0)
        r = found->begin(c, fault);
    r = wait_or_finish(c, r, fault, reterr);
    if (r < 0) {
        nacre_call_free(c);
        return r;
    }
    *ret_call = c;
    return 0;
}

int call_begin_object(nacre_session *session, const char *tool, json_t *object,
                      const nacre_call_options *options, nacre_call **ret_call, nacre_error *reterr)
{
    nacre_error fault = NACRE_ERROR_INIT;
    return begin_call(session, tool, object, &fault, options, ret_call, reterr);
}

static json_t *read_object(const char *json, size_t size, nacre_error *ret_fault)
{
    json_error_t error;
    json_t *object = json_loadb(json, size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    if (!object)
        err_set(ret_fault, NACRE_EINVAL, "the arguments are not valid JSON: %.120s at byte %d",
                error.text, error.position);
    else if (!json_is_object(object))
        err_set(ret_fault, NACRE_EINVAL, "the arguments must be an object, such as {}");
    return object;
}

int nacre_call_begin(nacre_session *session, const char *tool, const char *json, size_t json_size,
                     const nacre_call_options *options, nacre_call **ret_call, nacre_error *reterr)
{
    nacre_error fault = NACRE_ERROR_INIT;
    json_auto_t *object = json ? read_object(json, json_size, &fault) : NULL;
    return begin_call(session, tool, object, &fault, options, ret_call, reterr);
}

/* -- The end ---------------------------------------------------------------------------------- */

const char *nacre_call_result(nacre_call *call)
{
    if (!call->text && call->result)
        call->text = json_dumps(call->result, JSON_COMPACT);
    return call->text;
}

json_t *call_take_result(nacre_call *call)
{
    return TAKE_PTR(call->result);
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
    wait_or_finish(call, r, &error, NULL);
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
    op_end(&call->look);
    json_decref(call->object);
    free(call->args);
    free(call->state);
    json_decref(call->result);
    free(call->text);
    free(call->told);
    free(call);
}

/* -- Progress --------------------------------------------------------------------------------- */

/* The last line with something in it, as a person would see it, and not as one of ours. */
static int last_line(const nacre_call *c, const nacre_id *id, struct buf *out)
{
    struct render_options options = {.first_line = 1, .line_max = PROGRESS_BYTES};
    nacre_snapshot snapshot = {0};
    struct buf text cleanup_buf = BUF_UP_TO(8 * (size_t)PROGRESS_BYTES);
    int r = output_snapshot(c->session, id, NACRE_BOTH, PROGRESS_BYTES, &snapshot, NULL);
    if (r < 0)
        return r;
    r = render_text(&text, snapshot.data, snapshot.size, &options);
    free(snapshot.data);
    while (r == 0 && text.len > 0 && strchr(" \t\n", text.data[text.len - 1]))
        text.data[--text.len] = '\0';
    if (r < 0 || text.len == 0)
        return r;
    const char *newline = strrchr(text.data, '\n');
    struct buf line cleanup_buf = BUF_UP_TO(text.max);
    r = brief_line(&line, newline ? newline + 1 : text.data, PROGRESS_COLUMNS);
    return r < 0 ? r : frame_write(out, line.data, line.len);
}

const char *nacre_call_progress(nacre_call *call)
{
    struct buf text cleanup_buf = BUF_UP_TO(4 * (size_t)PROGRESS_BYTES);
    if (call->phase != CALL_WAITS)
        return NULL;
    size_t count = 0;
    const nacre_id *id = call->tool->subjects ? call->tool->subjects(call, &count) : NULL;
    if (count > 0 && last_line(call, id, &text) < 0)
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

/* A call as an operation, for who waits for it. */
struct call_op {
    nacre_op op;
    nacre_call *call;
};

static int step_blocking(nacre_op *op, nacre_error *err)
{
    const struct call_op *o = (const struct call_op *)op;
    int r = nacre_call_step(o->call, err);
    op->fd = nacre_call_fd(o->call);
    op->wake_ns = clock_deadline(nacre_call_timeout(o->call));
    return r;
}

int nacre_tool_call(nacre_session *session, const char *tool, const char *json, char **ret_json,
                    nacre_error *reterr)
{
    struct call_op o = {.op = OP_INIT(step_blocking, NULL)};
    int r = nacre_call_begin(session, tool, json, json ? strlen(json) : 0, NULL, &o.call, reterr);
    if (r < 0)
        return r;
    r = op_wait(&o.op, -1, reterr);
    if (r > 0) {
        const char *text = nacre_call_result(o.call);
        *ret_json = text ? strdup(text) : NULL;
        r = *ret_json ? 0 : err_set(reterr, NACRE_ENOMEM, "out of memory");
    }
    if (r == 0)
        nacre_call_delivered(o.call);
    nacre_call_free(o.call);
    return r;
}
