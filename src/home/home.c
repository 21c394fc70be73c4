#include "home/home.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/grow.h"
#include "base/hold.h"
#include "home/denials.h"
#include "home/door.h"
#include "home/mirror.h"
#include "home/report.h"
#include "home/sweep.h"
#include "run/log.h"
#include "run/place.h"
#include "sys/cgroup.h"
#include "sys/fd.h"
#include "sys/fsize.h"
#include "sys/host.h"
#include "sys/proc.h"

#define ROOM_BYTES  ((uint64_t)64 * 1024) /* of a run and a little of what it prints */
#define ROOM_INODES 8

/* -- Opening ---------------------------------------------------------------------------------- */

/* Has the options point to copies, which are freed with the home. */
static bool copy_strings(nacre_home *h)
{
    struct home_options *o = &h->options;
    const char **fields[] = {&o->home, &o->session_name, &o->session_cwd, &o->cwd, &o->shell};
    _Static_assert(ARRAY_SIZE(fields) == ARRAY_SIZE(h->strings), "each has its copy");
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
        h->strings[i] = *fields[i] ? strdup(*fields[i]) : NULL;
        if (*fields[i] && !h->strings[i])
            return false;
        *fields[i] = h->strings[i];
    }
    return true;
}

int home_new(const struct home_options *options, nacre_home **ret_home, nacre_error *err)
{
    nacre_home *h = calloc(1, sizeof *h);
    if (!h)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    pthread_mutex_init(&h->lock, NULL);
    pthread_mutex_init(&h->shells.lock, NULL);
    h->runs_fd = -EBADF;
    h->options = *options;
    if (proc_ref(getpid(), &h->owner) < 0)
        h->owner = (struct proc_ref){.pid = getpid()};
    if (!copy_strings(h)) {
        home_free(h);
        return err_set(err, NACRE_ENOMEM, "out of memory");
    }
    *ret_home = h;
    return 0;
}

void home_free(nacre_home *h)
{
    if (!h)
        return;
    close_fd(&h->runs_fd);
    pthread_mutex_destroy(&h->lock);
    pthread_mutex_destroy(&h->shells.lock);
    for (size_t i = 0; i < ARRAY_SIZE(h->strings); i++)
        free(h->strings[i]);
    free(h);
}

void home_set_backend(nacre_home *h, const nacre_backend_ops *ops, void *self)
{
    h->ops = ops;
    h->self = self;
}

void home_set_questions(nacre_home *h, void (*fn)(void *userdata), void *userdata)
{
    h->hear_questions = fn;
    h->hear_userdata = userdata;
}

void home_hear_questions(const nacre_home *h)
{
    if (h->hear_questions)
        h->hear_questions(h->hear_userdata);
}

int64_t home_pump(nacre_home *h, const nacre_id *id, bool quiet)
{
    if (!h->ops)
        return INT64_MAX;
    int64_t due = mirror_keep_time(h, id);
    return h->ops->pump ? MIN(due, h->ops->pump(h->self, id, quiet)) : due;
}

/* With the lock. */
static int locate_once(nacre_home *h, nacre_error *err)
{
    return h->where.path[0] ? 0 : home_locate(h->options.home, &h->where, err);
}

