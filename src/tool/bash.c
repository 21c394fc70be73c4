/* bash: runs a command, in the foreground until it ends or the call has to answer, or in the
 * background. */
#include <string.h>

#include "backend/op.h"
#include "base/clock.h"
#include "base/err.h"
#include "screen/terminal.h"
#include "session/deferred.h"
#include "session/session.h"
#include "tool/answer_reading.h"
#include "tool/beside.h"
#include "tool/feeding.h"
#include "tool/missed.h"
#include "tool/tool.h"

#define MOMENT_MS  300           /* what a background command prints by then is in the answer */
#define NOTE_MAX   ((size_t)256) /* of those that come after the summary */
#define READS_MS   1000          /* for so long somebody reads, and then the call answers */
#define WISH_LISTS 3

struct bash_args {
    const char *command;
    int64_t timeout;
    bool background;
    const char *cwd;
    const json_t *env;
    struct arg_bytes input;
    bool keep_stdin;
    bool tty;
    int64_t columns, rows;
    int64_t yield;
    int lifetime;
    const char *name;
    const char *description;
    int sandbox;
    const json_t *permissions;
    const char *justification;
    int64_t tokens;
    nacre_limits limits;
    bool replace;
    int order;
};

struct bash {
    nacre_id id;
    nacre_watch *watch; /* NULL = it was not started yet */
    nacre_command command;
    char **env; /* of the command */
    char *cwd;
    const char **wishes[WISH_LISTS]; /* lists of what it needs beyond its sandbox */
    enum { FOREGROUND, BACKGROUND, YIELDED } mode;
    enum { STARTING, WAITING, YIELDING, CANCELLING, DEFERRED } stage;
    nacre_op *op;      /* of every stage but WAITING and DEFERRED */
    nacre_id question; /* of the latter */
    bool joined;       /* one of that name runs already */
    bool clamped;      /* the timeout that was asked for was too long, */
    bool cut;          /* and so was the yield */
    int64_t timeout_ms, yield_ms;
    bool timeout_given;
    int64_t deadline_ns;
    struct feeding feeding; /* text for a stdin that stays open */
    struct beside reading;  /* of a stdin that can be typed to: who reads it */
    nacre_reading read;     /* once somebody does; the call has answered for that */
    int64_t waited_ms;
};

static const char *const lifetimes[] = {"session", "keep", NULL};
/* The lists of struct nacre_permissions in their order, and its switch. */
static const char *const permission_names[] = {"write", "hosts", "sockets", "full", NULL};
static const char *const orders[] = {"streams", "merged", NULL};
static const char *const sandboxes[] = {"read-only", "workspace-write", NULL};

