#include "catalog/rebuild.h"

#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/grow.h"
#include "catalog/query.h"
#include "catalog/runs_table.h"
#include "catalog/sessions_table.h"
#include "run/rundir.h"
#include "run/spare.h"
#include "sys/cgroup.h"

/* -- One run directory ------------------------------------------------------------------------- */

/* What it says; the strings live as long as spec and command. */
struct run_on_disk {
    struct catalog_run run;
    struct catalog_session session;
    struct run_state state;
    bool is_owed;
    struct spec spec;
    char *command;
};

static void found_done(struct run_on_disk *found)
{
    free((void *)found->spec.head);
    free(found->command);
}

static void fill_run(const struct run_state *state, int dir, struct catalog_run *run)
{
    *run = (struct catalog_run){
        .id = state->id,
        .session = state->session,
        .started_ms = state->started_ns / NS_PER_MS,
        .exited_ms = state->exited_ns / NS_PER_MS,
        .lifetime = state->kept ? NACRE_LIFE_KEEP : NACRE_LIFE_SESSION,
        .outcome = (nacre_outcome)state->outcome,
        .tree = (nacre_tree)state->tree,
        .bytes = state->log.end,
        .disk_bytes = run_cost(dir),
        .background = state->background,
        .state = state_is_final(state) ? state : NULL,
    };
}

/* A damaged spec costs the texts of the run, and no more. */
static int fill_texts(const struct run *run, struct run_on_disk *found)
{
    if (run_load_spec(run, &found->spec, NULL) < 0)
        return 0;
    const struct spec *spec = &found->spec;
    found->command = run_command_text(spec);
    if (!found->command)
        return SQLITE_NOMEM;
    found->run.command = found->command;
    found->run.cwd = spec_string(spec, spec->head->cwd);
    found->run.name = spec_string(spec, spec->head->name);
    found->run.description = spec_string(spec, spec->head->description);
    found->session.pid = spec->head->owner_pid;
    found->session.start = spec->head->owner_start;
    found->session.name = spec_string(spec, spec->head->session_name);
    found->session.cwd = spec_string(spec, spec->head->session_cwd);
    found->session.person = spec->head->person != 0;
    return 0;
}

static void fill_owner(const struct run_state *state, struct run_on_disk *found)
{
    struct catalog_session *session = &found->session;
    session->id = state->session;
    session->pid_ns = state->pid_ns;
    memcpy(session->boot, state->boot, sizeof session->boot);
    session->opened_ms = found->run.started_ms;
}

struct spare_search {
    const nacre_id *id;
    struct run *run;
};

static int open_in_spare(int runs_fd, void *userdata)
{
    const struct spare_search *search = userdata;
    return run_open(runs_fd, search->id, search->run, NULL) == 0;
}

/* In the home, or where it had no room. */
static int open_anywhere(const struct catalog *c, int runs_fd, const nacre_id *id,
                         struct run *ret_run)
{
    struct spare_search search = {id, ret_run};
    int r = runs_fd < 0 ? NACRE_ENOTFOUND : run_open(runs_fd, id, ret_run, NULL);
    return r == NACRE_ENOTFOUND && run_each_spare(c->home, open_in_spare, &search) > 0 ? 0 : r;
}

/* 0, a NACRE_* code if there is no such run or it is damaged, or SQLITE_NOMEM. */
static int read_run_dir(const struct catalog *c, int runs_fd, const nacre_id *id,
                        struct run_on_disk *found)
{
    cleanup_run struct run run = RUN_NONE;
    struct run_state *state = &found->state;
    int r = open_anywhere(c, runs_fd, id, &run);
    if (r == 0)
        r = run_read_state(&run, state, NULL);
    if (r < 0)
        return r;
    /* A keeper says that all is over before it clears away; it may have been killed in between. */
    if (state_is_final(state) && state->cgroup[0])
        cgroup_remove(state->cgroup);
    fill_run(state, run.dir, &found->run);
    fill_owner(state, found);
    found->is_owed = run_owes(&run, state);
    return fill_texts(&run, found);
}

/* A row keeps what only the catalog knows: who adopted it, and whether it is still owed. */
static int keep_known(struct catalog *c, struct run_on_disk *found)
{
    struct catalog_run *run = &found->run;
    struct query q = query_begin(c, "SELECT session FROM runs WHERE id = ?");
    query_id(&q, &run->id);
    if (query_row(&q)) {
        run->session = query_get_id(&q, 0);
        found->is_owed = false;
    }
    return query_end(&q);
}

static int put_run(struct catalog *c, struct run_on_disk *found)
{
    struct catalog_run *run = &found->run;
    int rc = keep_known(c, found);
    if (rc == 0)
        rc = runs_put(c, run);
    if (rc == 0)
        rc = sessions_put_hearsay(c, &found->session);
    if (rc == 0 && found->is_owed)
        rc = completions_restore(c, &run->id, &run->session);
    return rc;
}

