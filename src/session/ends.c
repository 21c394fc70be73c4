/*
 * Hearing how shells end. Keepers ring; a ring can be lost and a keeper can be killed, so shells
 * that were silent for a while are looked at too. The state files are what counts.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/op.h"
#include "base/clock.h"
#include "base/defs.h"
#include "home/door.h"
#include "home/home.h"
#include "home/keeper_line.h"
#include "home/report.h"
#include "session/exec_gate.h"
#include "session/session.h"

#define SILENT_MS   1000
#define LOOK_MAX    1024
#define DROP_MAX    16
#define ROUND_MS    2
#define UNFILED_MAX 64   /* in one look */
#define LOOKS_MS    8000 /* who looks at a whole home waits no longer for what resists */

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

int ends_shelve_awaited(nacre_session *s, struct catalog_run *known)
{
    struct catalog *catalog;
    int r = session_catalog(s, true, &catalog, NULL);
    known->session = s->id;
    known->background = true;
    return r < 0 ? r : catalog_take_awaited(catalog, known, NULL);
}

/* What another session left is owed already. */
static int shelve_outcome(nacre_session *s, const struct shell *shell, const nacre_record *record)
{
    struct catalog_run known = {
        .id = record->id,
        .started_ms = record->started_ms,
        .exited_ms = record->exited_ms,
        .lifetime = record->lifetime,
        .outcome = record->outcome,
        .tree = record->tree,
        .bytes = record->bytes[NACRE_STDOUT] + record->bytes[NACRE_STDERR],
    };
    return shell->foreign ? ends_shelve(s, &record->id) : ends_shelve_awaited(s, &known);
}

/* An outcome is due once the catalog has it; if it cannot be written now, it is tried again. */
static void note_outcome(nacre_session *s, const struct shell *shell, const nacre_record *record)
{
    int r = shelve_outcome(s, shell, record);
    if ((r >= 0 || r == NACRE_ENOTFOUND) && registry_stop_awaiting(s->registry, &record->id))
        completion_set_due(s);
}

/* What the rules refused it comes before its end. */
static void note_end_in_log(nacre_session *s, const nacre_record *record)
{
    nacre_record whole cleanup_record = NACRE_RECORD_INIT;
    bool known = s->audit && s->gated &&
                 home_record(s->home, &record->id, HOME_PLAIN, &whole, NULL, NULL) == 0;
    for (int i = 0; known && i < whole.denial_count; i++)
        if (whole.denials[i].kind == NACRE_DENIAL_EXEC)
            audit_refused_exec(s->audit, &record->id, &whole.denials[i]);
    audit_end(s->audit, record);
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
        note_end_in_log(s, record);
    if (shell.awaited && life != SHELL_RUNNING)
        note_outcome(s, &shell, record);
    else if (shell.background && life > shell.life)
        ends_shelve(s, &record->id);
}

/* -- Looking ---------------------------------------------------------------------------------- */

/* What lost its keeper is swept bit by bit, whenever somebody looks. */
struct pending_look {
    struct pending_look *next;
    nacre_id id;
    nacre_op *op;
};

static struct pending_look *take_looks(nacre_session *s)
{
    pthread_mutex_lock(&s->lock);
    struct pending_look *looks = TAKE_PTR(s->looks);
    pthread_mutex_unlock(&s->lock);
    return looks;
}

static void free_look(struct pending_look *look)
{
    op_end(&look->op);
    free(look);
}

void ends_done(nacre_session *s)
{
    struct pending_look *look = take_looks(s), *next;
    for (; look; look = next) {
        next = look->next;
        free_look(look);
    }
}

static size_t count_looks(nacre_session *s, const nacre_id *id)
{
    size_t count = 0;
    pthread_mutex_lock(&s->lock);
    for (const struct pending_look *look = s->looks; look; look = look->next)
        count += !id || nacre_id_equal(&look->id, id);
    pthread_mutex_unlock(&s->lock);
    return count;
}

/* Goes on with a look, which is kept or freed. */
static void step_look(nacre_session *s, struct pending_look *look)
{
    nacre_record record = NACRE_RECORD_INIT;
    int r = clock_left_ms(look->op->wake_ns) == 0 ? look->op->step(look->op, NULL) : 0;
    if (r == 0) {
        pthread_mutex_lock(&s->lock);
        look->next = s->looks;
        s->looks = look;
        pthread_mutex_unlock(&s->lock);
        return;
    }
    if (r > 0 && home_record(s->home, &look->id, HOME_LIGHT, &record, NULL, NULL) == 0)
        ends_note(s, &record);
    free_look(look);
}

