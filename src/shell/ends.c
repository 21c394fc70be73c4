/*
 * Hearing how shells end. Keepers ring; a ring can be lost and a keeper can be killed, so shells
 * that were silent for a while are looked at too. The state files are what counts.
 */
#include <stdlib.h>
#include <unistd.h>

#include "backend/local.h"
#include "backend/report.h"
#include "base/clock.h"
#include "base/defs.h"
#include "run/home.h"
#include "run/rundir.h"
#include "shell/session.h"

#define SILENT_MS 1000
#define LOOK_MAX  1024
#define DROP_MAX  16

static int64_t now_ms(void)
{
    return clock_mono_ns() / NS_PER_MS;
}

int ends_shelve(nacre_session *s, const nacre_id *id)
{
    struct catalog *catalog;
    int r = session_catalog(s, true, &catalog, NULL);
    return r < 0 ? r : catalog_refresh(catalog, id, NULL);
}

/* What leaves the list keeps its cursor in the catalog. */
static void shorten_list(nacre_session *s)
{
    struct shell dropped[DROP_MAX];
    struct catalog *catalog;
    size_t listed = (size_t)session_setting(s, NACRE_SETTING_LISTED);
    size_t count = registry_evict(s->registry, listed, dropped, DROP_MAX);
    if (count == 0 || session_catalog(s, true, &catalog, NULL) < 0)
        return;
    for (size_t i = 0; i < MIN(count, (size_t)DROP_MAX); i++)
        catalog_set_read(catalog, &dropped[i].id, dropped[i].read_to, NULL);
}

/* An outcome is due once the catalog has it; if it cannot be written now, it is tried again. */
static void note_outcome(nacre_session *s, const nacre_id *id)
{
    int r = s->books ? ends_shelve(s, id) : 0;
    if ((r >= 0 || r == NACRE_ENOTFOUND) && registry_settle(s->registry, id) && s->books)
        completion_ring(s);
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
    if (ended && !shell.foreign)
        audit_end(s->audit, record);
    if (shell.awaited && life != SHELL_RUNNING)
        note_outcome(s, &record->id);
    else if (shell.background && life > shell.life)
        ends_shelve(s, &record->id);
}

int ends_peek(nacre_session *s, const nacre_id *id, nacre_record *ret_record, nacre_error *reterr)
{
    int r = s->ops.peek ? CALL(s, peek, id, ret_record) : CALL(s, get, id, ret_record);
    if (r == 0)
        ends_note(s, ret_record);
    return r;
}

int ends_look(nacre_session *s, const nacre_id *id, nacre_record *ret_record, nacre_error *reterr)
{
    nacre_record light = NACRE_RECORD_INIT;
    if (!ret_record) {
        int r = ends_peek(s, id, &light, reterr);
        nacre_record_done(&light);
        return r;
    }
    int r = CALL(s, get, id, ret_record);
    if (r == 0)
        ends_note(s, ret_record);
    return r;
}

/* Something is still to be heard of it, and it was not looked at since. */
static bool is_silent(const struct shell *shell, const void *argument)
{
    const int64_t *since = argument;
    bool open = shell->awaited || (shell->life != SHELL_OVER && !shell->foreign);
    return open && shell->looked_ms <= *since;
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
    /* Only now: what has ended is known of all, and what was read leaves first. */
    shorten_list(s);
}

/* -- With the session ------------------------------------------------------------------------- */

struct ends_rest {
    int runs_fd;
    size_t count;
    struct shell shells[];
};

static bool is_unheard(const struct shell *shell, const void *argument UNUSED)
{
    return shell->life == SHELL_RUNNING && !shell->foreign;
}

struct ends_rest *ends_rest_new(nacre_session *s)
{
    const char *path;
    struct home home;
    size_t count = s->audit ? registry_select(s->registry, is_unheard, NULL, NULL, 0) : 0;
    if (count == 0 || local_home(s->local, &path, NULL, NULL) < 0 ||
        home_find(path, &home, NULL) < 0)
        return NULL;
    struct ends_rest *rest = calloc(1, sizeof *rest + count * sizeof rest->shells[0]);
    if (!rest)
        return NULL;
    rest->runs_fd = home_open_runs(&home, 0, NULL);
    rest->count = MIN(count, registry_select(s->registry, is_unheard, NULL, rest->shells, count));
    return rest;
}

void ends_rest_tell_consume(nacre_session *s, struct ends_rest *rest)
{
    for (size_t i = 0; rest && i < rest->count; i++) {
        struct run_state state;
        nacre_record record = NACRE_RECORD_INIT;
        cleanup_run struct run run = RUN_NONE;
        if (run_open(rest->runs_fd, &rest->shells[i].id, &run, NULL) < 0 ||
            run_read_state(&run, &state, NULL) < 0)
            continue;
        report_state(&state, &record);
        if (record.outcome != NACRE_RUNNING)
            audit_end(s->audit, &record);
        nacre_record_done(&record);
    }
    if (rest)
        close_fd(&rest->runs_fd);
    free(rest);
}

/* -- Of other sessions ------------------------------------------------------------------------ */

struct walk {
    nacre_session *session;
    struct catalog *catalog;
    bool also_running;
};

static int refresh_open(const struct catalog_run *run, void *userdata)
{
    const struct walk *walk = userdata;
    nacre_session *s = walk->session;
    nacre_record record = NACRE_RECORD_INIT;
    nacre_error *reterr = NULL;
    if (CALL(s, peek, &run->id, &record) == 0 &&
        (walk->also_running || record.outcome != NACRE_RUNNING))
        catalog_refresh(walk->catalog, &run->id, NULL);
    nacre_record_done(&record);
    return 0;
}

/* To look is enough: what lost its keeper before it was a run is swept, and nobody else would. */
static int look_at_stray(const nacre_id *id, void *userdata)
{
    nacre_session *s = userdata;
    nacre_record record = NACRE_RECORD_INIT;
    nacre_error *reterr = NULL;
    CALL(s, peek, id, &record);
    nacre_record_done(&record);
    return 0;
}

int ends_refresh_home(nacre_session *s, struct catalog *catalog, bool also_running,
                      nacre_error *err)
{
    struct catalog_filter open = {.state = CATALOG_OPEN};
    struct walk walk = {.session = s, .catalog = catalog, .also_running = also_running};
    int r = catalog_sync(catalog, err);
    /* Without a file every answer is made of the directories, and is not old. */
    if (r == NACRE_ENOTFOUND)
        r = 0;
    if (r >= 0 && s->ops.peek)
        r = catalog_each_run(catalog, &open, refresh_open, &walk, err);
    if (r >= 0 && s->ops.peek)
        r = catalog_each_stray(catalog, look_at_stray, s, err);
    return MIN(r, 0);
}
