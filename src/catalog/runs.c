#include "catalog/runs.h"

#include <stdlib.h>
#include <string.h>

#include "base/defs.h"
#include "base/err.h"
#include "base/text.h"
#include "catalog/query.h"
#include "catalog/run_rows.h"
#include "run/state.h"

static int no_run(const nacre_id *id, nacre_error *err)
{
    return err_set(err, NACRE_ENOTFOUND, "no shell with id \"%s\" in the catalog",
                   nacre_id_short(id).s);
}

/* -- Writing -------------------------------------------------------------------------------------
 */

/* The first outcome stays, an empty tree stays empty, counts only grow. */
static const char put_sql[] =
    "INSERT INTO runs (" RUN_COLUMNS ")"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
    " ON CONFLICT (id) DO UPDATE SET session = excluded.session,"
    " started_ms = excluded.started_ms, lifetime = excluded.lifetime,"
    " exited_ms = CASE WHEN outcome = 0 THEN excluded.exited_ms ELSE exited_ms END,"
    " outcome = CASE WHEN outcome = 0 THEN excluded.outcome ELSE outcome END,"
    " tree = max(tree, excluded.tree),"
    " bytes = max(bytes, excluded.bytes),"
    " log_bytes = excluded.log_bytes,"
    " read_to = max(read_to, excluded.read_to),"
    " background = max(background, excluded.background),"
    " final = (outcome <> 0 OR excluded.outcome <> 0) AND (tree = 1 OR excluded.tree = 1),"
    " name = excluded.name, cwd = excluded.cwd, description = excluded.description,"
    " command = excluded.command, state = coalesce(excluded.state, state)";

static bool is_final(nacre_outcome outcome, nacre_tree tree)
{
    return outcome != NACRE_RUNNING && tree == NACRE_TREE_EMPTY;
}

int runs_put(struct catalog *c, void *arg)
{
    const struct catalog_run *run = arg;
    const char *command = run->command ? run->command : "";
    size_t size = strnlen(command, CATALOG_COMMAND_MAX + 1);
    if (size > CATALOG_COMMAND_MAX)
        size = text_whole(command, CATALOG_COMMAND_MAX);
    struct query q = query_begin(c, put_sql);
    query_id(&q, &run->id);
    query_id(&q, &run->session);
    query_int(&q, run->started_ms);
    query_int(&q, run->exited_ms);
    query_int(&q, run->lifetime);
    query_int(&q, run->outcome);
    query_int(&q, run->tree);
    query_int(&q, (int64_t)run->bytes);
    query_int(&q, (int64_t)run->log_bytes);
    query_int(&q, (int64_t)run->read_to);
    query_int(&q, run->background);
    query_int(&q, is_final(run->outcome, run->tree));
    query_text(&q, run->name);
    query_text(&q, run->cwd);
    query_text(&q, run->description);
    query_text_cut(&q, command, size);
    query_blob(&q, run->state, run->state ? sizeof *run->state : 0);
    return query_run(&q, NULL);
}

int catalog_put_run(struct catalog *c, const struct catalog_run *run, nacre_error *err)
{
    return db_write(c, runs_put, (void *)run, err);
}

int runs_remove(struct catalog *c, void *arg)
{
    static const char *const statements[] = {
        "DELETE FROM runs WHERE id = ?",
        "DELETE FROM owed WHERE run = ?",
    };
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < ARRAY_SIZE(statements); i++) {
        struct query q = query_begin(c, statements[i]);
        query_id(&q, arg);
        rc = query_run(&q, NULL);
    }
    return rc;
}

int catalog_remove_run(struct catalog *c, const nacre_id *run, nacre_error *err)
{
    return db_write(c, runs_remove, (void *)run, err);
}

struct owning {
    const nacre_id *id;
    const nacre_id *session;
    nacre_lifetime lifetime;
};

