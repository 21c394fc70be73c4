/*
 * Starting shells: a place for what runs in the background, taken before the start, so that never
 * more run than there are places. What is written about a shell is written while it runs already.
 */
#include <stdio.h>

#include "backend/change.h"
#include "backend/local.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "shell/session.h"

#define SHOWN_MAX 16
#define ROOM      16 /* shells that are remembered without a look */

/* -- Places ----------------------------------------------------------------------------------- */

static bool has_place(const struct shell *shell, const void *argument UNUSED)
{
    return shell->background && shell->life == SHELL_RUNNING && !shell->foreign;
}

static int no_place(nacre_session *s, size_t places, nacre_error *err)
{
    struct shell running[SHOWN_MAX];
    char ids[SHOWN_MAX * 10 + 8] = "";
    size_t count = registry_select(s->registry, has_place, NULL, running, SHOWN_MAX);
    size_t len = 0;
    for (size_t i = 0; i < MIN(count, (size_t)SHOWN_MAX); i++)
        len += (size_t)snprintf(ids + len, sizeof ids - len, "%s%s", i ? ", " : "",
                                nacre_id_short(&running[i].id).s);
    if (count > SHOWN_MAX)
        snprintf(ids + len, sizeof ids - len, ", ...");
    return err_set(err, NACRE_ELIMIT,
                   "%zu background shells are running, which is the limit: %s; kill one of them or "
                   "wait for its end",
                   places, ids);
}

/* If all are taken, those who have them are looked at: one may have ended unheard. */
static int take_place(nacre_session *s, nacre_error *err)
{
    size_t places = (size_t)session_setting(s, NACRE_SETTING_SHELLS);
    ends_hear(s);
    if (registry_reserve(s->registry, places) == 0)
        return 0;
    ends_look_at_all(s);
    if (registry_reserve(s->registry, places) == 0)
        return 0;
    return no_place(s, places, err);
}

/* -- One start -------------------------------------------------------------------------------- */

/* What was started in the foreground and ended unseen must not fill the registry. */
static void make_room(nacre_session *s)
{
    size_t count = registry_count(s->registry);
    pthread_mutex_lock(&s->lock);
    bool crowded = count >= MAX(s->crowded, (size_t)ROOM);
    if (crowded)
        s->crowded = count * 2;
    pthread_mutex_unlock(&s->lock);
    if (!crowded)
        return;
    ends_look_at_all(s);
    count = registry_count(s->registry);
    pthread_mutex_lock(&s->lock);
    s->crowded = count * 2;
    pthread_mutex_unlock(&s->lock);
}

static void note_start(nacre_session *s, const nacre_command *command, const nacre_id *id,
                       bool reserved)
{
    struct shell shell = {
        .id = *id,
        .background = command->background,
        .awaited = command->background,
        .kept = command->lifetime == NACRE_LIFE_KEEP,
        .looked_ms = clock_mono_ns() / NS_PER_MS,
    };
    make_room(s);
    registry_add(s->registry, &shell, reserved);
    audit_start(s->audit, id, command);
    if (command->background) {
        ends_shelve(s, id);
        completion_expect(s);
    }
}

int start_unnamed(nacre_session *s, const nacre_command *command, nacre_id *ret_id,
                  nacre_watch **ret_watch, nacre_error *reterr)
{
    bool place = command->background != 0;
    int r = place ? take_place(s, reterr) : 0;
    if (r < 0)
        return r;
    r = CALL(s, create, command, ret_id, ret_watch);
    if (r < 0) {
        if (place)
            registry_unreserve(s->registry);
        return r;
    }
    note_start(s, command, ret_id, place);
    return 0;
}

/* -- The public functions --------------------------------------------------------------------- */

static void know_home(nacre_session *s)
{
    const char *home;
    if (s->audit && nacre_session_home(s, &home, NULL, NULL) == 0)
        audit_set_home(s->audit, home);
}

static int begin(nacre_session *s, nacre_error *err)
{
    pthread_mutex_lock(&s->lock);
    bool closing = s->closing;
    if (!closing)
        s->starting++;
    pthread_mutex_unlock(&s->lock);
    return closing
               ? err_set(err, NACRE_ECLOSED, "the session is being closed; nothing starts in it")
               : 0;
}

