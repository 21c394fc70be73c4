/*
 * What is removed, and when: what ended too long ago, the oldest of what is too much, and what was
 * never meant to be kept. Only runs that are over, and only what is nacre's. What nobody was told
 * of goes last.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/grow.h"
#include "home/home.h"
#include "home/keeper_line.h"
#include "session/account.h"
#include "session/session.h"
#include "sys/fd.h"
#include "sys/fsize.h"

#define DAY_MS     (INT64_C(24) * 3600 * 1000)
#define OFTEN_S    3600 /* sessions look this often by themselves */
#define BRIEFLY_MS 200  /* and for this long at most */
#define MANY       64   /* and when there are so many runs more than were left, and a quarter */
#define RUN_LEAST  ((uint64_t)12 * 1024) /* a row may be from when only the log was counted */
#define ROUNDS     3
#define QUIET_DAYS 1 /* of a damaged run, before anybody takes it for over */

struct gc_pass {
    nacre_session *session;
    const char *home;
    struct catalog *catalog;
    const nacre_gc_options *options;
    nacre_gc_fn *fn;
    void *userdata;
    nacre_gc_result *result;
    int64_t now_ms;
    int64_t deadline;
    struct account account;
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

static int add_gc_candidate(const struct catalog_run *run, void *userdata)
{
    struct gc_pass *gc = userdata;
    uint64_t bytes = MAX(run->disk_bytes, RUN_LEAST);
    gc->result->kept++;
    account_add_run(&gc->account, &run->session, bytes);
    if (!run->final)
        return 0;
    if (GROW(gc->items, gc->count, gc->cap) < 0)
        return NACRE_ENOMEM;
    gc->items[gc->count++] = (struct candidate){
        .id = run->id,
        .session = run->session,
        .ended_ms = run->exited_ms,
        .bytes = bytes,
        .fleeting = run->state && run->state->fleeting,
        .owed = run->owed,
    };
    return 0;
}

/* Of a state that cannot be read nobody can say whether its run is over. */
static bool is_quiet(const struct gc_pass *gc, int dir, const nacre_id *id, int64_t changed_ms)
{
    cleanup_close int keeper = keeper_line_open(id, dir);
    return keeper < 0 && gc->now_ms - changed_ms > QUIET_DAYS * DAY_MS;
}

/* What has no row: damaged, or not a run yet. */
static int add_damaged(const nacre_id *id, void *userdata)
{
    struct gc_pass *gc = userdata;
    nacre_record record = NACRE_RECORD_INIT;
    int runs = home_runs(gc->session->home, NULL);
    cleanup_close int dir = runs < 0 ? runs : fd_open_dir_at(runs, nacre_id_format(id).s);
    if (dir < 0 || home_record(gc->session->home, id, HOME_LIGHT, &record, NULL, NULL) != NACRE_EIO)
        return 0;
    uint64_t bytes = run_cost(dir);
    int64_t changed_ms = run_changed_ns(dir) / NS_PER_MS;
    account_add_run(&gc->account, &(nacre_id){0}, bytes);
    if (changed_ms == 0 || !is_quiet(gc, dir, id, changed_ms))
        return 0;
    if (GROW(gc->items, gc->count, gc->cap) < 0)
        return NACRE_ENOMEM;
    gc->result->kept++;
    gc->items[gc->count++] = (struct candidate){.id = *id, .ended_ms = changed_ms, .bytes = bytes};
    return 0;
}

/* Whether it is gone now, or would be. */
static bool remove_one(struct gc_pass *gc, const struct candidate *item)
{
    nacre_session *s = gc->session;
    if (!gc->options->dry_run && ends_remove(s, gc->catalog, &item->id, NULL) < 0)
        return false;
    uint64_t cost = account_cost(&gc->account, &item->session, item->bytes);
    account_remove_run(&gc->account, &item->session, item->bytes);
    gc->result->removed++;
    gc->result->removed_bytes += cost;
    gc->result->kept--;
    if (gc->fn)
        gc->fn(&item->id, cost, item->ended_ms, gc->userdata);
    return true;
}

/* The rules, in the order in which they are tried. */
typedef bool rule(struct gc_pass *gc, const struct candidate *item);

static bool was_never_meant_to_stay(struct gc_pass *gc, const struct candidate *item)
{
    return item->fleeting && !account_lives(&gc->account, &item->session);
}

static bool is_too_old(struct gc_pass *gc, const struct candidate *item)
{
    int64_t days = session_setting(gc->session, NACRE_SETTING_HOME_DAYS);
    return gc->now_ms - item->ended_ms > days * DAY_MS;
}

static uint64_t quota_of(const struct gc_pass *gc)
{
    return (uint64_t)session_setting(gc->session, NACRE_SETTING_HOME_QUOTA);
}

/* What stays in any case is never a reason to keep less than half of what may be kept. */
static bool is_too_much(struct gc_pass *gc, const struct candidate *item UNUSED)
{
    return account_total(&gc->account, quota_of(gc) / 2) > quota_of(gc);
}

static bool is_too_much_and_told(struct gc_pass *gc, const struct candidate *item)
{
    return !item->owed && is_too_much(gc, item);
}

static void apply(struct gc_pass *gc, rule *goes)
{
    size_t kept = 0;
    for (size_t i = 0; i < gc->count; i++) {
        struct candidate *item = &gc->items[i];
        bool time_is_up = clock_left_ms(gc->deadline) == 0;
        if (time_is_up || !goes(gc, item) || !remove_one(gc, item))
            gc->items[kept++] = *item;
    }
    gc->count = kept;
}

/* Rows of sessions of which nothing is left. */
static int drop_session(const struct catalog_session *row, void *userdata)
{
    struct gc_pass *gc = userdata;
    struct catalog_counts counts;
    if (scope_session_lives(row) || nacre_id_equal(&row->id, &gc->session->id) ||
        catalog_counts(gc->catalog, &row->id, &counts, NULL) < 0 || counts.runs > 0)
        return 0;
    audit_remove(gc->home, &row->id);
    catalog_remove_session(gc->catalog, &row->id, NULL);
    return 0;
}

/* Logs of sessions that have no row: their runs were gone before anybody looked, or never were. */
static void drop_log(const nacre_id *session, int64_t changed_ms, uint64_t cost UNUSED,
                     void *userdata)
{
    struct gc_pass *gc = userdata;
    cleanup_free struct catalog_session *row = NULL;
    int64_t days = session_setting(gc->session, NACRE_SETTING_HOME_DAYS);
    if (gc->now_ms - changed_ms > days * DAY_MS &&
        catalog_get_session(gc->catalog, session, &row, NULL) == NACRE_ENOTFOUND)
        audit_remove(gc->home, session);
}

/* All that there is, and what of it may go. */
static int take_stock(struct gc_pass *gc, nacre_error *err)
{
    struct catalog_filter filter = {.oldest_first = true};
    int r = account_load(&gc->account, gc->home, gc->catalog, &gc->session->id, err);
    if (r >= 0)
        r = catalog_each_stray(gc->catalog, add_damaged, gc, err);
    if (r >= 0)
        r = catalog_each_run(gc->catalog, &filter, add_gc_candidate, gc, err);
    return r == NACRE_ENOMEM ? err_set(err, NACRE_ENOMEM, "out of memory") : MIN(r, 0);
}

/* What belonged to the runs that went; true if it is known what the rest takes. */
static bool clear_up(struct gc_pass *gc)
{
    catalog_each_session(gc->catalog, NULL, drop_session, gc, NULL);
    audit_each(gc->home, drop_log, gc);
    catalog_compact(gc->catalog);
    return account_count_rows(&gc->account, gc->catalog, NULL) == 0;
}

static int collect(struct gc_pass *gc, nacre_error *err)
{
    static rule *const rules[] = {was_never_meant_to_stay, is_too_old, is_too_much_and_told,
                                  is_too_much};
    int r = take_stock(gc, err);
    if (r < 0)
        return r;
    if (account_total(&gc->account, UINT64_MAX) > quota_of(gc))
        account_drop_aside(&gc->account, gc->home, gc->options->dry_run);
    bool again = true;
    for (int round = 0; again && round < ROUNDS; round++) {
        for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
            apply(gc, rules[i]);
        again = !gc->options->dry_run && clear_up(gc) && is_too_much(gc, NULL);
    }
    gc->result->kept_bytes = account_total(&gc->account, UINT64_MAX);
    return 0;
}

/* How many runs there are, about, without counting them: each directory leads back. 0 where a file
 * system does not say. */
static uint64_t guess_runs(nacre_session *s)
{
    struct stat st;
    int runs = home_runs(s->home, NULL);
    return runs >= 0 && fstat(runs, &st) == 0 && st.st_nlink > 2 ? (uint64_t)st.st_nlink - 2 : 0;
}

/* The file that says when it was done last, and how many runs were left. */
static int open_collected(const char *home)
{
    char path[PATH_MAX + 16];
    snprintf(path, sizeof path, "%s/collected", home);
    return fd_open_file_at(AT_FDCWD, path, O_RDWR | O_CREAT);
}

static bool note_collected(nacre_session *s, const char *home)
{
    char text[24];
    int n = snprintf(text, sizeof text, "%llu\n", (unsigned long long)guess_runs(s));
    cleanup_close int fd = open_collected(home);
    FSIZE_SHELTER();
    return fd >= 0 && fd_pwrite_all(fd, text, (size_t)n, 0) == 0 && ftruncate(fd, n) == 0 &&
           futimens(fd, NULL) == 0;
}

static int collect_home(nacre_session *s, const nacre_gc_options *options, nacre_gc_fn *fn,
                        void *userdata, int64_t limit_ms, nacre_gc_result *result, nacre_error *err)
{
    struct gc_pass gc = {
        .session = s,
        .options = options,
        .fn = fn,
        .userdata = userdata,
        .result = result,
        .now_ms = clock_real_ns() / NS_PER_MS,
        .deadline = clock_deadline(limit_ms),
    };
    /* Without the file nobody would know whose logs are left when the runs are gone. */
    unsigned how = ENDS_RUNNING_TOO | ENDS_WAIT | (options->dry_run ? 0 : ENDS_INDEX);
    int r = home_path(s->home, &gc.home, NULL, err);
    if (r == 0)
        r = ends_refresh_home(s, how, &gc.catalog, err);
    if (r == 0)
        r = collect(&gc, err);
    if (r == 0 && !options->dry_run)
        note_collected(s, gc.home);
    account_done(&gc.account);
    free(gc.items);
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
    *ret_result = (nacre_gc_result){.size = sizeof *ret_result};
    return collect_home(session, options, fn, userdata, -1, ret_result, reterr);
}

/* One session of many does it, when it is long ago, or when many have come since. */
static bool is_time(nacre_session *s, const char *home)
{
    char text[24] = "";
    struct stat st;
    cleanup_close int fd = open_collected(home);
    if (fd < 0 || fstat(fd, &st) < 0 || fd_pread_all(fd, text, sizeof text - 1, 0) < 0)
        return false;
    long before = MAX(fd_parse_number(text), 0L);
    int64_t age = clock_real_ns() / NS_PER_S - st.st_mtim.tv_sec;
    uint64_t runs = guess_runs(s), many = (uint64_t)before + (uint64_t)before / 4 + MANY;
    if (st.st_size > 0 && age >= 0 && age < OFTEN_S && runs < many)
        return false;
    return note_collected(s, home);
}

void retention_now_and_then(nacre_session *s)
{
    nacre_gc_options options = NACRE_GC_OPTIONS_INIT;
    nacre_gc_result result = NACRE_GC_RESULT_INIT;
    const char *home;
    if (s->started && nacre_session_home(s, &home, NULL, NULL) == 0 && is_time(s, home))
        collect_home(s, &options, NULL, NULL, BRIEFLY_MS, &result, NULL);
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

static int forget_in_spare(int runs_fd, void *userdata)
{
    ((struct forgetting *)userdata)->runs_fd = runs_fd;
    return run_each(runs_fd, forget, userdata);
}

void retention_forget(nacre_session *s)
{
    const char *path;
    struct catalog_counts counts;
    int runs = home_runs(s->home, NULL);
    if (runs < 0 || home_path(s->home, &path, NULL, NULL) < 0)
        return;
    struct forgetting f = {.runs_fd = runs, .session = &s->id};
    if (session_catalog(s, false, &f.catalog, NULL) < 0)
        f.catalog = NULL;
    run_each(runs, forget, &f);
    run_each_spare(path, forget_in_spare, &f);
    run_remove_spares(path);
    audit_remove(path, &s->id);
    if (f.catalog && catalog_counts(f.catalog, &s->id, &counts, NULL) == 0 && counts.runs == 0)
        catalog_remove_session(f.catalog, &s->id, NULL);
}