/* What the session knows by itself. */
static void describe(const nacre_session *s, const struct shell *shell, struct run_state *ret)
{
    home_guess_state(s->home, &shell->id, ret);
    ret->background = shell->background;
    ret->kept = shell->kept;
    ret->started_ns = shell->started_ns;
    ret->log.end = ret->log.bytes[NACRE_STDOUT] = shell->end;
}

/* Nothing can be written: it is over, and nobody hears more of it. */
static void give_up(nacre_session *s, const struct shell *shell)
{
    registry_note(s->registry, &shell->id, SHELL_OVER, shell->end, now_ms());
    registry_stop_awaiting(s->registry, &shell->id);
}

bool ends_bury(nacre_session *s, const nacre_id *id, int r)
{
    struct shell shell;
    struct run_state state;
    if (!door_is_lost(r) || session_mirrors(s, id) || !registry_get(s->registry, id, &shell) ||
        shell.foreign || shell.life == SHELL_OVER)
        return false;
    cleanup_close int sock = keeper_line_open(id, -1);
    if (sock != -ECONNREFUSED)
        return false;
    describe(s, &shell, &state);
    bool written = home_rewrite_run(s->home, &state) == 0;
    if (!written)
        give_up(s, &shell);
    return written;
}

static void sweep_a_bit(nacre_session *s, const nacre_id *id)
{
    struct pending_look *look = count_looks(s, id) > 0 ? NULL : calloc(1, sizeof *look);
    if (!look)
        return;
    look->id = *id;
    int r = home_look(s->home, id, 0, &look->op, NULL);
    if (ends_bury(s, id, r))
        r = home_look(s->home, id, 0, &look->op, NULL);
    if (r == 0) {
        look->op->wake_ns = 0;
        step_look(s, look);
    } else {
        free_look(look);
    }
}

static void step_looks(nacre_session *s)
{
    struct pending_look *look = take_looks(s), *next;
    for (; look; look = next) {
        next = look->next;
        step_look(s, look);
    }
}

struct looks_op {
    nacre_op op;
    nacre_session *session;
    const nacre_id *id; /* NULL = of all */
};

static int step_all_looks(nacre_op *op, nacre_error *err UNUSED)
{
    const struct looks_op *looks = (struct looks_op *)op;
    step_looks(looks->session);
    op->wake_ns = clock_deadline(ROUND_MS);
    return count_looks(looks->session, looks->id) == 0;
}

void ends_await(nacre_session *s, const nacre_id *id)
{
    struct looks_op looks = {.op = OP_INIT(step_all_looks, NULL), .session = s, .id = id};
    op_wait(&looks.op, LOOKS_MS, NULL);
}

/* Of a shell whose files cannot be read, what was last heard. */
static int recall_shell(nacre_session *s, const nacre_id *id, enum home_detail detail,
                        nacre_record *ret_record)
{
    struct shell shell;
    struct run_state state;
    if (!registry_get(s->registry, id, &shell) || shell.foreign || shell.life == SHELL_OVER)
        return NACRE_ENOTFOUND;
    describe(s, &shell, &state);
    if (detail != HOME_LIGHT)
        return report_fill_plain(&state, NULL, ret_record, NULL);
    report_state(&state, ret_record);
    return 0;
}

/* What can be read is there in a moment, or it is lost: a look that goes on finds out which. */
int session_record(nacre_session *s, const nacre_id *id, enum home_detail detail,
                   nacre_record *ret_record, bool *ret_unswept, nacre_error *err)
{
    bool unswept;
    int r = home_record(s->home, id, detail, ret_record, &unswept, err);
    if (ret_unswept)
        *ret_unswept = r == 0 && unswept;
    if (r == 0 && !unswept)
        ends_note(s, ret_record);
    if (!door_is_lost(r) && !(r == 0 && unswept))
        return r;
    sweep_a_bit(s, id);
    if (r == 0)
        return r;
    bool recalled = recall_shell(s, id, detail, ret_record) == 0;
    if (recalled && ret_unswept)
        *ret_unswept = true;
    return recalled ? 0 : r;
}

bool ends_are_known(nacre_session *s, const nacre_id *id)
{
    struct shell shell;
    return registry_get(s->registry, id, &shell) && !shell.foreign && shell.life == SHELL_OVER &&
           !shell.awaited;
}

void ends_look(nacre_session *s, const nacre_id *id)
{
    nacre_record record = NACRE_RECORD_INIT;
    if (ends_are_known(s, id))
        return;
    if (session_mirrors(s, id))
        home_pump(s->home, id, true);
    session_record(s, id, HOME_LIGHT, &record, NULL, NULL);
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
        ends_look(s, &shells[i].id);
}

