/* The verbs of the local backend. */
#include "backend/local.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "backend/client.h"
#include "backend/compose.h"
#include "backend/kill.h"
#include "backend/launch.h"
#include "backend/local_watch.h"
#include "backend/report.h"
#include "backend/sweep.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "run/home.h"
#include "run/log.h"
#include "sys/fd.h"
#include "sys/sock.h"

#define STARTED_MS    1000
#define STARTED_TRIES 10
#define CLOSE_SLACK   7000

struct local {
    pthread_mutex_t lock; /* over what is opened late, and the list */
    struct home home;
    char *configured;
    char *keeper;
    char *cwd;
    char *shell;
    struct secret_rules secrets;
    nacre_id session;
    int64_t grace_ms;
    int64_t longest_grace_ms; /* of any command */
    uint64_t quota;
    nacre_tier tier;
    bool single;
    int runs_fd;
    struct launcher *launcher;
    struct compose_shells shells;
    nacre_id *mine; /* shells that die with the session and may still be alive */
    size_t mine_count;
    size_t mine_cap;
};

static int find_home(struct local *l, nacre_error *err)
{
    return l->home.path[0] ? 0 : home_find(l->configured, &l->home, err);
}

/* The directory of runs, if there is one; reading creates nothing. */
static int runs_for_reading(struct local *l, nacre_error *err)
{
    pthread_mutex_lock(&l->lock);
    int r = find_home(l, err);
    if (r == 0 && l->runs_fd < 0) {
        int fd = home_open_runs(&l->home, 0, err);
        if (fd >= 0)
            l->runs_fd = fd;
        else
            r = fd;
    }
    pthread_mutex_unlock(&l->lock);
    return r < 0 ? r : l->runs_fd;
}

static int open_for_starting(struct local *l, nacre_error *err)
{
    pthread_mutex_lock(&l->lock);
    int r = find_home(l, err);
    if (r == 0 && l->runs_fd < 0) {
        r = home_open_runs(&l->home, 1, err);
        if (r >= 0)
            l->runs_fd = r;
    }
    if (r >= 0 && !l->launcher)
        r = launcher_new(l->runs_fd, &l->session, l->keeper, l->tier, &l->launcher, err);
    pthread_mutex_unlock(&l->lock);
    return MIN(r, 0);
}

