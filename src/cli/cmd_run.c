/* nacre run: a command in the foreground, live, with everything it started ended at its end. */
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nacre/nacre.h>

#include "base/err.h"
#include "cli/cmd_run.h"
#include "cli/verbs.h"
#include "config/settings.h"
#include "console/command_args.h"
#include "console/fence_args.h"
#include "console/live.h"
#include "console/out.h"
#include "console/print_json.h"
#include "console/raw_terminal.h"
#include "console/shells.h"
#include "console/signals.h"
#include "console/viewer.h"
#include "screen/terminal.h"
#include "session/refusals.h"
#include "view/fence_words.h"
#include "view/limit_words.h"

#define JSON_OUTPUT_MAX ((size_t)1 << 20)

struct run_options {
    int64_t timeout_ms;
    const char *cwd;
    const char **env;
    const char *input;
    const char *shell;
    const char **limits;
    struct fence_args fence;
    bool summary;
    bool json;
    bool refusals; /* say it also if there were none */
    bool tty, typed;
};

static int open_input(const char *path, int *ret_fd)
{
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return failure("run: cannot read %s: %s", path, err_text(errno));
    if (S_ISDIR(st.st_mode))
        return failure("run: cannot read %s: it is a directory", path);
    *ret_fd = TAKE_FD(fd);
    return STATUS_OK;
}

static int print_summary(struct live *l)
{
    nacre_error error = NACRE_ERROR_INIT;
    nacre_view_options options = NACRE_VIEW_OPTIONS_INIT;
    cleanup_free char *text = NULL;
    options.audience = NACRE_FOR_PEOPLE;
    if (nacre_summary(l->session, &l->id, &options, &text, NULL, &error) < 0)
        return library_failure(&error);
    fputs(text, stdout);
    return STATUS_OK;
}

static int print_record(struct live *l, const nacre_record *record)
{
    nacre_snapshot snapshot = {0};
    nacre_error error = NACRE_ERROR_INIT;
    int r = nacre_output(l->session, &l->id, NACRE_BOTH, JSON_OUTPUT_MAX, &snapshot, &error);
    /* Output that is damaged is left out; how the command ended is told all the same. */
    if (r < 0 && r != NACRE_EIO)
        return library_failure(&error);
    uint64_t all = record->bytes[NACRE_STDOUT] + record->bytes[NACRE_STDERR];
    json_t *value = json_record(record);
    json_object_set_new(value, "output",
                        json_text(snapshot.data ? snapshot.data : "", snapshot.size));
    json_object_set_new(value, "output_omitted",
                        json_integer((json_int_t)(all - MIN(all, (uint64_t)snapshot.size))));
    free(snapshot.data);
    return print_json(value);
}

