#include "run/rundir.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/sum.h"
#include "sys/fd.h"

#define TOLD "told" /* there once the completion was delivered */

/* -- The state file --------------------------------------------------------------------------- */

static const uint8_t state_magic[8] = "nacstate";

void state_init(struct run_state *state, const nacre_id *id, const nacre_id *session)
{
    memset(state, 0, sizeof *state);
    memcpy(state->magic, state_magic, sizeof state_magic);
    state->format = RUN_FORMAT;
    state->size = sizeof *state;
    state->id = *id;
    state->session = *session;
    state->exit_code = -1;
    state->pipestatus_count = -1;
}

static uint64_t sum_of(const struct run_state *state)
{
    return sum64(state, offsetof(struct run_state, sum));
}

int state_write(int fd, struct run_state *state)
{
    must(state->size == sizeof *state);
    state->generation++;
    state->sum = sum_of(state);
    off_t slot = (off_t)(state->generation % 2) * STATE_SLOT_SIZE;
    int r = fd_pwrite_all(fd, state, sizeof *state, slot);
    /* The next try must not go over the good slot. */
    if (r < 0)
        state->generation--;
    return r;
}

static int check_state(const struct run_state *state)
{
    if (memcmp(state->magic, state_magic, sizeof state_magic) != 0)
        return -EBADMSG;
    if (state->format > RUN_FORMAT)
        return -EPROTO;
    return state->size == sizeof *state && state->sum == sum_of(state) ? 0 : -EBADMSG;
}

static int read_slot(int fd, int slot, struct run_state *ret_state)
{
    ssize_t n = fd_pread_all(fd, ret_state, sizeof *ret_state, (off_t)slot * STATE_SLOT_SIZE);
    if (n < 0)
        return (int)n;
    return (size_t)n < sizeof *ret_state ? -EBADMSG : check_state(ret_state);
}

/* The keeper may be met while it writes a slot. What the other one holds was the newest when that
 * began only if it is still there afterwards: the keeper may have gone on between two reads. */
int state_read(int fd, struct run_state *ret_state)
{
    int r = -EBADMSG;
    bool found = false;
    for (int attempt = 0; attempt < 8; attempt++) {
        int valid = 0;
        bool again = false;
        for (int slot = 0; slot < 2; slot++) {
            struct run_state state;
            int e = read_slot(fd, slot, &state);
            if (e < 0 && e != -EBADMSG && e != -EPROTO)
                return e;
            if (e == -EPROTO)
                r = e;
            if (e < 0)
                continue;
            valid++;
            again = again || (found && state.generation == ret_state->generation);
            if (!found || state.generation > ret_state->generation)
                *ret_state = state;
            found = true;
        }
        if (valid == 2 || again)
            return 0;
    }
    return found ? 0 : r;
}

/* -- Making a run ----------------------------------------------------------------------------- */

int run_make_file(int dir, const char *name)
{
    int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
    int fd = openat(dir, name, flags, 0600);
    return fd < 0 ? -errno : fd_lift_consume(fd);
}

int run_make_state(int dir, struct run_state *state, int *ret_fd)
{
    *ret_fd = run_make_file(dir, "state.new");
    int r = *ret_fd < 0 ? *ret_fd : lock_take(*ret_fd);
    if (r == 0)
        r = state_write(*ret_fd, state);
    if (r == 0 && renameat(dir, "state.new", dir, "state") < 0)
        r = -errno;
    return r;
}