/* clang-format off */
static const struct arg bash_args_table[] = {
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
     .help = "The directory to run in; ~ is the home directory."},
    {"env", ARG_MAP, offsetof(struct bash_args, env), .example = "{\"CI\": \"1\"}",
     .help = "Variables to set for this command."},
    {"stdin", ARG_BYTES, offsetof(struct bash_args, input), .example = "\"yes\\n\"",
     .help = "Text for its standard input. Without it, reading stdin ends at once."},
    {"keep_stdin", ARG_FLAG, offsetof(struct bash_args, keep_stdin), .example = "true",
     .help = "Keep its stdin open, to be fed with bash_input."},
    {"tty", ARG_FLAG, offsetof(struct bash_args, tty), .aliases = "pty", .example = "true",
     .help = "Give it a terminal, for programs that want one: editors, REPLs, debuggers, prompts. "
             "See what is on it with bash_output(screen: true), press keys with bash_input."},
    {"columns", ARG_COUNT, offsetof(struct bash_args, columns), .least = TERMINAL_COLUMNS_MIN,
     .most = TERMINAL_COLUMNS_MAX, .aliases = "cols", .example = "120",
     .help = "Of the terminal. Default: 120."},
    {"rows", ARG_COUNT, offsetof(struct bash_args, rows), .least = TERMINAL_ROWS_MIN,
     .most = TERMINAL_ROWS_MAX, .example = "40", .help = "Likewise. Default: 40."},
    {"yield", ARG_SECONDS, offsetof(struct bash_args, yield), .least = 0, .most = YEAR_MS,
     .aliases = "yield_time_ms", .example = "10",
     .help = "Seconds after which to answer although it is not done; it goes on in the "
             "background. {yield} if not given."},
    {"lifetime", ARG_CHOICE, offsetof(struct bash_args, lifetime), .choices = lifetimes,
     .example = "\"keep\"",
     .help = "keep: it survives the end of this session. Default: session."},
    {"name", ARG_TEXT, offsetof(struct bash_args, name), .least = 1, .example = "\"web\"",
     .help = "A name, for use as its id. If the same command runs under it already, nothing is "
             "started."},
    {"replace", ARG_FLAG, offsetof(struct bash_args, replace), .example = "true",
     .help = "With name: if another command runs under it, that one is ended first."},
    {"description", ARG_TEXT, offsetof(struct bash_args, description),
     .example = "\"run the unit tests\"", .help = "What it is for, in a few words, for people."},
    {"sandbox", ARG_CHOICE, offsetof(struct bash_args, sandbox), .choices = sandboxes,
     .example = "\"read-only\"",
     .help = "Run it in a narrower sandbox than the session's ({sandbox}): what cannot be changed "
             "then cannot be changed by mistake."},
    {"permissions", ARG_WISHES, offsetof(struct bash_args, permissions),
     .choices = permission_names, .aliases = "sandbox_permissions",
     .example = "{\"write\": [\"/srv/data\"]}",
     .help = "What it needs beyond the sandbox: paths to write, hosts, sockets, or all (full). The "
             "user is asked, or the answer says how they allow it."},
    {"justification", ARG_TEXT, offsetof(struct bash_args, justification),
     .example = "\"the deployment writes there\"",
     .help = "Why it needs that, for the user, in a few words."},
    {"max_output_tokens", ARG_COUNT, offsetof(struct bash_args, tokens), .least = 1,
     .most = CALL_BUDGET_MAX / NACRE_TOKEN_BYTES, .example = "5000",
     .help = "The most to show of its output; {answer} if not given."},
    {"order", ARG_CHOICE, offsetof(struct bash_args, order), .choices = orders,
     .example = "\"merged\"",
     .help = "Of output that is shown whole: stderr and then stdout, or both merged as they came. "
             "{order} if not given."},
    {"limits", ARG_LIMITS, offsetof(struct bash_args, limits), .example = "{\"memory\": \"2GiB\"}",
     .help = "What it may use with all that it starts; can only be less than the configured "
             "limits. Sizes like 512MiB, times like 10m."},
    {0},
};
/* clang-format on */

static int bash_step(nacre_call *c, nacre_error *err);

/* -- Starting --------------------------------------------------------------------------------- */

static void free_env(char **list)
{
    for (size_t i = 0; list && list[i]; i++)
        free(list[i]);
    free(list);
}

/* "NAME=value", or "NAME" to take it away; freed with the list. NULL if out of memory. */
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
        bool text = json_is_string(value);
        cleanup_free char *other =
            text ? NULL : json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
        const char *as_text = text ? json_string_value(value) : other ? other : "";
        size_t size = strlen(name) + strlen(as_text) + 2;
        list[count] = malloc(size);
        if (!list[count]) {
            free_env(list);
            return NULL;
        }
        snprintf(list[count++], size, json_is_null(value) ? "%s" : "%s=%s", name, as_text);
    }
    return list;
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
    b->cut = a->yield > MAX(call_wait_max(c), INT64_C(1));
    b->yield_ms = MIN(b->yield_ms, MAX(call_wait_max(c), INT64_C(1)));
    if (background || b->timeout_given || b->timeout_ms <= b->yield_ms)
        command->timeout_ms = b->timeout_ms;
}