static int own_op(struct catalog *c, void *arg)
{
    const struct owning *owning = arg;
    struct query q = query_begin(c, "UPDATE runs SET session = ?, lifetime = ? WHERE id = ?");
    query_id(&q, owning->session);
    query_int(&q, owning->lifetime);
    query_id(&q, owning->id);
    int changes;
    int rc = query_run(&q, &changes);
    return rc == 0 && changes == 0 ? NACRE_ENOTFOUND : rc;
}

int catalog_set_owner(struct catalog *c, const nacre_id *run, const nacre_id *session,
                      nacre_lifetime lifetime, nacre_error *err)
{
    struct owning owning = {.id = run, .session = session, .lifetime = lifetime};
    int r = db_write(c, own_op, &owning, err);
    return r == NACRE_ENOTFOUND ? no_run(run, err) : r;
}

struct reading {
    const nacre_id *id;
    uint64_t read_to;
};

static int read_op(struct catalog *c, void *arg)
{
    const struct reading *reading = arg;
    struct query q = query_begin(c, "UPDATE runs SET read_to = max(read_to, ?) WHERE id = ?");
    query_int(&q, (int64_t)reading->read_to);
    query_id(&q, reading->id);
    int changes;
    int rc = query_run(&q, &changes);
    return rc == 0 && changes == 0 ? NACRE_ENOTFOUND : rc;
}

int catalog_set_read(struct catalog *c, const nacre_id *run, uint64_t read_to, nacre_error *err)
{
    struct reading reading = {.id = run, .read_to = read_to};
    int r = db_write(c, read_op, &reading, err);
    return r == NACRE_ENOTFOUND ? no_run(run, err) : r;
}

/* -- Reading -------------------------------------------------------------------------------------
 */

struct getting {
    const nacre_id *id;
    struct rows rows;
};

static int get_op(struct catalog *c, void *arg)
{
    struct getting *getting = arg;
    rows_done(&getting->rows);
    struct query q = query_begin(c, "SELECT " RUN_SELECT " FROM runs WHERE id = ?");
    query_id(&q, getting->id);
    return run_rows_take(&q, &getting->rows);
}

int catalog_get_run(struct catalog *c, const nacre_id *run, struct catalog_run **ret_run,
                    nacre_error *err)
{
    struct getting getting = {.id = run};
    int r = db_read(c, get_op, &getting, err);
    if (r == 0 && getting.rows.count == 0)
        r = no_run(run, err);
    if (r == 0)
        *ret_run = TAKE_PTR(getting.rows.items[0]);
    rows_done(&getting.rows);
    return r;
}

struct counting {
    const nacre_id *session;
    struct catalog_counts counts;
};

static int count_op(struct catalog *c, void *arg)
{
    static const char runs[] = "SELECT (SELECT count(*) FROM runs WHERE session = ?1),"
                               " (SELECT count(*) FROM runs"
                               " WHERE session = ?1 AND final = 0 AND outcome = 0)";
    static const char owed[] = "SELECT sum(offered = 0 AND outcome <> 0)"
                               " FROM owed JOIN runs ON runs.id = run WHERE owed.session = ?";
    struct counting *counting = arg;
    counting->counts = (struct catalog_counts){0};
    struct query q = query_begin(c, runs);
    query_id(&q, counting->session);
    if (query_row(&q)) {
        counting->counts.runs = (uint32_t)query_get_int(&q, 0);
        counting->counts.running = (uint32_t)query_get_int(&q, 1);
    }
    int rc = query_end(&q);
    if (rc != 0)
        return rc;
    q = query_begin(c, owed);
    query_id(&q, counting->session);
    if (query_row(&q))
        counting->counts.due = (uint32_t)query_get_int(&q, 0);
    return query_end(&q);
}

int catalog_counts(struct catalog *c, const nacre_id *session, struct catalog_counts *ret_counts,
                   nacre_error *err)
{
    struct counting counting = {.session = session};
    int r = db_read(c, count_op, &counting, err);
    if (r == 0)
        *ret_counts = counting.counts;
    return r;
}
