/* bash_output: what shells have printed since the last time, after waiting for more if asked. */
#include <string.h>

#include "backend/op.h"
#include "base/err.h"
#include "session/session.h"
#include "tool/answer_reading.h"
#include "tool/answer_screen.h"
#include "tool/await.h"
#include "tool/excerpt.h"
#include "tool/tool.h"

#define TAIL_MOST   100000
#define NOTES_MAX   ((size_t)256) /* of one shell, after its text */
#define STATUS_MAX  ((size_t)96)  /* of one that does not fit */
#define WINDOW_NOTE 128           /* where the next window begins */

struct output_args {
    const char *id;
    const json_t *ids;
    struct await_args await;
    int64_t offset;
    int64_t tail;
    const char *filter;
    int stream;
    bool screen;
    int64_t tokens;
    bool adopt;
};

struct output {
    nacre_id *ids;
    size_t count;
    struct match *filter;
    struct await await;
    nacre_op *adoption; /* under way */
    struct reading_look look;
};

static const char *const streams[] = {"stdout", "stderr", "both", NULL};

/* clang-format off */
static const struct arg output_args_table[] = {
    {"id", ARG_TEXT, offsetof(struct output_args, id), .least = 1,
     .aliases = "shell_id task_id bash_id session_id", .example = "\"ab12cd34\"",
     .help = "The id or name of the shell."},
    {"ids", ARG_TEXTS, offsetof(struct output_args, ids), .example = "[\"ab12cd34\"]",
     .help = "Several shells instead: the wait ends when one of them is ready."},
    {"all", ARG_FLAG, offsetof(struct output_args, await.all), .example = "true",
     .help = "With ids: the wait ends when each of them is ready."},
    {"wait", ARG_SECONDS, offsetof(struct output_args, await.wait), .least = 0, .most = YEAR_MS,
     .aliases = "wait_ms timeout timeout_ms", .example = "20",
     .help = "Seconds to wait for new output or the end; {wait} at most, {wait_progress} with "
             "progress reports. Default: 0, with until or idle the most."},
    {"until", ARG_TEXT, offsetof(struct output_args, await.until), .least = 1,
     .example = "\"listening on port\"",
     .help = "Wait until new output matches this regular expression, or the end. It matches within "
             "a line; with \\n in it, across lines."},
    {"idle", ARG_SECONDS, offsetof(struct output_args, await.idle), .least = 1, .most = YEAR_MS,
     .aliases = "idle_ms", .example = "2",
     .help = "Wait until nothing was printed for so many seconds, or the end."},
    {"until_input", ARG_FLAG, offsetof(struct output_args, await.until_input), .example = "true",
     .help = "Wait until its program was seen to read its input (a line, keys, a password), or the "
             "end."},
    {"port", ARG_COUNT, offsetof(struct output_args, await.port), .least = 0, .most = 65535,
     .example = "3000",
     .help = "Wait until it listens on this TCP port (0: on any), or the end. If somebody else "
             "does, that is said at once."},
    {"offset", ARG_COUNT, offsetof(struct output_args, offset), .least = 0, .example = "0",
     .help = "Show again what fits from this byte of its output on, instead of what is new; the "
             "next offset is named."},
    {"tail", ARG_COUNT, offsetof(struct output_args, tail), .least = 1, .most = TAIL_MOST,
     .example = "50", .help = "Show its last lines, so many, instead of what is new."},
    {"filter", ARG_TEXT, offsetof(struct output_args, filter), .least = 1,
     .example = "\"error|warning\"",
     .help = "Show only lines that match this regular expression, each by itself."},
    {"stream", ARG_CHOICE, offsetof(struct output_args, stream), .choices = streams,
     .example = "\"stderr\"", .help = "Only this stream. Default: both."},
    {"screen", ARG_FLAG, offsetof(struct output_args, screen), .example = "true",
     .help = "Show what is on its terminal now, instead of what is new."},
    {"max_output_tokens", ARG_COUNT, offsetof(struct output_args, tokens), .least = 1,
     .most = CALL_BUDGET_MAX / NACRE_TOKEN_BYTES, .example = "5000",
     .help = "The most to show; {answer} if not given."},
    {"adopt", ARG_FLAG, offsetof(struct output_args, adopt), .example = "true",
     .help = "Make a kept shell that an ended session left this session's own: its end is told "
             "here."},
    {0},
};
/* clang-format on */

