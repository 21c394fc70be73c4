/*
 * What is done to a shell, as operations of the session: the verb of whichever backend has it, and
 * what the session notes when it is over. The public functions wait for them.
 */
#include <stdlib.h>

#include "backend/op.h"
#include "base/defs.h"
#include "base/err.h"
#include "home/door.h"
#include "home/mirror.h"
#include "home/run_watch.h"
#include "screen/terminal.h"
#include "session/session.h"

bool session_mirrors(nacre_session *s, const nacre_id *id)
{
    return s->self != s->keepers.self && mirror_find(s->home, id);
}

const nacre_backend_ops *session_ops_of(nacre_session *s, const nacre_id *id, void **ret_self)
{
    bool mirrored = session_mirrors(s, id);
    *ret_self = mirrored ? s->self : s->keepers.self;
    return mirrored ? &s->ops : s->keepers.ops;
}

int session_watch(nacre_session *s, const nacre_id *id, uint64_t offset, nacre_watch **ret_watch,
                  nacre_error *err)
{
    int r = home_watch(s->home, id, offset, ret_watch, err);
    return ends_bury(s, id, r) ? home_watch(s->home, id, offset, ret_watch, err) : r;
}

int session_watch_fd(const nacre_watch *watch)
{
    return run_watch_fd(watch);
}

void session_watch_seek(nacre_watch *watch, uint64_t offset)
{
    run_watch_seek(watch, offset);
}

int session_unsupported(const nacre_backend_ops *ops, const char *what, nacre_error *err)
{
    return err_set(err, NACRE_EUNSUPPORTED, "the %s backend cannot %s", ops->name, what);
}

/* An operation of a backend, and what follows it: done returns 1 or a code. */
struct deed {
    nacre_op op;
    nacre_session *session;
    nacre_id id;
    nacre_op *inner;
    int (*done)(struct deed *d, nacre_error *err);
    nacre_kill_options options; /* of a kill */
    nacre_kill_result result;   /* likewise */
    bool noted;
};

static int step_deed(nacre_op *op, nacre_error *err)
{
    struct deed *d = (struct deed *)op;
    int r = op_step_inner(op, d->inner, err);
    return r > 0 ? d->done(d, err) : r;
}

static void end_deed(nacre_op *op)
{
    struct deed *d = (struct deed *)op;
    op_end(&d->inner);
    free(d);
}

static int nothing_follows(struct deed *d UNUSED, nacre_error *err UNUSED)
{
    return 1;
}

/* inner is consumed. */
static struct deed *deed_new(nacre_session *s, const nacre_id *id, nacre_op *inner,
                             int (*done)(struct deed *, nacre_error *))
{
    struct deed *d = malloc(sizeof *d);
    if (!d) {
        op_end(&inner);
        return NULL;
    }
    *d = (struct deed){
        .op = OP_INIT(step_deed, end_deed), .session = s, .id = *id, .inner = inner, .done = done};
    d->op.result = inner->result;
    return d;
}

static int hand_over(struct deed *d, nacre_op **ret_op, nacre_error *err)
{
    if (!d)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    *ret_op = &d->op;
    return 0;
}

/* -- Kill ------------------------------------------------------------------------------------- */

/* Whoever reads the log of an agent's session shall see that a person ended one of its shells. */
static void audit_deed(struct deed *d)
{
    nacre_session *s = d->session;
    struct shell_owner owner;
    const char *home;
    if (!s->person || scope_is_own(s, &d->id))
        audit_kill(s->audit, &d->id, &d->options, d->op.result);
    else if (s->audit && scope_find_owner(s, &d->id, &owner, NULL) == 0 &&
             nacre_session_home(s, &home, NULL, NULL) == 0)
        audit_kill_by_person(home, &owner.session, &d->id, &d->options, d->op.result);
}

static int note_kill(struct deed *d, nacre_error *err UNUSED)
{
    d->noted = true;
    audit_deed(d);
    ends_look(d->session, &d->id);
    return 1;
}

/* One that is left to its keeper is audited with what is known of it. */
static void end_kill(nacre_op *op)
{
    struct deed *d = (struct deed *)op;
    if (!d->noted && session_check(d->session, NULL) == 0)
        note_kill(d, NULL);
    end_deed(op);
}

