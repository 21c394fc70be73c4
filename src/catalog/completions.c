#include "catalog/completions.h"

#include "base/defs.h"
#include "catalog/query.h"

int completions_restore(struct catalog *c, const nacre_id *run, const nacre_id *session)
{
    static const char sql[] =
        "INSERT OR IGNORE INTO owed (run, session, offered, repeated) VALUES (?, ?, 0, 0)";
    struct query q = query_begin(c, sql);
    query_id(&q, run);
    query_id(&q, session);
    return query_run(&q, NULL);
}

/* The arguments of all functions here. */
struct deal {
    const nacre_id *session;
    const nacre_id *ids; /* of runs or of sessions */
    size_t count;
    nacre_id *ret_runs;
    bool *ret_repeated;
    size_t max;
    size_t done;
};

static int owe_op(struct catalog *c, void *arg)
{
    static const char sql[] =
        "INSERT INTO owed (run, session, offered, repeated) VALUES (?, ?, 0, 0)"
        " ON CONFLICT (run) DO UPDATE SET session = excluded.session";
    const struct deal *deal = arg;
    struct query q = query_begin(c, sql);
    query_id(&q, deal->ids);
    query_id(&q, deal->session);
    return query_run(&q, NULL);
}

int catalog_owe(struct catalog *c, const nacre_id *run, const nacre_id *session, nacre_error *err)
{
    struct deal deal = {.session = session, .ids = run, .count = 1};
    return db_write(c, owe_op, &deal, err);
}

/* -- Offers --------------------------------------------------------------------------------------
 */

static int find_due(struct catalog *c, void *arg)
{
    static const char sql[] = "SELECT run, repeated FROM owed JOIN runs ON runs.id = run"
                              " WHERE owed.session = ? AND offered = 0 AND outcome <> 0"
                              " ORDER BY exited_ms, seq LIMIT ?";
    struct deal *deal = arg;
    deal->done = 0;
    struct query q = query_begin(c, sql);
    query_id(&q, deal->session);
    query_int(&q, (int64_t)deal->max);
    for (; deal->done < deal->max && query_row(&q); deal->done++) {
        deal->ret_runs[deal->done] = query_get_id(&q, 0);
        deal->ret_repeated[deal->done] = query_get_int(&q, 1);
    }
    return query_end(&q);
}

static int offer_op(struct catalog *c, void *arg)
{
    struct deal *deal = arg;
    int rc = find_due(c, deal);
    for (size_t i = 0; rc == 0 && i < deal->done; i++) {
        struct query q = query_begin(c, "UPDATE owed SET offered = 1 WHERE run = ?");
        query_id(&q, &deal->ret_runs[i]);
        rc = query_run(&q, NULL);
    }
    return rc;
}

int catalog_offer(struct catalog *c, const nacre_id *session, nacre_id *ret_runs,
                  bool *ret_repeated, size_t max, nacre_error *err)
{
    struct deal deal = {
        .session = session, .ret_runs = ret_runs, .ret_repeated = ret_repeated, .max = max};
    /* Nearly always there is nothing, and nobody has to wait for a writer to learn that. */
    int r = db_read(c, find_due, &deal, err);
    if (r == 0 && deal.done > 0)
        r = db_write(c, offer_op, &deal, err);
    return r < 0 ? r : (int)deal.done;
}

static int retract_op(struct catalog *c, void *arg)
{
    const struct deal *deal = arg;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < deal->count; i++) {
        struct query q =
            query_begin(c, "UPDATE owed SET offered = 0 WHERE run = ? AND session = ?");
        query_id(&q, &deal->ids[i]);
        query_id(&q, deal->session);
        rc = query_run(&q, NULL);
    }
    return rc;
}

int catalog_retract(struct catalog *c, const nacre_id *session, const nacre_id *runs, size_t count,
                    nacre_error *err)
{
    struct deal deal = {.session = session, .ids = runs, .count = count};
    return db_write(c, retract_op, &deal, err);
}

static int ack_op(struct catalog *c, void *arg)
{
    const struct deal *deal = arg;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < deal->count; i++) {
        struct query q = query_begin(c, "DELETE FROM owed WHERE run = ?");
        query_id(&q, &deal->ids[i]);
        rc = query_run(&q, NULL);
    }
    return rc;
}

int catalog_ack(struct catalog *c, const nacre_id *runs, size_t count, nacre_error *err)
{
    struct deal deal = {.ids = runs, .count = count};
    return db_write(c, ack_op, &deal, err);
}

/* -- Claims --------------------------------------------------------------------------------------
 */

static int claim_from(struct catalog *c, struct deal *deal, const nacre_id *ended)
{
    static const char sql[] = "UPDATE owed SET session = ?, repeated = repeated OR offered,"
                              " offered = 0 WHERE session = ?";
    struct query q = query_begin(c, sql);
    query_id(&q, deal->session);
    query_id(&q, ended);
    int changes = 0;
    int rc = query_run(&q, &changes);
    deal->done += (size_t)changes;
    return rc;
}

static int claim_op(struct catalog *c, void *arg)
{
    struct deal *deal = arg;
    int rc = 0;
    deal->done = 0;
    for (size_t i = 0; rc == 0 && i < deal->count; i++)
        if (!nacre_id_equal(&deal->ids[i], deal->session))
            rc = claim_from(c, deal, &deal->ids[i]);
    return rc;
}

int catalog_claim(struct catalog *c, const nacre_id *session, const nacre_id *ended, size_t count,
                  nacre_error *err)
{
    struct deal deal = {.session = session, .ids = ended, .count = count};
    int r = db_write(c, claim_op, &deal, err);
    return r < 0 ? r : (int)deal.done;
}
