#include "view/limit_words.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/defs.h"
#include "config/limits.h"
#include "text/brief.h"
#include "view/record_words.h"

#define AMOUNT_TEXT 32

const char *nacre_holder_name(nacre_holder holder)
{
    static const char *const names[] = {
        [NACRE_HELD_NOT] = "not",         [NACRE_HELD_CGROUP2] = "cgroup2",
        [NACRE_HELD_CGROUP1] = "cgroup1", [NACRE_HELD_RLIMIT] = "rlimit",
        [NACRE_HELD_KEEPER] = "keeper",   [NACRE_HELD_NICE] = "nice",
    };
    return (size_t)holder < ARRAY_SIZE(names) ? names[holder] : "not";
}

/* -- Amounts ---------------------------------------------------------------------------------- */

/* "2 GiB" for what was asked for, "2.0 GiB" for what was measured. */
static const char *size_words(uint64_t bytes, bool measured, char buf[AMOUNT_TEXT])
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;
    double amount = (double)bytes;
    for (; amount >= 1024 && unit + 1 < ARRAY_SIZE(units); unit++)
        amount /= 1024;
    bool whole = unit == 0 || (!measured && amount == (double)(uint64_t)amount);
    snprintf(buf, AMOUNT_TEXT, whole ? "%.0f %s" : "%.1f %s", amount, units[unit]);
    return buf;
}

/* "10 min" for what was asked for, "600 s" for what was measured. */
static const char *time_words(uint64_t ms, bool measured, char buf[AMOUNT_TEXT])
{
    if (!measured && ms % 3600000 == 0)
        snprintf(buf, AMOUNT_TEXT, "%llu h", (unsigned long long)(ms / 3600000));
    else if (!measured && ms % 60000 == 0)
        snprintf(buf, AMOUNT_TEXT, "%llu min", (unsigned long long)(ms / 60000));
    else if (ms < 10000)
        snprintf(buf, AMOUNT_TEXT, "%.3g s", (double)ms / 1000);
    else
        snprintf(buf, AMOUNT_TEXT, "%llu s", (unsigned long long)((ms + 500) / 1000));
    return buf;
}

static const char *amount_words(nacre_limit limit, uint64_t amount, bool measured,
                                char buf[AMOUNT_TEXT])
{
    switch (limit) {
    case NACRE_LIMIT_MEMORY:
    case NACRE_LIMIT_FILE_SIZE:
    case NACRE_LIMIT_DISK:
        return size_words(amount, measured, buf);
    case NACRE_LIMIT_CPU_TIME:
        return time_words(amount, measured, buf);
    case NACRE_LIMIT_CPU:
        snprintf(buf, AMOUNT_TEXT, "%.15g", (double)amount / 100);
        return buf;
    default:
        snprintf(buf, AMOUNT_TEXT, "%llu", (unsigned long long)amount);
        return buf;
    }
}

/* "memory limit 2 GiB" */
#define LIMIT_TEXT (AMOUNT_TEXT + 32)
static const char *name_limit(const nacre_record *record, nacre_limit limit, char buf[LIMIT_TEXT])
{
    static const char *const words[NACRE_LIMIT_COUNT] = {
        [NACRE_LIMIT_NONE] = "",
        [NACRE_LIMIT_MEMORY] = "memory",
        [NACRE_LIMIT_PROCESSES] = "process",
        [NACRE_LIMIT_CPU] = "cpu",
        [NACRE_LIMIT_CPU_TIME] = "cpu time",
        [NACRE_LIMIT_FILES] = "open files",
        [NACRE_LIMIT_FILE_SIZE] = "file size",
        [NACRE_LIMIT_DISK] = "disk",
    };
    char amount[AMOUNT_TEXT];
    uint64_t value = limit == NACRE_LIMIT_NONE ? 0 : limits_get(&record->limits.in_force, limit);
    int n = snprintf(buf, LIMIT_TEXT, "%s limit", words[limit]);
    if (value > 0)
        snprintf(buf + n, LIMIT_TEXT - (size_t)n, " %s", amount_words(limit, value, false, amount));
    return buf;
}

/* -- Sentences -------------------------------------------------------------------------------- */

PRINTF(2, 3) static void say_limit(struct buf *s, const char *fmt, ...)
{
    char line[160];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    size_t before = s->len;
    if (buf_printf(s, "%s\n", line) == -E2BIG)
        s->len = before;
}

/* " (peak 2.0 GiB; largest: node 1.7 GiB)" */
static void measured_words(const nacre_limits_report *r, char *buf, size_t size)
{
    char peak[AMOUNT_TEXT], largest[AMOUNT_TEXT];
    struct buf name cleanup_buf = BUF_UP_TO(64);
    bool known = r->ended == NACRE_LIMIT_MEMORY && r->largest[0] && r->largest_bytes > 0 &&
                 brief_inline(&name, r->largest, strlen(r->largest)) == 0;
    buf[0] = '\0';
    if (r->peak == 0)
        return;
    int n = snprintf(buf, size, " (peak %s", amount_words(r->ended, r->peak, true, peak));
    snprintf(buf + n, size - (size_t)n, known ? "; largest: %s %s)" : ")", known ? name.data : "",
             size_words(r->largest_bytes, true, largest));
}