static int begin_kill(nacre_session *s, const nacre_id *id, const nacre_kill_options *options,
                      nacre_op **ret_op, nacre_error *err)
{
    nacre_error spare;
    void *self;
    const nacre_backend_ops *ops = session_ops_of(s, id, &self);
    return ops->kill ? ops->kill(self, id, options, ret_op, err ? err : &spare)
                     : mirror_kill(s->home, id, options, ret_op, err);
}

/* Its keeper went while it was asked, and its files were gone before: what it left is swept. */
static int step_kill_deed(nacre_op *op, nacre_error *err)
{
    struct deed *d = (struct deed *)op;
    int r = op_step_inner(op, d->inner, err);
    int was_alive = d->result.was_alive;
    d->result = *(nacre_kill_result *)d->inner->result;
    d->result.was_alive = d->result.was_alive || was_alive;
    if (r > 0)
        return note_kill(d, err);
    if (!ends_bury(d->session, &d->id, r))
        return r;
    op_end(&d->inner);
    op->fd = -1;
    op->wake_ns = 0;
    return begin_kill(d->session, &d->id, &d->options, &d->inner, err);
}

int session_kill(nacre_session *s, const nacre_id *id, const nacre_kill_options *options,
                 nacre_op **ret_op, nacre_error *err)
{
    static const nacre_kill_options defaults = NACRE_KILL_OPTIONS_INIT;
    nacre_op *inner;
    int r = session_check_id(s, id, true, err);
    if (r < 0)
        return r;
    options = options ? options : &defaults;
    registry_mark_ended(s->registry, id);
    r = begin_kill(s, id, options, &inner, err);
    if (ends_bury(s, id, r))
        r = begin_kill(s, id, options, &inner, err);
    if (r < 0)
        return r;
    struct deed *d = deed_new(s, id, inner, note_kill);
    if (d) {
        d->options = *options;
        d->op.result = &d->result;
        d->op.step = step_kill_deed;
        d->op.end = end_kill;
    }
    return hand_over(d, ret_op, err);
}

int nacre_kill(nacre_session *session, const nacre_id *id, const nacre_kill_options *options,
               nacre_kill_result *ret_result, nacre_error *reterr)
{
    nacre_op *op;
    int r = session_kill(session, id, options, &op, reterr);
    return r < 0 ? r : op_finish(op, ret_result, sizeof *ret_result, reterr);
}

int nacre_release(nacre_session *session, const nacre_id *id, nacre_error *reterr)
{
    nacre_error inner = NACRE_ERROR_INIT;
    int r = nacre_kill(session, id, NULL, NULL, &inner);
    if (r == NACRE_ENOTFOUND)
        return 0;
    if (r < 0 && reterr)
        *reterr = inner;
    return r;
}

/* -- Input and signals ------------------------------------------------------------------------ */

int session_input(nacre_session *s, const nacre_id *id, const void *data, size_t size, int eof,
                  nacre_op **ret_op, nacre_error *err)
{
    nacre_error spare;
    void *self;
    int r = session_check_id(s, id, true, err);
    if (r < 0)
        return r;
    const nacre_backend_ops *ops = session_ops_of(s, id, &self);
    return ops->input ? ops->input(self, id, data, size, eof, ret_op, err ? err : &spare)
                      : session_unsupported(ops, "take input", err);
}

int64_t nacre_input(nacre_session *session, const nacre_id *id, const void *data, size_t size,
                    int eof, int64_t timeout_ms, nacre_error *reterr)
{
    cleanup_op nacre_op *op = NULL;
    int r = session_input(session, id, data, size, eof, &op, reterr);
    if (r < 0)
        return r;
    r = op_wait(op, timeout_ms, reterr);
    size_t taken = *(const size_t *)op->result;
    if (r == 0 && taken == 0)
        return err_set(reterr, NACRE_ETIMEOUT, "shell %s does not read its input",
                       nacre_id_short(id).s);
    return r < 0 && taken == 0 ? r : (int64_t)taken;
}

/* What a backend did at once is an operation that is done. r is the backend's word. */
static int done_at_once(int r, nacre_op **ret_op, nacre_error *err)
{
    if (r == 0 && !*ret_op)
        *ret_op = op_done();
    return r < 0 || *ret_op ? r : err_set(err, NACRE_ENOMEM, "out of memory");
}