static int open_run(struct local *l, const nacre_id *id, struct run *ret_run, nacre_error *err)
{
    int runs = runs_for_reading(l, err);
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

/* Remembers a shell for the end of the session. The list stays as short as what is alive. */
static int remember(struct local *l, const nacre_id *id, int64_t grace_ms)
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

static const char *stage_name(int stage)
{
    switch ((enum wire_stage)stage) {
    case STAGE_CHDIR:
        return "chdir";
    case STAGE_STDIN:
        return "stdin";
    case STAGE_EXEC:
        return "exec";
    case STAGE_SPEC:
        return "spec";
    default:
        return "prepare";
    }
}

/* A spec that does not fit the message travels as a descriptor. */
static int wrap_spec(const struct buf *spec)
{
    cleanup_close int fd = fd_lift_consume(memfd_create("spec", MFD_CLOEXEC));
    if (fd < 0)
        return -errno;
    int r = fd_write_all(fd, spec->data, spec->len);
    return r < 0 ? r : TAKE_FD(fd);
}

static int send_go(const struct launched *launched, const struct buf *spec, int input)
{
    struct wire_go go;
    int fds[2];
    size_t count = 0;
    bool inside = spec->len <= sizeof go.spec;
    cleanup_close int file = inside ? -EBADF : wrap_spec(spec);
    if (!inside && file < 0)
        return file;
    go.head = client_head(WIRE_GO);
    go.has_input = input >= 0;
    go.size = (uint32_t)spec->len;
    if (inside)
        memcpy(go.spec, spec->data, spec->len);
    if (input >= 0)
        fds[count++] = input;
    if (!inside)
        fds[count++] = file;
    size_t size = offsetof(struct wire_go, spec) + (inside ? spec->len : 0);
    return sock_send(launched->sock, &go, size, fds, count, 0);
}

/* The keeper vanished at the start: what became of the run is found out like of any other. */
static int find_out(struct local *l, const nacre_id *id)
{
    cleanup_run struct run run = RUN_NONE;
    struct run_state state;
    int r = run_open(l->runs_fd, id, &run, NULL);
    return r < 0 ? r : sweep_state(&run, &state, NULL);
}

static int start_error(const struct wire_started *started, const struct buf *spec, nacre_error *err)
{
    const struct spec_head *head = (const void *)spec->data;
    bool chdir = started->stage == STAGE_CHDIR;
    return err_sys(err, NACRE_ESTART, started->error, stage_name(started->stage),
                   chdir                          ? "cannot use the directory \"%.150s\""
                   : started->stage == STAGE_EXEC ? "cannot execute \"%.150s\""
                                                  : "cannot start \"%.150s\"",
                   spec->data + (chdir ? head->cwd : head->program));
}

/* The command may stop its keeper before that has said that it started. */
static int await_word(const struct launched *launched)
{
    struct pollfd poller = {.fd = launched->sock, .events = POLLIN};
    int n = 0;
    for (int i = 0; i < STARTED_TRIES && n == 0; i++) {
        n = RETRY(poll(&poller, 1, STARTED_MS));
        if (n == 0)
            proc_kill(&launched->keeper, SIGCONT);
    }
    if (n == 0)
        proc_kill(&launched->keeper, SIGKILL);
    return n;
}

static int await_started(struct local *l, const struct launched *launched, const struct buf *spec,
                         nacre_error *err)
{
    struct wire_started started = {0};
    int successor = -EBADF;
    ssize_t n = await_word(launched);
    if (n > 0)
        n = sock_recv(launched->sock, &started, sizeof started, &successor, 1, MSG_DONTWAIT);
    if (successor >= 0)
        launcher_keep(l->launcher, launched, successor);
    if (n != sizeof started || started.head.type != WIRE_STARTED)
        return find_out(l, &launched->id) == 0
                   ? 0
                   : err_set(err, NACRE_EBACKEND,
                             "the keeper vanished before the command was started");
    if (started.stage != STAGE_NONE)
        return start_error(&started, spec, err);
    return 0;
}

/* Everything between a ready keeper and a running command. */
static int start_on(struct local *l, const struct launched *launched, struct compose *c,
                    const char *cwd, int input, struct buf *spec, nacre_error *err)
{
    char run_path[PATH_MAX + NACRE_ID_DIGITS + 8];
    snprintf(run_path, sizeof run_path, "%s/runs/%s", l->home.path,
             nacre_id_format(&launched->id).s);
    c->run_path = run_path;
    c->successor = !l->single && launcher_wants_warm(l->launcher);
    int r = compose_spec(c, &launched->id, cwd, spec, err);
    if (r < 0)
        return r;
    int e = send_go(launched, spec, input);
    if (e < 0)
        return err_sys(err, NACRE_EBACKEND, -e, "keeper", "cannot talk to the keeper");
    return await_started(l, launched, spec, err);
}

static int local_create(void *self, const nacre_command *command, nacre_id *ret_id,
                        nacre_watch **ret_watch, nacre_error *err)
{
    struct local *l = self;
    struct compose c = {.command = command,
                        .shells = &l->shells,
                        .session = &l->session,
                        .cwd = l->cwd,
                        .shell = l->shell,
                        .secrets = &l->secrets,
                        .grace_ms = l->grace_ms,
                        .quota = l->quota};
    char cwd[PATH_MAX];
    cleanup_close int input = -EBADF;
    int r = compose_check(command, err);
    if (r == 0)
        r = compose_cwd(&c, cwd, err);
    if (r == 0)
        r = compose_input(command, &input, err);
    if (r == 0)
        r = open_for_starting(l, err);
    struct launched launched;
    if (r == 0)
        r = launcher_take(l->launcher, &launched, err);
    if (r < 0)
        return r;
    cleanup_buf struct buf spec = {0};
    r = start_on(l, &launched, &c, cwd, input, &spec, err);
    if (r == 0 && command->lifetime == NACRE_LIFE_SESSION)
        remember(l, &launched.id, command->grace_ms);
    launcher_reap(l->launcher, 0);
    if (r < 0 || !ret_watch) {
        *ret_id = launched.id;
        launched_drop(&launched);
        return r;
    }
    struct local_watch *w;
    r = local_watch_new(l->runs_fd, &launched.id, TAKE_FD(launched.sock), 0, &w, err);
    *ret_id = launched.id;
    if (r < 0)
        return r;
    local_watch_give_spec(w, &spec);
    *ret_watch = local_watch_publish(w);
    if (*ret_watch)
        return 0;
    local_watch_free(w);
    return err_set(err, NACRE_ENOMEM, "out of memory");
}

static int64_t local_output(void *self, const nacre_id *id, uint64_t *cursor, unsigned streams,
                            void *buf, size_t size, nacre_piece *ret_piece, nacre_error *err)
{
    cleanup_run struct run run = RUN_NONE;
    struct run_state state;
    struct logr reader;
    int r = open_run(self, id, &run, err);
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
    int runs = runs_for_reading(self, err);
    int r = runs < 0 ? runs : local_watch_new(runs, id, -EBADF, UINT64_MAX, &w, err);
    if (r < 0)
        return r;
    r = local_watch_until(w, 0, timeout_ms, err);
    local_watch_free(w);
    return r;
}

static int local_kill(void *self, const nacre_id *id, const nacre_kill_options *options,
                      nacre_kill_result *ret_result, nacre_error *err)
{
    cleanup_run struct run run = RUN_NONE;
    int r = open_run(self, id, &run, err);
    return r < 0 ? r : kill_run(&run, options, ret_result, err);
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

static int report(const struct run *run, nacre_record *ret_record, nacre_error *err)
{
    struct run_state state;
    struct spec spec;
    int r = sweep_state(run, &state, err);
    if (r < 0)
        return r;
    bool readable = run_load_spec(run, &spec, NULL) == 0;
    r = report_fill(&state, readable ? &spec : NULL, ret_record, err);
    if (readable)
        free((void *)spec.head);
    return r;
}

static int local_get(void *self, const nacre_id *id, nacre_record *ret_record, nacre_error *err)
{
    cleanup_run struct run run = RUN_NONE;
    int r = open_run(self, id, &run, err);
    return r < 0 ? r : report(&run, ret_record, err);
}

static int local_watch_open(void *self, const nacre_id *id, uint64_t offset,
                            nacre_watch **ret_watch, nacre_error *err)
{
    struct local_watch *w;
    int runs = runs_for_reading(self, err);
    int r = runs < 0 ? runs : local_watch_new(runs, id, -EBADF, offset, &w, err);
    if (r < 0)
        return r;
    *ret_watch = local_watch_publish(w);
    if (*ret_watch)
        return 0;
    local_watch_free(w);
    return err_set(err, NACRE_ENOMEM, "out of memory");
}

static int64_t local_input(void *self, const nacre_id *id, const void *data, size_t size, int eof,
                           int64_t timeout_ms, nacre_error *err)
{
    cleanup_run struct run run = RUN_NONE;
    int r = open_run(self, id, &run, err);
    return r < 0 ? r : input_run(&run, data, size, eof, timeout_ms, err);
}

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

static int local_find(void *self, const char *prefix, nacre_id *ret_id, nacre_error *err)
{
    struct match match = {.prefix = prefix, .local = self};
    int runs = runs_for_reading(self, err);
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

static int local_list(void *self, int only_alive, int (*fn)(const nacre_record *, void *),
                      void *userdata, nacre_error *err)
{
    struct listing listing = {.runs_fd = runs_for_reading(self, err), .only_alive = only_alive};
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

static int local_remove(void *self, const nacre_id *id, nacre_error *err)
{
    struct local *l = self;
    cleanup_run struct run run = RUN_NONE;
    struct run_state state;
    nacre_error inner;
    int r = open_run(l, id, &run, &inner);
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

/* The keepers have seen the session's pipe close and are all at work; wait for each proof. */
static int await_end(struct local *l, const nacre_id *id, int64_t deadline)
{
    struct local_watch *w;
    int survivors = 0;
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
    l->shell = copy(options->shell, &ok);
    l->secrets = options->secrets;
    l->session = options->session;
    l->grace_ms = options->grace_ms;
    l->longest_grace_ms = options->grace_ms;
    l->quota = options->quota;
    l->tier = options->tier;
    l->single = options->single;
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