static unsigned streams_of(const struct output_args *a)
{
    return a->stream == 0 ? NACRE_OUT : a->stream == 1 ? NACRE_ERR : NACRE_BOTH;
}

/* -- Beginning -------------------------------------------------------------------------------- */

static int check_output_args(const struct output_args *a, nacre_error *err)
{
    if (!a->id == !a->ids)
        return err_set(err, NACRE_EINVAL, "give id or ids, such as \"id\": \"ab12cd34\"%s",
                       a->id ? ", not both" : "");
    if (a->await.all && !a->ids)
        return err_set(err, NACRE_EINVAL, "all goes with ids, such as \"ids\": [\"ab12cd34\"]");
    if (a->offset >= 0 && a->tail >= 0)
        return err_set(err, NACRE_EINVAL, "give offset or tail, not both");
    if ((a->await.until_input || a->await.port >= 0) && !a->id)
        return err_set(err, NACRE_EINVAL,
                       "until_input and port go with id, for one shell at a time");
    if (a->adopt && !a->id)
        return err_set(err, NACRE_EINVAL, "adopt goes with id, for one shell at a time");
    return 0;
}

static bool is_known(const struct output *o, const nacre_id *id)
{
    for (size_t i = 0; i < o->count; i++)
        if (nacre_id_equal(&o->ids[i], id))
            return true;
    return false;
}

static int find_ids(nacre_call *c, nacre_error *err)
{
    const struct output_args *a = c->args;
    struct output *o = c->state;
    size_t count = a->ids ? json_array_size(a->ids) : 1;
    o->ids = calloc(count, sizeof *o->ids);
    if (!o->ids)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    for (size_t i = 0; i < count; i++) {
        nacre_id id;
        const char *text = a->ids ? json_string_value(json_array_get(a->ids, i)) : a->id;
        int r = call_find(c, text, &id, err);
        if (r < 0)
            return r;
        if (!is_known(o, &id))
            o->ids[o->count++] = id;
    }
    return 0;
}

static int begin_wait(nacre_call *c, nacre_error *err)
{
    const struct output_args *a = c->args;
    struct output *o = c->state;
    cleanup_free uint64_t *offsets = calloc(o->count, sizeof *offsets);
    if (!offsets)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    for (size_t i = 0; i < o->count; i++)
        offsets[i] = view_position(c->session, &o->ids[i]).offset;
    int r = await_listen(&o->await, c, &a->await, o->ids, offsets, o->count, err);
    return r < 0 ? r : await_step(&o->await, c, err);
}

/* Whoever sees a screen wants to know whether it waits for keys. */
static int look_who_reads(nacre_call *c, int r)
{
    const struct output_args *a = c->args;
    struct output *o = c->state;
    if (r != TOOL_DONE || !a->screen || o->count > 1 || o->await.read.size > 0)
        return r;
    return reading_look(&o->look, c, &o->ids[0]);
}

static int begin_or_read(nacre_call *c, nacre_error *err)
{
    const struct output *o = c->state;
    return look_who_reads(c, await_is_wanted(&o->await) ? begin_wait(c, err) : TOOL_DONE);
}

static int output_step(nacre_call *c, nacre_error *err)
{
    struct output *o = c->state;
    if (!o->adoption && !o->look.looked && o->await.follow)
        return look_who_reads(c, await_step(&o->await, c, err));
    if (!o->adoption)
        return look_who_reads(c, TOOL_DONE);
    int r = call_step_op(c, o->adoption, err);
    if (r != TOOL_DONE)
        return r;
    op_end(&o->adoption);
    return begin_or_read(c, err);
}

static int output_begin(nacre_call *c, nacre_error *err)
{
    const struct output_args *a = c->args;
    struct output *o = c->state;
    call_set_budget(c, a->tokens);
    int r = check_output_args(a, err);
    if (r == 0)
        r = await_read(&o->await, c, &a->await, err);
    if (r == 0 && a->filter)
        r = match_new("filter", a->filter, false, &o->filter, err);
    if (r == 0)
        r = find_ids(c, err);
    if (r < 0 || !a->adopt || scope_is_own(c->session, &o->ids[0]))
        return r < 0 ? r : begin_or_read(c, err);
    r = session_adopt(c->session, &o->ids[0], &o->adoption, err);
    return r < 0 ? r : output_step(c, err);
}

/* -- The answer ------------------------------------------------------------------------------- */