int session_signal(nacre_session *s, const nacre_id *id, int signal, nacre_op **ret_op,
                   nacre_error *err)
{
    nacre_error spare;
    void *self;
    int r = session_check_id(s, id, true, err);
    if (r < 0)
        return r;
    const nacre_backend_ops *ops = session_ops_of(s, id, &self);
    if (!ops->signal)
        return session_unsupported(ops, "signal commands", err);
    *ret_op = NULL;
    r = ops->signal(self, id, signal, ret_op, err ? err : &spare);
    return done_at_once(r, ret_op, err);
}

int nacre_signal(nacre_session *session, const nacre_id *id, int signal, nacre_error *reterr)
{
    nacre_op *op;
    int r = session_signal(session, id, signal, &op, reterr);
    return r < 0 ? r : op_finish(op, NULL, 0, reterr);
}

int session_resize(nacre_session *s, const nacre_id *id, int columns, int rows, nacre_op **ret_op,
                   nacre_error *err)
{
    nacre_error spare;
    void *self;
    int r = session_check_id(s, id, true, err);
    if (r < 0)
        return r;
    const nacre_backend_ops *ops = session_ops_of(s, id, &self);
    if (!ops->resize)
        return session_unsupported(ops, "give commands a terminal", err);
    if (columns < (int)TERMINAL_COLUMNS_MIN || columns > (int)TERMINAL_COLUMNS_MAX ||
        rows < (int)TERMINAL_ROWS_MIN || rows > (int)TERMINAL_ROWS_MAX)
        return err_set(err, NACRE_EINVAL, "a terminal has %u to %u columns and %u to %u rows",
                       TERMINAL_COLUMNS_MIN, TERMINAL_COLUMNS_MAX, TERMINAL_ROWS_MIN,
                       TERMINAL_ROWS_MAX);
    *ret_op = NULL;
    r = ops->resize(self, id, columns, rows, ret_op, err ? err : &spare);
    return done_at_once(r, ret_op, err);
}

int nacre_resize(nacre_session *session, const nacre_id *id, int columns, int rows,
                 nacre_error *reterr)
{
    nacre_op *op;
    int r = session_resize(session, id, columns, rows, &op, reterr);
    return r < 0 ? r : op_finish(op, NULL, 0, reterr);
}

/* -- Into the background ---------------------------------------------------------------------- */

/* One that ended in the foreground has left the registry; it comes back to be told. 1 if it was in
 * the background already. */
static int bring_back(nacre_session *s, const nacre_id *id, nacre_error *err)
{
    nacre_record record = NACRE_RECORD_INIT;
    int r = home_record(s->home, id, HOME_LIGHT, &record, NULL, err);
    if (r == 0 && !nacre_id_equal(&record.session, &s->id))
        r = err_set(err, NACRE_ENOTFOUND,
                    "shell %s was not started in the foreground of this session",
                    nacre_id_short(id).s);
    if (r < 0 || record.background)
        return r < 0 ? r : 1;
    struct shell shell = {.id = *id, .life = SHELL_LINGERING, .background = true, .awaited = true};
    return registry_add(s->registry, &shell, false) < 0
               ? err_set(err, NACRE_ENOMEM, "out of memory")
               : 0;
}

