/* The verbs of the local backend. */
#include "backend/local.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/feed.h"
#include "backend/kill.h"
#include "backend/local_parts.h"
#include "backend/local_reader.h"
#include "backend/local_watch.h"
#include "backend/report.h"
#include "backend/sweep.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "run/log.h"

#define CLOSE_SLACK 7000

static int find_home(struct local *l, nacre_error *err)
{
    return l->home.path[0] ? 0 : home_find(l->configured, &l->home, err);
}

/* With the lock. */
static int open_runs(struct local *l, int create, nacre_error *err)
{
    int r = find_home(l, err);
    if (r < 0 || l->runs_fd >= 0)
        return r < 0 ? r : l->runs_fd;
    r = home_open_runs(&l->home, create, err);
    if (r >= 0)
        l->runs_fd = r;
    return r;
}

int local_runs(struct local *l, nacre_error *err)
{
    pthread_mutex_lock(&l->lock);
    int r = open_runs(l, 0, err);
    pthread_mutex_unlock(&l->lock);
    return r;
}

int local_make_runs(struct local *l, nacre_error *err)
{
    pthread_mutex_lock(&l->lock);
    int r = open_runs(l, 1, err);
    pthread_mutex_unlock(&l->lock);
    return r;
}

int local_open_for_starting(struct local *l, nacre_error *err)
{
    pthread_mutex_lock(&l->lock);
    int r = open_runs(l, 1, err);
    if (r >= 0 && !l->launcher)
        r = launcher_new(l->runs_fd, &l->session, l->keeper, l->tier, &l->launcher, err);
    pthread_mutex_unlock(&l->lock);
    return MIN(r, 0);
}

int local_open_run(struct local *l, const nacre_id *id, struct run *ret_run, nacre_error *err)
{
    int runs = local_runs(l, err);
    if (runs == NACRE_ENOTFOUND)
        return err_set(err, NACRE_ENOTFOUND, "no shell with id \"%s\"", nacre_id_short(id).s);
    return runs < 0 ? runs : run_open(runs, id, ret_run, err);
}

static bool is_over(struct local *l, const nacre_id *id)
{
    cleanup_run struct run run = RUN_NONE;
    struct run_state state;
    if (run_open(l->runs_fd, id, &run, NULL) < 0)
        return true;
    return state_read(run.state_fd, &state) == 0 && state_is_final(&state);
}

static void forget_ended(struct local *l)
{
    size_t kept = 0;
    for (size_t i = 0; i < l->mine_count; i++)
        if (!is_over(l, &l->mine[i]))
            l->mine[kept++] = l->mine[i];
    l->mine_count = kept;
}

static void grow_list(struct local *l)
{
    size_t cap = l->mine_cap ? l->mine_cap * 2 : 16;
    nacre_id *list = realloc(l->mine, cap * sizeof *list);
    if (!list)
        return;
    l->mine = list;
    l->mine_cap = cap;
}

int local_remember(struct local *l, const nacre_id *id, int64_t grace_ms)
{
    pthread_mutex_lock(&l->lock);
    l->longest_grace_ms = MAX(l->longest_grace_ms, grace_ms);
    if (l->mine_count == l->mine_cap) {
        forget_ended(l);
        if (l->mine_count * 2 >= l->mine_cap)
            grow_list(l);
    }
    bool room = l->mine_count < l->mine_cap;
    if (room)
        l->mine[l->mine_count++] = *id;
    pthread_mutex_unlock(&l->lock);
    return room ? 0 : -ENOMEM;
}

static int64_t local_output(void *self, const nacre_id *id, uint64_t *cursor, unsigned streams,
                            void *buf, size_t size, nacre_piece *ret_piece, nacre_error *err)
{
    cleanup_run struct run run = RUN_NONE;
    struct run_state state;
    struct logr reader;
    int r = local_open_run(self, id, &run, err);
    if (r == 0)
        r = run_read_state(&run, &state, err);
    if (r < 0)
        return r;
    int e = logr_init(&reader, run.dir, run.state_fd);
    if (e < 0)
        return err_sys(err, NACRE_EIO, -e, "log", "cannot open the log of shell %s",
                       nacre_id_short(id).s);
    struct log_piece piece;
    ssize_t n = logr_read(&reader, run.dir, cursor, streams, buf, size, &piece);
    logr_done(&reader);
    if (n < 0)
        return err_sys(err, NACRE_EIO, (int)-n, "log", "the log of shell %s is damaged",
                       nacre_id_short(id).s);
    if (ret_piece)
        *ret_piece = (nacre_piece){
            .stream = piece.stream,
            .offset = piece.offset,
            .size = piece.size,
            .time_ms = report_time_ms(&state, piece.when_us),
            .gap_bytes = piece.gap,
        };
    return n;
}

