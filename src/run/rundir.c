#include "run/rundir.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "sys/fd.h"

#define TOLD "told" /* exists once the completion was delivered */

void run_close(struct run *run)
{
    close_fd(&run->dir);
    close_fd(&run->state_fd);
}

static int not_found(const nacre_id *id, nacre_error *err)
{
    return err_set(err, NACRE_ENOTFOUND, "no shell with id \"%s\"", nacre_id_short(id).s);
}

int run_open(int runs_fd, const nacre_id *id, struct run *ret_run, nacre_error *err)
{
    nacre_id_text name = nacre_id_format(id);
    struct run run = {.id = *id, .dir = -EBADF, .state_fd = -EBADF};
    run.dir = openat(runs_fd, name.s, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (run.dir < 0) {
        if (errno == ENOENT)
            return not_found(id, err);
        return err_sys(err, errno == EACCES ? NACRE_EPERM : NACRE_EIO, errno, "open",
                       "cannot open the directory of shell %s", nacre_id_short(id).s);
    }
    run.dir = fd_lift_consume(run.dir);
    run.state_fd = fd_open_file_at(run.dir, "state", O_RDONLY);
    if (run.state_fd < 0) {
        int cause = -run.state_fd;
        run_close(&run);
        return err_sys(err, NACRE_EIO, cause, "state",
                       "the directory of shell %s is damaged: it has no readable state",
                       nacre_id_short(id).s);
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
        return err_sys(err, NACRE_EIO, -r, "state", "the state of shell %s is damaged",
                       nacre_id_short(&run->id).s);
    if (!nacre_id_equal(&state->id, &run->id))
        return err_set(err, NACRE_EIO,
                       "the directory of shell %s is a copy of that of %s; look at that one",
                       nacre_id_short(&run->id).s, nacre_id_short(&state->id).s);
    if (state->phase == PHASE_WARM)
        return not_found(&run->id, err);
    return 0;
}

int run_load_spec(const struct run *run, struct spec *ret_spec, nacre_error *err)
{
    cleanup_close int fd = fd_open_file_at(run->dir, "spec", O_RDONLY);
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
        return err_sys(err, NACRE_EIO, -r, "spec", "the spec of shell %s is damaged",
                       nacre_id_short(&run->id).s);
    *ret_spec = (struct spec){.head = (const void *)TAKE_PTR(data), .size = (size_t)st.st_size};
    return 0;
}

int run_set_told(const struct run *run)
{
    cleanup_close int fd =
        openat(run->dir, TOLD, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    return fd < 0 ? -errno : 0;
}

bool run_owes(const struct run *run, const struct run_state *state)
{
    return state->background && faccessat(run->dir, TOLD, F_OK, AT_SYMLINK_NOFOLLOW) < 0;
}

char *run_command_text(const struct spec *spec)
{
    const struct spec_head *head = spec->head;
    if (head->kind != SPEC_ARGV)
        return strdup(spec_string(spec, head->text));
    cleanup_buf struct buf text;
    buf_init(&text, SIZE_MAX / 2);
    const char *arg = spec_string(spec, head->argv);
    for (uint32_t i = 0; i < head->argc; i++, arg += strlen(arg) + 1)
        if ((i > 0 && buf_str(&text, " ") < 0) || buf_str(&text, arg) < 0)
            return NULL;
    return buf_take(&text);
}

struct each {
    run_fn *fn;
    void *userdata;
};

static int each_entry(const char *name, void *userdata)
{
    const struct each *each = userdata;
    nacre_id id;
    return nacre_id_parse(name, &id) == NACRE_OK ? each->fn(&id, each->userdata) : 0;
}

int run_each(int runs_fd, run_fn *fn, void *userdata)
{
    /* A position of its own: the descriptor is shared by threads. */
    cleanup_close int dir = openat(runs_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return -errno;
    struct each each = {.fn = fn, .userdata = userdata};
    return fd_walk(dir, each_entry, &each);
}

int run_remove(int runs_fd, const nacre_id *id)
{
    static const char *const files[] = {"spec", "log",       "spans", "tail", "pipestatus",
                                        "ctl",  "state.new", TOLD,    "state"};
    nacre_id_text name = nacre_id_format(id);
    cleanup_close int dir =
        openat(runs_fd, name.s, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return -errno;
    for (size_t i = 0; i < ARRAY_SIZE(files); i++)
        if (unlinkat(dir, files[i], 0) < 0 && errno != ENOENT)
            return -errno;
    return unlinkat(runs_fd, name.s, AT_REMOVEDIR) < 0 ? -errno : 0;
}
