/* nacre list: what runs, what still lingers, and on request what has ended. */
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <nacre/nacre.h>

#include "base/clock.h"
#include "base/err.h"
#include "cli/cli.h"
#include "cli/json.h"
#include "cli/out.h"
#include "cli/screen.h"
#include "cli/shells.h"
#include "cli/signals.h"
#include "cli/table.h"

#define EVERY_MS 1000

struct list_options {
    bool all;
    const char *session;
    bool json;
    bool watch;
};

enum column { STATUS, ID, AGE, CPU, MEMORY, UNREAD, PORTS, SESSION, COMMAND, COLUMNS };

static const struct table_column columns[COLUMNS] = {
    [STATUS] = {"STATUS", false, 0},   [ID] = {"ID", false, 0},
    [AGE] = {"AGE", true, 3},          [CPU] = {"CPU", true, 5},
    [MEMORY] = {"MEM", true, 4},       [UNREAD] = {"UNREAD", true, 2},
    [PORTS] = {"PORTS", false, 1},     [SESSION] = {"SESSION", false, 6},
    [COMMAND] = {"COMMAND", false, 0},
};

struct listing {
    nacre_session *session;
    const struct sessions *only; /* NULL = of all sessions */
    struct paint paint;
    struct table table;
    bool ports, sessions; /* there are some; there are several */
    char first_session[64];
    json_t *array; /* NULL unless JSON is wanted */
};

/* -- One shell -------------------------------------------------------------------------------- */

static bool is_alive(const nacre_record *record)
{
    return record->outcome == NACRE_RUNNING || record->tree == NACRE_TREE_ALIVE;
}

/* What it uses, or used; false if that cannot be told. */
static bool find_usage(nacre_session *session, const nacre_record *record, nacre_usage *ret_usage)
{
    if (is_alive(record))
        return nacre_get_usage(session, &record->id, ret_usage, NULL) == 0;
    ret_usage->cpu_ms = record->cpu_ms;
    ret_usage->memory_bytes = (uint64_t)record->max_rss_kb * 1024;
    return true;
}

static const char *status_colour(const struct paint *paint, const nacre_record *record)
{
    if (record->outcome == NACRE_RUNNING)
        return paint->good;
    return record->tree == NACRE_TREE_ALIVE ? paint->bold : paint->dim;
}

static const char *cpu_text(int64_t ms, char buf[AGE_TEXT])
{
    if (ms >= 9950)
        return brief_age(ms, buf);
    snprintf(buf, AGE_TEXT, "%.1fs", (double)ms / 1000);
    return buf;
}

static void ports_text(const nacre_usage *usage, char *buf, size_t size)
{
    size_t length = 0;
    buf[0] = '\0';
    for (size_t i = 0; i < NACRE_USAGE_PORTS_MAX && usage->ports[i] != 0; i++)
        length += (size_t)snprintf(buf + length, size - length, "%s%u", i > 0 ? "," : "",
                                   usage->ports[i]);
}

/* A session is shown by its name, or as long as it lives by its id. */
static void session_text(const nacre_listed *listed, char *buf, size_t size)
{
    const char *name = listed->session_name;
    snprintf(buf, size, "%.40s",
             *name                   ? name
             : listed->session_alive ? nacre_id_short(&listed->record->session).s
                                     : "");
}

static int label_of(const nacre_record *record, struct buf *out)
{
    int r = *record->name ? buf_printf(out, "[%s] ", record->name) : 0;
    return r < 0 ? r : buf_str(out, record->command);
}