/* Who says how large it is wants one. */
static bool has_terminal(const struct bash_args *a)
{
    return a->tty || a->columns > 0 || a->rows > 0;
}

static void set_input(const struct bash_args *a, nacre_command *command)
{
    command->tty = has_terminal(a);
    command->columns = a->columns > 0 ? (int)a->columns : 0;
    command->rows = a->rows > 0 ? (int)a->rows : 0;
    if (a->keep_stdin || command->tty) {
        command->input = NACRE_STDIN_PIPE;
    } else if (a->input.data) {
        command->input = NACRE_STDIN_BYTES;
        command->input_data = a->input.data;
        command->input_size = a->input.size;
    }
}

/* A shell that does not take all of it is no error; the answer says so. */
static void feed_stdin(nacre_call *c)
{
    const struct bash_args *a = c->args;
    struct bash *b = c->state;
    nacre_error ignored;
    if ((a->keep_stdin || has_terminal(a)) && a->input.size > 0 && !b->joined)
        feeding_write(&b->feeding, c, &b->id, a->input.data, a->input.size, false, &ignored);
}

/* The lists of what it needs beyond its sandbox; freed with the call. */
static int set_permissions(const json_t *wishes, struct bash *b, nacre_error *err)
{
    const char *const *lists[WISH_LISTS] = {0};
    size_t i;
    json_t *item;
    for (size_t which = 0; which < WISH_LISTS; which++) {
        const json_t *list = json_object_get(wishes, permission_names[which]);
        const char **texts = calloc(json_array_size(list) + 1, sizeof *texts);
        if (!texts)
            return err_set(err, NACRE_ENOMEM, "out of memory");
        json_array_foreach((json_t *)list, i, item) texts[i] = json_string_value(item);
        lists[which] = b->wishes[which] = texts;
    }
    b->command.permissions =
        (nacre_permissions){lists[0], lists[1], lists[2],
                            json_is_true(json_object_get(wishes, permission_names[WISH_LISTS]))};
    return 0;
}

/* "~" and "~/src" as a shell would have them. */
static int find_cwd(const struct bash_args *a, struct bash *b, nacre_error *err)
{
    const char *home = getenv("HOME");
    b->command.cwd = a->cwd;
    if (!a->cwd || a->cwd[0] != '~' || (a->cwd[1] && a->cwd[1] != '/'))
        return 0;
    if (!home || !*home)
        return err_set(err, NACRE_EINVAL, "cwd: \"~\" has no meaning here: HOME is not set");
    size_t size = strlen(home) + strlen(a->cwd);
    b->cwd = malloc(size);
    if (!b->cwd)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    snprintf(b->cwd, size, "%s%s", home, a->cwd + 1);
    b->command.cwd = b->cwd;
    return 0;
}

static int bash_begin(nacre_call *c, nacre_error *err)
{
    const struct bash_args *a = c->args;
    struct bash *b = c->state;
    call_set_budget(c, a->tokens);
    b->mode = a->background || a->yield == 0 ? BACKGROUND : FOREGROUND;
    b->env = a->env ? make_env(a->env) : NULL;
    if (a->env && !b->env)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    b->command = (nacre_command)NACRE_COMMAND_INIT;
    b->command.text = a->command;
    b->command.env = (const char *const *)b->env;
    b->command.lifetime = a->lifetime == 1 ? NACRE_LIFE_KEEP : NACRE_LIFE_SESSION;
    b->command.name = a->name;
    b->command.description = a->description;
    b->command.background = b->mode == BACKGROUND;
    b->command.sandbox = a->sandbox >= 0 ? sandboxes[a->sandbox] : NULL;
    b->command.limits = a->limits;
    b->command.replace = a->replace;
    b->command.justification = a->justification;
    set_input(a, &b->command);
    set_times(c, &b->command);
    if (a->replace && !a->name)
        return err_set(err, NACRE_EINVAL,
                       "replace goes with name, such as \"name\": \"web\": it ends what has it");
    int r = find_cwd(a, b, err);
    if (r == 0 && a->permissions)
        r = set_permissions(a->permissions, b, err);
    if (r == 0)
        r = session_start(c->session, &b->command, &b->op, err);
    return r < 0 ? r : bash_step(c, err);
}

