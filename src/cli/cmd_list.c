/* nacre list: what runs, what still lingers, and on request what has ended. */
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <nacre/nacre.h>

#include "base/clock.h"
#include "base/err.h"
#include "cli/verbs.h"
#include "console/out.h"
#include "console/print_json.h"
#include "console/redraw.h"
#include "console/shell_texts.h"
#include "console/shells.h"
#include "console/signals.h"
#include "console/table.h"

#define EVERY_MS 1000

struct list_options {
    bool all;
    bool failed;
    uint64_t last; /* UINT64_MAX = all */
    const char *since;
    const char *session;
    uint64_t port; /* UINT64_MAX = whichever, or none */
    bool quiet;
    const char *format;
    bool json;
    bool watch;
};

enum shell_column { STATUS, ID, AGE, TIME, CPU, MEMORY, UNREAD, PORTS, SESSION, COMMAND, COLUMNS };

static const struct table_column shell_columns[COLUMNS] = {
    [STATUS] = {"STATUS", false, 0},   [ID] = {"ID", false, 0},
    [AGE] = {"AGE", true, 3},          [TIME] = {"TIME", true, 2},
    [CPU] = {"CPU", true, 5},          [MEMORY] = {"MEM", true, 4},
    [UNREAD] = {"UNREAD", true, 2},    [PORTS] = {"PORTS", false, 1},
    [SESSION] = {"SESSION", false, 6}, [COMMAND] = {"COMMAND", false, 0},
};

struct shell_rows {
    const struct list_options *options;
    nacre_session *session;
    int64_t since_ms;
    size_t matches, skipped; /* shells that are meant; of these, so many are before the last ones */
    const struct sessions *only; /* NULL = of all sessions */
    struct paint paint;
    struct table table;
    bool ports, sessions, ended; /* there are some; there are several; there are some */
    char first_session[64];
    json_t *array; /* NULL unless JSON is wanted */
};

/* -- One shell -------------------------------------------------------------------------------- */

static int add_shell_row(struct shell_rows *l, const nacre_listed *listed)
{
    const nacre_record *record = listed->record;
    struct shell_texts texts;
    struct buf label cleanup_buf = BUF_UP_TO(SIZE_MAX / 2);
    int r = shell_label(record, &label);
    shell_tell(l->session, listed, &texts);
    nacre_id_text id = nacre_id_short(&record->id);
    const char *cells[COLUMNS] = {
        [STATUS] = texts.status, [ID] = id.s,           [AGE] = texts.age,
        [TIME] = texts.time,     [CPU] = texts.cpu,     [MEMORY] = texts.memory,
        [UNREAD] = texts.unread, [PORTS] = texts.ports, [SESSION] = texts.session,
        [COMMAND] = label.data,
    };
    if (l->table.row_count == 0)
        memcpy(l->first_session, texts.session, sizeof l->first_session);
    l->ports |= texts.ports[0] != '\0';
    l->sessions |= strcmp(l->first_session, texts.session) != 0;
    l->ended |= record->outcome != NACRE_RUNNING;
    if (r == 0)
        r = table_add(&l->table, cells, shell_colour(&l->paint, record));
    return r < 0 ? failure("out of memory") : STATUS_OK;
}

static json_t *usage_json(nacre_session *session, const nacre_record *record)
{
    nacre_usage usage = NACRE_USAGE_INIT;
    if (!shell_is_alive(record) || !shell_usage(session, record, &usage))
        return json_null();
    json_t *ports = json_array();
    for (size_t i = 0; i < NACRE_USAGE_PORTS_MAX && usage.ports[i] != 0; i++)
        json_array_append_new(ports, json_integer(usage.ports[i]));
    return json_pack("{s:i, s:I, s:I, s:o}", "processes", usage.processes, "cpu_ms",
                     (json_int_t)usage.cpu_ms, "memory_bytes", (json_int_t)usage.memory_bytes,
                     "ports", ports);
}

static int add_shell_json(struct shell_rows *l, const nacre_listed *listed)
{
    static const nacre_id nobody;
    const nacre_record *record = listed->record;
    json_auto_t *value = json_record(record);
    json_auto_t *more =
        json_pack("{s:I, s:b, s:o, s:o, s:b, s:o, s:o, s:o}", "unread", (json_int_t)listed->unread,
                  "background", listed->background, "session",
                  nacre_id_equal(&record->session, &nobody)
                      ? json_null()
                      : json_string(nacre_id_format(&record->session).s),
                  "session_name", json_text(listed->session_name, strlen(listed->session_name)),
                  "session_alive", listed->session_alive, "usage", usage_json(l->session, record),
                  "client", json_text(listed->session_client, strlen(listed->session_client)),
                  "description", json_text(record->description, strlen(record->description)));
    int r = value && more ? json_object_update(value, more) : -1;
    if (r == 0)
        r = json_array_append(l->array, value);
    return r < 0 ? failure("out of memory") : STATUS_OK;
}

