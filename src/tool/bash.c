/* bash: runs a command, in the foreground until it ends or the call has to answer, or in the
 * background. */
#include <stdlib.h>
#include <string.h>

#include "backend/change.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "shell/session.h"
#include "tool/ending.h"
#include "tool/feeding.h"
#include "tool/tool.h"

#define MOMENT_MS 300          /* what a background command prints by then is in the answer */
#define NOTE_MAX  ((size_t)80) /* of the one that comes after the summary */

struct bash_args {
    const char *command;
    int64_t timeout;
    bool background;
    const char *cwd;
    const json_t *env;
    struct arg_bytes input;
    bool keep_stdin;
    int64_t yield;
    int lifetime;
    const char *name;
    const char *description;
    int64_t tokens;
};

struct bash {
    nacre_id id;
    nacre_watch *watch;
    enum { FOREGROUND, BACKGROUND, YIELDED } mode;
    bool started;
    bool joined;  /* one of that name runs already */
    bool clamped; /* the timeout that was asked for was too long */
    int64_t timeout_ms, yield_ms;
    bool timeout_given;
    int64_t deadline_ns;
    struct feeding feeding; /* text for a stdin that stays open */
    struct ending ending;
    bool changes; /* its keeper is, or was, asked to note that it is in the background now */
    struct change change;
};

static const char *const lifetimes[] = {"session", "keep", NULL};

/* clang-format off */
static const struct arg args[] = {
    {"command", ARG_TEXT, offsetof(struct bash_args, command), .required = true, .least = 1,
     .aliases = "cmd", .example = "\"make test\"",
     .help = "The shell command, of any length."},
    {"timeout", ARG_SECONDS, offsetof(struct bash_args, timeout), .least = 1, .most = YEAR_MS,
     .aliases = "timeout_ms timeout_secs", .example = "120",
     .help = "Seconds after which it is ended with everything it started. Foreground: {timeout} if "
             "not given, {timeout_max} at most. Background: none if not given."},
    {"background", ARG_FLAG, offsetof(struct bash_args, background),
     .aliases = "run_in_background is_background", .example = "true",
     .help = "Start it in the background and answer at once, with its id."},
    {"cwd", ARG_TEXT, offsetof(struct bash_args, cwd), .least = 1,
     .aliases = "workdir working_dir directory dir_path", .example = "\"src\"",
     .help = "The directory to run in."},
    {"env", ARG_MAP, offsetof(struct bash_args, env), .example = "{\"CI\": \"1\"}",
     .help = "Variables to set for this command."},
    {"stdin", ARG_BYTES, offsetof(struct bash_args, input), .example = "\"yes\\n\"",
     .help = "Text for its standard input. Without it, reading stdin ends at once."},
    {"keep_stdin", ARG_FLAG, offsetof(struct bash_args, keep_stdin), .example = "true",
     .help = "Keep its stdin open, to be fed with bash_input."},
    {"yield", ARG_SECONDS, offsetof(struct bash_args, yield), .least = 0, .most = YEAR_MS,
     .aliases = "yield_time_ms", .example = "10",
     .help = "Seconds after which to answer although it is not done; it goes on in the "
             "background. {yield} if not given."},
    {"lifetime", ARG_CHOICE, offsetof(struct bash_args, lifetime), .choices = lifetimes,
     .example = "\"keep\"",
     .help = "keep: it survives the end of this session. Default: session."},
    {"name", ARG_TEXT, offsetof(struct bash_args, name), .least = 1, .example = "\"web\"",
     .help = "A name. If the same command runs under it already, nothing is started."},
    {"description", ARG_TEXT, offsetof(struct bash_args, description),
     .example = "\"run the unit tests\"", .help = "What it is for, in a few words, for people."},
    {"max_output_tokens", ARG_COUNT, offsetof(struct bash_args, tokens), .least = 512,
     .most = CALL_BUDGET_MAX / NACRE_TOKEN_BYTES, .example = "5000",
     .help = "The most to show of its output; {answer} if not given."},
    {0},
};
/* clang-format on */

/* -- Starting --------------------------------------------------------------------------------- */