static void await_command(nacre_call *c)
{
    const struct bash *b = c->state;
    c->wake_ns = b->deadline_ns;
    c->fd = session_watch_fd(b->watch);
    if (b->reading.op) {
        c->fd = beside_fd(&b->reading);
        c->wake_ns = MIN(c->wake_ns, beside_wake_ns(&b->reading));
    }
}

/* Whoever waits for a line or a password will not go on before somebody types it. */
static void watch_for_reader(nacre_call *c)
{
    struct bash *b = c->state;
    nacre_op *op;
    nacre_error ignored;
    if (b->mode == FOREGROUND && b->command.input == NACRE_STDIN_PIPE &&
        session_reads(c->session, &b->id, NACRE_READS_TYPED, READS_MS, &op, &ignored) == 0)
        beside_begin(&b->reading, op, nacre_watch_fd(b->watch), &ignored);
}

static bool is_read(struct bash *b)
{
    nacre_error ignored;
    int r = b->reading.op && !b->feeding.op ? beside_step(&b->reading, &ignored) : 0;
    if (r > 0)
        b->read = *(const nacre_reading *)b->reading.op->result;
    if (r != 0)
        beside_end(&b->reading);
    return r > 0;
}

static void take_started(nacre_call *c)
{
    struct bash *b = c->state;
    struct session_started *started = b->op->result;
    b->id = started->started.id;
    b->watch = TAKE_PTR(started->started.watch);
    b->joined = started->joined;
    op_end(&b->op);
    if (b->joined)
        b->mode = BACKGROUND;
    nacre_watch_skip_output(b->watch);
    b->stage = WAITING;
    b->deadline_ns = clock_deadline(b->mode == BACKGROUND ? MOMENT_MS : b->yield_ms);
    watch_for_reader(c);
    await_command(c);
    feed_stdin(c);
    if (b->reading.op)
        c->wake_ns = 0;
}

/* -- Waiting ---------------------------------------------------------------------------------- */

/* 1 when the answer is due because of what the command did. */
static int hear_command(struct bash *b, nacre_error *err)
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
static bool answer_is_due(nacre_call *c)
{
    struct bash *b = c->state;
    int64_t most = MAX(b->deadline_ns, c->began_ns + call_wait_max(c) * NS_PER_MS);
    nacre_error ignored;
    if (b->feeding.op && feeding_step(&b->feeding, c, &ignored) == TOOL_WAIT) {
        c->wake_ns = MIN(c->wake_ns, most);
        return clock_left_ms(most) == 0;
    }
    await_command(c);
    return clock_left_ms(b->deadline_ns) == 0;
}

/* The answer is due when the command has ended, or the time is over. */
static int await_command_or_time(nacre_call *c, nacre_error *err)
{
    struct bash *b = c->state;
    int r = hear_command(b, err);
    c->fresh = r > 0 && b->mode == FOREGROUND;
    if (r != 0)
        return r;
    if (!is_read(b) && !answer_is_due(c))
        return TOOL_WAIT;
    b->waited_ms = (clock_mono_ns() - c->began_ns) / NS_PER_MS;
    if (b->mode != FOREGROUND)
        return TOOL_DONE;
    b->mode = YIELDED;
    b->stage = YIELDING;
    r = session_background(c->session, &b->id, &b->op, err);
    return r == NACRE_ENOTFOUND ? TOOL_DONE : r < 0 ? r : bash_step(c, err);
}

