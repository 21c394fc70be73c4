/*
 * What is removed, and when: what ended too long ago, the oldest of what is too much, and what was
 * never meant to be kept. Only runs that are over, and only what is nacre's. What nobody was told
 * of goes last.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/local.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "run/home.h"
#include "run/rundir.h"
#include "shell/session.h"
#include "sys/fd.h"

#define DAY_MS     (INT64_C(24) * 3600 * 1000)
#define OFTEN_S    3600 /* sessions look this often by themselves */
#define BRIEFLY_MS 200  /* and for this long at most */

struct sweep {
    nacre_session *session;
    const char *home;
    struct catalog *catalog;
    const nacre_gc_options *options;
    nacre_gc_fn *fn;
    void *userdata;
    nacre_gc_result *result;
    int64_t now_ms;
    int64_t deadline;
    struct candidate {
        nacre_id id;
        nacre_id session;
        int64_t ended_ms;
        uint64_t bytes;
        bool fleeting;
        bool owed;
    } * items;
    size_t count;
    size_t cap;
};

static int note(const struct catalog_run *run, void *userdata)
{
    struct sweep *sweep = userdata;
    sweep->result->kept++;
    sweep->result->kept_bytes += run->log_bytes;
    if (!run->final)
        return 0;
    if (sweep->count == sweep->cap) {
        size_t cap = sweep->cap ? sweep->cap * 2 : 256;
        struct candidate *items = realloc(sweep->items, cap * sizeof *items);
        if (!items)
            return NACRE_ENOMEM;
        sweep->items = items;
        sweep->cap = cap;
    }
    sweep->items[sweep->count++] = (struct candidate){
        .id = run->id,
        .session = run->session,
        .ended_ms = run->exited_ms,
        .bytes = run->log_bytes,
        .fleeting = run->state && run->state->fleeting,
        .owed = run->owed,
    };
    return 0;
}

/* Whether it is gone now, or would be. */
static bool remove_one(struct sweep *sweep, const struct candidate *item)
{
    nacre_session *s = sweep->session;
    nacre_error *reterr = NULL;
    if (!sweep->options->dry_run) {
        if (CALL(s, remove, &item->id) < 0)
            return false;
        registry_remove(s->registry, &item->id);
        catalog_remove_run(sweep->catalog, &item->id, NULL);
    }
    sweep->result->removed++;
    sweep->result->removed_bytes += item->bytes;
    sweep->result->kept--;
    sweep->result->kept_bytes -= MIN(item->bytes, sweep->result->kept_bytes);
    if (sweep->fn)
        sweep->fn(&item->id, item->bytes, item->ended_ms, sweep->userdata);
    return true;
}

static bool session_lives(struct sweep *sweep, const nacre_id *id)
{
    struct catalog_session *row = NULL;
    bool lives = nacre_id_equal(id, &sweep->session->id);
    if (!lives && catalog_get_session(sweep->catalog, id, &row, NULL) == 0)
        lives = scope_session_lives(row);
    free(row);
    return lives;
}

/* The rules, in the order in which they are tried. */
typedef bool rule(struct sweep *sweep, const struct candidate *item);

static bool was_never_meant_to_stay(struct sweep *sweep, const struct candidate *item)
{
    return item->fleeting && !session_lives(sweep, &item->session);
}

static bool is_too_old(struct sweep *sweep, const struct candidate *item)
{
    int64_t days = session_setting(sweep->session, NACRE_SETTING_HOME_DAYS);
    return sweep->now_ms - item->ended_ms > days * DAY_MS;
}

static bool is_too_much(struct sweep *sweep, const struct candidate *item UNUSED)
{
    uint64_t quota = (uint64_t)session_setting(sweep->session, NACRE_SETTING_HOME_QUOTA);
    return sweep->result->kept_bytes > quota;
}

static bool is_too_much_and_told(struct sweep *sweep, const struct candidate *item)
{
    return !item->owed && is_too_much(sweep, item);
}

static void apply(struct sweep *sweep, rule *goes)
{
    size_t kept = 0;
    for (size_t i = 0; i < sweep->count; i++) {
        struct candidate *item = &sweep->items[i];
        bool time_is_up = clock_left_ms(sweep->deadline) == 0;
        if (time_is_up || !goes(sweep, item) || !remove_one(sweep, item))
            sweep->items[kept++] = *item;
    }
    sweep->count = kept;
}

/* Rows of sessions of which nothing is left. */
static int drop_session(const struct catalog_session *row, void *userdata)
{
    struct sweep *sweep = userdata;
    struct catalog_counts counts;
    if (scope_session_lives(row) || nacre_id_equal(&row->id, &sweep->session->id) ||
        catalog_counts(sweep->catalog, &row->id, &counts, NULL) < 0 || counts.runs > 0)
        return 0;
    audit_remove(sweep->home, &row->id);
    catalog_remove_session(sweep->catalog, &row->id, NULL);
    return 0;
}

/* Logs of sessions that have no row: their runs were gone before anybody looked, or never were. */
static void drop_log(const nacre_id *session, int64_t changed_ms, void *userdata)
{
    struct sweep *sweep = userdata;
    struct catalog_session *row = NULL;
    int64_t days = session_setting(sweep->session, NACRE_SETTING_HOME_DAYS);
    if (sweep->now_ms - changed_ms > days * DAY_MS &&
        catalog_get_session(sweep->catalog, session, &row, NULL) == NACRE_ENOTFOUND)
        audit_remove(sweep->home, session);
    free(row);
}

