#include "console/shell_texts.h"

#include <stdio.h>

#include "base/clock.h"
#include "console/shells.h"

bool shell_is_alive(const nacre_record *record)
{
    return record->outcome == NACRE_RUNNING || record->tree == NACRE_TREE_ALIVE;
}

bool shell_usage(nacre_session *session, const nacre_record *record, nacre_usage *ret_usage)
{
    if (shell_is_alive(record))
        return nacre_get_usage(session, &record->id, ret_usage, NULL) == 0;
    ret_usage->cpu_ms = record->cpu_ms;
    ret_usage->memory_bytes = (uint64_t)record->max_rss_kb * 1024;
    return true;
}

const char *shell_colour(const struct paint *paint, const nacre_record *record)
{
    if (record->outcome == NACRE_RUNNING)
        return paint->good;
    if (record_has_failed(record))
        return paint->bad;
    return record->tree == NACRE_TREE_ALIVE ? paint->bold : paint->dim;
}

static void ports_text(const nacre_usage *usage, char *buf, size_t size)
{
    size_t length = 0;
    buf[0] = '\0';
    for (size_t i = 0; i < NACRE_USAGE_PORTS_MAX && usage->ports[i] != 0; i++)
        length += (size_t)snprintf(buf + length, size - length, "%s%u", i > 0 ? "," : "",
                                   usage->ports[i]);
}

/* A session is shown by its name, else by what it works for, else as long as it lives by its id. */
static void session_text(const nacre_listed *listed, char *buf, size_t size)
{
    const char *name = listed->session_name, *client = listed->session_client;
    snprintf(buf, size, "%.40s",
             *name                   ? name
             : *client               ? client
             : listed->session_alive ? nacre_id_short(&listed->record->session).s
                                     : "");
}

int shell_label(const nacre_record *record, struct buf *out)
{
    int r = *record->name ? buf_printf(out, "[%s] ", record->name) : 0;
    if (r == 0 && *record->description)
        r = buf_printf(out, "(%s) ", record->description);
    return r < 0 ? r : buf_str(out, record->command);
}

void shell_tell(nacre_session *session, const nacre_listed *listed, struct shell_texts *ret)
{
    const nacre_record *record = listed->record;
    nacre_usage usage = NACRE_USAGE_INIT;
    *ret = (struct shell_texts){0};
    nacre_status(record, ret->status, sizeof ret->status);
    brief_age(clock_real_ns() / NS_PER_MS - record->started_ms, ret->age);
    brief_duration(record->elapsed_ms, ret->time);
    if (listed->background)
        brief_bytes(listed->unread, ret->unread);
    session_text(listed, ret->session, sizeof ret->session);
    if (!shell_usage(session, record, &usage))
        return;
    brief_duration(usage.cpu_ms, ret->cpu);
    brief_bytes(usage.memory_bytes, ret->memory);
    ports_text(&usage, ret->ports, sizeof ret->ports);
}