/* With the lock: whether the path leads to what is open. */
static bool is_in_place(const nacre_home *h)
{
    char path[PATH_MAX + 8];
    struct stat ours, there;
    snprintf(path, sizeof path, "%s/runs", h->where.path);
    return fstat(h->runs_fd, &ours) == 0 && stat(path, &there) == 0 &&
           ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

/* With the lock. Others hold the number of the descriptor: it stays, and leads elsewhere. One that
 * was moved and has no successor yet is still of use to who reads. */
static int follow_runs(nacre_home *h, int create, nacre_error *err)
{
    cleanup_close int fd = home_open_runs(&h->where, create, err);
    if (fd < 0)
        return create ? fd : 0;
    if (dup3(fd, h->runs_fd, O_CLOEXEC) < 0)
        return err_sys(err, NACRE_EIO, errno, "home", "cannot use the home %.120s", h->where.path);
    h->moves++;
    return 0;
}

static int open_runs(nacre_home *h, int create, bool look, nacre_error *err)
{
    HOLD(&h->lock);
    int r = locate_once(h, err);
    if (r == 0 && h->runs_fd < 0) {
        r = home_open_runs(&h->where, create, err);
        if (r >= 0)
            h->runs_fd = r;
    } else if (r == 0 && look && !is_in_place(h)) {
        r = follow_runs(h, create, err);
    }
    r = r < 0 ? r : h->runs_fd;
    return r;
}

int home_make_spare(nacre_home *h, int index)
{
    const char *path;
    return home_path(h, &path, NULL, NULL) < 0 ? -ENOENT : run_open_spare(path, index, true);
}

/* Root may use what is reserved. */
bool home_has_no_room(nacre_home *h)
{
    struct statvfs fs;
    int runs = home_runs(h, NULL);
    if (runs < 0 || fstatvfs(runs, &fs) < 0 || fs.f_blocks == 0)
        return false;
    bool root = geteuid() == 0;
    uint64_t bytes = (uint64_t)(root ? fs.f_bfree : fs.f_bavail) * fs.f_frsize;
    return bytes < ROOM_BYTES ||
           (fs.f_files > 0 && (root ? fs.f_ffree : fs.f_favail) < ROOM_INODES);
}

unsigned home_moves(nacre_home *h)
{
    HOLD(&h->lock);
    return h->moves;
}

int home_runs(nacre_home *h, nacre_error *err)
{
    return open_runs(h, 0, false, err);
}

int home_make_runs(nacre_home *h, nacre_error *err)
{
    return open_runs(h, 1, true, err);
}

int home_path(nacre_home *h, const char **ret_path, const char **ret_note, nacre_error *err)
{
    pthread_mutex_lock(&h->lock);
    int r = locate_once(h, err);
    pthread_mutex_unlock(&h->lock);
    if (r < 0)
        return r;
    *ret_path = h->where.path;
    if (ret_note)
        *ret_note = h->where.note[0] ? h->where.note : NULL;
    return 0;
}

uint32_t home_number(nacre_home *h)
{
    const char *path;
    return home_path(h, &path, NULL, NULL) < 0 ? 0 : h->where.number;
}

struct spare_look {
    const nacre_id *id;
    struct run *run;
    int result;
};

static int look_in_spare(int runs_fd, void *userdata)
{
    struct spare_look *look = userdata;
    look->result = run_open(runs_fd, look->id, look->run, NULL);
    return look->result != NACRE_ENOTFOUND;
}

static int open_in_home(nacre_home *h, const nacre_id *id, struct run *ret_run, nacre_error *err)
{
    int runs = home_runs(h, err);
    if (runs == NACRE_ENOTFOUND)
        return err_set(err, NACRE_ENOTFOUND, "no shell with id \"%s\"", nacre_id_short(id).s);
    int r = runs < 0 ? runs : run_open(runs, id, ret_run, err);
    unsigned moves = home_moves(h);
    if (runs < 0 || !door_is_lost(r) || open_runs(h, 0, true, NULL) < 0 || home_moves(h) == moves)
        return r;
    return run_open(runs, id, ret_run, err);
}

int home_open_run(nacre_home *h, const nacre_id *id, struct run *ret_run, nacre_error *err)
{
    struct spare_look look = {.id = id, .run = ret_run, .result = NACRE_ENOTFOUND};
    int r = open_in_home(h, id, ret_run, err);
    if (r == NACRE_ENOTFOUND && run_each_spare(h->where.path, look_in_spare, &look) != 0)
        r = look.result;
    return r;
}

/* What was printed is known, and was not kept. */
static void drop_output(struct log_index *x)
{
    struct log_index dropped = {.end = x->end, .tail_start = x->end, .dropped_errno = ENOENT};
    memcpy(dropped.bytes, x->bytes, sizeof x->bytes);
    memcpy(dropped.newlines, x->newlines, sizeof x->newlines);
    memcpy(dropped.unfinished, x->unfinished, sizeof x->unfinished);
    memcpy(dropped.dropped_bytes, x->bytes, sizeof x->bytes);
    memcpy(dropped.dropped_newlines, x->newlines, sizeof x->newlines);
    *x = dropped;
}

static int open_directory(const nacre_home *h, const nacre_id *id)
{
    return h->runs_fd < 0 ? -ENOENT : fd_open_dir_at(h->runs_fd, nacre_id_format(id).s);
}

/* Its spec may have outlived its state; what has none had not begun. */
static bool take_from_spec(const nacre_home *h, const nacre_id *id, struct run_state *state)
{
    struct spec spec;
    cleanup_close int dir = open_directory(h, id);
    struct run run = {.id = *id, .dir = dir, .state_fd = -EBADF};
    if (dir < 0 || run_load_spec(&run, &spec, NULL) < 0)
        return false;
    state->session = spec.head->session;
    state->background = spec.head->background;
    state->kept = spec.head->lifetime == NACRE_LIFE_KEEP;
    free((void *)spec.head);
    return true;
}

/* The leaf, if it had one, is where its keeper would make it. */
bool home_guess_state(const nacre_home *h, const nacre_id *id, struct run_state *ret_state)
{
    struct host host;
    char parent[CGROUP_PATH_MAX];
    state_init(ret_state, id, &h->options.session);
    ret_state->phase = PHASE_RUN;
    ret_state->tree = NACRE_TREE_ALIVE;
    ret_state->tier = NACRE_TIER_SUBREAPER;
    ret_state->started_ns = clock_real_ns();
    bool has_begun = take_from_spec(h, id, ret_state);
    if (host_identify(&host) == 0) {
        memcpy(ret_state->boot, host.boot, sizeof ret_state->boot);
        ret_state->pid_ns = host.pid_ns;
    }
    if (cgroup_own(parent, sizeof parent) >= 0)
        snprintf(ret_state->cgroup, sizeof ret_state->cgroup, "%.440s/nacre-%s", parent,
                 nacre_id_format(id).s);
    return has_begun;
}

int home_rewrite_run(nacre_home *h, const struct run_state *state)
{
    static const char *const empty[] = {"spec", "log", "spans"};
    struct run_state written = *state;
    nacre_id_text name = nacre_id_format(&state->id);
    int runs = home_make_runs(h, NULL);
    if (runs < 0)
        return -ENOENT;
    cleanup_close int dir = place_open(runs, name.s);
    if (dir < 0)
        return dir;
    for (size_t i = 0; i < ARRAY_SIZE(empty); i++) {
        cleanup_close int fd UNUSED = run_make_file(dir, empty[i]);
    }
    drop_output(&written.log);
    cleanup_close int fd = -EBADF;
    int r = place_clear(dir, "state.new");
    if (r == 0)
        r = place_clear(dir, "state");
    if (r < 0)
        return r;
    return run_make_state(dir, &written, &fd);
}

/* -- Composing -------------------------------------------------------------------------------- */

struct compose home_compose(nacre_home *h, const nacre_command *command)
{
    const struct home_options *o = &h->options;
    return (struct compose){.command = command,
                            .shells = &h->shells,
                            .session = &o->session,
                            .owner = h->owner,
                            .fleeting = o->fleeting,
                            .cwd = o->cwd,
                            .shell = o->shell,
                            .secrets = &o->secrets,
                            .session_name = o->session_name,
                            .person = o->person,
                            .session_cwd = o->session_cwd,
                            .grace_ms = o->grace_ms,
                            .quota = o->quota};
}

int home_command_cwd(nacre_home *h, const nacre_command *command, char *ret_path, nacre_error *err)
{
    struct compose c = home_compose(h, command);
    return compose_cwd(&c, ret_path, err);
}

/* -- One run ---------------------------------------------------------------------------------- */

/* A run, and its state as it is now. */
static int look_now(nacre_home *h, const nacre_id *id, struct run *ret_run,
                    struct run_state *ret_state, nacre_error *err)
{
    int r = home_open_run(h, id, ret_run, err);
    return r < 0 ? r : sweep_peek(ret_run, ret_state, err);
}

int home_record(nacre_home *h, const nacre_id *id, enum home_detail detail,
                nacre_record *ret_record, bool *ret_unswept, nacre_error *err)
{
    cleanup_run struct run run = RUN_NONE;
    struct run_state state;
    struct spec spec;
    int r = look_now(h, id, &run, &state, err);
    if (ret_unswept)
        *ret_unswept = r > 0;
    if (r >= 0)
        r = report_check(ret_record, err);
    if (r < 0)
        return r;
    if (detail == HOME_LIGHT) {
        report_state(&state, ret_record);
        return 0;
    }
    bool readable = run_load_spec(&run, &spec, NULL) == 0;
    r = (detail == HOME_FULL ? report_fill : report_fill_plain)(&state, readable ? &spec : NULL,
                                                                ret_record, err);
    if (r == 0 && denials_read(run.dir, readable ? &spec : NULL, ret_record) < 0)
        r = err_set(err, NACRE_ENOMEM, "out of memory");
    if (readable)
        free((void *)spec.head);
    return r;
}

/* In another pid namespace nobody can tell: as long as a keeper holds the run, its owner may be
 * there too. */
static bool owner_lives(const struct run *run, const struct run_state *state,
                        const struct spec_head *spec)
{
    struct proc_ref owner = {.pid = spec->owner_pid, .start = spec->owner_start};
    if (sweep_is_here(state))
        return proc_alive(&owner);
    return !state_is_final(state) && lock_held(run->state_fd) > 0;
}

int home_run_owner(nacre_home *h, const nacre_id *id, nacre_id *ret_session, bool *ret_alive,
                   nacre_error *err)
{
    cleanup_run struct run run = RUN_NONE;
    struct run_state state;
    struct spec spec;
    int r = home_open_run(h, id, &run, err);
    if (r == 0)
        r = run_read_state(&run, &state, err);
    if (r < 0)
        return r;
    *ret_session = state.session;
    *ret_alive = false;
    if (run_load_spec(&run, &spec, NULL) == 0) {
        *ret_alive = owner_lives(&run, &state, spec.head);
        free((void *)spec.head);
    }
    return 0;
}

int home_set_told(nacre_home *h, const nacre_id *id, nacre_error *err)
{
    cleanup_run struct run run = RUN_NONE;
    struct run_state state;
    int r = home_open_run(h, id, &run, err);
    if (r < 0)
        return r;
    /* What is damaged is told all the same, and has no moment. */
    if (run_read_state(&run, &state, NULL) < 0)
        state.exited_ns = 0;
    FSIZE_SHELTER();
    int e = run_set_told(&run, &state);
    return e < 0 ? err_sys(err, NACRE_EIO, -e, "told", "cannot note that shell %s was told",
                           nacre_id_short(id).s)
                 : 0;
}

int64_t home_read(nacre_home *h, const nacre_id *id, uint64_t *cursor, unsigned streams, void *buf,
                  size_t size, nacre_piece *ret_piece, nacre_error *err)
{
    cleanup_run struct run run = RUN_NONE;
    struct run_state state;
    struct logr reader;
    int r = home_open_run(h, id, &run, err);
    if (r == 0)
        r = run_read_state(&run, &state, err);
    if (r < 0)
        return r;
    int e = logr_init(&reader, run.dir, run.state_fd);
    if (e < 0)
        return run_damaged(id, reader.part, e, err);
    struct log_piece piece;
    ssize_t n = logr_read_at(&reader, run.dir, &state, cursor, streams, buf, size, &piece);
    logr_done(&reader);
    if (n < 0)
        return run_damaged(id, reader.part, (int)n, err);
    if (ret_piece)
        *ret_piece = report_piece(&state, &piece);
    return n;
}

struct spare_removal {
    const nacre_id *id;
    int result;
};

static int remove_in_spare(int runs_fd, void *userdata)
{
    struct spare_removal *removal = userdata;
    removal->result = run_remove(runs_fd, removal->id);
    return removal->result != -ENOENT;
}

int home_may_remove(nacre_home *h, const nacre_id *id, nacre_record *ret_record, nacre_error *err)
{
    cleanup_run struct run run = RUN_NONE;
    struct run_state state;
    nacre_error inner;
    int r = look_now(h, id, &run, &state, &inner);
    if (r == NACRE_ENOTFOUND || r == NACRE_EPERM || r == NACRE_EUNSUPPORTED) {
        if (err)
            *err = inner;
        return r;
    }
    if (r >= 0 && !state_is_final(&state))
        return err_set(err, NACRE_EBUSY, "shell %s is still alive; kill it first",
                       nacre_id_short(id).s);
    if (r < 0)
        return 0;
    report_state(&state, ret_record);
    return 1;
}

int home_remove_run(nacre_home *h, const nacre_id *id, nacre_error *err)
{
    struct spare_removal removal = {.id = id, .result = run_remove(h->runs_fd, id)};
    if (removal.result == -ENOENT || removal.result == -EBADF) {
        run_each_spare(h->where.path, remove_in_spare, &removal);
        run_remove_spares(h->where.path);
    }
    int e = removal.result;
    return e < 0 ? err_sys(err, NACRE_EIO, -e, "remove", "cannot remove shell %s",
                           nacre_id_short(id).s)
                 : 0;
}

/* -- All of them ------------------------------------------------------------------------------ */

struct prefix_search {
    const char *prefix;
    int runs_fd;
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

static int match_prefix(const nacre_id *id, void *userdata)
{
    struct prefix_search *search = userdata;
    nacre_id_text text = nacre_id_format(id);
    if (strncmp(text.s, search->prefix, strlen(search->prefix)) != 0 ||
        !is_run(search->runs_fd, id))
        return 0;
    search->id = *id;
    return ++search->count > 1;
}

static int match_in_spare(int runs_fd, void *userdata)
{
    ((struct prefix_search *)userdata)->runs_fd = runs_fd;
    return run_each(runs_fd, match_prefix, userdata) != 0;
}

int home_find_run(nacre_home *h, const char *prefix, nacre_id *ret_id, nacre_error *err)
{
    struct prefix_search search = {.prefix = prefix, .runs_fd = open_runs(h, 0, true, err)};
    if (search.runs_fd < 0 && search.runs_fd != NACRE_ENOTFOUND)
        return search.runs_fd;
    if (search.runs_fd >= 0)
        run_each(search.runs_fd, match_prefix, &search);
    run_each_spare(h->where.path, match_in_spare, &search);
    if (search.count == 0)
        return err_set(err, NACRE_ENOTFOUND, "no shell with id \"%.40s\"", prefix);
    if (search.count > 1)
        return err_set(err, NACRE_EAMBIGUOUS,
                       "several shells begin with \"%.40s\"; give more digits", prefix);
    *ret_id = search.id;
    return 0;
}

/* Runs in the order of their starts. */
struct run_order {
    int runs_fd;
    bool only_alive;
    struct run_start {
        nacre_id id;
        int64_t started_ns;
    } * items;
    size_t count;
    size_t cap;
};

static int add_to_order(const nacre_id *id, void *userdata)
{
    struct run_order *order = userdata;
    cleanup_run struct run run = RUN_NONE;
    struct run_state state;
    if (run_open(order->runs_fd, id, &run, NULL) < 0 || sweep_peek(&run, &state, NULL) < 0 ||
        (order->only_alive && state_is_final(&state)))
        return 0;
    if (GROW(order->items, order->count, order->cap) < 0)
        return -ENOMEM;
    order->items[order->count++] = (struct run_start){*id, state.started_ns};
    return 0;
}

static int order_spare(int runs_fd, void *userdata)
{
    ((struct run_order *)userdata)->runs_fd = runs_fd;
    return run_each(runs_fd, add_to_order, userdata);
}

static int by_start(const void *a, const void *b)
{
    const struct run_start *x = a, *y = b;
    return x->started_ns < y->started_ns ? -1 : x->started_ns > y->started_ns;
}

int home_each_record(nacre_home *h, bool only_alive, int (*fn)(const nacre_record *, void *),
                     void *userdata, nacre_error *err)
{
    struct run_order order = {.runs_fd = open_runs(h, 0, true, err), .only_alive = only_alive};
    if (order.runs_fd < 0 && order.runs_fd != NACRE_ENOTFOUND)
        return order.runs_fd;
    int r = order.runs_fd < 0 ? 0 : run_each(order.runs_fd, add_to_order, &order);
    if (r == 0)
        r = run_each_spare(h->where.path, order_spare, &order);
    cleanup_free struct run_start *items = order.items;
    if (r == -ENOMEM)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    if (r < 0)
        return err_sys(err, NACRE_EIO, -r, "list", "cannot read the directory of runs");
    if (order.count > 1)
        qsort(items, order.count, sizeof *items, by_start);
    nacre_record record cleanup_record = NACRE_RECORD_INIT;
    for (size_t i = 0; i < order.count && r == 0; i++)
        if (home_record(h, &items[i].id, HOME_FULL, &record, NULL, NULL) == 0)
            r = fn(&record, userdata);
    return r;
}
