#include "view/record_json.h"

#include <stdint.h>
#include <string.h>

#include "view/utf8.h"

json_t *json_text(const char *text, size_t size)
{
    struct buf clean cleanup_buf;
    buf_init(&clean, SIZE_MAX / 2);
    if (buf_str(&clean, "") < 0 || utf8_clean(&clean, text, size) < 0)
        return NULL;
    return json_stringn(clean.data, clean.len);
}

json_t *json_list(const char *const *list)
{
    json_t *array = json_array();
    for (; *list; list++)
        json_array_append_new(array, json_text(*list, strlen(*list)));
    return array;
}

static json_t *text_or_empty(const char *text)
{
    return text ? json_text(text, strlen(text)) : json_string("");
}

static json_t *time_or_null(int64_t ms)
{
    return ms > 0 ? json_integer(ms) : json_null();
}

static json_t *signal_json(int signal)
{
    char name[16];
    return signal > 0 ? json_string(nacre_signal_name(signal, name, sizeof name)) : json_null();
}

static json_t *per_stream(const uint64_t amounts[2])
{
    return json_pack("{s:I, s:I}", "stdout", (json_int_t)amounts[NACRE_STDOUT], "stderr",
                     (json_int_t)amounts[NACRE_STDERR]);
}

static json_t *pipestatus_json(const nacre_record *record)
{
    if (record->pipestatus_count < 0)
        return json_null();
    json_t *array = json_array();
    for (int i = 0; i < record->pipestatus_count; i++)
        json_array_append_new(array, json_integer(record->pipestatus[i]));
    return array;
}

static json_t *process_json(const nacre_process *process)
{
    json_t *ports = json_array();
    for (int i = 0; i < NACRE_PORTS_MAX && process->ports[i] != 0; i++)
        json_array_append_new(ports, json_integer(process->ports[i]));
    return json_pack("{s:i, s:o, s:o}", "pid", (int)process->pid, "command",
                     text_or_empty(process->command), "ports", ports);
}

static json_t *leftover_json(const nacre_record *record)
{
    json_t *array = json_array();
    if (record->outcome != NACRE_RUNNING && record->tree == NACRE_TREE_ALIVE)
        for (int i = 0; i < record->leftover_count; i++)
            json_array_append_new(array, process_json(&record->leftover[i]));
    return array;
}

static json_t *status_json(const nacre_record *record)
{
    char text[64];
    return json_string(nacre_status(record, text, sizeof text));
}

static json_t *exit_code_json(const nacre_record *record)
{
    return record->exit_code >= 0 ? json_integer(record->exit_code) : json_null();
}

json_t *json_record(const nacre_record *record)
{
    /* clang-format off */
    return json_pack(
        "{s:s, s:o, s:o, s:o, s:o, s:b, s:b, s:s, s:I, s:I, s:o, s:o, s:I, s:I, s:I, s:o, s:o,"
        " s:s, s:o, s:o, s:o, s:o}",
        "id", nacre_id_format(&record->id).s,
        "name", text_or_empty(record->name),
        "status", status_json(record),
        "exit_code", exit_code_json(record),
        "signal", signal_json(record->signal),
        "core_dumped", record->core_dumped,
        "timed_out", record->outcome == NACRE_TIMED_OUT,
        "tree", record->tree == NACRE_TREE_ALIVE ? "alive" : "empty",
        "stdout_lines", (json_int_t)record->lines[NACRE_STDOUT],
        "stderr_lines", (json_int_t)record->lines[NACRE_STDERR],
        "bytes", per_stream(record->bytes),
        "omitted", per_stream(record->dropped_bytes),
        "elapsed_ms", (json_int_t)record->elapsed_ms,
        "cpu_ms", (json_int_t)record->cpu_ms,
        "max_rss_kb", (json_int_t)record->max_rss_kb,
        "pipestatus", pipestatus_json(record),
        "leftover", leftover_json(record),
        "containment", nacre_tier_name(record->tier),
        "cwd", text_or_empty(record->cwd),
        "command", text_or_empty(record->command),
        "started_ms", time_or_null(record->started_ms),
        "exited_ms", time_or_null(record->exited_ms));
    /* clang-format on */
}