static int take_run(struct catalog *c, int runs_fd, const nacre_id *id)
{
    struct run_on_disk found = {.is_owed = false};
    int r = read_run_dir(c, runs_fd, id, &found);
    if (r == 0)
        r = put_run(c, &found);
    found_done(&found);
    return r;
}

struct rebuild_walk {
    struct catalog *c;
    int runs_fd;
    uint32_t count;
};

static int walk_run(const nacre_id *id, void *userdata)
{
    struct rebuild_walk *walk = userdata;
    int r = take_run(walk->c, walk->runs_fd, id);
    if (r == 0)
        walk->count++;
    return r > 0 ? r : 0;
}

static int walk_spare(int runs_fd, void *userdata)
{
    return run_each(runs_fd, walk_run, userdata);
}

/* -- What changed ------------------------------------------------------------------------------ */

/* Ids in their order. */
struct ids {
    nacre_id *items;
    size_t count;
    size_t room;
};

static void ids_done(struct ids *ids)
{
    free(ids->items);
}

#define cleanup_ids __attribute__((cleanup(ids_done)))

static int ids_add(const nacre_id *id, void *userdata)
{
    struct ids *ids = userdata;
    if (GROW(ids->items, ids->count, ids->room) < 0)
        return SQLITE_NOMEM;
    ids->items[ids->count++] = *id;
    return 0;
}

static int compare_ids(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(nacre_id));
}

static int ids_of_spare(int runs_fd, void *userdata)
{
    return run_each(runs_fd, ids_add, userdata);
}

static int ids_of_directories(const struct catalog *c, int runs_fd, struct ids *ids)
{
    int r = runs_fd < 0 ? 0 : run_each(runs_fd, ids_add, ids);
    if (r == 0)
        r = run_each_spare(c->home, ids_of_spare, ids);
    if (r == 0 && ids->count > 1)
        qsort(ids->items, ids->count, sizeof *ids->items, compare_ids);
    return r < 0 ? SQLITE_IOERR : r;
}

static int ids_of_rows(struct catalog *c, struct ids *all, struct ids *over)
{
    int r = 0;
    struct query q = query_begin(c, "SELECT id, final FROM runs ORDER BY id");
    while (r == 0 && query_row(&q)) {
        nacre_id id = query_get_id(&q, 0);
        r = ids_add(&id, all);
        if (r == 0 && query_get_int(&q, 1))
            r = ids_add(&id, over);
    }
    int ended = query_end(&q);
    return ended != 0 ? ended : r;
}

/* What is in one and not in the other. */
static int ids_missing(const struct ids *here, const struct ids *there, struct ids *ret_missing)
{
    int r = 0;
    size_t j = 0;
    for (size_t i = 0; r == 0 && i < here->count; i++) {
        while (j < there->count && compare_ids(&there->items[j], &here->items[i]) < 0)
            j++;
        if (j == there->count || compare_ids(&there->items[j], &here->items[i]) != 0)
            r = ids_add(&here->items[i], ret_missing);
    }
    return r;
}

struct changes {
    struct ids rows;
    struct ids over; /* of these: nobody lives who could have taken the directory away */
    struct ids directories;
    struct ids fresh;
    struct ids gone;
};

static void changes_done(struct changes *changes)
{
    ids_done(&changes->rows);
    ids_done(&changes->over);
    ids_done(&changes->directories);
    ids_done(&changes->fresh);
    ids_done(&changes->gone);
}

#define cleanup_changes __attribute__((cleanup(changes_done)))

static int note_rows(struct catalog *c, void *arg)
{
    struct changes *changes = arg;
    changes->rows.count = changes->over.count = 0;
    return ids_of_rows(c, &changes->rows, &changes->over);
}

static int compare(struct changes *changes, nacre_error *err)
{
    if (ids_missing(&changes->directories, &changes->rows, &changes->fresh) != 0 ||
        ids_missing(&changes->over, &changes->directories, &changes->gone) != 0)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    return 0;
}

/* The rows first: a run that starts in between has a directory before it has a row, and would be
 * taken for gone. What is gone never comes back. */
static int look_for_changes(struct catalog *c, struct changes *changes, nacre_error *err)
{
    int r = db_read(c, note_rows, changes, err);
    if (r < 0)
        return r;
    cleanup_close int runs_fd = db_open_runs(c);
    if (runs_fd < 0 && runs_fd != -ENOENT)
        return err_sys(err, NACRE_EIO, -runs_fd, "runs", "cannot open the directory of runs");
    if (ids_of_directories(c, runs_fd, &changes->directories) != 0)
        return err_set(err, NACRE_EIO, "cannot read the directory of runs");
    return compare(changes, err);
}

static int take_changes(struct catalog *c, void *arg)
{
    const struct changes *changes = arg;
    cleanup_close int runs_fd = db_open_runs(c);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < changes->gone.count; i++)
        rc = runs_remove(c, &changes->gone.items[i]);
    for (size_t i = 0; rc == 0 && i < changes->fresh.count; i++) {
        int r = take_run(c, runs_fd, &changes->fresh.items[i]);
        rc = MAX(r, 0); /* a damaged one is passed over */
    }
    return rc;
}