static int local_wait(void *self, const nacre_id *id, int64_t timeout_ms, nacre_error *err)
{
    struct local_watch *w;
    int runs = local_runs(self, err);
    int r = runs < 0 ? runs : local_watch_new(runs, id, -EBADF, UINT64_MAX, &w, err);
    if (r < 0)
        return r;
    r = local_watch_until(w, 0, timeout_ms, err);
    local_watch_free(w);
    return r;
}

int local_kill_begin(void *self, const nacre_id *id, const nacre_kill_options *options,
                     struct killing *ret, nacre_error *err)
{
    *ret = KILLING_NONE;
    int r = local_open_run(self, id, &ret->run, err);
    return r < 0 ? r : killing_begin(ret, options, err);
}

static int local_kill(void *self, const nacre_id *id, const nacre_kill_options *options,
                      nacre_kill_result *ret_result, nacre_error *err)
{
    struct killing killing;
    int r = local_kill_begin(self, id, options, &killing, err);
    if (r == 0)
        r = killing_wait(&killing, err);
    if (ret_result)
        *ret_result = killing.result;
    killing_end(&killing);
    return MIN(r, 0);
}

static int local_signal(void *self, const nacre_id *id, int signal, nacre_error *err)
{
    cleanup_run struct run run = RUN_NONE;
    int r = local_open_run(self, id, &run, err);
    return r < 0 ? r : signal_run(&run, signal, err);
}

static int local_release(void *self, const nacre_id *id, nacre_error *err)
{
    nacre_kill_options options = NACRE_KILL_OPTIONS_INIT;
    nacre_kill_result result;
    nacre_error inner;
    int r = local_kill(self, id, &options, &result, &inner);
    if (r == NACRE_ENOTFOUND)
        return 0;
    if (r < 0 && err)
        *err = inner;
    return r;
}

typedef int fill_fn(const struct run_state *state, const struct spec *spec,
                    nacre_record *ret_record, nacre_error *err);

static int report(struct local *l, const nacre_id *id, fill_fn *fill, nacre_record *ret_record,
                  nacre_error *err)
{
    cleanup_run struct run run = RUN_NONE;
    struct run_state state;
    struct spec spec;
    int r = local_open_run(l, id, &run, err);
    if (r == 0)
        r = sweep_state(&run, &state, err);
    if (r < 0)
        return r;
    bool readable = run_load_spec(&run, &spec, NULL) == 0;
    r = fill(&state, readable ? &spec : NULL, ret_record, err);
    if (readable)
        free((void *)spec.head);
    return r;
}

int local_get(void *self, const nacre_id *id, nacre_record *ret_record, nacre_error *err)
{
    return report(self, id, report_fill, ret_record, err);
}

int local_get_plain(void *self, const nacre_id *id, nacre_record *ret_record, nacre_error *err)
{
    return report(self, id, report_fill_plain, ret_record, err);
}

static int local_peek(void *self, const nacre_id *id, nacre_record *ret_record, nacre_error *err)
{
    cleanup_run struct run run = RUN_NONE;
    struct run_state state;
    int r = local_open_run(self, id, &run, err);
    if (r == 0)
        r = sweep_state(&run, &state, err);
    if (r == 0)
        report_state(&state, ret_record);
    return r;
}

static int local_watch_open(void *self, const nacre_id *id, uint64_t offset,
                            nacre_watch **ret_watch, nacre_error *err)
{
    struct local_watch *w;
    int runs = local_runs(self, err);
    int r = runs < 0 ? runs : local_watch_new(runs, id, -EBADF, offset, &w, err);
    if (r < 0)
        return r;
    *ret_watch = local_watch_publish(w);
    if (*ret_watch)
        return 0;
    local_watch_free(w);
    return err_set(err, NACRE_ENOMEM, "out of memory");
}

static int local_reader(void *self, const nacre_id *id, const nacre_reader_options *options,
                        nacre_reader **ret_reader, nacre_error *err)
{
    cleanup_run struct run run = RUN_NONE;
    int r = local_open_run(self, id, &run, err);
    return r < 0 ? r : local_reader_new(&run, options, ret_reader, err);
}

static int64_t local_input(void *self, const nacre_id *id, const void *data, size_t size, int eof,
                           int64_t timeout_ms, nacre_error *err)
{
    cleanup_run struct run run = RUN_NONE;
    int r = local_open_run(self, id, &run, err);
    return r < 0 ? r : input_run(&run, data, size, eof, timeout_ms, err);
}

static bool state_of(struct local *l, const nacre_id *id, struct run_state *ret_state)
{
    cleanup_run struct run run = RUN_NONE;
    return run_open(l->runs_fd, id, &run, NULL) == 0 && state_read(run.state_fd, ret_state) == 0;
}

