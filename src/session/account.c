#include "session/account.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/grow.h"
#include "catalog/catalog_file.h"
#include "session/session.h"
#include "sys/fd.h"

#define EMPTY_CATALOG ((uint64_t)64 * 1024) /* without a row */

/* -- The sessions ------------------------------------------------------------------------------ */

static int compare_accounts(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(nacre_id));
}

_Static_assert(offsetof(struct account_session, id) == 0, "an id is compared with a session");

static struct account_session *find_account(const struct account *a, const nacre_id *id)
{
    if (a->count == 0)
        return NULL;
    return bsearch(id, a->sessions, a->count, sizeof *a->sessions, compare_accounts);
}

struct account_loading {
    struct account *account;
    const nacre_id *own;
    struct host host;
};

static int add_account(const struct catalog_session *row, void *userdata)
{
    const struct account_loading *loading = userdata;
    struct account *a = loading->account;
    if (GROW(a->sessions, a->count, a->cap) < 0)
        return NACRE_ENOMEM;
    a->sessions[a->count++] = (struct account_session){
        .id = row->id,
        .lives =
            nacre_id_equal(&row->id, loading->own) || scope_session_lives_on(row, &loading->host),
    };
    return 0;
}

static void add_log(const nacre_id *session, int64_t changed_ms, uint64_t cost, void *userdata)
{
    struct account *a = userdata;
    struct account_session *owner = find_account(a, session);
    (void)changed_ms;
    if (owner && !owner->lives)
        owner->log += cost;
    else
        a->fixed += cost;
}

static int load_sessions(struct account *a, const char *home, struct catalog *catalog,
                         const nacre_id *own, nacre_error *err)
{
    struct account_loading loading = {.account = a, .own = own};
    int e = host_identify(&loading.host);
    if (e < 0)
        return err_sys(err, NACRE_EIO, -e, "host", "cannot tell which boot this is");
    int r = catalog_each_session(catalog, NULL, add_account, &loading, err);
    if (r == NACRE_ENOMEM)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    if (r < 0)
        return r;
    if (a->count > 1)
        qsort(a->sessions, a->count, sizeof *a->sessions, compare_accounts);
    audit_each(home, add_log, a);
    return 0;
}

/* -- The files --------------------------------------------------------------------------------- */

struct home_files {
    struct account *account;
    int dir;
    bool remove; /* what was set aside */
};

static bool is_aside(const char *name)
{
    return strncmp(name, CATALOG_DAMAGED, strlen(CATALOG_DAMAGED)) == 0;
}

/* Only what is nacre's. The database and what is on its way into it are known better by its pages.
 */
static int add_file(const char *name, void *userdata)
{
    static const char *const ours[] = {"runs",      "audit",      "names",
                                       "collected", CATALOG_LOCK, CATALOG_SHM};
    const struct home_files *files = userdata;
    struct account *a = files->account;
    uint64_t cost = fd_cost_at(files->dir, name);
    if (is_aside(name))
        a->aside += cost;
    for (size_t i = 0; i < ARRAY_SIZE(ours); i++)
        if (strcmp(name, ours[i]) == 0)
            a->fixed += cost;
    return 0;
}

static void add_files(struct account *a, const char *home)
{
    cleanup_close int dir = fd_lift_consume(open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    struct home_files files = {.account = a, .dir = dir};
    if (dir < 0)
        return;
    a->fixed += fd_cost_at(dir, ".");
    fd_walk(dir, add_file, &files);
    a->fixed += a->aside;
}

static int remove_aside(const char *name, void *userdata)
{
    const struct home_files *files = userdata;
    if (is_aside(name))
        unlinkat(files->dir, name, 0);
    return 0;
}

void account_drop_aside(struct account *a, const char *home, bool dry_run)
{
    cleanup_close int dir = fd_lift_consume(open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    struct home_files files = {.account = a, .dir = dir};
    if (a->aside == 0 || dir < 0)
        return;
    if (!dry_run)
        fd_walk(dir, remove_aside, &files);
    a->fixed -= a->aside;
    a->aside = 0;
}

/* -- The whole --------------------------------------------------------------------------------- */

int account_count_rows(struct account *a, struct catalog *catalog, nacre_error *err)
{
    uint64_t pages = 0;
    int r = catalog_cost(catalog, &pages, err);
    if (r == 0)
        a->rows = pages - MIN(pages, EMPTY_CATALOG);
    return r;
}

int account_load(struct account *a, const char *home, struct catalog *catalog, const nacre_id *own,
                 nacre_error *err)
{
    *a = (struct account){.fixed = EMPTY_CATALOG};
    int r = account_count_rows(a, catalog, err);
    if (r == 0)
        r = load_sessions(a, home, catalog, own, err);
    if (r == 0)
        add_files(a, home);
    return r;
}

void account_done(struct account *a)
{
    free(a->sessions);
    *a = (struct account){0};
}

void account_add_run(struct account *a, const nacre_id *session, uint64_t bytes)
{
    struct account_session *owner = find_account(a, session);
    if (owner && owner->runs++ == 0)
        a->logs += owner->log;
    a->runs++;
    a->run_bytes += bytes;
}

bool account_lives(const struct account *a, const nacre_id *session)
{
    const struct account_session *owner = find_account(a, session);
    return owner && owner->lives;
}

uint64_t account_total(const struct account *a, uint64_t fixed_max)
{
    return MIN(a->fixed, fixed_max) + a->rows + a->run_bytes + a->logs;
}

uint64_t account_cost(const struct account *a, const nacre_id *session, uint64_t bytes)
{
    const struct account_session *owner = find_account(a, session);
    uint64_t row = a->runs > 0 ? a->rows / a->runs : 0;
    return bytes + row + (owner && owner->runs == 1 ? owner->log : 0);
}

void account_remove_run(struct account *a, const nacre_id *session, uint64_t bytes)
{
    struct account_session *owner = find_account(a, session);
    if (a->runs > 0)
        a->rows -= a->rows / a->runs--;
    a->run_bytes -= MIN(bytes, a->run_bytes);
    if (owner && owner->runs > 0 && --owner->runs == 0)
        a->logs -= owner->log;
}