/* "NAME=value", or "NAME" to take it away; freed with the list. */
static char **make_env(const json_t *map)
{
    const char *name;
    json_t *value;
    size_t count = 0;
    char **list = calloc(json_object_size(map) + 1, sizeof *list);
    if (!list)
        return NULL;
    json_object_foreach((json_t *)map, name, value)
    {
        size_t size = strlen(name) + json_string_length(value) + 2;
        list[count] = malloc(size);
        if (!list[count])
            break;
        snprintf(list[count++], size, json_is_null(value) ? "%s" : "%s=%s", name,
                 json_is_null(value) ? "" : json_string_value(value));
    }
    return list;
}

static void free_env(char ***list)
{
    for (size_t i = 0; *list && (*list)[i]; i++)
        free((*list)[i]);
    free(*list);
}

/*
 * The default timeout lapses when the call yields, and a keeper's deadline cannot be taken back: so
 * it gets one that was not asked for only if that comes first.
 */
static void set_times(nacre_call *c, nacre_command *command)
{
    const struct bash_args *a = c->args;
    struct bash *b = c->state;
    int64_t most = call_setting(c, NACRE_SETTING_TIMEOUT_MAX);
    bool background = b->mode == BACKGROUND;
    b->timeout_given = a->timeout >= 0;
    b->timeout_ms = b->timeout_given ? a->timeout
                    : background     ? call_setting(c, NACRE_SETTING_BACKGROUND_TIMEOUT)
                                     : call_setting(c, NACRE_SETTING_TIMEOUT);
    if (!background && b->timeout_ms > most) {
        b->clamped = b->timeout_given;
        b->timeout_ms = most;
    }
    b->yield_ms = a->yield >= 0 ? a->yield : call_setting(c, NACRE_SETTING_YIELD);
    b->yield_ms = MIN(b->yield_ms, MAX(call_wait_max(c), INT64_C(1)));
    if (background || b->timeout_given || b->timeout_ms <= b->yield_ms)
        command->timeout_ms = b->timeout_ms;
}

static void set_input(const struct bash_args *a, nacre_command *command)
{
    if (a->keep_stdin) {
        command->input = NACRE_STDIN_PIPE;
    } else if (a->input.data) {
        command->input = NACRE_STDIN_BYTES;
        command->input_data = a->input.data;
        command->input_size = a->input.size;
    }
}

/* A shell that does not take all of it is no error; the answer says so. */
static void feed(nacre_call *c)
{
    const struct bash_args *a = c->args;
    struct bash *b = c->state;
    nacre_error ignored;
    if (a->keep_stdin && a->input.size > 0 && !b->joined)
        feeding_write(&b->feeding, c, &b->id, a->input.data, a->input.size, false, &ignored);
}

static int start(nacre_call *c, nacre_error *err)
{
    const struct bash_args *a = c->args;
    struct bash *b = c->state;
    nacre_command command = NACRE_COMMAND_INIT;
    __attribute__((cleanup(free_env))) char **env = a->env ? make_env(a->env) : NULL;
    command.text = a->command;
    command.cwd = a->cwd;
    command.env = (const char *const *)env;
    command.lifetime = a->lifetime == 1 ? NACRE_LIFE_KEEP : NACRE_LIFE_SESSION;
    command.name = a->name;
    command.description = a->description;
    command.background = b->mode == BACKGROUND;
    set_input(a, &command);
    set_times(c, &command);
    int r = nacre_start(c->session, &command, &b->id, &b->watch, err);
    if (r < 0)
        return r;
    b->started = true;
    b->joined = r == 1;
    if (b->joined)
        b->mode = BACKGROUND;
    nacre_watch_skip_output(b->watch);
    return 0;
}

static void await_command(nacre_call *c)
{
    const struct bash *b = c->state;
    c->wake_ns = b->deadline_ns;
    c->fd = nacre_watch_fd(b->watch);
}

static int begin(nacre_call *c, nacre_error *err)
{
    const struct bash_args *a = c->args;
    struct bash *b = c->state;
    call_set_budget(c, a->tokens);
    b->mode = a->background || a->yield == 0 ? BACKGROUND : FOREGROUND;
    int r = start(c, err);
    if (r < 0)
        return r;
    b->deadline_ns = clock_deadline(b->mode == BACKGROUND ? MOMENT_MS : b->yield_ms);
    await_command(c);
    feed(c);
    return TOOL_WAIT;
}

/* -- Waiting ---------------------------------------------------------------------------------- */