/* -- In a form of one's own ------------------------------------------------------------------- */

/* What stands in braces in a format, and what is written for it. */
static const char *field_text(const char *name, size_t length, const nacre_listed *listed,
                              const struct shell_texts *t, nacre_id_text *id)
{
    const nacre_record *record = listed->record;
    *id = nacre_id_format(&record->id);
    const struct {
        const char *name, *text;
    } fields[] = {
        {"id", id->s},           {"status", t->status},
        {"age", t->age},         {"time", t->time},
        {"cpu", t->cpu},         {"memory", t->memory},
        {"unread", t->unread},   {"ports", t->ports},
        {"session", t->session}, {"client", listed->session_client},
        {"name", record->name},  {"description", record->description},
        {"cwd", record->cwd},    {"command", record->command},
    };
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
        if (strlen(fields[i].name) == length && memcmp(fields[i].name, name, length) == 0)
            return fields[i].text;
    return NULL;
}

/* One piece of a format: a field, an escape, or a character; *ret_length is that of the piece. */
static int put_piece(const char *at, const nacre_listed *listed, const struct shell_texts *t,
                     struct buf *out, size_t *ret_length)
{
    nacre_id_text id;
    const char *end = *at == '{' ? strchr(at, '}') : NULL;
    const char *text = end ? field_text(at + 1, (size_t)(end - at) - 1, listed, t, &id) : NULL;
    *ret_length = text ? (size_t)(end - at) + 1 : at[0] == '\\' && at[1] ? 2 : 1;
    if (text)
        return *text ? brief_line(out, text, COLUMNS_UNLIMITED) : buf_str(out, "-");
    if (*ret_length == 2)
        return buf_append(out, at[1] == 't' ? "\t" : at[1] == 'n' ? "\n" : at + 1, 1);
    return buf_append(out, at, 1);
}

static int print_format(const struct shell_rows *l, const nacre_listed *listed)
{
    struct shell_texts texts;
    struct buf line cleanup_buf = BUF_UP_TO(SIZE_MAX / 2);
    size_t length;
    shell_tell(l->session, listed, &texts);
    for (const char *at = l->options->format; *at; at += length)
        if (put_piece(at, listed, &texts, &line, &length) < 0)
            return failure("out of memory");
    puts(line.data ? line.data : "");
    return STATUS_OK;
}

/* A field that does not exist is a mistake, and not a text. */
static int check_format(const char *format)
{
    static const char names[] = "id, status, age, time, cpu, memory, unread, ports, session, "
                                "client, name, description, cwd, command";
    nacre_record record = NACRE_RECORD_INIT;
    nacre_listed listed = {.record = &record, .session_client = ""};
    struct shell_texts texts = {0};
    nacre_id_text id;
    record.name = record.description = record.cwd = record.command = (char *)"";
    for (const char *at = format; at && (at = strchr(at, '{')); at++) {
        size_t length = strcspn(at + 1, "}");
        if (at[length + 1] && !field_text(at + 1, length, &listed, &texts, &id))
            return usage_error("list: --format has no {%.*s}; there are %s", (int)length, at + 1,
                               names);
    }
    return STATUS_OK;
}

/* -- Which of them ---------------------------------------------------------------------------- */

static bool listens(const struct shell_rows *l, const nacre_id *id)
{
    nacre_port port = NACRE_PORT_INIT;
    if (l->options->port == UINT64_MAX)
        return true;
    return nacre_wait_port(l->session, id, (int)l->options->port, 0, &port, NULL) == 0;
}

static bool is_meant(const struct shell_rows *l, const nacre_listed *listed)
{
    const nacre_record *record = listed->record;
    return (!l->only || sessions_have(l->only, &record->session)) &&
           record->started_ms >= l->since_ms &&
           (!l->options->failed || record_has_failed(record)) && listens(l, &record->id);
}

static int count_shell(const nacre_listed *listed, void *userdata)
{
    struct shell_rows *l = userdata;
    l->matches += is_meant(l, listed);
    return STATUS_OK;
}