static void say_refusals(const struct run_options *o, nacre_session *session, nacre_record *record)
{
    refusals_find(session, record);
    if (o->refusals && record->denial_count == 0)
        say("Sandbox: refused nothing, as far as that is known");
    struct buf text cleanup_buf = BUF_UP_TO(LIMIT_WORDS_MAX + FENCE_WORDS_MAX);
    char *rest = NULL;
    if (limit_words(&text, record, LIMIT_WORDS_MAX) < 0 ||
        fence_words(&text, record, FENCE_WORDS_MAX) < 0 || text.len == 0)
        return;
    for (char *line = strtok_r(text.data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        say("%s", line);
}

/* What somebody who only saw the output go by would not know. */
static int say_what_was_unseen(const struct run_options *o, const struct live *l,
                               nacre_record *record)
{
    if (record->spare)
        say("the home has no room: this shell is kept in memory, and not for long");
    if (record->outcome == NACRE_KILLED && record->reason != NACRE_REASON_LIMIT)
        say("the command was killed from outside");
    say_refusals(o, l->session, record);
    if (record->outcome == NACRE_LOST)
        say("the keeper of the command vanished; how the command ended is not known");
    uint64_t missed = live_missed(l, record);
    if (missed == 0 || l->signal != 0)
        return STATUS_OK;
    return failure("%llu bytes of output are missing: %s", (unsigned long long)missed,
                   record->dropped_errno ? err_text(record->dropped_errno)
                                         : "they came faster than they could be passed on");
}

/* "sleep 60, pid 123", as one of a list; without the command if that is not known. */
static int name_process(struct buf *b, const nacre_record *record, int64_t pid)
{
    int r = b->len > 0 ? buf_str(b, "; ") : 0;
    for (int i = 0; r == 0 && i < record->leftover_count; i++) {
        if (record->leftover[i].pid != pid)
            continue;
        r = brief_line(b, record->leftover[i].command, 60);
        if (r == 0)
            r = buf_str(b, ", ");
    }
    return r == 0 ? buf_printf(b, "pid %d", (int)pid) : r;
}

static void say_who_was_ended(const nacre_record *record)
{
    struct buf names cleanup_buf = BUF_UP_TO(8192);
    for (int i = 0; i < record->leftover_count; i++)
        if (name_process(&names, record, record->leftover[i].pid) < 0)
            return;
    say("ended %d %s the command left behind (%s)", record->leftover_count,
        PROCESSES(record->leftover_count), names.data);
}

static void say_who_is_left(const nacre_record *record, const nacre_kill_result *result,
                            const char *cause)
{
    struct buf names cleanup_buf = BUF_UP_TO(8192);
    int named = MIN(result->survivors, (int)ARRAY_SIZE(result->survivor_pids));
    for (int i = 0; i < named; i++)
        if (name_process(&names, record, result->survivor_pids[i]) < 0)
            return;
    say("%s%d %s could not be ended, not even by SIGKILL (%s%s)", cause, result->survivors,
        PROCESSES(result->survivors), names.data, named < result->survivors ? "; ..." : "");
}

/* One sentence, said when it is known to be true. */
static void say_what_was_ended(const struct run_options *o, const nacre_record *record,
                               const nacre_kill_result *result)
{
    char cause[64] = "";
    bool left_behind = record->outcome == NACRE_EXITED || record->outcome == NACRE_SIGNALED;
    if (record->outcome == NACRE_TIMED_OUT && !o->summary && !o->json)
        snprintf(cause, sizeof cause, "timed out after %.15gs; ",
                 (double)record->timeout_ms / 1000);
    if (result->survivors > 0)
        say_who_is_left(record, result, cause);
    else if (cause[0])
        say("%sthe command and everything it started were ended", cause);
    else if (left_behind && result->was_alive && record->leftover_count > 0)
        say_who_was_ended(record);
}

/* Gives the answer, in the form that was asked for. */
static int give_answer(const struct run_options *o, struct live *l, nacre_record *record)
{
    int status = o->summary ? print_summary(l)
                 : o->json  ? print_record(l, record)
                            : say_what_was_unseen(o, l, record);
    if (fflush(stdout) == 0)
        return status;
    if (errno != EPIPE)
        l->write_errno = errno;
    else if (l->signal == 0)
        l->signal = SIGPIPE;
    return status;
}

/* A keeper that cannot write any more still tells who watches how it ended. */
static int record_of_end(struct live *l, nacre_record *record, nacre_error *error)
{
    nacre_record heard = NACRE_RECORD_INIT;
    int r = nacre_get(l->session, &l->id, record, error);
    bool known = r == 0 && record->outcome != NACRE_RUNNING && record->outcome != NACRE_LOST;
    if (known || !l->settled || nacre_watch_record(l->watch, &heard, NULL) < 0)
        return r;
    nacre_record_done(record);
    *record = heard;
    return 0;
}

/* From the start of the command to the status to exit with. */
static int follow(const struct run_options *o, struct live *l)
{
    nacre_error error = NACRE_ERROR_INIT;
    nacre_record record cleanup_record = NACRE_RECORD_INIT;
    if (o->tty && o->typed) {
        struct viewer_end end = {0};
        int status = viewer_stand_in(l->session, &l->id, l->watch, &end);
        /* Its terminal may be gone: then it ends, as by the signal that says so. */
        int signal = end.detached || status != STATUS_OK ? SIGHUP : end.signal;
        live_seen(l, end.missed, end.next, signal);
    }
    if (live_follow(l, &error) < 0 || record_of_end(l, &record, &error) < 0)
        return library_failure(&error);

    int status = STATUS_OK;
    if (l->signal != SIGPIPE && l->write_errno == 0)
        status = give_answer(o, l, &record);
    if (record.tree == NACRE_TREE_ALIVE && !l->ender.started && live_end(l, &error) < 0)
        return library_failure(&error);
    if (l->ender.error.code != NACRE_OK)
        return library_failure(&l->ender.error);
    if (l->write_errno != 0)
        return failure("cannot write to stdout: %s", err_text(l->write_errno));
    if (l->signal != SIGPIPE)
        say_what_was_ended(o, &record, &l->ender.result);
    int own = record_status(&record);
    return own != STATUS_OK ? own : status;
}

static int run_command(const struct run_options *o, const nacre_command *command)
{
    nacre_error error = NACRE_ERROR_INIT;
    nacre_settings *settings cleanup_settings = NULL;
    nacre_session *session = NULL;
    int status = limited_settings("run", (const char *const *)o->limits, &settings);
    if (status == STATUS_OK)
        status = fence_args_apply(&o->fence, &settings);
    if (status == STATUS_OK)
        status = open_session_with(settings, &session);
    if (status != STATUS_OK)
        return status;

    static struct live live;
    int r = live_init(&live, session, !o->summary && !o->json);
    if (r < 0)
        status = failure("run: cannot prepare for signals: %s", err_text(-r));
    else if (nacre_start(session, command, &live.id, &live.watch, &error) < 0)
        status = start_failure(command, &error);
    else
        status = follow(o, &live);
    live_done(&live);
    nacre_close(session, NULL);
    if (live.signal != 0) {
        fflush(stdout);
        signals_die_by(live.signal);
        return STATUS_SIGNAL + live.signal;
    }
    return status;
}

int run_explained(char **words, size_t count, const struct fence_args *fence)
{
    struct run_options options = {.fence = *fence, .refusals = true};
    nacre_command command = NACRE_COMMAND_INIT;
    command.paced = 1;
    int status = take_words("sandbox", words, count, &command);
    return status == STATUS_OK ? run_command(&options, &command) : status;
}

/* It is a person's own terminal: what nacre says in place of one, to keep programs from asking, is
 * not said. Each variable is as this person has it. */
static const char *const of_people[] = {
    "TERM",
    "COLORTERM",
    "NO_COLOR",
    "PAGER",
    "GIT_PAGER",
    "GIT_EDITOR",
    "GIT_SEQUENCE_EDITOR",
    "EDITOR",
    "VISUAL",
    "GIT_TERMINAL_PROMPT",
    "DEBIAN_FRONTEND",
    "GCM_INTERACTIVE",
};

#define OWN_ENV_MAX (ARRAY_SIZE(of_people) + 64)

static int put_own_variable(struct buf *text, const char *name, size_t *at)
{
    const char *value = getenv(name);
    *at = text->len;
    int r = buf_printf(text, value ? "%s=%s" : "%s", name, value);
    return r < 0 ? r : buf_append(text, "", 1);
}

/* Before what the call says itself, which comes last and counts. */
static int lay_out_own_env(const struct run_options *o, struct buf *text, const char **env)
{
    size_t at[ARRAY_SIZE(of_people)], n = 0;
    for (size_t i = 0; i < ARRAY_SIZE(of_people); i++)
        if (put_own_variable(text, of_people[i], &at[i]) < 0)
            return failure("out of memory");
    for (; n < ARRAY_SIZE(of_people); n++)
        env[n] = text->data + at[n];
    for (const char **more = o->env; more && *more; more++) {
        if (n + 1 >= OWN_ENV_MAX)
            return usage_error("run: -it takes at most %zu of --env",
                               OWN_ENV_MAX - ARRAY_SIZE(of_people) - 1);
        env[n++] = *more;
    }
    env[n] = NULL;
    return STATUS_OK;
}

static int give_terminal(const struct run_options *o, nacre_command *command, struct buf *text,
                         const char **env)
{
    unsigned columns, rows;
    if (o->input || o->summary || o->json)
        return usage_error("run: --tty excludes --stdin, --summary and --json");
    if (o->typed && !raw_terminal_is_possible())
        return failure("run: -it needs a terminal, and stdin or stdout is none");
    command->tty = 1;
    if (isatty(STDOUT_FILENO)) {
        raw_terminal_size(&columns, &rows);
        command->columns = (int)MIN(MAX(columns, TERMINAL_COLUMNS_MIN), TERMINAL_COLUMNS_MAX);
        command->rows = (int)MIN(MAX(rows, TERMINAL_ROWS_MIN), TERMINAL_ROWS_MAX);
    }
    if (!o->typed)
        return STATUS_OK;
    command->env = env;
    return lay_out_own_env(o, text, env);
}

static int run_in_foreground(const void *options, char **words, size_t count)
{
    const struct run_options *o = options;
    if (o->summary && o->json)
        return usage_error("run: --summary and --json exclude each other");
    int status = check_env("run", (const char *const *)o->env);
    if (status != STATUS_OK)
        return status;
    nacre_command command = NACRE_COMMAND_INIT;
    command.paced = !o->summary && !o->json;
    command.shell = o->shell;
    if ((status = take_words("run", words, count, &command)) != STATUS_OK)
        return status;
    command.cwd = o->cwd;
    command.env = (const char *const *)o->env;
    command.timeout_ms = o->timeout_ms;

    struct buf text cleanup_buf = BUF_UP_TO((size_t)1 << 20);
    const char *own_env[OWN_ENV_MAX];
    if (o->tty && (status = give_terminal(o, &command, &text, own_env)) != STATUS_OK)
        return status;
    cleanup_close int input = -EBADF;
    if (o->typed && !o->tty) {
        command.input = NACRE_STDIN_FD;
        command.input_fd = STDIN_FILENO;
    } else if (o->input) {
        bool ours = strcmp(o->input, "-") == 0;
        if (!ours && (status = open_input(o->input, &input)) != STATUS_OK)
            return status;
        command.input = NACRE_STDIN_FD;
        command.input_fd = ours ? STDIN_FILENO : input;
    }
    return run_command(o, &command);
}

const struct verb verb_run = {
    .name = "run",
    .words = "COMMAND",
    .summary = "run a command, show its output live, return its exit code",
    .details =
        "COMMAND is one argument, which a shell reads, or a program with its arguments,\n"
        "which are passed on as they are: no shell reads them.\n"
        "nacre run answers when the command has exited, not when its pipes are closed. What the\n"
        "command left running is then ended and named on stderr.\n"
        "\n"
        "Ctrl-C, SIGTERM and SIGHUP end the command with everything it started: SIGTERM, two\n"
        "seconds, SIGKILL; a second Ctrl-C is SIGKILL at once.\n"
        "\n"
        "With -it this terminal is the command's own: every key goes to it, Ctrl-C too, and what "
        "it\n"
        "writes is shown, but for what would make this terminal answer, or reach its clipboard. "
        "The\n"
        "record is as of any shell; what is typed is not in it.\n"
        "\n"
        "exit status:\n"
        "  that of the command\n"
        "  128+N   the command was ended by signal N, or nacre run was\n"
        "  124     the time was over\n"
        "  126/127 the program could not be executed, or was not found\n"
        "  1       nacre itself failed: nothing was started, or the output not written\n"
        "  2       the arguments make no sense\n"
        "\n"
        "examples:\n"
        "  nacre run -- 'make -j2 test 2>&1 | tail -40'\n"
        "  nacre run -- printf '[%s]\\n' 'a b' '$HOME'\n"
        "  nacre run --timeout 60 --cwd web --env CI=1 --summary -- 'npm test'\n"
        "  nacre run -it -- python3\n",
    .options = {{"timeout", "S", "end it after S seconds, with everything it started",
                 OPTION_SECONDS, true, offsetof(struct run_options, timeout_ms)},
                {"cwd", "D", "the directory to run it in", OPTION_TEXT, false,
                 offsetof(struct run_options, cwd), 'C', OFFERED_FOLDERS},
                {"env", "K=V", "set a variable in its environment; may be repeated", OPTION_LIST,
                 false, offsetof(struct run_options, env), 'e'},
                {"stdin", "FILE|-", "its input, - for ours; without this it reads nothing",
                 OPTION_TEXT, false, offsetof(struct run_options, input), 0, OFFERED_FILES},
                {"tty", NULL, "give it a terminal, in the size of this one", OPTION_FLAG, false,
                 offsetof(struct run_options, tty), 't'},
                {"interactive", NULL, "with -t: this terminal is its own; else: --stdin -",
                 OPTION_FLAG, false, offsetof(struct run_options, typed), 'i'},
                {"shell", "SH", "the shell that reads the command (bash if there is one, else sh)",
                 OPTION_TEXT, false, offsetof(struct run_options, shell), 0},
                LIMIT_OPTION(run_options),
                FENCE_OPTIONS(run_options),
                {"summary", NULL, "at its end print what a model would see, instead of the output",
                 OPTION_FLAG, false, offsetof(struct run_options, summary)},
                {"json", NULL, "at its end print its record and up to 1 MiB of output as JSON",
                 OPTION_FLAG, false, offsetof(struct run_options, json)}},
    .options_size = sizeof(struct run_options),
    .min_words = 1,
    .max_words = SIZE_MAX,
    .is_command = true,
    .offered = OFFERED_PROGRAMS,
    .run = run_in_foreground,
};