int catalog_sync(struct catalog *c, nacre_error *err)
{
    cleanup_changes struct changes changes = {0};
    int r = look_for_changes(c, &changes, err);
    if (r == 0 && (changes.fresh.count > 0 || changes.gone.count > 0))
        r = db_write(c, take_changes, &changes, err);
    return r;
}

int catalog_each_stray(struct catalog *c, run_fn *fn, void *userdata, nacre_error *err)
{
    cleanup_changes struct changes changes = {0};
    int r = look_for_changes(c, &changes, err);
    for (size_t i = 0; r == 0 && i < changes.fresh.count; i++)
        r = fn(&changes.fresh.items[i], userdata);
    return r;
}

/* -- All of them ------------------------------------------------------------------------------- */

static int drop_gone(struct catalog *c, int runs_fd)
{
    cleanup_ids struct ids rows = {0}, over = {0}, directories = {0}, gone = {0};
    int rc = ids_of_rows(c, &rows, &over);
    if (rc == 0)
        rc = ids_of_directories(c, runs_fd, &directories);
    if (rc == 0)
        rc = ids_missing(&over, &directories, &gone);
    for (size_t i = 0; rc == 0 && i < gone.count; i++)
        rc = runs_remove(c, &gone.items[i]);
    return rc;
}

int rebuild_all(struct catalog *c, uint32_t *ret_count)
{
    cleanup_close int runs_fd = db_open_runs(c);
    struct rebuild_walk walk = {.c = c, .runs_fd = runs_fd};
    if (runs_fd < 0 && runs_fd != -ENOENT)
        return SQLITE_IOERR;
    int r = runs_fd < 0 ? 0 : run_each(runs_fd, walk_run, &walk);
    if (r == 0)
        r = run_each_spare(c->home, walk_spare, &walk);
    if (r == 0)
        r = drop_gone(c, runs_fd);
    *ret_count = walk.count;
    return r < 0 ? SQLITE_IOERR : r;
}

static int rebuild_op(struct catalog *c, void *arg)
{
    return rebuild_all(c, arg);
}

int catalog_rebuild(struct catalog *c, nacre_error *err)
{
    uint32_t count = 0;
    int r = db_write(c, rebuild_op, &count, err);
    return r < 0 ? r : (int)count;
}

static int remove_if_over(struct catalog *c, const nacre_id *id)
{
    struct query q = query_begin(c, "SELECT final FROM runs WHERE id = ?");
    query_id(&q, id);
    bool over = query_row(&q) && query_get_int(&q, 0);
    int rc = query_end(&q);
    return rc == 0 && over ? runs_remove(c, (void *)id) : rc;
}

struct refreshing {
    const nacre_id *id;
    int result; /* of looking at the directory */
};

static int refresh_op(struct catalog *c, void *arg)
{
    struct refreshing *refreshing = arg;
    cleanup_close int runs_fd = db_open_runs(c);
    /* What cannot be looked at now is not gone: it keeps its row, and what is owed of it. */
    int r = runs_fd < 0 && runs_fd != -ENOENT ? NACRE_EIO : take_run(c, runs_fd, refreshing->id);
    refreshing->result = r < 0 ? r : 0;
    if (r == NACRE_ENOTFOUND)
        return remove_if_over(c, refreshing->id);
    return r > 0 ? r : 0;
}

int catalog_refresh(struct catalog *c, const nacre_id *run, nacre_error *err)
{
    struct refreshing refreshing = {.id = run};
    int r = db_write(c, refresh_op, &refreshing, err);
    if (r < 0 || refreshing.result == 0)
        return r;
    if (refreshing.result == NACRE_ENOTFOUND)
        return err_set(err, NACRE_ENOTFOUND, "no shell with id \"%s\"", nacre_id_short(run).s);
    return err_set(err, refreshing.result, "the directory of shell %s cannot be read",
                   nacre_id_short(run).s);
}

/* From then on it may be told, and is not to be owed once more. */
static int knows_outcome(struct catalog *c, const nacre_id *id, bool *ret_known)
{
    struct query q = query_begin(c, "SELECT outcome FROM runs WHERE id = ?");
    query_id(&q, id);
    *ret_known = query_row(&q) && query_get_int(&q, 0) != NACRE_RUNNING;
    return query_end(&q);
}

static int take_awaited_op(struct catalog *c, void *arg)
{
    const struct catalog_run *known = arg;
    bool ended;
    cleanup_close int runs_fd = db_open_runs(c);
    int r = knows_outcome(c, &known->id, &ended);
    if (r == 0)
        r = take_run(c, runs_fd, &known->id);
    if (r < 0)
        r = runs_put(c, arg);
    return r == 0 && !ended ? completions_restore(c, &known->id, &known->session) : r;
}

int catalog_take_awaited(struct catalog *c, const struct catalog_run *known, nacre_error *err)
{
    return db_write(c, take_awaited_op, (void *)known, err);
}