static int add_shell(const nacre_listed *listed, void *userdata)
{
    struct shell_rows *l = userdata;
    if (!is_meant(l, listed))
        return STATUS_OK;
    if (l->skipped > 0) {
        l->skipped--;
        return STATUS_OK;
    }
    if (l->options->quiet)
        return puts(nacre_id_format(&listed->record->id).s) < 0 ? finish_output() : STATUS_OK;
    if (l->options->format)
        return print_format(l, listed);
    return l->array ? add_shell_json(l, listed) : add_shell_row(l, listed);
}

/* -- All of them ------------------------------------------------------------------------------ */

static int each_meant(struct shell_rows *l, nacre_list_fn *fn)
{
    const struct list_options *o = l->options;
    nacre_error error = NACRE_ERROR_INIT;
    nacre_list_options options = NACRE_LIST_OPTIONS_INIT;
    options.which = NACRE_LIST_HOME;
    options.only_alive = !o->all && !o->failed && !o->since && o->last == UINT64_MAX;
    options.details = l->array != NULL;
    int r = nacre_list(l->session, &options, fn, l, &error);
    return r < 0 ? library_failure(&error) : r;
}

/* Says itself what is wrong. The last ones are known once all were counted. */
static int list_shells(struct shell_rows *l)
{
    l->matches = l->skipped = 0;
    if (l->options->last != UINT64_MAX) {
        int status = each_meant(l, count_shell);
        if (status != STATUS_OK)
            return status;
        l->skipped = l->matches - MIN(l->matches, (size_t)l->options->last);
    }
    return each_meant(l, add_shell);
}

static int list_json(struct shell_rows *l)
{
    l->array = json_array();
    int status = l->array ? list_shells(l) : failure("out of memory");
    if (status == STATUS_OK)
        return print_json(l->array);
    json_decref(l->array);
    return status;
}

static const char *nothing_text(const struct list_options *o)
{
    if (o->failed || o->since || o->session || o->last != UINT64_MAX)
        return "no shells like that\n";
    return o->all ? "no shells yet\n" : "nothing runs; \"nacre list --all\" shows what has ended\n";
}

/* The list as text, within so many columns and rows; on a pipe it has every column. */
static int format_list(struct shell_rows *l, size_t width, size_t rows, struct buf *out)
{
    table_init(&l->table, shell_columns, COLUMNS);
    l->ports = l->sessions = l->ended = false;
    int status = list_shells(l);
    size_t count = l->table.row_count;
    size_t shown = count + 1 <= rows ? count : rows - MIN(rows, (size_t)2);
    l->table.hidden[PORTS] = !l->ports;
    l->table.hidden[SESSION] = !l->sessions;
    l->table.hidden[TIME] = !l->ended;
    int r = 0;
    if (status != STATUS_OK)
        r = 0;
    else if (!isatty(STDOUT_FILENO))
        r = table_format_plain(&l->table, out);
    else if (count == 0)
        r = buf_str(out, nothing_text(l->options));
    else
        r = table_format(&l->table, &l->paint, width, shown, out);
    if (status == STATUS_OK && r == 0 && shown < count)
        r = buf_printf(out, "and %zu more\n", count - shown);
    table_done(&l->table);
    return r < 0 ? failure("out of memory") : status;
}

static int list_once(struct shell_rows *l)
{
    struct buf text cleanup_buf = BUF_UP_TO(SIZE_MAX / 2);
    int status = format_list(l, output_columns(), SIZE_MAX, &text);
    if (status == STATUS_OK)
        fwrite(text.data ? text.data : "", 1, text.len, stdout);
    return status;
}

static int draw_list(struct shell_rows *l, struct redraw *screen)
{
    size_t width, rows;
    struct buf picture cleanup_buf = BUF_UP_TO(SIZE_MAX / 2);
    redraw_measure(screen, &width, &rows);
    int status = format_list(l, width, rows, &picture);
    int r = status == STATUS_OK ? redraw_draw(screen, &picture) : 0;
    return r < 0 ? failure("list: cannot write to the terminal: %s", err_text(-r)) : status;
}

static int watch_list(struct shell_rows *l)
{
    struct redraw screen;
    int status = STATUS_OK;
    int r = redraw_open(&screen);
    if (r < 0)
        status = failure("list: cannot prepare for signals: %s", err_text(-r));
    while (status == STATUS_OK) {
        status = draw_list(l, &screen);
        if (status == STATUS_OK && !redraw_wait(&screen, EVERY_MS))
            break;
    }
    redraw_close(&screen);
    /* Ctrl-C is how people leave it; other signals mean what they always mean. */
    if (screen.signal != 0 && screen.signal != SIGINT)
        signals_die_by(screen.signal);
    return status;
}