static void say_ended(struct buf *s, const nacre_record *record)
{
    const nacre_limits_report *r = &record->limits;
    char limit[LIMIT_TEXT], measured[128] = "", written[AMOUNT_TEXT];
    const char *who = record->reason == NACRE_REASON_LIMIT ? "" : "what it left running was ";
    name_limit(record, r->ended, limit);
    if (r->ended == NACRE_LIMIT_DISK) {
        say_limit(s, "%sstopped by the %s: %s written", who, limit,
                  size_words(r->peak, true, written));
        return;
    }
    if (r->ended == NACRE_LIMIT_MEMORY || r->ended == NACRE_LIMIT_PROCESSES)
        measured_words(r, measured, sizeof measured);
    say_limit(s, "%skilled by the %s%s", who, limit, measured);
}

static void say_throttled(struct buf *s, const nacre_record *record)
{
    char limit[LIMIT_TEXT], waited[AMOUNT_TEXT], elapsed[AMOUNT_TEXT];
    int64_t most = MAX(record->elapsed_ms, INT64_C(1));
    say_limit(s, "throttled for %s of %s by the %s",
              time_words((uint64_t)MIN(record->limits.throttled_ms, most), true, waited),
              time_words((uint64_t)most, true, elapsed),
              name_limit(record, NACRE_LIMIT_CPU, limit));
}

static void say_unheld(struct buf *s, const nacre_record *record)
{
    char limit[LIMIT_TEXT];
    for (nacre_limit i = NACRE_LIMIT_MEMORY; i < NACRE_LIMIT_COUNT; i++) {
        nacre_holder held = record->limits.held[i];
        if (limits_get(&record->limits.in_force, i) == 0)
            continue;
        name_limit(record, i, limit);
        if (held == NACRE_HELD_NICE)
            say_limit(s, "the %s cannot be held here: it runs at a lower priority instead", limit);
        else if (held == NACRE_HELD_NOT)
            say_limit(s, "the %s cannot be held here", limit);
    }
}

static void say_all(struct buf *s, const nacre_record *record)
{
    const nacre_limits_report *r = &record->limits;
    char limit[LIMIT_TEXT];
    if (r->ended != NACRE_LIMIT_NONE)
        say_ended(s, record);
    if (r->killed > 0 && r->ended != NACRE_LIMIT_MEMORY)
        say_limit(s, "%u %s killed by the %s; the command went on", r->killed,
                  r->killed == 1 ? "process was" : "processes were", "memory limit");
    if (r->refused > 0)
        say_limit(s, "%u %s refused by the %s", r->refused, r->refused == 1 ? "fork" : "forks",
                  name_limit(record, NACRE_LIMIT_PROCESSES, limit));
    if (r->throttled_ms > 0)
        say_throttled(s, record);
    if (r->files_refused)
        say_limit(s, "%s in force", name_limit(record, NACRE_LIMIT_FILES, limit));
    if (r->file_size_refused && r->ended != NACRE_LIMIT_FILE_SIZE)
        say_limit(s, "%s in force", name_limit(record, NACRE_LIMIT_FILE_SIZE, limit));
    say_unheld(s, record);
}

int limit_words(struct buf *out, const nacre_record *record, size_t most)
{
    struct buf lines cleanup_buf = BUF_UP_TO(most);
    say_all(&lines, record);
    return lines.len > 0 ? buf_append(out, lines.data, lines.len) : 0;
}

/* -- JSON ------------------------------------------------------------------------------------- */

static json_t *each_limit(const nacre_record *record,
                          json_t *(*fn)(const nacre_record *, nacre_limit))
{
    json_t *object = json_object();
    for (nacre_limit i = NACRE_LIMIT_MEMORY; i < NACRE_LIMIT_COUNT; i++)
        if (limits_get(&record->limits.in_force, i) > 0)
            json_object_set_new(object, nacre_limit_name(i), fn(record, i));
    return object;
}

static json_t *amount_json(const nacre_record *record, nacre_limit limit)
{
    uint64_t amount = limits_get(&record->limits.in_force, limit);
    return limit == NACRE_LIMIT_CPU ? json_real((double)amount / 100)
                                    : json_integer((json_int_t)amount);
}

static json_t *holder_json(const nacre_record *record, nacre_limit limit)
{
    return json_string(nacre_holder_name(record->limits.held[limit]));
}

static json_t *sentences_json(const nacre_record *record)
{
    json_t *array = json_array();
    struct buf text cleanup_buf = BUF_UP_TO(LIMIT_WORDS_MAX);
    if (limit_words(&text, record, LIMIT_WORDS_MAX) < 0)
        return array;
    for (const char *line = text.data; line && *line; line += strcspn(line, "\n") + 1)
        json_array_append_new(array, json_text(line, strcspn(line, "\n")));
    return array;
}

json_t *json_limits(const nacre_record *record)
{
    const nacre_limits_report *r = &record->limits;
    if (limits_first(&r->in_force) == NACRE_LIMIT_NONE)
        return json_null();
    return json_pack(
        "{s:o, s:o, s:o, s:I, s:i, s:i, s:I, s:o}", "in_force", each_limit(record, amount_json),
        "held_by", each_limit(record, holder_json), "ended_by",
        r->ended == NACRE_LIMIT_NONE ? json_null() : json_string(nacre_limit_name(r->ended)),
        "peak", (json_int_t)r->peak, "processes_killed", (int)r->killed, "forks_refused",
        (int)r->refused, "throttled_ms", (json_int_t)r->throttled_ms, "said",
        sentences_json(record));
}