static int add_row(struct listing *l, const nacre_listed *listed)
{
    const nacre_record *record = listed->record;
    nacre_usage usage = NACRE_USAGE_INIT;
    bool known = find_usage(l->session, record, &usage);
    char status[64], age[AGE_TEXT], cpu[AGE_TEXT], memory[BYTES_TEXT], unread[BYTES_TEXT];
    char ports[NACRE_USAGE_PORTS_MAX * 6 + 1], session[64];
    struct buf label cleanup_buf;
    buf_init(&label, SIZE_MAX / 2);
    int r = label_of(record, &label);
    ports_text(&usage, ports, sizeof ports);
    session_text(listed, session, sizeof session);
    nacre_id_text id = nacre_id_short(&record->id);
    const char *cells[COLUMNS] = {
        [STATUS] = nacre_status(record, status, sizeof status),
        [ID] = id.s,
        [AGE] = brief_age(clock_real_ns() / NS_PER_MS - record->started_ms, age),
        [CPU] = known ? cpu_text(usage.cpu_ms, cpu) : NULL,
        [MEMORY] = known ? brief_bytes(usage.memory_bytes, memory) : NULL,
        [UNREAD] = listed->background ? brief_bytes(listed->unread, unread) : NULL,
        [PORTS] = ports,
        [SESSION] = session,
        [COMMAND] = label.data,
    };
    if (l->table.row_count == 0)
        memcpy(l->first_session, session, sizeof session);
    l->ports |= ports[0] != '\0';
    l->sessions |= strcmp(l->first_session, session) != 0;
    if (r == 0)
        r = table_add(&l->table, cells, status_colour(&l->paint, record));
    return r < 0 ? failure("out of memory") : STATUS_OK;
}

static json_t *usage_json(nacre_session *session, const nacre_record *record)
{
    nacre_usage usage = NACRE_USAGE_INIT;
    if (!is_alive(record) || !find_usage(session, record, &usage))
        return json_null();
    json_t *ports = json_array();
    for (size_t i = 0; i < NACRE_USAGE_PORTS_MAX && usage.ports[i] != 0; i++)
        json_array_append_new(ports, json_integer(usage.ports[i]));
    return json_pack("{s:i, s:I, s:I, s:o}", "processes", usage.processes, "cpu_ms",
                     (json_int_t)usage.cpu_ms, "memory_bytes", (json_int_t)usage.memory_bytes,
                     "ports", ports);
}

static int add_json(struct listing *l, const nacre_listed *listed)
{
    static const nacre_id nobody;
    const nacre_record *record = listed->record;
    json_t *value = json_record(record);
    json_t *more =
        json_pack("{s:I, s:b, s:o, s:o, s:b, s:o}", "unread", (json_int_t)listed->unread,
                  "background", listed->background, "session",
                  nacre_id_equal(&record->session, &nobody)
                      ? json_null()
                      : json_string(nacre_id_format(&record->session).s),
                  "session_name", json_text(listed->session_name, strlen(listed->session_name)),
                  "session_alive", listed->session_alive, "usage", usage_json(l->session, record));
    int r = value && more ? json_object_update(value, more) : -1;
    json_decref(more);
    if (r < 0)
        json_decref(value);
    else
        r = json_array_append_new(l->array, value);
    return r < 0 ? failure("out of memory") : STATUS_OK;
}

static int each(const nacre_listed *listed, void *userdata)
{
    struct listing *l = userdata;
    if (l->only && !sessions_have(l->only, &listed->record->session))
        return STATUS_OK;
    return l->array ? add_json(l, listed) : add_row(l, listed);
}

/* -- All of them ------------------------------------------------------------------------------ */

/* Says itself what is wrong. */
static int list_shells(struct listing *l, const struct list_options *o)
{
    nacre_error error = NACRE_ERROR_INIT;
    nacre_list_options options = NACRE_LIST_OPTIONS_INIT;
    options.which = NACRE_LIST_HOME;
    options.only_alive = !o->all;
    options.details = l->array != NULL;
    int r = nacre_list(l->session, &options, each, l, &error);
    return r < 0 ? library_failure(&error) : r;
}

static int list_json(struct listing *l, const struct list_options *o)
{
    l->array = json_array();
    int status = l->array ? list_shells(l, o) : failure("out of memory");
    if (status == STATUS_OK)
        return print_json(l->array);
    json_decref(l->array);
    return status;
}

/* The list as text, within so many columns and rows; on a pipe it has every column. */
static int format_list(struct listing *l, const struct list_options *o, size_t width, size_t rows,
                       struct buf *out)
{
    bool person = isatty(STDOUT_FILENO);
    table_init(&l->table, columns, COLUMNS);
    l->ports = l->sessions = false;
    int status = list_shells(l, o);
    size_t count = l->table.row_count;
    size_t shown = count + person <= rows ? count : rows - MIN(rows, (size_t)2);
    l->table.hidden[PORTS] = person && !l->ports;
    l->table.hidden[SESSION] = person && !l->sessions;
    int r = 0;
    if (status == STATUS_OK && person && count == 0)
        r = buf_str(out, o->all ? "no shells yet\n"
                                : "nothing runs; \"nacre list --all\" shows what has ended\n");
    else if (status == STATUS_OK)
        r = table_format(&l->table, &l->paint, person, width, shown, out);
    if (status == STATUS_OK && r == 0 && shown < count)
        r = buf_printf(out, "and %zu more\n", count - shown);
    table_done(&l->table);
    return r < 0 ? failure("out of memory") : status;
}