static void end(nacre_session *s, bool started)
{
    pthread_mutex_lock(&s->lock);
    s->starting--;
    s->started = s->started || started;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

int nacre_start(nacre_session *session, const nacre_command *command, nacre_id *ret_id,
                nacre_watch **ret_watch, nacre_error *reterr)
{
    nacre_error spare;
    reterr = reterr ? reterr : &spare;
    int r = session_check(session, reterr);
    if (r < 0)
        return r;
    if (!command || command->size != sizeof *command)
        return err_set(reterr, NACRE_EINVAL, "the command must start from NACRE_COMMAND_INIT");
    r = begin(session, reterr);
    if (r < 0)
        return r;
    know_home(session);
    r = command->name && *command->name
            ? names_start(session, command, ret_id, ret_watch, reterr)
            : start_unnamed(session, command, ret_id, ret_watch, reterr);
    if (r < 0)
        audit_denial(session->audit, command, reterr);
    end(session, r >= 0);
    return r;
}

/* -- Into the background ---------------------------------------------------------------------- */

/* One that ended in the foreground has left the registry; it comes back to be told. 1 if it was in
 * the background already. */
static int bring_back(nacre_session *s, const nacre_id *id, nacre_error *reterr)
{
    nacre_record record = NACRE_RECORD_INIT;
    int r = CALL(s, get, id, &record);
    bool own = r == 0 && nacre_id_equal(&record.session, &s->id);
    bool background = record.background;
    nacre_record_done(&record);
    if (r == 0 && !own)
        r = err_set(reterr, NACRE_ENOTFOUND,
                    "shell %s was not started in the foreground of this session",
                    nacre_id_short(id).s);
    if (r < 0 || background)
        return r < 0 ? r : 1;
    struct shell shell = {.id = *id, .life = SHELL_LINGERING, .background = true, .awaited = true};
    return registry_add(s->registry, &shell, false) < 0
               ? err_set(reterr, NACRE_ENOMEM, "out of memory")
               : 0;
}

/* A keeper that is gone notes nothing any more: what it would have owed is owed by the catalog. */
static int owe(nacre_session *s, const nacre_id *id, nacre_error *reterr)
{
    struct catalog *catalog;
    nacre_record record = NACRE_RECORD_INIT;
    int r = CALL(s, get, id, &record);
    bool owes = r == 0 && record.background;
    nacre_record_done(&record);
    if (r < 0 || owes)
        return r;
    r = session_catalog(s, true, &catalog, reterr);
    if (r == 0)
        r = catalog_refresh(catalog, id, reterr);
    return r < 0 ? r : catalog_owe(catalog, id, &s->id, reterr);
}

/* 1 = it is there already. */
static int move_there(nacre_session *s, const nacre_id *id, nacre_error *err)
{
    struct shell shell;
    int r = session_check(s, err);
    if (r < 0 || registry_set_background(s->registry, id))
        return r;
    if (registry_get(s->registry, id, &shell) && !shell.foreign)
        return 1;
    return bring_back(s, id, err);
}

/* Its keeper knows. */
static int settle_there(nacre_session *s, const nacre_id *id, nacre_error *err)
{
    int r = s->books ? owe(s, id, err) : 0;
    if (r < 0)
        return r;
    ends_shelve(s, id);
    completion_expect(s);
    return ends_look(s, id, NULL, err);
}

int nacre_background(nacre_session *session, const nacre_id *id, nacre_error *reterr)
{
    int r = move_there(session, id, reterr);
    if (r != 0)
        return MIN(r, 0);
    r = session->ops.change ? CALL(session, change, id, 1, 0) : 0;
    return r < 0 ? r : settle_there(session, id, reterr);
}

/* What runs elsewhere has no keeper, and is asked at once. */
static int begin_change(nacre_session *s, const nacre_id *id, struct change *ret,
                        nacre_error *reterr)
{
    int r = s->local ? local_change_begin(s->local, id, 1, 0, ret, reterr) : NACRE_EUNSUPPORTED;
    if (r != NACRE_EUNSUPPORTED)
        return r;
    r = s->ops.change ? CALL(s, change, id, 1, 0) : 0;
    return r < 0 ? r : 1;
}

static int settle_when(nacre_session *s, const nacre_id *id, int r, nacre_error *err)
{
    if (r <= 0)
        return r;
    r = settle_there(s, id, err);
    return r < 0 ? r : 1;
}

int session_background_begin(nacre_session *s, const nacre_id *id, struct change *ret,
                             nacre_error *err)
{
    *ret = CHANGE_NONE;
    int r = move_there(s, id, err);
    return r != 0 ? r : settle_when(s, id, begin_change(s, id, ret, err), err);
}

int session_background_step(nacre_session *s, struct change *c, nacre_error *err)
{
    return settle_when(s, &c->run.id, change_step(c, err), err);
}