/* 1 when the answer is due because of what the command did. */
static int listen(struct bash *b, nacre_error *err)
{
    for (;;) {
        nacre_event event;
        int r = nacre_watch_next(b->watch, NULL, 0, &event, err);
        if (r < 0 || event.kind == NACRE_EVENT_NONE)
            return r;
        if (event.kind == NACRE_EVENT_SETTLED || event.kind == NACRE_EVENT_END)
            return 1;
    }
}

/* The answer waits for a stdin that is being fed, too, but not beyond what one call may wait; while
 * it does, the end of the feeding is what is polled for, which the command's end brings along. */
static bool is_due(nacre_call *c)
{
    struct bash *b = c->state;
    int64_t most = MAX(b->deadline_ns, c->began_ns + call_wait_max(c) * NS_PER_MS);
    nacre_error ignored;
    if (b->feeding.waits && feeding_step(&b->feeding, c, &ignored) == TOOL_WAIT) {
        c->wake_ns = MIN(c->wake_ns, most);
        return clock_left_ms(most) == 0;
    }
    await_command(c);
    return clock_left_ms(b->deadline_ns) == 0;
}

/* Goes on being moved to the background. */
static int yield(nacre_call *c, nacre_error *err)
{
    struct bash *b = c->state;
    int r = b->changes ? session_background_step(c->session, &b->change, err)
                       : session_background_begin(c->session, &b->id, &b->change, err);
    b->changes = true;
    b->mode = YIELDED;
    c->fd = b->change.ask.sock;
    c->wake_ns = b->change.ask.deadline_ns;
    /* Not there any more: it has ended this very moment. */
    return r == NACRE_ENOTFOUND ? TOOL_DONE : r < 0 ? r : r > 0 ? TOOL_DONE : TOOL_WAIT;
}

static int step(nacre_call *c, nacre_error *err)
{
    struct bash *b = c->state;
    if (b->changes)
        return yield(c, err);
    int r = listen(b, err);
    if (r != 0)
        return r;
    if (!is_due(c))
        return TOOL_WAIT;
    return b->mode == FOREGROUND ? yield(c, err) : TOOL_DONE;
}

static int cancel(nacre_call *c, nacre_error *err)
{
    struct bash *b = c->state;
    if (!b->started || b->mode != FOREGROUND)
        return TOOL_DONE;
    if (!b->ending.begun) {
        nacre_kill_options options = NACRE_KILL_OPTIONS_INIT;
        options.cancel = 1;
        int r = ending_begin(&b->ending, c->session, &b->id, &options, err);
        if (r != TOOL_WAIT)
            return r;
    }
    return ending_step(&b->ending, c, err);
}

/* -- The answer ------------------------------------------------------------------------------- */

static void note_clamp(const struct bash *b, struct answer *a)
{
    if (b->clamped)
        answer_note(a, "the timeout was cut to %lld s, the longest that is allowed",
                    (long long)(b->timeout_ms / 1000));
    if (b->feeding.taken < b->feeding.size)
        answer_note(a, "%zu bytes of stdin were not taken", b->feeding.size - b->feeding.taken);
}

/* What a command that has ended left running may still print: that will be new. */
static int mark_seen(const struct bash *b, const nacre_record *record, struct answer *a,
                     nacre_error *err)
{
    nacre_position position = NACRE_POSITION_INIT;
    bool alive = record->tree == NACRE_TREE_ALIVE;
    if (alive)
        answer_note(a, "kill_shell(id: \"%s\") ends what it left running",
                    nacre_id_short(&b->id).s);
    if (!alive && b->mode == FOREGROUND)
        return 0;
    position.offset = record->bytes[NACRE_STDOUT] + record->bytes[NACRE_STDERR];
    for (int s = 0; s < 2; s++) {
        position.lines[s] = record->lines[s];
        position.bytes[s] = record->bytes[s];
    }
    return answer_shows(a, &b->id, &position, b->mode != FOREGROUND, err);
}

/* What the watch has heard is the end of a command in the foreground, and saves a look at its
 * directory. */
static int take_record(nacre_call *c, nacre_record *record, nacre_error *err)
{
    const struct bash *b = c->state;
    if (b->mode != FOREGROUND || nacre_watch_record(b->watch, record, NULL) < 0)
        return nacre_get(c->session, &b->id, record, err);
    ends_note(c->session, record);
    return 0;
}