/* The keepers have seen the session's line end and are all at work; wait for each proof, but not
 * for what was given up before. */
static int await_end(struct local *l, const nacre_id *id, int64_t deadline)
{
    struct local_watch *w;
    struct run_state state = {0};
    int survivors = 0;
    bool known = state_of(l, id, &state);
    /* Somebody may have taken it out of the session meanwhile. */
    if (known && state.kept)
        return 0;
    if (known && !state_is_final(&state) && state.survivors > 0)
        return 1;
    if (local_watch_new(l->runs_fd, id, -EBADF, UINT64_MAX, &w, NULL) < 0)
        return 0;
    if (local_watch_until(w, 1, clock_left_ms(deadline), NULL) < 0)
        survivors = 1;
    local_watch_free(w);
    return survivors;
}

static void local_free(struct local *l)
{
    launcher_free(l->launcher);
    close_fd(&l->runs_fd);
    pthread_mutex_destroy(&l->lock);
    pthread_mutex_destroy(&l->shells.lock);
    free(l->configured);
    free(l->keeper);
    free(l->cwd);
    free(l->name);
    free(l->place);
    free(l->shell);
    free(l->mine);
    free(l);
}

static int local_close(void *self, int forked, nacre_error *err)
{
    struct local *l = self;
    int survivors = 0;
    if (!forked && l->launcher) {
        launcher_end_session(l->launcher);
        int64_t deadline = clock_deadline(l->longest_grace_ms + CLOSE_SLACK);
        for (size_t i = 0; i < l->mine_count; i++)
            survivors += await_end(l, &l->mine[i], deadline);
        launcher_reap(l->launcher, 2000);
    }
    local_free(l);
    if (survivors > 0)
        err_set(err, NACRE_EBUSY, "%d shells of the session could not be ended in time", survivors);
    return survivors;
}

static const nacre_backend_ops local_ops = {
    .version = NACRE_BACKEND_VERSION,
    .size = sizeof local_ops,
    .name = "local",
    .create = local_create,
    .output = local_output,
    .wait_for_exit = local_wait,
    .kill = local_kill,
    .release = local_release,
    .get = local_get,
    .watch = local_watch_open,
    .input = local_input,
    .find = local_find,
    .list = local_list,
    .remove = local_remove,
    .close = local_close,
    .bell = local_bell,
    .rung = local_rung,
    .peek = local_peek,
    .change = local_change,
    .owner = local_owner,
    .reader = local_reader,
    .usage = local_usage,
    .signal = local_signal,
};

static char *copy(const char *s, bool *ok)
{
    char *result = s ? strdup(s) : NULL;
    *ok = *ok && (!s || result);
    return result;
}

int local_new(const struct local_options *options, nacre_backend *ret_backend, nacre_error *err)
{
    struct local *l = calloc(1, sizeof *l);
    if (!l)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    bool ok = true;
    pthread_mutex_init(&l->lock, NULL);
    pthread_mutex_init(&l->shells.lock, NULL);
    l->configured = copy(options->home, &ok);
    l->keeper = copy(options->keeper, &ok);
    l->cwd = copy(options->cwd, &ok);
    l->name = copy(options->session_name, &ok);
    l->place = copy(options->session_cwd, &ok);
    l->shell = copy(options->shell, &ok);
    l->secrets = options->secrets;
    l->session = options->session;
    l->grace_ms = options->grace_ms;
    l->longest_grace_ms = options->grace_ms;
    l->quota = options->quota;
    l->tier = options->tier;
    l->single = options->single;
    l->fleeting = options->fleeting;
    if (proc_ref(getpid(), &l->owner) < 0)
        l->owner = (struct proc_ref){.pid = getpid()};
    l->runs_fd = -EBADF;
    if (!ok) {
        local_free(l);
        return err_set(err, NACRE_ENOMEM, "out of memory");
    }
    *ret_backend = (nacre_backend){.ops = &local_ops, .self = l};
    return 0;
}

int local_home(void *self, const char **ret_path, const char **ret_note, nacre_error *err)
{
    struct local *l = self;
    pthread_mutex_lock(&l->lock);
    int r = find_home(l, err);
    pthread_mutex_unlock(&l->lock);
    if (r < 0)
        return r;
    *ret_path = l->home.path;
    if (ret_note)
        *ret_note = l->home.note[0] ? l->home.note : NULL;
    return 0;
}

int local_check(void *self, nacre_error *err)
{
    return MIN(local_runs(self, err), 0);
}

int local_prepare(void *self, nacre_error *err)
{
    return MIN(local_make_runs(self, err), 0);
}

int local_place(void *self, const nacre_command *command, char *ret_path, nacre_error *err)
{
    const struct local *l = self;
    struct compose c = {.command = command, .cwd = l->cwd};
    return compose_cwd(&c, ret_path, err);
}
