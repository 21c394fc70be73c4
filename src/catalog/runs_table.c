#include "catalog/runs_table.h"

#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "catalog/query.h"
#include "run/state.h"

/* In the order that a query for take_runs() has them. log_bytes is what all of the run takes of the
 * disk: it has its name from when the log was all that counted. */
#define RUN_COLUMNS                                                                           \
    "id, session, started_ms, exited_ms, lifetime, outcome, tree, bytes, log_bytes, read_to," \
    " background, final, name, cwd, description, command, state"

/* And what is read besides. */
#define RUN_SELECT RUN_COLUMNS ", EXISTS (SELECT 1 FROM owed WHERE run = runs.id)"

static int no_run(const nacre_id *id, nacre_error *err)
{
    return err_set(err, NACRE_ENOTFOUND, "no shell with id \"%s\" in the catalog",
                   nacre_id_short(id).s);
}

/* -- Writing ----------------------------------------------------------------------------------- */

/* The first outcome stays, an empty tree stays empty, counts only grow, texts are never unlearned.
 */
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
    " name = coalesce(nullif(excluded.name, ''), name),"
    " cwd = coalesce(nullif(excluded.cwd, ''), cwd),"
    " description = coalesce(nullif(excluded.description, ''), description),"
    " command = coalesce(nullif(excluded.command, ''), command),"
    " state = coalesce(excluded.state, state)";

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
    query_int(&q, (int64_t)run->disk_bytes);
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
    int rc = query_run_ids(c, "DELETE FROM runs WHERE id = ?", arg, NULL);
    return rc ? rc : query_run_ids(c, "DELETE FROM owed WHERE run = ?", arg, NULL);
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

struct read_mark {
    const nacre_id *id;
    uint64_t read_to;
};

static int read_op(struct catalog *c, void *arg)
{
    const struct read_mark *reading = arg;
    struct query q = query_begin(c, "UPDATE runs SET read_to = max(read_to, ?) WHERE id = ?");
    query_int(&q, (int64_t)reading->read_to);
    query_id(&q, reading->id);
    int changes;
    int rc = query_run(&q, &changes);
    return rc == 0 && changes == 0 ? NACRE_ENOTFOUND : rc;
}

int catalog_set_read(struct catalog *c, const nacre_id *run, uint64_t read_to, nacre_error *err)
{
    struct read_mark reading = {.id = run, .read_to = read_to};
    int r = db_write(c, read_op, &reading, err);
    return r == NACRE_ENOTFOUND ? no_run(run, err) : r;
}

/* -- Reading ----------------------------------------------------------------------------------- */

/* A state of this very format; NULL if there is none. */
static const struct run_state *take_state(struct query *q, int column, struct run_state *ret_state)
{
    if (query_size(q, column) != sizeof *ret_state)
        return NULL;
    query_get_blob(q, column, ret_state, sizeof *ret_state);
    return ret_state->format == RUN_FORMAT ? ret_state : NULL;
}

/* A row, its state and its strings are one block. */
struct block {
    struct catalog_run run;
    struct run_state state;
};

static void *take_run_row(struct query *q)
{
    const char *strings[] = {query_get_text(q, 12), query_get_text(q, 13), query_get_text(q, 14),
                             query_get_text(q, 15)};
    struct row_block row = rows_new(sizeof(struct block), strings, ARRAY_SIZE(strings));
    struct block *block = (void *)row.block;
    if (!block)
        return NULL;
    block->run = (struct catalog_run){
        .id = query_get_id(q, 0),
        .session = query_get_id(q, 1),
        .started_ms = query_get_int(q, 2),
        .exited_ms = query_get_int(q, 3),
        .lifetime = (nacre_lifetime)query_get_int(q, 4),
        .outcome = (nacre_outcome)query_get_int(q, 5),
        .tree = (nacre_tree)query_get_int(q, 6),
        .bytes = (uint64_t)query_get_int(q, 7),
        .disk_bytes = (uint64_t)query_get_int(q, 8),
        .read_to = (uint64_t)query_get_int(q, 9),
        .background = query_get_int(q, 10),
        .final = query_get_int(q, 11),
        .name = rows_copy(&row, strings[0]),
        .cwd = rows_copy(&row, strings[1]),
        .description = rows_copy(&row, strings[2]),
        .command = rows_copy(&row, strings[3]),
        .state = take_state(q, 16, &block->state),
        .owed = query_get_int(q, 17),
    };
    return &block->run;
}

/* All rows of the query, which is ended: 0 or an SQLite result code. */
static int take_runs(struct query *q, struct rows *rows)
{
    return query_collect(q, take_run_row, rows);
}

struct run_getting {
    const nacre_id *id;
    struct rows rows;
};

static int get_run_op(struct catalog *c, void *arg)
{
    struct run_getting *getting = arg;
    rows_done(&getting->rows);
    struct query q = query_begin(c, "SELECT " RUN_SELECT " FROM runs WHERE id = ?");
    query_id(&q, getting->id);
    return take_runs(&q, &getting->rows);
}

int catalog_get_run(struct catalog *c, const nacre_id *run, struct catalog_run **ret_run,
                    nacre_error *err)
{
    struct run_getting getting = {.id = run};
    int r = db_read(c, get_run_op, &getting, err);
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

struct run_listing {
    const struct catalog_filter *filter;
    struct rows rows;
};

static int compose_run_list(struct buf *sql, const struct catalog_filter *f)
{
    return buf_printf(sql, "SELECT " RUN_SELECT " FROM runs WHERE 1%s%s%s%s%s ORDER BY %s%s",
                      f->session ? " AND session = ?" : "",
                      f->name ? " AND name = ? AND name <> ''" : "",
                      f->since_ms > 0 ? " AND started_ms >= ?" : "",
                      f->before_ms > 0 ? " AND started_ms < ?" : "",
                      f->state == CATALOG_OPEN    ? " AND final = 0"
                      : f->state == CATALOG_FINAL ? " AND final = 1"
                                                  : "",
                      f->oldest_first ? "started_ms, seq" : "started_ms DESC, seq DESC",
                      f->limit > 0 ? " LIMIT ?" : "");
}

static int list_runs_op(struct catalog *c, void *arg)
{
    struct run_listing *listing = arg;
    const struct catalog_filter *f = listing->filter;
    struct buf sql cleanup_buf = BUF_UP_TO(1024);
    rows_done(&listing->rows);
    if (compose_run_list(&sql, f) < 0)
        return SQLITE_NOMEM;
    struct query q = query_begin_once(c, sql.data);
    if (f->session)
        query_id(&q, f->session);
    if (f->name)
        query_text(&q, f->name);
    if (f->since_ms > 0)
        query_int(&q, f->since_ms);
    if (f->before_ms > 0)
        query_int(&q, f->before_ms);
    if (f->limit > 0)
        query_int(&q, f->limit);
    return take_runs(&q, &listing->rows);
}

int catalog_each_run(struct catalog *c, const struct catalog_filter *filter, catalog_run_fn *fn,
                     void *userdata, nacre_error *err)
{
    static const struct catalog_filter all;
    struct run_listing listing = {.filter = filter ? filter : &all};
    int r = db_read(c, list_runs_op, &listing, err);
    for (size_t i = 0; r == 0 && i < listing.rows.count; i++)
        r = fn(listing.rows.items[i], userdata);
    rows_done(&listing.rows);
    return r;
}