static int position_of(nacre_call *c, const nacre_record *record, nacre_position *ret,
                       nacre_error *err)
{
    const struct output_args *oa = c->args;
    if (oa->offset >= 0)
        return excerpt_at(c->session, record, (uint64_t)oa->offset, ret, err);
    if (oa->tail >= 0)
        return excerpt_tail(c->session, record, (uint64_t)oa->tail, streams_of(oa), ret, err);
    *ret = view_position(c->session, &record->id);
    return 0;
}

static int show_output(nacre_call *c, struct answer *a, const nacre_record *record, size_t room,
                       nacre_error *err)
{
    const struct output_args *oa = c->args;
    const struct output *o = c->state;
    bool again = oa->offset >= 0 || oa->tail >= 0;
    nacre_position position = NACRE_POSITION_INIT, before;
    int r = position_of(c, record, &position, err);
    before = position;
    room -= oa->offset >= 0 ? MIN(room / 4, (size_t)WINDOW_NOTE) : 0;
    if (r == 0 && oa->offset >= 0 && !o->filter)
        r = excerpt_window(a, record, (uint64_t)oa->offset, streams_of(oa), room, err);
    else if (r == 0)
        r = o->filter ? excerpt_filter(a, record, &position, streams_of(oa), o->filter, room, err)
                      : answer_read(a, record, &position, streams_of(oa), room, err);
    if (r < 0)
        return r;
    if (!again)
        excerpt_note_other(a, &record->id, &before, &position, streams_of(oa));
    answer_run(a, record);
    answer_limits(a, record);
    return answer_shows(a, &record->id, again ? NULL : &position, record->outcome != NACRE_RUNNING,
                        err);
}

/* The answer is full: only how it is. Its cursor stays. */
static int show_status(struct answer *a, const nacre_record *record, nacre_error *err)
{
    char status[64];
    nacre_id_text id = nacre_id_short(&record->id);
    answer_run(a, record);
    int r = answer_line(a, err, "[shell %s \xe2\x80\x94 %s] not shown: the answer is full", id.s,
                        nacre_status(record, status, sizeof status));
    bool ended = record->outcome != NACRE_RUNNING;
    return r == 0 && ended ? answer_shows(a, &record->id, NULL, true, err) : r;
}

static int answer_one(nacre_call *c, struct answer *a, size_t i, nacre_error *err)
{
    const struct output_args *oa = c->args;
    const struct output *o = c->state;
    nacre_record record cleanup_record = NACRE_RECORD_INIT;
    size_t others = (o->count - i - 1) * STATUS_MAX, left = answer_room(a), notes = 0;
    if (oa->filter || oa->stream >= 0)
        notes = NOTES_MAX;
    size_t room = left - MIN(left, others + notes);
    int r = call_record(c, &o->ids[i], &record, err);
    if (r < 0)
        return r;
    await_note(&o->await, a, i, &record);
    answer_reading(a, &record, &o->look.read);
    if (oa->screen)
        return answer_screen(a, &record, err);
    if (i > 0 && room < NACRE_VIEW_BUDGET_MIN)
        r = show_status(a, &record, err);
    else
        r = show_output(c, a, &record, MAX(room / (o->count - i), (size_t)NACRE_VIEW_BUDGET_MIN),
                        err);
    return r;
}

static int output_answer(nacre_call *c, struct answer *a, nacre_error *err)
{
    const struct output *o = c->state;
    int r = 0;
    await_note_time(&o->await, a);
    for (size_t i = 0; r == 0 && i < o->count; i++)
        r = answer_one(c, a, i, err);
    return r;
}

static const nacre_id *output_subjects(const nacre_call *c, size_t *ret_count)
{
    const struct output *o = c->state;
    *ret_count = o->count;
    return o->ids;
}

static void output_done(nacre_call *c)
{
    struct output *o = c->state;
    op_end(&o->adoption);
    reading_look_end(&o->look);
    await_done(&o->await);
    match_free(o->filter);
    free(o->ids);
}

const struct tool tool_bash_output = {
    .name = "bash_output",
    .title = "Read background shells",
    .description =
        "Shows what a shell has printed since the last read, with its status. With wait, until or "
        "idle it waits first: prefer that to reading again and again. Reading takes nothing away: "
        "offset: 0 or tail shows it again.",
    .args = output_args_table,
    .args_size = sizeof(struct output_args),
    .state_size = sizeof(struct output),
    .read_only = true,
    .begin = output_begin,
    .step = output_step,
    .answer = output_answer,
    .subjects = output_subjects,
    .done = output_done,
};