static int answer_summary(nacre_call *c, struct answer *a, nacre_error *err)
{
    const struct bash *b = c->state;
    nacre_record record = NACRE_RECORD_INIT;
    nacre_view_options options = NACRE_VIEW_OPTIONS_INIT;
    cleanup_free char *text = NULL;
    options.bytes =
        MAX(answer_room(a) - MIN(answer_room(a), NOTE_MAX), (size_t)NACRE_VIEW_BUDGET_MIN);
    int r = take_record(c, &record, err);
    if (r == 0)
        r = view_summary(c->session, &record, &options, &text, err);
    if (r == 0)
        r = answer_text(a, text, err);
    if (r == 0)
        r = mark_seen(b, &record, a, err);
    if (r == 0)
        answer_run(a, &record);
    nacre_record_done(&record);
    return r;
}

static void note_timeout(const struct bash *b, const nacre_record *record, struct answer *a)
{
    if (record->timeout_ms > 0 && record->outcome == NACRE_RUNNING)
        answer_note(a, "it is ended %.10g s after its start", (double)record->timeout_ms / 1000);
    if (b->mode == YIELDED && !b->timeout_given && record->outcome == NACRE_RUNNING)
        answer_note(a, "no timeout ends it");
}

static int answer_shell(nacre_call *c, struct answer *a, const nacre_record *record,
                        nacre_error *err)
{
    const struct bash *b = c->state;
    nacre_id_text id = nacre_id_short(&b->id);
    char lead[128];
    if (b->mode == YIELDED)
        snprintf(lead, sizeof lead, "Still running after %.10g s: background shell %s",
                 (double)(b->yield_ms) / 1000, id.s);
    else
        snprintf(lead, sizeof lead, "Started background shell %s", id.s);
    if (b->joined)
        answer_note(a, "it was running under that name already; nothing was started");
    note_timeout(b, record, a);
    int r = record->outcome == NACRE_RUNNING
                ? answer_printf(a, err,
                                "%s. Read it with bash_output(id: \"%s\"), end it with "
                                "kill_shell(id: \"%s\").\n",
                                lead, id.s, id.s)
                : answer_printf(a, err, "%s; it has ended.\n", lead);
    return r < 0 ? r : answer_news(a, record, answer_room(a), err);
}

static int answer(nacre_call *c, struct answer *a, nacre_error *err)
{
    const struct bash *b = c->state;
    nacre_record record = NACRE_RECORD_INIT;
    note_clamp(b, a);
    if (b->mode == FOREGROUND)
        return answer_summary(c, a, err);
    int r = nacre_get(c->session, &b->id, &record, err);
    if (r == 0 && b->mode == YIELDED && record.outcome != NACRE_RUNNING)
        r = answer_summary(c, a, err);
    else if (r == 0)
        r = answer_shell(c, a, &record, err);
    nacre_record_done(&record);
    return r;
}

static const nacre_id *subject(const nacre_call *c)
{
    const struct bash *b = c->state;
    return b->started ? &b->id : NULL;
}

static void done(nacre_call *c)
{
    struct bash *b = c->state;
    feeding_done(&b->feeding);
    ending_done(&b->ending);
    if (b->changes)
        change_end(&b->change);
    nacre_watch_close(b->watch);
}

const struct tool tool_bash = {
    .name = "bash",
    .title = "Run a shell command",
    .description =
        "Runs a shell command and shows its exit code, stderr and stdout. Each call is a shell of "
        "its own: cd and export do not persist. There is no terminal, and stdin is empty unless "
        "given. A command that is not done after {yield} goes on in the background; its id is in "
        "the answer. What a command leaves running (with &, nohup, setsid) does not delay the "
        "answer, and is named in it. For servers, watchers and long jobs use background: true "
        "({shells} at a time). Output that does not fit the answer ({answer}) is cut; what was "
        "left out is "
        "counted and can be had with recall.",
    .args = args,
    .args_size = sizeof(struct bash_args),
    .state_size = sizeof(struct bash),
    .destructive = true,
    .open_world = true,
    .begin = begin,
    .step = step,
    .answer = answer,
    .cancel = cancel,
    .subject = subject,
    .done = done,
};
