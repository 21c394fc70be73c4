/*
 * Hearing how shells end. Keepers ring; a ring can be lost and a keeper can be killed, so shells
 * that were silent for a while are looked at too. The state files are what counts.
 */
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/defs.h"
#include "shell/session.h"

#define SILENT_MS 1000
#define LOOK_MAX  1024
#define DROP_MAX  16

static int64_t now_ms(void)
{
    return clock_mono_ns() / NS_PER_MS;
}

void ends_shelve(nacre_session *s, const nacre_id *id)
{
    struct catalog *catalog;
    if (s->books && session_catalog(s, true, &catalog, NULL) == 0)
        catalog_refresh(catalog, id, NULL);
}

/* What leaves the list keeps its cursor in the catalog. */
static void shorten_list(nacre_session *s)
{
    struct shell dropped[DROP_MAX];
    struct catalog *catalog;
    size_t listed = (size_t)session_setting(s, NACRE_SETTING_LISTED);
    size_t count = registry_evict(s->registry, listed, dropped, DROP_MAX);
    if (count == 0 || !s->books || session_catalog(s, true, &catalog, NULL) < 0)
        return;
    for (size_t i = 0; i < MIN(count, (size_t)DROP_MAX); i++)
        catalog_set_read(catalog, &dropped[i].id, dropped[i].read_to, NULL);
}

void ends_note(nacre_session *s, const nacre_record *record)
{
    struct shell shell;
    enum shell_life life = record->outcome == NACRE_RUNNING   ? SHELL_RUNNING
                           : record->tree == NACRE_TREE_ALIVE ? SHELL_LINGERING
                                                              : SHELL_OVER;
    if (!registry_get(s->registry, &record->id, &shell))
        return;
    bool ended = registry_note(s->registry, &record->id, life,
                               record->bytes[NACRE_STDOUT] + record->bytes[NACRE_STDERR], now_ms());
    if (ended)
        audit_end(s->audit, record);
    if (shell.background && !shell.foreign && life > shell.life) {
        ends_shelve(s, &record->id);
        if (ended)
            completion_ring(s);
        shorten_list(s);
    }
}

int ends_look(nacre_session *s, const nacre_id *id, nacre_record *ret_record, nacre_error *reterr)
{
    nacre_record light = NACRE_RECORD_INIT;
    nacre_record *record = ret_record ? ret_record : &light;
    int r = !ret_record && s->ops.peek ? CALL(s, peek, id, record) : CALL(s, get, id, record);
    if (r == 0)
        ends_note(s, record);
    nacre_record_done(&light);
    return r;
}

/* Alive when last heard of, and not looked at since. */
static bool is_silent(const struct shell *shell, const void *argument)
{
    const int64_t *since = argument;
    return shell->life != SHELL_OVER && !shell->foreign && shell->looked_ms <= *since;
}

static void look_at_silent(nacre_session *s, int64_t since)
{
    cleanup_free struct shell *shells = calloc(LOOK_MAX, sizeof *shells);
    size_t count = shells ? registry_select(s->registry, is_silent, &since, shells, LOOK_MAX) : 0;
    for (size_t i = 0; i < MIN(count, (size_t)LOOK_MAX); i++)
        ends_look(s, &shells[i].id, NULL, NULL);
}

void ends_look_at_all(nacre_session *s)
{
    look_at_silent(s, INT64_MAX);
}

/* Whether it is time; one thread at a time does it. */
static bool silence_is_due(nacre_session *s)
{
    int64_t now = now_ms();
    pthread_mutex_lock(&s->lock);
    bool due = now - s->swept_ms >= SILENT_MS;
    if (due)
        s->swept_ms = now;
    pthread_mutex_unlock(&s->lock);
    return due;
}

void ends_hear(nacre_session *s)
{
    nacre_id id;
    while (s->ops.rung && s->ops.rung(s->self, &id) > 0)
        ends_look(s, &id, NULL, NULL);
    if (silence_is_due(s))
        look_at_silent(s, now_ms() - SILENT_MS);
}