/* A client gives a call up some time, and then nobody would hear of the answer. */
static int wait_for_person(nacre_call *c, nacre_error *err)
{
    struct bash *b = c->state;
    int64_t most = c->began_ns + call_wait_max(c) * NS_PER_MS;
    c->wake_ns = MIN(c->wake_ns, most);
    if (clock_left_ms(most) > 0)
        return TOOL_WAIT;
    if (deferred_take(c->session, b->op, &b->question, NULL) == 0) {
        b->op = NULL;
        b->stage = DEFERRED;
        return TOOL_DONE;
    }
    op_end(&b->op);
    return err_set(err, NACRE_EPERM,
                   "nothing was started: the user was asked, and has not answered within %lld s; "
                   "call again when they are there",
                   (long long)(call_wait_max(c) / 1000));
}

static int bash_step(nacre_call *c, nacre_error *err)
{
    struct bash *b = c->state;
    if (b->stage == WAITING)
        return await_command_or_time(c, err);
    int r = call_step_op(c, b->op, err);
    if (r == 0 && b->stage == STARTING && session_start_asks(b->op))
        return wait_for_person(c, err);
    /* Not there any more: it has ended this very moment. */
    if (b->stage == YIELDING)
        return r == NACRE_ENOTFOUND ? TOOL_DONE : r;
    if (r <= 0)
        return r;
    take_started(c);
    return TOOL_WAIT;
}

/* What runs in the background goes on, and what is about to begins. */
static int bash_cancel(nacre_call *c, nacre_error *err)
{
    struct bash *b = c->state;
    if (b->stage == STARTING && (b->mode == FOREGROUND || (b->op && session_start_asks(b->op))))
        op_end(&b->op);
    else if (b->stage == STARTING)
        return call_step_op(c, b->op, err);
    if (!b->watch || b->mode != FOREGROUND)
        return TOOL_DONE;
    if (b->stage == WAITING) {
        nacre_kill_options options = NACRE_KILL_OPTIONS_INIT;
        options.cancel = 1;
        int r = session_kill(c->session, &b->id, &options, &b->op, err);
        if (r < 0)
            return r;
        b->stage = CANCELLING;
    }
    return call_step_op(c, b->op, err);
}

/* -- The answer ------------------------------------------------------------------------------- */

static void note_clamp(const struct bash *b, struct answer *a)
{
    if (b->cut && b->mode == YIELDED)
        answer_note(a, "it was left after %.10g s, the longest that one call waits",
                    (double)b->yield_ms / 1000);
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
        return call_record(c, &b->id, record, err);
    ends_note(c->session, record);
    return 0;
}

static int answer_summary(nacre_call *c, struct answer *a, nacre_error *err)
{
    const struct bash *b = c->state;
    nacre_record record cleanup_record = NACRE_RECORD_INIT;
    nacre_view_options options = NACRE_VIEW_OPTIONS_INIT;
    cleanup_free char *text = NULL;
    int r = take_record(c, &record, err);
    if (r == 0)
        missed_variables(a, &record, b->command.env);
    options.merged = ((const struct bash_args *)c->args)->order;
    options.bytes =
        MAX(answer_room(a) - MIN(answer_room(a), NOTE_MAX), (size_t)NACRE_VIEW_BUDGET_MIN);
    if (r == 0)
        r = view_summary(c->session, &record, &options, &text, err);
    if (r == 0)
        r = answer_text(a, text, err);
    if (r == 0)
        r = mark_seen(b, &record, a, err);
    missed_terminal(a, &record);
    if (r == 0)
        answer_run(a, &record);
    return r;
}

static void note_timeout(const struct bash *b, const nacre_record *record, struct answer *a)
{
    if (record->timeout_ms > 0 && record->outcome == NACRE_RUNNING)
        answer_note(a, "it is ended %.10g s after its start", (double)record->timeout_ms / 1000);
    if (b->mode == YIELDED && !b->timeout_given && record->outcome == NACRE_RUNNING)
        answer_note(a, "no timeout ends it");
}

static bool has_news(const struct answer *a, const nacre_record *record)
{
    return view_position(a->session, &record->id).offset <
           record->bytes[NACRE_STDOUT] + record->bytes[NACRE_STDERR];
}

