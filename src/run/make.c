#include "run/make.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/defs.h"
#include "sys/fd.h"
#include "sys/lock.h"

static int create(int dir, const char *name)
{
    int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
    int fd = openat(dir, name, flags, 0600);
    return fd < 0 ? -errno : fd_lift_consume(fd);
}

/* The lock is taken before the state can be seen. */
static int make_state(struct run_state *state, struct run_files *files)
{
    files->state = create(files->dir, "state.new");
    int r = files->state < 0 ? files->state : lock_take(files->state);
    if (r == 0)
        r = state_write(files->state, state);
    if (r == 0 && renameat(files->dir, "state.new", files->dir, "state") < 0)
        r = -errno;
    return r;
}

int run_make(int runs_fd, struct run_state *state, struct run_files *ret_files)
{
    nacre_id_text name = nacre_id_format(&state->id);
    if (mkdirat(runs_fd, name.s, 0700) < 0)
        return -errno;
    ret_files->dir = openat(runs_fd, name.s, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (ret_files->dir < 0)
        return -errno;
    int r = make_state(state, ret_files);
    if (r == 0)
        r = ret_files->spec = create(ret_files->dir, "spec");
    if (r >= 0)
        r = ret_files->log = create(ret_files->dir, "log");
    if (r >= 0)
        r = ret_files->spans = create(ret_files->dir, "spans");
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
