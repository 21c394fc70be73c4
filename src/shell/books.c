#include "shell/books.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "sys/host.h"
#include "sys/proc.h"

struct books {
    pthread_mutex_t lock; /* over the opening */
    struct catalog_session row;
    char *name;
    char *cwd;
    struct catalog *catalog;
    bool written; /* the row is in the catalog */
};

struct books *books_new(const struct books_owner *owner)
{
    struct books *b = calloc(1, sizeof *b);
    if (!b)
        return NULL;
    pthread_mutex_init(&b->lock, NULL);
    b->name = strdup(owner->name);
    b->cwd = strdup(owner->cwd);
    if (!b->name || !b->cwd) {
        books_free(b, false);
        return NULL;
    }
    b->row = (struct catalog_session){
        .id = owner->session,
        .name = b->name,
        .cwd = b->cwd,
        .pid = getpid(),
        .opened_ms = clock_real_ns() / NS_PER_MS,
    };
    return b;
}

void books_free(struct books *b, bool forked)
{
    if (!b)
        return;
    catalog_free(b->catalog, forked);
    pthread_mutex_destroy(&b->lock);
    free(b->name);
    free(b->cwd);
    free(b);
}

static void identify(struct catalog_session *row)
{
    struct host host;
    struct proc_ref self;
    if (proc_ref(getpid(), &self) == 0)
        row->start = self.start;
    if (host_identify(&host) == 0) {
        memcpy(row->boot, host.boot, sizeof row->boot);
        row->pid_ns = host.pid_ns;
    }
}

static int write_row(struct books *b, nacre_error *err)
{
    if (b->written)
        return 0;
    identify(&b->row);
    int r = catalog_create(b->catalog, err);
    if (r >= 0)
        r = catalog_put_session(b->catalog, &b->row, err);
    b->written = r >= 0;
    return MIN(r, 0);
}

int books_open(struct books *b, const char *home, bool write, struct catalog **ret_catalog,
               nacre_error *err)
{
    int r = 0;
    pthread_mutex_lock(&b->lock);
    if (!b->catalog)
        r = catalog_open(home, false, CATALOG_BUSY_MS, &b->catalog, err);
    if (r >= 0 && write)
        r = write_row(b, err);
    *ret_catalog = b->catalog;
    pthread_mutex_unlock(&b->lock);
    return MIN(r, 0);
}

bool books_are_open(struct books *b)
{
    pthread_mutex_lock(&b->lock);
    bool open = b->written;
    pthread_mutex_unlock(&b->lock);
    return open;
}

void books_close(struct books *b)
{
    if (b->written)
        catalog_close_session(b->catalog, &b->row.id, clock_real_ns() / NS_PER_MS, NULL);
}
