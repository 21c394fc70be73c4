/* nacre sessions: who started shells here, and whether they are still there. */
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <nacre/nacre.h>

#include "base/clock.h"
#include "cli/verbs.h"
#include "console/out.h"
#include "console/print_json.h"
#include "console/shells.h"
#include "console/table.h"

struct sessions_options {
    bool all;
    bool json;
};

enum session_column { STATUS, ID, NAME, CLIENT, PID, AGE, ENDS, SHELLS, DUE, CWD, COLUMNS };

static const struct table_column session_columns[COLUMNS] = {
    [STATUS] = {"STATUS", false, 0},  [ID] = {"ID", false, 0},
    [NAME] = {"NAME", false, 1},      [CLIENT] = {"CLIENT", false, 1},
    [PID] = {"PID", true, 4},         [AGE] = {"AGE", true, 2},
    [ENDS] = {"ENDS IN", true, 2},    [SHELLS] = {"SHELLS", true, 0},
    [DUE] = {"UNDELIVERED", true, 3}, [CWD] = {"CWD", false, 0},
};

struct session_rows {
    const struct sessions_options *options;
    struct paint paint;
    struct table table;
    bool names, clients, ends; /* there are some */
    json_t *array;             /* NULL unless JSON is wanted */
};

static const char *status_of(const nacre_session_info *info)
{
    return info->alive ? "alive" : info->closed_ms > 0 ? "ended" : "gone";
}

/* Of one that is idle, and will not stay so for ever. */
static bool will_end(const nacre_session_info *info)
{
    return info->alive && info->ends_ms > 0;
}

static int add_session_row(struct session_rows *l, const nacre_session_info *info)
{
    char pid[16], age[AGE_TEXT], ends[AGE_TEXT], shells[32], due[16];
    int64_t now_ms = clock_real_ns() / NS_PER_MS;
    snprintf(pid, sizeof pid, "%d", (int)info->pid);
    snprintf(shells, sizeof shells, "%d/%d", info->running, info->shells);
    snprintf(due, sizeof due, "%d", info->completions);
    nacre_id_text id = nacre_id_short(&info->id);
    const char *cells[COLUMNS] = {
        [STATUS] = status_of(info),
        [ID] = id.s,
        [NAME] = info->name,
        [CLIENT] = info->client,
        [PID] = info->alive ? pid : NULL,
        [AGE] = brief_age(now_ms - info->opened_ms, age),
        [ENDS] = will_end(info) ? brief_age(MAX(info->ends_ms - now_ms, 0), ends) : NULL,
        [SHELLS] = shells,
        [DUE] = due,
        [CWD] = info->cwd,
    };
    l->names |= *info->name != '\0';
    l->clients |= *info->client != '\0';
    l->ends |= will_end(info);
    return table_add(&l->table, cells, info->alive ? l->paint.good : l->paint.dim);
}

static int add_session_json(struct session_rows *l, const nacre_session_info *info)
{
    /* clang-format off */
    json_t *value = json_pack(
        "{s:s, s:o, s:o, s:s, s:i, s:I, s:o, s:o, s:i, s:i, s:i, s:o}",
        "id", nacre_id_format(&info->id).s,
        "name", json_text(info->name, strlen(info->name)),
        "client", json_text(info->client, strlen(info->client)),
        "status", status_of(info),
        "pid", (int)info->pid,
        "opened_ms", (json_int_t)info->opened_ms,
        "closed_ms", info->closed_ms > 0 ? json_integer(info->closed_ms) : json_null(),
        "ends_ms", will_end(info) ? json_integer(info->ends_ms) : json_null(),
        "running", info->running,
        "shells", info->shells,
        "completions", info->completions,
        "cwd", json_text(info->cwd, strlen(info->cwd)));
    /* clang-format on */
    return json_array_append_new(l->array, value);
}

static int add_session(const nacre_session_info *info, void *userdata)
{
    struct session_rows *l = userdata;
    bool is_single_run = info->person && *info->name == '\0';
    if (is_single_run || (!l->options->all && !info->alive && info->running == 0))
        return STATUS_OK;
    int r = l->array ? add_session_json(l, info) : add_session_row(l, info);
    return r < 0 ? failure("out of memory") : STATUS_OK;
}

static int print_table(struct session_rows *l)
{
    bool person = isatty(STDOUT_FILENO);
    struct buf text cleanup_buf = BUF_UP_TO(SIZE_MAX / 2);
    l->table.hidden[NAME] = !l->names;
    l->table.hidden[CLIENT] = !l->clients;
    l->table.hidden[ENDS] = !l->ends;
    int r = 0;
    if (!person)
        r = table_format_plain(&l->table, &text);
    else if (l->table.row_count == 0)
        r = buf_str(&text, l->options->all
                               ? "no sessions yet\n"
                               : "none is alive; \"nacre sessions --all\" shows the others\n");
    else
        r = table_format(&l->table, &l->paint, output_columns(), SIZE_MAX, &text);
    if (r < 0)
        return failure("out of memory");
    fwrite(text.data ? text.data : "", 1, text.len, stdout);
    return STATUS_OK;
}

static int list_sessions(const void *options, UNUSED char **words, UNUSED size_t count)
{
    const struct sessions_options *o = options;
    nacre_error error = NACRE_ERROR_INIT;
    nacre_session *session cleanup_session = NULL;
    int status = open_session(&session);
    if (status != STATUS_OK)
        return status;
    struct session_rows l = {
        .options = o, .paint = paint_for(stdout), .array = o->json ? json_array() : NULL};
    table_init(&l.table, session_columns, COLUMNS);
    if (o->json && !l.array)
        return failure("out of memory");
    int r = nacre_list_sessions(session, add_session, &l, &error);
    status = r < 0 ? library_failure(&error) : r;
    if (status == STATUS_OK)
        status = o->json ? print_json(json_incref(l.array)) : print_table(&l);
    json_decref(l.array);
    table_done(&l.table);
    return status;
}

const struct verb verb_sessions = {
    .name = "sessions",
    .words = "",
    .summary = "list the sessions that are alive or left shells running",
    .details =
        "A session is one front end's life: an agent's or a program's. What a person started\n"
        "by single calls of nacre is in \"nacre list\", and is no session unless NACRE_SESSION\n"
        "gave it a name. One line each, oldest first: status, id, name, client, pid, age,\n"
        "when it will end because nothing is asked of it (of \"nacre serve\"), shells that run of\n"
        "all it has here, ends of background shells that were not delivered yet, the directory\n"
        "it works in. On a pipe there is a tab between the columns.\n"
        "\n"
        "A session is alive, has ended, or is gone: its process is no more, and it wrote down no\n"
        "end, because it was killed, or had nothing in the background and so wrote nothing.\n"
        "\n"
        "examples:\n"
        "  nacre sessions\n"
        "  nacre list --all --session 1a2b3c4d\n",
    .options = {{"all", NULL, "also those that have ended", OPTION_FLAG, false,
                 offsetof(struct sessions_options, all), 'a'},
                {"json", NULL, "an array of objects", OPTION_FLAG, false,
                 offsetof(struct sessions_options, json)}},
    .options_size = sizeof(struct sessions_options),
    .run = list_sessions,
};