size_t ends_look_at_all(nacre_session *s)
{
    step_looks(s);
    look_at_silent(s, INT64_MAX);
    return count_looks(s, NULL);
}

/* Whether it is time; one thread at a time does it. */
static bool is_time_to_look(nacre_session *s)
{
    int64_t now = now_ms();
    pthread_mutex_lock(&s->lock);
    bool due = now - s->swept_ms >= SILENT_MS;
    if (due)
        s->swept_ms = now;
    pthread_mutex_unlock(&s->lock);
    return due;
}

static void take_rings(nacre_session *s, const nacre_backend_ops *ops, void *self)
{
    nacre_id id;
    while (ops->rung && ops->rung(self, &id) > 0)
        ends_look(s, &id);
}

void ends_hear_keepers(nacre_session *s)
{
    take_rings(s, s->keepers.ops, s->keepers.self);
    exec_gate_hear(s);
}

void ends_hear(nacre_session *s)
{
    ends_hear_keepers(s);
    if (s->self != s->keepers.self)
        take_rings(s, &s->ops, s->self);
    step_looks(s);
    if (is_time_to_look(s))
        look_at_silent(s, now_ms() - SILENT_MS);
    /* Only now: what has ended is known of all, and what was read leaves first. */
    shorten_list(s);
}

/* -- With the session ------------------------------------------------------------------------- */

struct ends_rest {
    size_t count;
    struct shell shells[];
};

static bool is_unheard(const struct shell *shell, const void *argument UNUSED)
{
    return shell->life == SHELL_RUNNING && !shell->foreign;
}

struct ends_rest *ends_rest_new(nacre_session *s)
{
    size_t count = s->audit ? registry_select(s->registry, is_unheard, NULL, NULL, 0) : 0;
    if (count == 0)
        return NULL;
    struct ends_rest *rest = calloc(1, sizeof *rest + count * sizeof rest->shells[0]);
    if (!rest)
        return NULL;
    rest->count = MIN(count, registry_select(s->registry, is_unheard, NULL, rest->shells, count));
    return rest;
}

void ends_rest_tell_consume(nacre_session *s, struct ends_rest *rest)
{
    for (size_t i = 0; rest && i < rest->count; i++) {
        nacre_record record = NACRE_RECORD_INIT;
        if (home_record(s->home, &rest->shells[i].id, HOME_LIGHT, &record, NULL, NULL) == 0 &&
            record.outcome != NACRE_RUNNING)
            audit_end(s->audit, &record);
    }
    free(rest);
}

/* -- Removing --------------------------------------------------------------------------------- */

/*
 * A run without a directory is one that a command has taken away, and is written anew if anybody
 * knows of it. So the registry and the catalog forget it first: who then finds its directory half
 * removed, and asks them, does not bring it back.
 */
int ends_remove(nacre_session *s, struct catalog *catalog, const nacre_id *id, nacre_error *err)
{
    nacre_record record = NACRE_RECORD_INIT;
    int r = home_may_remove(s->home, id, &record, err);
    if (r < 0)
        return r;
    if (r > 0)
        ends_note(s, &record);
    registry_remove(s->registry, id);
    if (catalog)
        catalog_remove_run(catalog, id, NULL);
    return home_remove_run(s->home, id, err);
}

/* -- Of other sessions ------------------------------------------------------------------------ */

struct home_walk {
    nacre_session *session;
    struct catalog *catalog;
    bool also_running;
    bool swept; /* what has to be has been */
};

static int refresh_open(const struct catalog_run *run, void *userdata)
{
    const struct home_walk *walk = userdata;
    nacre_record record = NACRE_RECORD_INIT;
    bool unswept;
    int r = home_record(walk->session->home, &run->id, HOME_LIGHT, &record, &unswept, NULL);
    if (((r == 0 && unswept) || door_is_lost(r)) && !walk->swept)
        sweep_a_bit(walk->session, &run->id);
    if (r == 0 && (walk->also_running || record.outcome != NACRE_RUNNING))
        catalog_refresh(walk->catalog, &run->id, NULL);
    return 0;
}

/* With neither files nor a keeper, what the catalog knows is what there is to sweep by. */
static void rewrite_row(nacre_session *s, const struct catalog_run *run)
{
    struct run_state state;
    home_guess_state(s->home, &run->id, &state);
    state.session = run->session;
    state.background = run->background;
    state.kept = run->lifetime == NACRE_LIFE_KEEP;
    state.started_ns = run->started_ms * NS_PER_MS;
    home_rewrite_run(s->home, &state);
}

static bool row_is_open(struct catalog *catalog, const nacre_id *id)
{
    struct catalog_run *row;
    if (catalog_get_run(catalog, id, &row, NULL) < 0)
        return false;
    bool open = !row->final;
    free(row);
    return open;
}