static int list_once(struct listing *l, const struct list_options *o)
{
    struct buf text cleanup_buf;
    buf_init(&text, SIZE_MAX / 2);
    int status = format_list(l, o, output_columns(), SIZE_MAX, &text);
    if (status == STATUS_OK)
        fwrite(text.data ? text.data : "", 1, text.len, stdout);
    return status;
}

static int draw_list(struct listing *l, const struct list_options *o, struct screen *screen)
{
    size_t width, rows;
    struct buf picture cleanup_buf;
    buf_init(&picture, SIZE_MAX / 2);
    screen_measure(screen, &width, &rows);
    int status = format_list(l, o, width, rows, &picture);
    int r = status == STATUS_OK ? screen_draw(screen, &picture) : 0;
    return r < 0 ? failure("list: cannot write to the terminal: %s", err_text(-r)) : status;
}

static int watch_list(struct listing *l, const struct list_options *o)
{
    struct screen screen;
    int status = STATUS_OK;
    int r = screen_open(&screen);
    if (r < 0)
        status = failure("list: cannot prepare for signals: %s", err_text(-r));
    while (status == STATUS_OK) {
        status = draw_list(l, o, &screen);
        if (status == STATUS_OK && !screen_wait(&screen, EVERY_MS))
            break;
    }
    screen_close(&screen);
    /* Ctrl-C is how people leave it; other signals mean what they always mean. */
    if (screen.signal != 0 && screen.signal != SIGINT)
        signals_die_by(screen.signal);
    return status;
}

static int list(const void *options, UNUSED char **words, UNUSED size_t count)
{
    const struct list_options *o = options;
    if (o->watch && o->json)
        return usage_error("list: --watch and --json exclude each other");
    if (o->watch && !screen_is_possible())
        return failure("list: --watch needs a terminal that can move its cursor; without it the "
                       "list is printed once");
    nacre_session *session cleanup_session = NULL;
    int status = open_session(&session);
    if (status != STATUS_OK)
        return status;
    struct sessions only cleanup_sessions = {0};
    if (o->session && (status = sessions_find(session, o->session, &only)) != STATUS_OK)
        return status;
    struct listing l = {
        .session = session, .only = o->session ? &only : NULL, .paint = paint_for(stdout)};
    return o->json ? list_json(&l, o) : o->watch ? watch_list(&l, o) : list_once(&l, o);
}

static const struct option options[] = {
    {"all", NULL, "also what has ended", OPTION_FLAG, false, offsetof(struct list_options, all)},
    {"session", "S", "only those of a session, by its name or id", OPTION_TEXT, false,
     offsetof(struct list_options, session)},
    {"watch", NULL, "on a terminal: again each second, until q or Ctrl-C", OPTION_FLAG, false,
     offsetof(struct list_options, watch)},
    {"json", NULL, "an array of whole records", OPTION_FLAG, false,
     offsetof(struct list_options, json)},
    {0},
};

const struct verb verb_list = {
    .name = "list",
    .words = "",
    .summary = "list the shells that run or still linger",
    .details =
        "One line per shell, oldest first: status, id, age, CPU time and memory of everything it\n"
        "runs (of an ended one: CPU time, and the most memory one process had), bytes that its\n"
        "session has not read, ports on which it listens, its session, command. A shell lingers\n"
        "when its command has ended and something that it started has not.\n"
        "\n"
        "On a terminal there is a heading; ports and sessions are shown if there are some, and\n"
        "several; what does not fit the width leaves, and the command is cut.\n"
        "\n"
        "examples:\n"
        "  nacre list --watch\n"
        "  nacre list --all --json | jq -r '.[] | select(.timed_out) | .id'\n",
    .options = options,
    .options_size = sizeof(struct list_options),
    .run = list,
};
