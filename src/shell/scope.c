/*
 * Whose shells are whose. A session's own are its own; those of a session that lives are nobody
 * else's; what an ended one left may be read; a person may do everything with all of theirs.
 */
#include <stdlib.h>
#include <string.h>

#include "base/defs.h"
#include "base/err.h"
#include "shell/session.h"
#include "sys/proc.h"

struct owner {
    nacre_id session;
    bool alive;
};

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
static void ask_catalog(nacre_session *s, const nacre_id *id, struct owner *owner)
{
    struct catalog *catalog;
    struct catalog_run *run = NULL;
    struct catalog_session *row = NULL;
    if (!session_has_catalog(s) || session_catalog(s, false, &catalog, NULL) < 0)
        return;
    if (catalog_get_run(catalog, id, &run, NULL) == 0) {
        bool adopted = !nacre_id_equal(&run->session, &owner->session);
        owner->session = run->session;
        if (catalog_get_session(catalog, &run->session, &row, NULL) == 0)
            owner->alive = scope_session_lives(row);
        else if (adopted)
            owner->alive = false;
    }
    free(run);
    free(row);
}

static int find_owner(nacre_session *s, const nacre_id *id, struct owner *ret_owner,
                      nacre_error *reterr)
{
    int alive = 0;
    int r = CALL(s, owner, id, &ret_owner->session, &alive);
    if (r < 0)
        return r;
    ret_owner->alive = alive;
    ask_catalog(s, id, ret_owner);
    return 0;
}

static bool is_own(nacre_session *s, const nacre_id *id)
{
    struct shell shell;
    return registry_get(s->registry, id, &shell) && !shell.foreign;
}

int scope_check(nacre_session *s, const nacre_id *id, bool change, nacre_error *err)
{
    struct owner owner;
    if (s->person || !s->ops.owner || is_own(s, id))
        return 0;
    int r = find_owner(s, id, &owner, err);
    if (r < 0 || nacre_id_equal(&owner.session, &s->id))
        return r;
    if (owner.alive)
        return err_set(err, NACRE_EFORBIDDEN,
                       "forbidden: shell %s belongs to another session, which is alive",
                       nacre_id_short(id).s);
    if (change)
        return err_set(err, NACRE_EFORBIDDEN,
                       "forbidden: the session of shell %s has ended; it can be read, and must be "
                       "adopted to do more with it",
                       nacre_id_short(id).s);
    return 0;
}

/* -- Adoption --------------------------------------------------------------------------------- */

static int check_adoption(nacre_session *s, const nacre_record *record, nacre_error *err)
{
    struct owner owner = {.session = record->session};
    if (record->lifetime != NACRE_LIFE_KEEP)
        return err_set(err, NACRE_EUNSUPPORTED,
                       "shell %s dies with its session; only kept shells can be adopted",
                       nacre_id_short(&record->id).s);
    int r = find_owner(s, &record->id, &owner, err);
    if (r < 0)
        return r;
    if (owner.alive && !s->person && !nacre_id_equal(&owner.session, &s->id))
        return err_set(err, NACRE_EFORBIDDEN,
                       "forbidden: shell %s belongs to another session, which is alive",
                       nacre_id_short(&record->id).s);
    return 0;
}

/* The row is ours, and so is what is still owed; 1 if something is. */
static int take_row(nacre_session *s, const nacre_id *id, nacre_error *err)
{
    struct catalog *catalog;
    struct catalog_run *run = NULL;
    int r = session_catalog(s, true, &catalog, err);
    if (r == 0)
        r = catalog_refresh(catalog, id, err);
    if (r >= 0)
        r = catalog_set_owner(catalog, id, &s->id, NACRE_LIFE_KEEP, err);
    if (r >= 0)
        r = catalog_get_run(catalog, id, &run, err);
    bool owed = r >= 0 && run->owed;
    free(run);
    if (owed)
        r = catalog_owe(catalog, id, &s->id, err);
    return r < 0 ? r : owed;
}

static int take_over(nacre_session *s, const nacre_record *record, nacre_error *reterr)
{
    struct shell known = {0};
    int r = CALL(s, change, &record->id, 1, 0);
    if (r == 0)
        r = take_row(s, &record->id, reterr);
    if (r < 0)
        return r;
    registry_get(s->registry, &record->id, &known);
    struct shell shell = {
        .id = record->id,
        .life = record->outcome == NACRE_RUNNING ? SHELL_RUNNING : SHELL_LINGERING,
        .background = true,
        .awaited = r > 0,
        .kept = true,
        .read_to = known.read_to,
    };
    if (registry_add(s->registry, &shell, false) < 0)
        return err_set(reterr, NACRE_ENOMEM, "out of memory");
    completion_expect(s);
    return ends_look(s, &record->id, NULL, reterr);
}

int nacre_adopt(nacre_session *session, const nacre_id *id, nacre_error *reterr)
{
    nacre_record record = NACRE_RECORD_INIT;
    int r = session_check(session, reterr);
    if (r < 0)
        return r;
    if (!session->books || !session->ops.change)
        return session_unsupported(session, "adopt shells", reterr);
    if (is_own(session, id))
        return 0;
    r = CALL(session, get, id, &record);
    if (r == 0)
        r = check_adoption(session, &record, reterr);
    if (r == 0)
        r = take_over(session, &record, reterr);
    nacre_record_done(&record);
    return r;
}

static bool is_over(const nacre_record *record)
{
    return record->outcome != NACRE_RUNNING && record->tree == NACRE_TREE_EMPTY;
}

/* It is nobody's from now on: an id that no session has. */
static int let_go(nacre_session *s, const nacre_id *id, nacre_error *err)
{
    static const nacre_id nobody;
    struct catalog *catalog;
    int r = session_catalog(s, true, &catalog, err);
    if (r == 0)
        r = catalog_refresh(catalog, id, err);
    if (r >= 0)
        r = catalog_set_owner(catalog, id, &nobody, NACRE_LIFE_KEEP, err);
    if (r >= 0)
        registry_remove(s->registry, id);
    return MIN(r, 0);
}

/* 1 if it is kept, and no session that lives has it. */
static int is_nobodys(nacre_session *s, const nacre_id *id, nacre_error *reterr)
{
    nacre_record record = NACRE_RECORD_INIT;
    struct owner owner;
    int r = CALL(s, peek, id, &record);
    if (r < 0 || record.lifetime != NACRE_LIFE_KEEP || is_over(&record))
        return r;
    r = find_owner(s, id, &owner, reterr);
    return r < 0 ? r : !owner.alive;
}

int nacre_keep(nacre_session *session, const nacre_id *id, nacre_error *reterr)
{
    nacre_record record = NACRE_RECORD_INIT;
    int r = session_check(session, reterr);
    if (r < 0)
        return r;
    if (!session->books || !session->ops.change)
        return session_unsupported(session, "keep shells", reterr);
    r = scope_check(session, id, true, reterr);
    if (r == 0)
        r = is_nobodys(session, id, reterr);
    if (r > 0)
        return 1;
    if (r == 0)
        r = CALL(session, change, id, 0, 1);
    if (r == 0)
        r = CALL(session, peek, id, &record);
    if (r == 0 && is_over(&record))
        r = err_set(reterr, NACRE_ECLOSED, "shell %s has ended; there is nothing left to keep",
                    nacre_id_short(id).s);
    return r < 0 ? r : let_go(session, id, reterr);
}
