/*
 * What a home takes of the disk, and what of that goes with its runs: each has a directory and a
 * row in the catalog, and the last one of a session that is over takes the log of its commands
 * along.
 */
#pragma once

#include <nacre/id.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "catalog/catalog.h"

struct account_session {
    nacre_id id;
    bool lives;
    uint32_t runs;
    uint64_t log; /* of its commands */
};

struct account {
    struct account_session *sessions; /* by id */
    size_t count;
    size_t cap;
    uint64_t runs;
    uint64_t run_bytes; /* of their directories */
    uint64_t logs;      /* that go with the last of them; without runs they go by themselves */
    uint64_t rows;      /* of the catalog, all of them */
    uint64_t fixed;     /* stays, whichever runs go */
    uint64_t aside;     /* of that: damaged catalogs */
};

/* Everything but the runs, which are added next. own is a session that lives. Release with
 * account_done(), also after an error. */
int account_load(struct account *a, const char *home, struct catalog *catalog, const nacre_id *own,
                 nacre_error *err);
void account_done(struct account *a);

/* What the catalog takes now: how much goes with a row is only known when it is gone. */
int account_count_rows(struct account *a, struct catalog *catalog, nacre_error *err);

void account_add_run(struct account *a, const nacre_id *session, uint64_t bytes);

/* A session without a row does not live. */
bool account_lives(const struct account *a, const nacre_id *session);

/* What the home has on disk; of what stays in any case at most fixed_max is counted. */
uint64_t account_total(const struct account *a, uint64_t fixed_max);

/* What the home gets back with a run; and the run goes. */
uint64_t account_cost(const struct account *a, const nacre_id *session, uint64_t bytes);
void account_remove_run(struct account *a, const nacre_id *session, uint64_t bytes);

/* Removes the damaged catalogs; if dry_run, only from the account. */
void account_drop_aside(struct account *a, const char *home, bool dry_run);
