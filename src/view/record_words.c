#include "view/record_words.h"

#include <nacre/record.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/defs.h"
#include "text/utf8.h"
#include "view/fence_words.h"
#include "view/limit_words.h"

#define SIGNAL_MAX 64

/* Our own table: the C library's names need a newer one than the oldest we support. */
static const char *const signal_names[] = {
    [SIGHUP] = "HUP",   [SIGINT] = "INT",       [SIGQUIT] = "QUIT", [SIGILL] = "ILL",
    [SIGTRAP] = "TRAP", [SIGABRT] = "ABRT",     [SIGBUS] = "BUS",   [SIGFPE] = "FPE",
    [SIGKILL] = "KILL", [SIGUSR1] = "USR1",     [SIGSEGV] = "SEGV", [SIGUSR2] = "USR2",
    [SIGPIPE] = "PIPE", [SIGALRM] = "ALRM",     [SIGTERM] = "TERM", [SIGSTKFLT] = "STKFLT",
    [SIGCHLD] = "CHLD", [SIGCONT] = "CONT",     [SIGSTOP] = "STOP", [SIGTSTP] = "TSTP",
    [SIGTTIN] = "TTIN", [SIGTTOU] = "TTOU",     [SIGURG] = "URG",   [SIGXCPU] = "XCPU",
    [SIGXFSZ] = "XFSZ", [SIGVTALRM] = "VTALRM", [SIGPROF] = "PROF", [SIGWINCH] = "WINCH",
    [SIGIO] = "IO",     [SIGPWR] = "PWR",       [SIGSYS] = "SYS",
};

static const char *known_name(int number)
{
    return number > 0 && (size_t)number < ARRAY_SIZE(signal_names) ? signal_names[number] : NULL;
}

const char *nacre_signal_name(int signal, char *buf, size_t size)
{
    const char *name = known_name(signal);
    if (name)
        snprintf(buf, size, "SIG%s", name);
    else
        snprintf(buf, size, "SIG%d", signal);
    return buf;
}

/* Digits only, in the range of signals. */
static int signal_digits(const char *text)
{
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 2 || text[digits] != '\0')
        return -1;
    int number = atoi(text);
    return number >= 1 && number <= SIGNAL_MAX ? number : -1;
}

int nacre_signal_number(const char *name)
{
    if (!name)
        return -1;
    if (strncasecmp(name, "SIG", 3) == 0)
        name += 3;
    for (int i = 1; (size_t)i < ARRAY_SIZE(signal_names); i++)
        if (signal_names[i] && strcasecmp(name, signal_names[i]) == 0)
            return i;
    return signal_digits(name);
}

const char *nacre_tier_name(nacre_tier tier)
{
    static const char *const names[] = {
        [NACRE_TIER_CGROUP] = "cgroup",
        [NACRE_TIER_SUBREAPER] = "subreaper",
        [NACRE_TIER_GROUP] = "group",
        [NACRE_TIER_CLIENT] = "client",
    };
    return (size_t)tier < ARRAY_SIZE(names) ? names[tier] : "unknown";
}

static void outcome_text(const nacre_record *record, char *buf, size_t size)
{
    static const char *const names[] = {
        [NACRE_RUNNING] = "running",     [NACRE_EXITED] = "exited",
        [NACRE_SIGNALED] = "signaled",   [NACRE_KILLED] = "killed",
        [NACRE_TIMED_OUT] = "timed_out", [NACRE_CANCELLED] = "cancelled",
        [NACRE_LOST] = "lost",
    };
    char signal[16];
    int known = (size_t)record->outcome < ARRAY_SIZE(names);
    const char *name = known ? names[record->outcome] : "unknown";
    if (record->outcome == NACRE_SIGNALED)
        snprintf(buf, size, "%s(%s)", name,
                 nacre_signal_name(record->signal, signal, sizeof signal));
    else if (record->outcome == NACRE_KILLED && record->reason == NACRE_REASON_LIMIT)
        snprintf(buf, size, "%s(limit %s)", name, nacre_limit_name(record->limits.ended));
    else if (record->outcome == NACRE_EXITED || !known)
        snprintf(buf, size, "%s(%d)", name, known ? record->exit_code : (int)record->outcome);
    else
        snprintf(buf, size, "%s", name);
}

const char *nacre_status(const nacre_record *record, char *buf, size_t size)
{
    char text[40];
    outcome_text(record, text, sizeof text);
    int lingering = record->outcome != NACRE_RUNNING && record->tree == NACRE_TREE_ALIVE;
    snprintf(buf, size, "%s%s", text, lingering ? ", lingering" : "");
    return buf;
}

void nacre_record_done(nacre_record *record)
{
    if (!record)
        return;
    free(record->command);
    free(record->cwd);
    free(record->name);
    free(record->description);
    free(record->sandbox);
    free(record->denials);
    *record = (nacre_record){.size = record->size};
}

/* -- JSON -------------------------------------------------------------------------------------- */

json_t *json_text(const char *text, size_t size)
{
    struct buf clean cleanup_buf = BUF_UP_TO(SIZE_MAX / 2);
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

/* Why it was ended, if it did not end by itself. */
static json_t *reason_json(const nacre_record *record)
{
    static const char *const words[] = {
        [NACRE_REASON_KILL] = "kill",     [NACRE_REASON_DEADLINE] = "deadline",
        [NACRE_REASON_CANCEL] = "cancel", [NACRE_REASON_OWNER] = "owner",
        [NACRE_REASON_LIMIT] = "limit",
    };
    size_t reason = (size_t)record->reason;
    const char *word = reason < ARRAY_SIZE(words) ? words[reason] : NULL;
    return word ? json_string(word) : json_null();
}

json_t *json_record(const nacre_record *record)
{
    /* clang-format off */
    return json_pack(
        "{s:s, s:o, s:o, s:o, s:o, s:o, s:b, s:b, s:s, s:I, s:I, s:o, s:o, s:I, s:I, s:I, s:o, s:o,"
        " s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
        "id", nacre_id_format(&record->id).s,
        "name", text_or_empty(record->name),
        "status", status_json(record),
        "reason", reason_json(record),
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
        "exited_ms", time_or_null(record->exited_ms),
        "limits", json_limits(record), "sandbox", json_sandbox(record),
        "refused", json_refused(record));
    /* clang-format on */
}