static int check_list(const struct list_options *o)
{
    if (o->port != UINT64_MAX && o->port > 65535)
        return usage_error("list: --port goes from 0 to 65535");
    if (o->watch && o->json)
        return usage_error("list: --watch and --json exclude each other");
    if (o->quiet + o->json + (o->format != NULL) + o->watch > 1)
        return usage_error("list: --quiet, --format, --json and --watch exclude each other");
    if (o->watch && !redraw_is_possible())
        return failure("list: --watch needs a terminal that can move its cursor; without it the "
                       "list is printed once");
    return check_format(o->format);
}

static int list_as_wanted(struct shell_rows *l)
{
    const struct list_options *o = l->options;
    if (o->quiet || o->format)
        return list_shells(l);
    return o->json ? list_json(l) : o->watch ? watch_list(l) : list_once(l);
}

static int list(const void *options, UNUSED char **words, UNUSED size_t count)
{
    const struct list_options *o = options;
    nacre_session *session cleanup_session = NULL;
    struct sessions only cleanup_sessions = {0};
    struct shell_rows l = {.options = o, .paint = paint_for(stdout)};
    int status = check_list(o);
    if (status == STATUS_OK)
        status = parse_since("list", o->since, &l.since_ms);
    if (status == STATUS_OK)
        status = open_session(&session);
    if (status == STATUS_OK && o->session)
        status = sessions_find(session, o->session, &only);
    if (status != STATUS_OK)
        return status;
    l.session = session;
    l.only = o->session ? &only : NULL;
    return list_as_wanted(&l);
}

const struct verb verb_list = {
    .name = "list",
    .aliases = "ls ps",
    .words = "",
    .summary = "list the shells that run or still linger",
    .details =
        "One line per shell, oldest first: status, id, age, how long it took, CPU time and\n"
        "memory of everything it runs (of an ended one: CPU time, and the most memory one\n"
        "process had), bytes that its session has not read, ports on which it listens, its\n"
        "session, [name] (description) command. A shell lingers when its command has ended and\n"
        "something that it started has not.\n"
        "\n"
        "On a terminal there is a heading, failures are red, columns that say nothing are left\n"
        "out, what does not fit the width leaves, and the command is cut. On a pipe each line\n"
        "has every column, with a tab between them and \"-\" for what there is not.\n"
        "\n"
        "--failed, --since and --last look at what has ended, too. A FORMAT is a line for each\n"
        "shell, with {id}, {status}, {age}, {time}, {cpu}, {memory}, {unread}, {ports},\n"
        "{session}, {client}, {name}, {description}, {cwd} and {command} replaced, and \\t and\n"
        "\\n as in C.\n"
        "\n"
        "examples:\n"
        "  nacre list --watch\n"
        "  nacre list --failed --since 1d\n"
        "  nacre list --last 5 --format '{id} {status} after {time}: {command}'\n"
        "  nacre list --all --json | jq -r '.[] | select(.timed_out) | .id'\n",
    .options = {{"all", NULL, "also what has ended", OPTION_FLAG, false,
                 offsetof(struct list_options, all), 'a'},
                {"failed", NULL, "only what ended badly, and not by a kill", OPTION_FLAG, false,
                 offsetof(struct list_options, failed)},
                {"last", "N", "only the N that started last", OPTION_COUNT, false,
                 offsetof(struct list_options, last), 'n'},
                {"since", "T", "only what started since then: 10m, 2h, 1d, 2026-11-15T14:30",
                 OPTION_TEXT, false, offsetof(struct list_options, since)},
                {"session", "S", "only those of a session, by its name or id", OPTION_TEXT, false,
                 offsetof(struct list_options, session), 0, OFFERED_SESSIONS},
                {"port", "N", "only those that listen on TCP port N (0 = on any)", OPTION_COUNT,
                 false, offsetof(struct list_options, port)},
                {"quiet", NULL, "only ids, whole ones", OPTION_FLAG, false,
                 offsetof(struct list_options, quiet), 'q'},
                {"format", "FORMAT", "a line of one's own for each", OPTION_TEXT, false,
                 offsetof(struct list_options, format)},
                {"watch", NULL, "on a terminal: again each second, until q or Ctrl-C", OPTION_FLAG,
                 false, offsetof(struct list_options, watch)},
                {"json", NULL, "an array of whole records", OPTION_FLAG, false,
                 offsetof(struct list_options, json)}},
    .options_size = sizeof(struct list_options),
    .defaults = &(const struct list_options){.last = UINT64_MAX, .port = UINT64_MAX},
    .run = list,
};