static int answer_shell(nacre_call *c, struct answer *a, const nacre_record *record,
                        nacre_error *err)
{
    const struct bash *b = c->state;
    nacre_id_text id = nacre_id_short(&b->id);
    char lead[128];
    if (b->mode == YIELDED)
        snprintf(lead, sizeof lead, "Still running after %.10g s: background shell %s",
                 (double)(b->read.size > 0 ? b->waited_ms / 100 * 100 : b->yield_ms) / 1000, id.s);
    else
        snprintf(lead, sizeof lead, "Started background shell %s", id.s);
    if (b->joined)
        answer_note(a, "it was running under that name already; nothing was started");
    note_timeout(b, record, a);
    answer_reading(a, record, &b->read);
    int r = record->outcome == NACRE_RUNNING ? answer_line(a, err, "%s", lead)
                                             : answer_line(a, err, "%s; it has ended.", lead);
    if (r == 0 && record->outcome == NACRE_RUNNING && !has_news(a, record)) {
        answer_run(a, record);
        return 0;
    }
    missed_variables(a, record, b->command.env);
    if (r == 0)
        r = answer_news(a, record, answer_room(a), err);
    missed_terminal(a, record);
    return r;
}

static int answer_deferred(const struct bash *b, struct answer *a, nacre_error *err)
{
    const char *id = nacre_id_short(&b->question).s;
    return answer_line(a, err,
                       "Not started yet: the user is asked (question %s) and has not answered so "
                       "far. It starts in the background when they say yes, which is told in front "
                       "of a later answer; bash_output(id: \"%s\") says how it stands, "
                       "kill_shell(id: \"%s\") withdraws it.",
                       id, id, id);
}

static int bash_answer(nacre_call *c, struct answer *a, nacre_error *err)
{
    const struct bash *b = c->state;
    nacre_record record cleanup_record = NACRE_RECORD_INIT;
    if (b->stage == DEFERRED)
        return answer_deferred(b, a, err);
    note_clamp(b, a);
    if (b->mode == FOREGROUND)
        return answer_summary(c, a, err);
    int r = call_record(c, &b->id, &record, err);
    if (r == 0 && b->mode == YIELDED && record.outcome != NACRE_RUNNING)
        r = answer_summary(c, a, err);
    else if (r == 0)
        r = answer_shell(c, a, &record, err);
    return r;
}

static const nacre_id *bash_subjects(const nacre_call *c, size_t *ret_count)
{
    const struct bash *b = c->state;
    *ret_count = b->stage == STARTING || b->stage == DEFERRED ? 0 : 1;
    return &b->id;
}

static void bash_done(nacre_call *c)
{
    struct bash *b = c->state;
    feeding_done(&b->feeding);
    beside_end(&b->reading);
    op_end(&b->op);
    nacre_watch_close(b->watch);
    free_env(b->env);
    free(b->cwd);
    for (size_t i = 0; i < WISH_LISTS; i++)
        free((void *)b->wishes[i]);
}

const struct tool tool_bash = {
    .name = "bash",
    .title = "Run a shell command",
    .description =
        "Runs a shell command and shows its exit code, stderr and stdout. Each call is a shell of "
        "its own: cd and export do not persist. There is no terminal unless tty is given, and "
        "stdin is empty unless given. A command that is not done after {yield} goes on in the "
        "background; its id is in "
        "the answer. What a command leaves running (with &, nohup, setsid) does not delay the "
        "answer, and is named in it. For servers, watchers and long jobs use background: true "
        "({shells} at a time). Output that does not fit the answer ({answer}) is cut; what was "
        "left out is "
        "counted and can be had with recall. Sandbox: {sandbox}.",
    .args = bash_args_table,
    .args_size = sizeof(struct bash_args),
    .state_size = sizeof(struct bash),
    .destructive = true,
    .open_world = true,
    .begins = true,
    .begin = bash_begin,
    .step = bash_step,
    .answer = bash_answer,
    .cancel = bash_cancel,
    .subjects = bash_subjects,
    .done = bash_done,
};
