/*
 * Whose shells are whose. A session's own are its own; those of a session that lives are nobody
 * else's; what an ended one left may be read; a person may do everything with all of theirs.
 */
#include <string.h>

#include "base/err.h"
#include "session/session.h"
#include "sys/proc.h"

bool scope_session_lives_on(const struct catalog_session *row, const struct host *host)
{
    struct proc_ref ref = {.pid = row->pid, .start = row->start};
    if (row->closed_ms || row->pid <= 0 || memcmp(row->boot, host->boot, sizeof host->boot) != 0)
        return false;
    /* In another pid namespace nobody can tell; then it is not ours to take. */
    return row->pid_ns != host->pid_ns || proc_alive(&ref);
}

bool scope_session_lives(const struct catalog_session *row)
{
    struct host host;
    return !row->closed_ms && host_identify(&host) == 0 && scope_session_lives_on(row, &host);
}

/* The catalog knows of adoptions and of sessions that were closed in a process that lives on. */
static void ask_catalog(nacre_session *s, const nacre_id *id, struct shell_owner *owner)
{
    struct catalog *catalog;
    cleanup_free struct catalog_run *run = NULL;
    cleanup_free struct catalog_session *row = NULL;
    if (!session_has_catalog(s) || session_catalog(s, false, &catalog, NULL) < 0 ||
        catalog_get_run(catalog, id, &run, NULL) < 0)
        return;
    bool adopted = !nacre_id_equal(&run->session, &owner->session);
    owner->session = run->session;
    if (catalog_get_session(catalog, &run->session, &row, NULL) == 0)
        owner->alive = scope_session_lives(row);
    else if (adopted)
        owner->alive = false;
}

int scope_find_owner(nacre_session *s, const nacre_id *id, struct shell_owner *ret_owner,
                     nacre_error *err)
{
    int r = home_run_owner(s->home, id, &ret_owner->session, &ret_owner->alive, err);
    if (r == 0)
        ask_catalog(s, id, ret_owner);
    return r;
}

bool scope_is_own(nacre_session *s, const nacre_id *id)
{
    struct shell shell;
    return registry_get(s->registry, id, &shell) && !shell.foreign;
}

bool scope_is_left_to(nacre_session *s, const nacre_record *record)
{
    return record->lifetime == NACRE_LIFE_KEEP && !scope_is_own(s, &record->id) && record->cwd &&
           strcmp(record->cwd, s->cwd) == 0;
}

/* Whoever works in its directory goes on with what an ended session has kept there. */
static bool is_left_to_it(nacre_session *s, const nacre_id *id)
{
    nacre_record record cleanup_record = NACRE_RECORD_INIT;
    return home_record(s->home, id, HOME_PLAIN, &record, NULL, NULL) == 0 &&
           scope_is_left_to(s, &record);
}

int scope_check(nacre_session *s, const nacre_id *id, bool change, nacre_error *err)
{
    struct shell_owner owner;
    if (s->person || scope_is_own(s, id))
        return 0;
    int r = scope_find_owner(s, id, &owner, err);
    if (r < 0 || nacre_id_equal(&owner.session, &s->id))
        return r;
    if (owner.alive)
        return err_set(err, NACRE_EFORBIDDEN,
                       "forbidden: shell %s belongs to another session, which is alive",
                       nacre_id_short(id).s);
    if (!change || is_left_to_it(s, id))
        return 0;
    return err_set(err, NACRE_EFORBIDDEN,
                   "forbidden: the session of shell %s has ended; it can be read, and must be "
                   "adopted to do more with it",
                   nacre_id_short(id).s);
}
