/* Which runs the home has: found by a prefix, listed, removed. */
#include <stdlib.h>
#include <string.h>

#include "backend/local_parts.h"
#include "backend/sweep.h"
#include "base/defs.h"
#include "base/err.h"

struct match {
    const char *prefix;
    struct local *local;
    nacre_id id;
    int count;
};

static bool is_run(int runs_fd, const nacre_id *id)
{
    cleanup_run struct run run = RUN_NONE;
    struct run_state state;
    if (run_open(runs_fd, id, &run, NULL) < 0)
        return true; /* damaged: it can still be named, and removed */
    return state_read(run.state_fd, &state) < 0 || state.phase == PHASE_RUN;
}

static int match_id(const nacre_id *id, void *userdata)
{
    struct match *match = userdata;
    nacre_id_text text = nacre_id_format(id);
    if (strncmp(text.s, match->prefix, strlen(match->prefix)) != 0 ||
        !is_run(match->local->runs_fd, id))
        return 0;
    match->id = *id;
    return ++match->count > 1;
}

int local_find(void *self, const char *prefix, nacre_id *ret_id, nacre_error *err)
{
    struct match match = {.prefix = prefix, .local = self};
    int runs = local_runs(self, err);
    if (runs < 0 && runs != NACRE_ENOTFOUND)
        return runs;
    if (runs >= 0)
        run_each(runs, match_id, &match);
    if (match.count == 0)
        return err_set(err, NACRE_ENOTFOUND, "no shell with id \"%.40s\"", prefix);
    if (match.count > 1)
        return err_set(err, NACRE_EAMBIGUOUS,
                       "several shells begin with \"%.40s\"; give more digits", prefix);
    *ret_id = match.id;
    return 0;
}

struct listed {
    nacre_id id;
    int64_t started_ns;
};

struct listing {
    int runs_fd;
    bool only_alive;
    struct listed *items;
    size_t count;
    size_t cap;
};

static int note_listed(const nacre_id *id, void *userdata)
{
    struct listing *listing = userdata;
    cleanup_run struct run run = RUN_NONE;
    struct run_state state;
    if (run_open(listing->runs_fd, id, &run, NULL) < 0 || sweep_state(&run, &state, NULL) < 0 ||
        (listing->only_alive && state_is_final(&state)))
        return 0;
    if (listing->count == listing->cap) {
        size_t cap = listing->cap ? listing->cap * 2 : 64;
        struct listed *items = realloc(listing->items, cap * sizeof *items);
        if (!items)
            return -ENOMEM;
        listing->items = items;
        listing->cap = cap;
    }
    listing->items[listing->count++] = (struct listed){*id, state.started_ns};
    return 0;
}

static int by_start(const void *a, const void *b)
{
    const struct listed *x = a, *y = b;
    return x->started_ns < y->started_ns ? -1 : x->started_ns > y->started_ns;
}

int local_list(void *self, int only_alive, int (*fn)(const nacre_record *, void *), void *userdata,
               nacre_error *err)
{
    struct listing listing = {.runs_fd = local_runs(self, err), .only_alive = only_alive};
    if (listing.runs_fd == NACRE_ENOTFOUND)
        return 0;
    if (listing.runs_fd < 0)
        return listing.runs_fd;
    int r = run_each(listing.runs_fd, note_listed, &listing);
    cleanup_free struct listed *items = listing.items;
    if (r == -ENOMEM)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    if (r < 0)
        return err_sys(err, NACRE_EIO, -r, "list", "cannot read the directory of runs");
    if (listing.count > 1)
        qsort(items, listing.count, sizeof *items, by_start);
    nacre_record record = NACRE_RECORD_INIT;
    for (size_t i = 0; i < listing.count && r == 0; i++)
        if (local_get(self, &items[i].id, &record, NULL) == 0)
            r = fn(&record, userdata);
    nacre_record_done(&record);
    return r;
}

int local_remove(void *self, const nacre_id *id, nacre_error *err)
{
    struct local *l = self;
    cleanup_run struct run run = RUN_NONE;
    struct run_state state;
    nacre_error inner;
    int r = local_open_run(l, id, &run, &inner);
    if (r == 0)
        r = sweep_state(&run, &state, &inner);
    if (r == NACRE_ENOTFOUND || r == NACRE_EPERM || r == NACRE_EUNSUPPORTED) {
        if (err)
            *err = inner;
        return r;
    }
    if (r == 0 && !state_is_final(&state))
        return err_set(err, NACRE_EBUSY, "shell %s is still alive; kill it first",
                       nacre_id_short(id).s);
    int e = run_remove(l->runs_fd, id);
    return e < 0 ? err_sys(err, NACRE_EIO, -e, "remove", "cannot remove shell %s",
                           nacre_id_short(id).s)
                 : 0;
}
