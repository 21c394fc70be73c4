/* What the catalog itself takes of the disk, and giving back what it does not need. */
#include "base/err.h"
#include "catalog/catalog_file.h"
#include "catalog/query.h"
#include "sys/fd.h"

#define VACUUM_MAX ((int64_t)64 * 1024 * 1024) /* a copy of all of it is made in memory */

static int pragma_number(struct catalog *c, const char *sql, int64_t *ret_number)
{
    struct query q = query_begin_once(c, sql);
    *ret_number = query_row(&q) ? query_get_int(&q, 0) : 0;
    return query_end(&q);
}

struct page_counts {
    int64_t size;
    int64_t count;
    int64_t free;
};

static int count_pages(struct catalog *c, void *arg)
{
    struct page_counts *pages = arg;
    int rc = pragma_number(c, "PRAGMA page_size", &pages->size);
    if (rc == 0)
        rc = pragma_number(c, "PRAGMA page_count", &pages->count);
    return rc == 0 ? pragma_number(c, "PRAGMA freelist_count", &pages->free) : rc;
}

int catalog_cost(struct catalog *c, uint64_t *ret_bytes, nacre_error *err)
{
    struct page_counts pages = {0};
    int r = db_read(c, count_pages, &pages, err);
    if (r == 0)
        *ret_bytes = (uint64_t)(MAX(pages.count - pages.free, INT64_C(0)) * pages.size);
    return r;
}

/* A catalog from before this was thought of is copied as a whole, once. */
static const char *way_to_shrink(struct catalog *c)
{
    int64_t kind = 0;
    struct page_counts pages = {0};
    if (pragma_number(c, "PRAGMA auto_vacuum", &kind) != 0 || count_pages(c, &pages) != 0)
        return NULL;
    if (kind != 0)
        return "PRAGMA incremental_vacuum";
    return pages.free > pages.count / 2 && pages.count * pages.size <= VACUUM_MAX
               ? "PRAGMA auto_vacuum = INCREMENTAL; VACUUM"
               : NULL;
}

/* Who reads or writes just now is not waited for. */
static int compact_op(struct catalog *c, void *arg)
{
    (void)arg;
    sqlite3_busy_timeout(c->db, 0);
    const char *shrink = way_to_shrink(c);
    int rc = shrink ? sqlite3_exec(c->db, shrink, NULL, NULL, NULL) : 0;
    if (rc == 0)
        rc = sqlite3_wal_checkpoint_v2(c->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    sqlite3_busy_timeout(c->db, c->wait_ms);
    return rc;
}

void catalog_compact(struct catalog *c)
{
    db_outside(c, compact_op, NULL, NULL);
}
