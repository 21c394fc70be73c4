/* nacre sessions: who started shells here, and whether they are still there. */
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <nacre/nacre.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "cli/json.h"
#include "cli/out.h"
#include "cli/shells.h"
#include "cli/table.h"

struct sessions_options {
    bool all;
    bool json;
};

enum column { STATUS, ID, NAME, PID, AGE, SHELLS, DUE, CWD, COLUMNS };

static const struct table_column columns[COLUMNS] = {
    [STATUS] = {"STATUS", false, 0},  [ID] = {"ID", false, 0},   [NAME] = {"NAME", false, 1},
    [PID] = {"PID", true, 4},         [AGE] = {"AGE", true, 2},  [SHELLS] = {"SHELLS", true, 0},
    [DUE] = {"UNDELIVERED", true, 3}, [CWD] = {"CWD", false, 0},
};

struct listing {
    const struct sessions_options *options;
    struct paint paint;
    struct table table;
    bool names;
    json_t *array; /* NULL unless JSON is wanted */
};

static const char *status_of(const nacre_session_info *info)
{
    return info->alive ? "alive" : info->closed_ms > 0 ? "ended" : "gone";
}

static int add_row(struct listing *l, const nacre_session_info *info)
{
    char pid[16], age[AGE_TEXT], shells[32], due[16];
    snprintf(pid, sizeof pid, "%d", (int)info->pid);
    snprintf(shells, sizeof shells, "%d/%d", info->running, info->shells);
    snprintf(due, sizeof due, "%d", info->completions);
    nacre_id_text id = nacre_id_short(&info->id);
    const char *cells[COLUMNS] = {
        [STATUS] = status_of(info),
        [ID] = id.s,
        [NAME] = info->name,
        [PID] = info->alive ? pid : NULL,
        [AGE] = brief_age(clock_real_ns() / NS_PER_MS - info->opened_ms, age),
        [SHELLS] = shells,
        [DUE] = due,
        [CWD] = info->cwd,
    };
    l->names |= *info->name != '\0';
    return table_add(&l->table, cells, info->alive ? l->paint.good : l->paint.dim);
}

static int add_json(struct listing *l, const nacre_session_info *info)
{
    /* clang-format off */
    json_t *value = json_pack(
        "{s:s, s:o, s:s, s:i, s:I, s:o, s:i, s:i, s:i, s:o}",
        "id", nacre_id_format(&info->id).s,
        "name", json_text(info->name, strlen(info->name)),
        "status", status_of(info),
        "pid", (int)info->pid,
        "opened_ms", (json_int_t)info->opened_ms,
        "closed_ms", info->closed_ms > 0 ? json_integer(info->closed_ms) : json_null(),
        "running", info->running,
        "shells", info->shells,
        "completions", info->completions,
        "cwd", json_text(info->cwd, strlen(info->cwd)));
    /* clang-format on */
    return json_array_append_new(l->array, value);
}

static int each(const nacre_session_info *info, void *userdata)
{
    struct listing *l = userdata;
    if (!l->options->all && !info->alive && info->running == 0)
        return STATUS_OK;
    int r = l->array ? add_json(l, info) : add_row(l, info);
    return r < 0 ? failure("out of memory") : STATUS_OK;
}

static int print_table(struct listing *l)
{
    bool person = isatty(STDOUT_FILENO);
    struct buf text cleanup_buf;
    buf_init(&text, SIZE_MAX / 2);
    l->table.hidden[NAME] = person && !l->names;
    int r = 0;
    if (person && l->table.row_count == 0)
        r = buf_str(&text, l->options->all
                               ? "no sessions yet\n"
                               : "none is alive; \"nacre sessions --all\" shows the others\n");
    else
        r = table_format(&l->table, &l->paint, person, output_columns(), SIZE_MAX, &text);
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
    struct listing l = {
        .options = o, .paint = paint_for(stdout), .array = o->json ? json_array() : NULL};
    table_init(&l.table, columns, COLUMNS);
    if (o->json && !l.array)
        return failure("out of memory");
    int r = nacre_list_sessions(session, each, &l, &error);
    status = r < 0 ? library_failure(&error) : r;
    if (status == STATUS_OK)
        status = o->json ? print_json(json_incref(l.array)) : print_table(&l);
    json_decref(l.array);
    table_done(&l.table);
    return status;
}

static const struct option options[] = {
    {"all", NULL, "also those that have ended", OPTION_FLAG, false,
     offsetof(struct sessions_options, all)},
    {"json", NULL, "an array of objects", OPTION_FLAG, false,
     offsetof(struct sessions_options, json)},
    {0},
};

const struct verb verb_sessions = {
    .name = "sessions",
    .words = "",
    .summary = "list the sessions that are alive or left shells running",
    .details =
        "A session is one front end's life: an agent's, a program's, one call of nacre. One line\n"
        "each, oldest first: status, id, name, pid, age, shells that run of all it has here, ends\n"
        "of background shells that were not delivered yet, the directory it works in.\n"
        "\n"
        "A session is alive, has ended, or is gone: its process is no more, and it wrote down no\n"
        "end, because it was killed, or had nothing in the background and so wrote nothing.\n"
        "\n"
        "examples:\n"
        "  nacre sessions\n"
        "  nacre list --all --session 1a2b3c4d\n",
    .options = options,
    .options_size = sizeof(struct sessions_options),
    .run = list_sessions,
};

/* -- By name or id ---------------------------------------------------------------------------- */

struct search {
    const char *word;
    struct sessions *found;
    size_t by_id;
};

static int take(struct sessions *found, const nacre_id *id)
{
    nacre_id *ids = realloc(found->ids, (found->count + 1) * sizeof *ids);
    if (!ids)
        return failure("out of memory");
    found->ids = ids;
    ids[found->count++] = *id;
    return STATUS_OK;
}

static int match(const nacre_session_info *info, void *userdata)
{
    struct search *search = userdata;
    size_t length = strlen(search->word);
    bool by_id = length >= NACRE_ID_PREFIX_MIN &&
                 strncmp(nacre_id_format(&info->id).s, search->word, length) == 0;
    search->by_id += by_id;
    return by_id || strcmp(info->name, search->word) == 0 ? take(search->found, &info->id)
                                                          : STATUS_OK;
}

int sessions_find(nacre_session *session, const char *word, struct sessions *ret)
{
    struct search search = {.word = word, .found = ret};
    nacre_error error = NACRE_ERROR_INIT;
    int r = *word ? nacre_list_sessions(session, match, &search, &error) : 0;
    if (r != 0)
        return r < 0 ? library_failure(&error) : r;
    if (ret->count == 0)
        return failure("no session with the name or id \"%s\"; see \"nacre sessions --all\"", word);
    if (search.by_id > 1)
        return failure("several sessions begin with \"%s\"; give more digits", word);
    return STATUS_OK;
}

bool sessions_have(const struct sessions *sessions, const nacre_id *id)
{
    for (size_t i = 0; i < sessions->count; i++)
        if (nacre_id_equal(&sessions->ids[i], id))
            return true;
    return false;
}
