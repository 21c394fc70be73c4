/* nacre list: what runs, what still lingers, and on request what has ended. */
#include <stddef.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <nacre/nacre.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "cli/json.h"
#include "cli/out.h"
#include "cli/shells.h"

struct list_options {
    bool all;
    bool json;
};

struct listing {
    struct paint paint;
    size_t columns; /* of the terminal */
    int64_t now_ms;
    size_t count;
    json_t *array; /* NULL unless JSON is wanted */
};

enum { STATUS_WIDTH = 22, AGE_WIDTH = 5, BYTES_WIDTH = 7 };

/* "17s", "4m", "3h", "12d" */
static void age_text(int64_t ms, char *buf, size_t size)
{
    static const struct {
        int64_t seconds;
        char unit;
    } units[] = {{86400, 'd'}, {3600, 'h'}, {60, 'm'}, {1, 's'}};
    int64_t seconds = MAX(ms, 0) / 1000;
    size_t i = 0;
    while (i + 1 < ARRAY_SIZE(units) && seconds < units[i].seconds)
        i++;
    snprintf(buf, size, "%lld%c", (long long)(seconds / units[i].seconds), units[i].unit);
}

/* "512", "1.5K", "64M" */
static void bytes_text(uint64_t bytes, char *buf, size_t size)
{
    static const char units[] = "KMGTPE";
    if (bytes < 1024) {
        snprintf(buf, size, "%llu", (unsigned long long)bytes);
        return;
    }
    double value = (double)bytes / 1024;
    size_t unit = 0;
    for (; value >= 1023.95 && units[unit + 1]; unit++)
        value /= 1024;
    snprintf(buf, size, value < 9.95 ? "%.1f%c" : "%.0f%c", value, units[unit]);
}

static const char *status_colour(const struct listing *l, const nacre_record *record)
{
    if (record->outcome == NACRE_RUNNING)
        return l->paint.good;
    return record->tree == NACRE_TREE_ALIVE ? l->paint.bold : l->paint.dim;
}

static int print_line(const nacre_record *record, struct listing *l)
{
    char status[64], age[24], bytes[24];
    nacre_status(record, status, sizeof status);
    age_text(l->now_ms - record->started_ms, age, sizeof age);
    bytes_text(record->bytes[0] + record->bytes[1], bytes, sizeof bytes);

    struct buf text cleanup_buf, command cleanup_buf;
    buf_init(&text, SIZE_MAX / 2);
    buf_init(&command, SIZE_MAX / 2);
    int r = 0;
    if (record->name && *record->name)
        r = buf_printf(&text, "[%s] ", record->name);
    if (r == 0)
        r = buf_str(&text, record->command);

    size_t used = (size_t)MAX((int)strlen(status), STATUS_WIDTH) + NACRE_ID_SHORT_DIGITS +
                  (size_t)MAX((int)strlen(age), AGE_WIDTH) +
                  (size_t)MAX((int)strlen(bytes), BYTES_WIDTH) + 5;
    if (r == 0)
        r = append_line(&command, text.data,
                        l->columns == COLUMNS_UNLIMITED ? l->columns
                        : l->columns > used + 8         ? l->columns - used
                                                        : 8);
    if (r < 0)
        return failure("out of memory");
    printf("%s%-*s%s %s %*s %*s  %s\n", status_colour(l, record), STATUS_WIDTH, status,
           l->paint.off, nacre_id_short(&record->id).s, AGE_WIDTH, age, BYTES_WIDTH, bytes,
           command.data);
    return STATUS_OK;
}

static int each(const nacre_listed *listed, void *userdata)
{
    const nacre_record *record = listed->record;
    struct listing *l = userdata;
    l->count++;
    if (!l->array)
        return print_line(record, l);
    json_t *value = json_record(record);
    if (!value || json_array_append_new(l->array, value) < 0)
        return failure("out of memory");
    return STATUS_OK;
}

static int list_shells(nacre_session *session, const struct list_options *o, struct listing *l,
                       nacre_error *error)
{
    nacre_list_options options = NACRE_LIST_OPTIONS_INIT;
    options.which = NACRE_LIST_HOME;
    options.only_alive = !o->all;
    options.details = l->array != NULL;
    return nacre_list(session, &options, each, l, error);
}

static int list_lines(nacre_session *session, const struct list_options *o)
{
    nacre_error error = NACRE_ERROR_INIT;
    struct listing l = {.paint = paint_for(stdout),
                        .columns = output_columns(),
                        .now_ms = clock_real_ns() / NS_PER_MS};
    bool person = isatty(STDOUT_FILENO);
    if (person)
        printf("%s%-*s %-*s %*s %*s  COMMAND%s\n", l.paint.dim, STATUS_WIDTH, "STATUS",
               NACRE_ID_SHORT_DIGITS, "ID", AGE_WIDTH, "AGE", BYTES_WIDTH, "BYTES", l.paint.off);
    int r = list_shells(session, o, &l, &error);
    if (r < 0)
        return library_failure(&error);
    if (person && l.count == 0 && r == STATUS_OK)
        puts(o->all ? "no shells yet" : "nothing runs; \"nacre list --all\" shows what has ended");
    return r;
}

static int list_json(nacre_session *session, const struct list_options *o)
{
    nacre_error error = NACRE_ERROR_INIT;
    struct listing l = {.array = json_array()};
    if (!l.array)
        return failure("out of memory");
    int r = list_shells(session, o, &l, &error);
    if (r == STATUS_OK)
        return print_json(l.array);
    json_decref(l.array);
    return r < 0 ? library_failure(&error) : r;
}

static int list(const void *options, UNUSED char **words, UNUSED size_t count)
{
    const struct list_options *o = options;
    nacre_session *session cleanup_session = NULL;
    int status = open_session(&session);
    if (status != STATUS_OK)
        return status;
    return o->json ? list_json(session, o) : list_lines(session, o);
}

static const struct option options[] = {
    {"all", NULL, "also what has ended", OPTION_FLAG, false, offsetof(struct list_options, all)},
    {"json", NULL, "an array of whole records", OPTION_FLAG, false,
     offsetof(struct list_options, json)},
    {0},
};

const struct verb verb_list = {
    .name = "list",
    .words = "",
    .summary = "list the shells that run or still linger",
    .details =
        "One line per shell, oldest first: status, id, age, bytes printed, command. A shell\n"
        "lingers when its command has ended and something that it started has not. On a terminal\n"
        "there is a heading and the command is cut to its width.\n"
        "\n"
        "examples:\n"
        "  nacre list\n"
        "  nacre list --all --json | jq -r '.[] | select(.timed_out) | .id'\n",
    .options = options,
    .options_size = sizeof(struct list_options),
    .run = list,
};