static int collect(struct sweep *sweep, nacre_error *err)
{
    static rule *const rules[] = {was_never_meant_to_stay, is_too_old, is_too_much_and_told,
                                  is_too_much};
    struct catalog_filter filter = {.oldest_first = true};
    int r = ends_refresh_home(sweep->session, sweep->catalog, true, err);
    if (r >= 0)
        r = catalog_each_run(sweep->catalog, &filter, note, sweep, err);
    if (r == NACRE_ENOMEM)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    if (r < 0)
        return r;
    for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
        apply(sweep, rules[i]);
    if (!sweep->options->dry_run) {
        catalog_each_session(sweep->catalog, NULL, drop_session, sweep, NULL);
        audit_each(sweep->home, drop_log, sweep);
    }
    return 0;
}

static int sweep_home(nacre_session *s, const nacre_gc_options *options, nacre_gc_fn *fn,
                      void *userdata, int64_t limit_ms, nacre_gc_result *result, nacre_error *err)
{
    struct sweep sweep = {
        .session = s,
        .options = options,
        .fn = fn,
        .userdata = userdata,
        .result = result,
        .now_ms = clock_real_ns() / NS_PER_MS,
        .deadline = clock_deadline(limit_ms),
    };
    int r = local_home(s->local, &sweep.home, NULL, err);
    if (r == 0)
        r = session_catalog(s, false, &sweep.catalog, err);
    if (r == 0)
        r = collect(&sweep, err);
    free(sweep.items);
    return r == NACRE_ENOTFOUND ? 0 : r;
}

int nacre_gc(nacre_session *session, const nacre_gc_options *options, nacre_gc_fn *fn,
             void *userdata, nacre_gc_result *ret_result, nacre_error *reterr)
{
    nacre_gc_options defaults = NACRE_GC_OPTIONS_INIT;
    nacre_gc_result unused = NACRE_GC_RESULT_INIT;
    options = options ? options : &defaults;
    ret_result = ret_result ? ret_result : &unused;
    int r = session_check(session, reterr);
    if (r < 0)
        return r;
    if (options->size != sizeof *options || ret_result->size != sizeof *ret_result)
        return err_set(reterr, NACRE_EINVAL,
                       "options and result must start from their NACRE_GC_..._INIT");
    if (!session->books || !session->ops.remove)
        return session_unsupported(session, "collect", reterr);
    *ret_result = (nacre_gc_result){.size = sizeof *ret_result};
    return sweep_home(session, options, fn, userdata, -1, ret_result, reterr);
}

/* One session of many does it, when the file that says when is old enough. */
static bool is_time(const char *home)
{
    char path[PATH_MAX + 16];
    struct stat st;
    snprintf(path, sizeof path, "%s/collected", home);
    cleanup_close int fd =
        fd_lift_consume(open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
    if (fd < 0 || fstat(fd, &st) < 0)
        return false;
    int64_t age = clock_real_ns() / NS_PER_S - st.st_mtim.tv_sec;
    bool fresh = st.st_size == 0;
    if (!fresh && age >= 0 && age < OFTEN_S)
        return false;
    return pwrite(fd, "1", 1, 0) == 1 && futimens(fd, NULL) == 0;
}

void retention_now_and_then(nacre_session *s)
{
    nacre_gc_options options = NACRE_GC_OPTIONS_INIT;
    nacre_gc_result result = NACRE_GC_RESULT_INIT;
    const char *home;
    if (s->books && books_are_open(s->books) && nacre_session_home(s, &home, NULL, NULL) == 0 &&
        is_time(home))
        sweep_home(s, &options, NULL, NULL, BRIEFLY_MS, &result, NULL);
}

/* -- Without a history ------------------------------------------------------------------------ */

struct forgetting {
    int runs_fd;
    const nacre_id *session;
    struct catalog *catalog; /* NULL = there is none */
};

static int forget(const nacre_id *id, void *userdata)
{
    const struct forgetting *f = userdata;
    struct run_state state;
    cleanup_run struct run run = RUN_NONE;
    if (run_open(f->runs_fd, id, &run, NULL) == 0 && state_read(run.state_fd, &state) == 0 &&
        state.fleeting && state_is_final(&state) && nacre_id_equal(&state.session, f->session)) {
        run_remove(f->runs_fd, id);
        if (f->catalog)
            catalog_remove_run(f->catalog, id, NULL);
    }
    return 0;
}

void retention_forget(nacre_session *s, const char *home_path)
{
    struct home home;
    struct catalog_counts counts;
    cleanup_close int runs = -EBADF;
    if (home_find(home_path, &home, NULL) == 0)
        runs = home_open_runs(&home, 0, NULL);
    if (runs < 0)
        return;
    struct forgetting f = {.runs_fd = runs, .session = &s->id};
    if (books_open(s->books, home_path, false, &f.catalog, NULL) < 0)
        f.catalog = NULL;
    run_each(runs, forget, &f);
    audit_remove(home_path, &s->id);
    if (f.catalog && catalog_counts(f.catalog, &s->id, &counts, NULL) == 0 && counts.runs == 0)
        catalog_remove_session(f.catalog, &s->id, NULL);
}
