/* How shells change hands: adopted by a session, or let go of. */
#include "backend/op.h"
#include "base/err.h"
#include "session/session.h"

static int check_adoption(nacre_session *s, const nacre_record *record, nacre_error *err)
{
    struct shell_owner owner;
    if (record->lifetime != NACRE_LIFE_KEEP)
        return err_set(err, NACRE_EUNSUPPORTED,
                       "shell %s dies with its session; only kept shells can be adopted",
                       nacre_id_short(&record->id).s);
    int r = scope_find_owner(s, &record->id, &owner, err);
    if (r == 0 && owner.alive && !s->person && !nacre_id_equal(&owner.session, &s->id))
        return err_set(err, NACRE_EFORBIDDEN,
                       "forbidden: shell %s belongs to another session, which is alive",
                       nacre_id_short(&record->id).s);
    return r;
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

/* Its keeper knows that it owes us its end. */
static int take_over_shell(nacre_session *s, const nacre_id *id, nacre_error *err)
{
    struct shell known = {0};
    nacre_record record = NACRE_RECORD_INIT;
    int owed = take_row(s, id, err);
    int r = owed < 0 ? owed : home_record(s->home, id, HOME_LIGHT, &record, NULL, err);
    if (r < 0)
        return r;
    registry_get(s->registry, id, &known);
    struct shell shell = {
        .id = *id,
        .life = record.outcome == NACRE_RUNNING ? SHELL_RUNNING : SHELL_LINGERING,
        .background = true,
        .awaited = owed > 0,
        .kept = true,
        .read_to = known.read_to,
    };
    if (registry_add(s->registry, &shell, false) < 0)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    completion_set_bell(s);
    ends_look(s, id);
    return 1;
}

struct adopt_op {
    nacre_op op;
    nacre_session *session;
    nacre_id id;
    nacre_op *change; /* what is asked of its keeper; NULL = nothing (any more) */
};

static int step_adopt(nacre_op *op, nacre_error *err)
{
    struct adopt_op *a = (struct adopt_op *)op;
    int r = op_step_inner(op, a->change, err);
    return r > 0 ? take_over_shell(a->session, &a->id, err) : r;
}

static void end_adopt(nacre_op *op)
{
    struct adopt_op *a = (struct adopt_op *)op;
    op_end(&a->change);
    free(a);
}

int session_adopt(nacre_session *s, const nacre_id *id, nacre_op **ret_op, nacre_error *err)
{
    nacre_record record = NACRE_RECORD_INIT;
    int r = home_record(s->home, id, HOME_LIGHT, &record, NULL, err);
    if (r == 0)
        r = check_adoption(s, &record, err);
    struct adopt_op *a = r < 0 ? NULL : malloc(sizeof *a);
    if (!a)
        return r < 0 ? r : err_set(err, NACRE_ENOMEM, "out of memory");
    *a = (struct adopt_op){.op = OP_INIT(step_adopt, end_adopt), .session = s, .id = *id};
    r = s->keepers.ops->change(s->keepers.self, id, 1, 0, &a->change, err);
    if (r < 0)
        end_adopt(&a->op);
    else
        *ret_op = &a->op;
    return r;
}

int nacre_adopt(nacre_session *session, const nacre_id *id, nacre_error *reterr)
{
    nacre_op *op;
    int r = session_check(session, reterr);
    if (r < 0 || scope_is_own(session, id))
        return r;
    r = session_adopt(session, id, &op, reterr);
    return r < 0 ? r : op_finish(op, NULL, 0, reterr);
}

/* -- Letting go ------------------------------------------------------------------------------- */

static bool is_gone(const nacre_record *record)
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
static int is_nobodys(nacre_session *s, const nacre_id *id, nacre_error *err)
{
    nacre_record record = NACRE_RECORD_INIT;
    struct shell_owner owner;
    int r = home_record(s->home, id, HOME_LIGHT, &record, NULL, err);
    if (r < 0 || record.lifetime != NACRE_LIFE_KEEP || is_gone(&record))
        return r;
    r = scope_find_owner(s, id, &owner, err);
    return r < 0 ? r : !owner.alive;
}

static int note_kept(nacre_session *s, const nacre_id *id, nacre_error *err)
{
    nacre_record record = NACRE_RECORD_INIT;
    int r = home_record(s->home, id, HOME_LIGHT, &record, NULL, err);
    if (r == 0 && is_gone(&record))
        r = err_set(err, NACRE_ECLOSED, "shell %s has ended; there is nothing left to keep",
                    nacre_id_short(id).s);
    r = r < 0 ? r : let_go(s, id, err);
    return r < 0 ? r : 1;
}

static int step_keep(nacre_op *op, nacre_error *err)
{
    struct adopt_op *k = (struct adopt_op *)op;
    int r = k->change ? op_step_inner(op, k->change, err) : 1;
    return r > 0 ? note_kept(k->session, &k->id, err) : r;
}

/* 1 and no operation: that was so already. */
int session_keep(nacre_session *s, const nacre_id *id, nacre_op **ret_op, nacre_error *err)
{
    nacre_error spare;
    void *self;
    *ret_op = NULL;
    int r = session_check_id(s, id, true, err);
    if (r == 0)
        r = is_nobodys(s, id, err);
    if (r != 0)
        return r;
    const nacre_backend_ops *ops = session_ops_of(s, id, &self);
    if (!ops->change)
        return session_unsupported(ops, "keep shells", err);
    struct adopt_op *k = malloc(sizeof *k);
    if (!k)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    *k = (struct adopt_op){.op = OP_INIT(step_keep, end_adopt), .session = s, .id = *id};
    r = ops->change(self, id, 0, 1, &k->change, err ? err : &spare);
    if (r < 0)
        end_adopt(&k->op);
    else
        *ret_op = &k->op;
    return MIN(r, 0);
}

int nacre_keep(nacre_session *session, const nacre_id *id, nacre_error *reterr)
{
    nacre_op *op;
    int r = session_keep(session, id, &op, reterr);
    return r != 0 ? r : op_finish(op, NULL, 0, reterr);
}