/* A keeper that is gone notes nothing any more: what it would have owed is owed by the catalog. */
static int owe(nacre_session *s, const nacre_id *id, nacre_error *err)
{
    struct catalog *catalog;
    nacre_record record = NACRE_RECORD_INIT;
    int r = home_record(s->home, id, HOME_LIGHT, &record, NULL, err);
    if (r < 0 || record.background)
        return r;
    r = session_catalog(s, true, &catalog, err);
    if (r == 0)
        r = catalog_refresh(catalog, id, err);
    return r < 0 ? r : catalog_owe(catalog, id, &s->id, err);
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
static int note_background(struct deed *d, nacre_error *err)
{
    nacre_session *s = d->session;
    int r = owe(s, &d->id, err);
    if (r < 0)
        return r;
    ends_shelve(s, &d->id);
    completion_set_bell(s);
    ends_look(s, &d->id);
    return 1;
}

int session_background(nacre_session *s, const nacre_id *id, nacre_op **ret_op, nacre_error *err)
{
    nacre_error spare;
    nacre_op *inner = NULL;
    void *self;
    int there = move_there(s, id, err);
    if (there < 0)
        return there;
    const nacre_backend_ops *ops = session_ops_of(s, id, &self);
    int r = there || !ops->change ? 0 : ops->change(self, id, 1, 0, &inner, err ? err : &spare);
    if (r < 0)
        return r;
    if (!ops->change)
        mirror_set_background(s->home, id);
    inner = inner ? inner : op_done();
    return hand_over(inner ? deed_new(s, id, inner, there ? nothing_follows : note_background)
                           : NULL,
                     ret_op, err);
}

int nacre_background(nacre_session *session, const nacre_id *id, nacre_error *reterr)
{
    nacre_op *op;
    int r = session_background(session, id, &op, reterr);
    return r < 0 ? r : op_finish(op, NULL, 0, reterr);
}

/* -- Looking ---------------------------------------------------------------------------------- */

static int note_look(struct deed *d, nacre_error *err UNUSED)
{
    ends_look(d->session, &d->id);
    return 1;
}

static int begin_look(nacre_session *s, const nacre_id *id, nacre_op **ret_op, nacre_error *err)
{
    nacre_error spare;
    nacre_op *inner;
    void *self;
    const nacre_backend_ops *ops = session_ops_of(s, id, &self);
    if (!ops->look) {
        home_pump(s->home, id, false);
        return 0;
    }
    int r = ops->look(self, id, &inner, err ? err : &spare);
    if (ends_bury(s, id, r))
        r = ops->look(self, id, &inner, err ? err : &spare);
    return r < 0 ? r : hand_over(deed_new(s, id, inner, note_look), ret_op, err);
}

/* Whether a shell lost its keeper and was not swept since, or its keeper is stopped or late, or has
 * its log to put back. */
static int is_unswept(nacre_session *s, const nacre_id *id, nacre_error *err)
{
    nacre_record record = NACRE_RECORD_INIT;
    bool unswept;
    cleanup_run struct run run = RUN_NONE;
    int r = home_record(s->home, id, HOME_LIGHT, &record, &unswept, err);
    if (r < 0 || unswept)
        return r < 0 ? r : 1;
    r = home_open_run(s->home, id, &run, err);
    return r < 0 ? r : record.tree == NACRE_TREE_ALIVE && !run_has_log(&run);
}

int session_look(nacre_session *s, const nacre_id *id, nacre_op **ret_op, nacre_error *err)
{
    *ret_op = NULL;
    int r = session_mirrors(s, id) ? 1 : ends_are_known(s, id) ? 0 : is_unswept(s, id, err);
    if (door_is_lost(r))
        r = 1;
    return r <= 0 ? r : begin_look(s, id, ret_op, err);
}

/* A client that does not answer leaves what is known. */
static int look_and_wait(nacre_session *s, const nacre_record *record, nacre_error *err)
{
    nacre_op *op = NULL;
    int r = begin_look(s, &record->id, &op, err);
    if (r == 0 && op)
        r = op_finish(op, NULL, 0, err);
    return record->tier == NACRE_TIER_CLIENT ? 0 : r;
}

int nacre_get(nacre_session *session, const nacre_id *id, nacre_record *ret_record,
              nacre_error *reterr)
{
    bool unswept;
    int r = session_check_id(session, id, false, reterr);
    if (r == 0)
        r = session_record(session, id, HOME_FULL, ret_record, &unswept, reterr);
    bool mirrored = r == 0 && session_mirrors(session, id);
    if (r < 0 || !(unswept || mirrored))
        return r;
    if (mirrored)
        r = look_and_wait(session, ret_record, reterr);
    else
        ends_await(session, id);
    return r < 0 ? r : session_record(session, id, HOME_FULL, ret_record, NULL, reterr);
}

int nacre_remove(nacre_session *session, const nacre_id *id, nacre_error *reterr)
{
    struct catalog *catalog;
    nacre_op *op = NULL;
    int r = session_check_id(session, id, true, reterr);
    if (r < 0)
        return r;
    /* A damaged one cannot be looked at, and can be removed. */
    if (session_look(session, id, &op, NULL) == 0 && op)
        op_finish(op, NULL, 0, NULL);
    if (session_catalog(session, false, &catalog, NULL) < 0)
        catalog = NULL;
    return ends_remove(session, catalog, id, reterr);
}