/* What has lost its directory is not gone as long as it has a keeper, which puts it back. */
static int mend_open(const struct catalog_run *run, void *userdata)
{
    const struct home_walk *walk = userdata;
    cleanup_run struct run opened = RUN_NONE;
    if (!door_is_lost(home_open_run(walk->session->home, &run->id, &opened, NULL)))
        return 0;
    cleanup_close int keeper = keeper_line_open(&run->id, -1);
    /* Whoever removes a run takes its row first: so that is asked for now. */
    if (!row_is_open(walk->catalog, &run->id))
        return 0;
    if (keeper == -ECONNREFUSED)
        rewrite_row(walk->session, run);
    sweep_a_bit(walk->session, &run->id);
    return 0;
}

/* What lost its keeper before it was a run is swept, and nobody else would. */
static int sweep_stray(const nacre_id *id, void *userdata)
{
    const struct home_walk *walk = userdata;
    sweep_a_bit(walk->session, id);
    return 0;
}

/* -- Without files or a row -------------------------------------------------------------------- */

/*
 * A command may take its directory away before there is a row for it: the catalog may have been
 * busy, or gone with the home. Then the sign on the door of its keeper is what leads to it, also if
 * that is stopped. It puts the directory back when it is knocked at.
 */
struct unfiled {
    nacre_session *session;
    size_t count;
    nacre_id ids[UNFILED_MAX];
};

static int note_unfiled(const nacre_id *id, void *userdata)
{
    struct unfiled *unfiled = userdata;
    cleanup_run struct run run = RUN_NONE;
    if (door_is_lost(home_open_run(unfiled->session->home, id, &run, NULL)))
        unfiled->ids[unfiled->count++] = *id;
    return unfiled->count == UNFILED_MAX;
}

struct knocking {
    struct unfiled unfiled;
    bool any;
};

/* Its sign is still there, so it was not over when its directory was missing, and nobody but its
 * command can have removed that. */
static int knock_if_unfiled(const nacre_id *id, void *userdata)
{
    struct knocking *knocking = userdata;
    for (size_t i = 0; i < knocking->unfiled.count; i++)
        if (nacre_id_equal(id, &knocking->unfiled.ids[i])) {
            sweep_a_bit(knocking->unfiled.session, id);
            knocking->any = true;
        }
    return 0;
}

static void knock_at_unfiled(nacre_session *s, bool wait)
{
    struct knocking knocking = {.unfiled = {.session = s}};
    door_each_signed(s->home, note_unfiled, &knocking.unfiled);
    if (knocking.unfiled.count > 0)
        door_each_signed(s->home, knock_if_unfiled, &knocking);
    if (knocking.any && wait)
        ends_await(s, NULL);
}

/* All at once, and once more what came of it. */
static int await_looks(struct home_walk *walk, const struct catalog_filter *open, nacre_error *err)
{
    if (count_looks(walk->session, NULL) == 0)
        return 0;
    ends_await(walk->session, NULL);
    walk->swept = true;
    return catalog_each_run(walk->catalog, open, refresh_open, walk, err);
}

/* What can be ended is, whether or not the catalog can be written: who holds that may be a command
 * that was to be ended. */
static int refresh(nacre_session *s, struct catalog *catalog, unsigned how, nacre_error *err)
{
    struct catalog_filter open = {.state = CATALOG_OPEN};
    struct home_walk walk = {
        .session = s, .catalog = catalog, .also_running = how & ENDS_RUNNING_TOO};
    catalog_each_run(catalog, &open, mend_open, &walk, NULL);
    int r = catalog_sync(catalog, err);
    /* Without a file every answer is made of the directories, and is not old. */
    if (r == NACRE_ENOTFOUND)
        r = 0;
    nacre_error *more = r < 0 ? NULL : err;
    int read = catalog_each_run(catalog, &open, refresh_open, &walk, more);
    if (read >= 0)
        read = catalog_each_stray(catalog, sweep_stray, &walk, more);
    if (read >= 0 && how & ENDS_WAIT)
        read = await_looks(&walk, &open, more);
    return MIN(r < 0 ? r : read, 0);
}

int ends_refresh_home(nacre_session *s, unsigned how, struct catalog **ret_catalog,
                      nacre_error *err)
{
    knock_at_unfiled(s, how & ENDS_WAIT);
    int r = session_catalog(s, false, ret_catalog, err);
    if (r < 0)
        return r;
    if (how & ENDS_INDEX)
        catalog_create(*ret_catalog, NULL);
    return refresh(s, *ret_catalog, how, err);
}