int run_make(int runs_fd, struct run_state *state, struct run_files *ret_files)
{
    nacre_id_text name = nacre_id_format(&state->id);
    if (mkdirat(runs_fd, name.s, 0700) < 0)
        return -errno;
    ret_files->dir = openat(runs_fd, name.s, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (ret_files->dir < 0) {
        int cause = -errno;
        unlinkat(runs_fd, name.s, AT_REMOVEDIR);
        return cause;
    }
    int r = run_make_state(ret_files->dir, state, &ret_files->state);
    if (r == 0)
        r = ret_files->spec = run_make_file(ret_files->dir, "spec");
    if (r >= 0)
        r = ret_files->log = run_make_file(ret_files->dir, "log");
    if (r >= 0)
        r = ret_files->spans = run_make_file(ret_files->dir, "spans");
    return MIN(r, 0);
}

void run_files_close(struct run_files *files)
{
    close_fd(&files->dir);
    close_fd(&files->state);
    close_fd(&files->spec);
    close_fd(&files->log);
    close_fd(&files->spans);
}

/* -- Reading ---------------------------------------------------------------------------------- */

void run_close(struct run *run)
{
    close_fd(&run->dir);
    close_fd(&run->state_fd);
}

bool run_is_gone(const struct run *run)
{
    struct stat st;
    return fstat(run->state_fd, &st) < 0 || st.st_nlink == 0;
}

static int not_found(const nacre_id *id, nacre_error *err)
{
    return err_set(err, NACRE_ENOTFOUND, "no shell with id \"%s\"", nacre_id_short(id).s);
}

/* What is wrong with a file by what opening or reading it returned; NULL = not with the file. */
static const char *damage_text(int e)
{
    switch (e) {
    case -EINVAL:
        return "it is no regular file";
    case -EPERM:
        return "it belongs to another user";
    case -EBADMSG:
        return "what is in it makes no sense";
    case -ENOENT:
        return "it is not there";
    default:
        return NULL;
    }
}

int run_damaged(const nacre_id *id, const char *part, int e, nacre_error *err)
{
    const char *damage = damage_text(e);
    int r = damage ? err_set(err, NACRE_EIO, "the %s of shell %s is damaged: %s", part,
                             nacre_id_short(id).s, damage)
                   : err_set(err, NACRE_EIO, "cannot read the %s of shell %s: %s", part,
                             nacre_id_short(id).s, err_text(-e));
    if (err) {
        err->sys_errno = -e;
        snprintf(err->stage, sizeof err->stage, "%s", part);
    }
    return r;
}

/* A command may take the rights of its directory away, from whoever looks as well as from its
 * keeper, who may be gone or has not noticed yet. */
static int open_unlocked(int runs_fd, const char *name)
{
    int fd = fd_open_dir_at(runs_fd, name);
    if (fd != -EACCES)
        return fd;
    fd_own_dir_at(runs_fd, name);
    return fd_open_dir_at(runs_fd, name);
}

int run_open_file(int dir, const char *name, int flags)
{
    int fd = fd_open_file_at(dir, name, flags);
    return fd == -EACCES && fd_own_file_at(dir, name) ? fd_open_file_at(dir, name, flags) : fd;
}

int run_open(int runs_fd, const nacre_id *id, struct run *ret_run, nacre_error *err)
{
    nacre_id_text name = nacre_id_format(id);
    struct run run = {.id = *id, .dir = -EBADF, .state_fd = -EBADF};
    run.dir = open_unlocked(runs_fd, name.s);
    if (run.dir == -ENOENT)
        return not_found(id, err);
    if (run.dir < 0)
        return err_sys(err, run.dir == -EACCES ? NACRE_EPERM : NACRE_EIO, -run.dir, "open",
                       "cannot open the directory of shell %s", nacre_id_short(id).s);
    run.state_fd = run_open_file(run.dir, "state", O_RDONLY);
    if (run.state_fd < 0) {
        int cause = run.state_fd;
        run_close(&run);
        return run_damaged(id, "state", cause, err);
    }
    *ret_run = run;
    return 0;
}

int run_read_state(const struct run *run, struct run_state *ret_state, nacre_error *err)
{
    return run_check_state(run, state_read(run->state_fd, ret_state), ret_state, err);
}

int run_check_state(const struct run *run, int r, const struct run_state *state, nacre_error *err)
{
    if (r == -EPROTO)
        return err_set(err, NACRE_EUNSUPPORTED,
                       "shell %s was written by a newer nacre; use that one to read it",
                       nacre_id_short(&run->id).s);
    if (r < 0)
        return run_damaged(&run->id, "state", r, err);
    if (!nacre_id_equal(&state->id, &run->id))
        return err_set(err, NACRE_EIO,
                       "the directory of shell %s is a copy of that of %s; look at that one",
                       nacre_id_short(&run->id).s, nacre_id_short(&state->id).s);
    if (state->phase == PHASE_WARM)
        return not_found(&run->id, err);
    return 0;
}

bool run_has_log(const struct run *run)
{
    static const char *const files[] = {"log", "spans"};
    struct stat st;
    for (size_t i = 0; i < ARRAY_SIZE(files); i++)
        if (fstatat(run->dir, files[i], &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
            return false;
    return true;
}

int run_load_spec(const struct run *run, struct spec *ret_spec, nacre_error *err)
{
    cleanup_close int fd = run_open_file(run->dir, "spec", O_RDONLY);
    struct stat st;
    int r = fd < 0 ? fd : fstat(fd, &st) < 0 ? -errno : 0;
    cleanup_free char *data = NULL;
    if (r == 0 && st.st_size > 0 && st.st_size <= UINT32_MAX) {
        data = malloc((size_t)st.st_size);
        if (!data)
            return err_set(err, NACRE_ENOMEM, "out of memory");
        ssize_t n = fd_pread_all(fd, data, (size_t)st.st_size, 0);
        r = n < 0 ? (int)n : spec_check(data, (size_t)n);
    } else if (r == 0) {
        r = -EBADMSG;
    }
    if (r < 0)
        return run_damaged(&run->id, "spec", r, err);
    *ret_spec = (struct spec){.head = (const void *)TAKE_PTR(data), .size = (size_t)st.st_size};
    return 0;
}

static int write_told(const struct run *run, const struct run_state *state)
{
    cleanup_close int fd = run_open_file(run->dir, TOLD, O_WRONLY | O_CREAT);
    return fd < 0 ? fd : fd_pwrite_all(fd, &state->exited_ns, sizeof state->exited_ns, 0);
}

int run_set_told(const struct run *run, const struct run_state *state)
{
    int r = write_told(run, state);
    if (r == 0)
        return 0;
    /* Something else has the name: it gets another one. */
    return renameat(run->dir, TOLD, run->dir, TOLD ".aside") < 0 ? r : write_told(run, state);
}

static bool was_told(const struct run *run, const struct run_state *state)
{
    int64_t exited_ns = 0;
    cleanup_close int fd = run_open_file(run->dir, TOLD, O_RDONLY);
    return fd >= 0 && fd_pread_all(fd, &exited_ns, sizeof exited_ns, 0) == sizeof exited_ns &&
           exited_ns == state->exited_ns && exited_ns != 0;
}

bool run_owes(const struct run *run, const struct run_state *state)
{
    return state->background && !was_told(run, state);
}

char *run_command_text(const struct spec *spec)
{
    const struct spec_head *head = spec->head;
    if (head->kind != SPEC_ARGV)
        return strdup(spec_string(spec, head->text));
    struct buf text cleanup_buf = BUF_UP_TO(SIZE_MAX / 2);
    const char *arg = spec_string(spec, head->argv);
    for (uint32_t i = 0; i < head->argc; i++, arg += strlen(arg) + 1)
        if ((i > 0 && buf_str(&text, " ") < 0) || buf_str(&text, arg) < 0)
            return NULL;
    return buf_take(&text);
}

struct run_visitor {
    run_fn *fn;
    void *userdata;
};

static int visit_run(const char *name, void *userdata)
{
    const struct run_visitor *each = userdata;
    nacre_id id;
    return nacre_id_parse(name, &id) == NACRE_OK ? each->fn(&id, each->userdata) : 0;
}

int run_each(int runs_fd, run_fn *fn, void *userdata)
{
    /* A position of its own: the descriptor is shared by threads. */
    cleanup_close int dir = openat(runs_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return -errno;
    struct run_visitor each = {.fn = fn, .userdata = userdata};
    return fd_walk(dir, visit_run, &each);
}

/* All that a keeper and the library ever put into a run directory. */
static const char *const own_files[] = {"spec", "log",       "spans", "tail", "pipestatus",
                                        "ctl",  "state.new", TOLD,    "state"};

uint64_t run_cost(int dir)
{
    uint64_t cost = fd_cost_at(dir, ".");
    for (size_t i = 0; i < ARRAY_SIZE(own_files); i++)
        cost += fd_cost_at(dir, own_files[i]);
    return cost;
}

int64_t run_changed_ns(int dir)
{
    int64_t newest = 0;
    struct stat st;
    for (size_t i = 0; i < ARRAY_SIZE(own_files); i++)
        if (fstatat(dir, own_files[i], &st, AT_SYMLINK_NOFOLLOW) == 0)
            newest = MAX(newest, st.st_mtim.tv_sec * NS_PER_S + st.st_mtim.tv_nsec);
    return newest;
}

/*
 * A command may have put anything there, nested however deep. What is in a directory of a directory
 * is lifted into the run's own, so that one level at a time goes away, and nothing is descended
 * into. No link is followed, and what is mounted there stays.
 */
struct clearing {
    int dir;
    int from;
    unsigned lifted;
};

#define LIFT_MAX 100000u

static int remove_entry(int dir, const char *name)
{
    if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR)
        return -errno;
    return unlinkat(dir, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

static int lift_entry(const char *name, void *userdata)
{
    struct clearing *c = userdata;
    char to[32];
    int r = remove_entry(c->from, name);
    if (r != -ENOTEMPTY && r != -EEXIST)
        return r;
    /* To move a directory is to write to it. */
    fd_own_dir_at(c->from, name);
    snprintf(to, sizeof to, "lifted-%u", c->lifted++);
    if (c->lifted > LIFT_MAX)
        return -ENOTEMPTY;
    return renameat(c->from, name, c->dir, to) < 0 ? -errno : 0;
}

/* The state is the last to go: until then it is a run. */
static int clear_entry(const char *name, void *userdata)
{
    struct clearing *c = userdata;
    int r = strcmp(name, "state") == 0 ? 0 : remove_entry(c->dir, name);
    if (r != -ENOTEMPTY && r != -EEXIST)
        return r;
    fd_own_dir_at(c->dir, name);
    cleanup_close int from = c->from = fd_open_dir_at(c->dir, name);
    r = from < 0 ? from : fd_walk(from, lift_entry, c);
    return r < 0 ? r : remove_entry(c->dir, name);
}

static int clear_directory(int dir)
{
    struct clearing c = {.dir = dir};
    unsigned before;
    int r;
    do {
        before = c.lifted;
        r = fd_walk(dir, clear_entry, &c);
    } while (r == 0 && c.lifted > before);
    return r < 0 ? r : remove_entry(dir, "state");
}

int run_remove_dir(int above, const char *name)
{
    cleanup_close int dir = fd_open_dir_at(above, name);
    if (dir < 0)
        return dir;
    int r = clear_directory(dir);
    if (r < 0)
        return r;
    return unlinkat(above, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

int run_remove(int runs_fd, const nacre_id *id)
{
    return run_remove_dir(runs_fd, nacre_id_format(id).s);
}
