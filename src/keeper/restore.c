/*
 * The files of a run lie in reach of its command, and whoever reads them believes them. We hold
 * every one of them: whatever becomes of their names, they get them back, or a copy does. What was
 * cut away is counted as dropped. Nothing here follows a link or waits for what it finds in a
 * place, and if nothing helps the run goes on without files: the command, its streams, its kill and
 * who asks for them do not need any.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/defs.h"
#include "keeper/keeper.h"
#include "run/place.h"
#include "run/rundir.h"
#include "sys/fd.h"
#include "sys/sock.h"

#define AGAIN_NS (INT64_C(1) * 1000000000) /* after a try in vain: there may be much to copy */

static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static bool is_same_moment(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/* Whether a name leads to what we hold, and others who are us may open it. */
static bool is_in_place(int dir, const char *name, int fd)
{
    struct stat ours, there;
    return fstat(fd, &ours) == 0 && fstatat(dir, name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
           is_same_file(&ours, &there) && ((ours.st_mode & 0600) == 0600 || fchmod(fd, 0600) == 0);
}

/* -- The mark --------------------------------------------------------------------------------- */

/* What we do not hold cannot be put back either. */
static bool all_are_in_place(const struct keeper *k)
{
    const struct {
        const char *name;
        int fd;
    } files[] = {{"state", k->fd[FD_STATE]},
                 {"spec", k->fd[FD_SPEC]},
                 {"log", k->log.log_fd},
                 {"spans", k->log.spans_fd}};
    for (size_t i = 0; i < ARRAY_SIZE(files); i++)
        if (files[i].fd >= 0 && !is_in_place(k->fd[FD_DIR], files[i].name, files[i].fd))
            return false;
    return true;
}

/*
 * Whatever is put into a directory or taken out of it changes its times, and to move or remove it
 * changes one. Clocks of file systems may be coarse: so one of the times is set to what no change
 * would set it to, the beginning of a second. What somebody took out before that is looked for
 * after it; without a mark the next look puts it back.
 */
void restore_note(struct keeper *k)
{
    struct stat st, ctl;
    int dir = k->fd[FD_DIR];
    bool has_ctl = fstatat(dir, "ctl", &ctl, AT_SYMLINK_NOFOLLOW) == 0;
    k->mark = (struct restore_mark){.ctl = has_ctl ? ctl.st_ino : 0};
    if (fstat(dir, &st) < 0)
        return;
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = st.st_ctim.tv_sec}};
    futimens(dir, times);
    if (fstat(dir, &st) < 0 || !all_are_in_place(k))
        return;
    k->mark.changed = st.st_ctim;
    k->mark.entries = st.st_mtim;
}

void restore_look(struct keeper *k)
{
    struct stat st;
    if (k->fd[FD_DIR] >= 0 && fstat(k->fd[FD_DIR], &st) == 0 && st.st_nlink > 0 &&
        is_same_moment(&st.st_ctim, &k->mark.changed) &&
        is_same_moment(&st.st_mtim, &k->mark.entries))
        return;
    restore_files(k);
}

/* -- Places ----------------------------------------------------------------------------------- */

/* The path of the directory of runs, as the library said it: the spec has it with our id. */
static int path_of_runs(const struct keeper *k, char *ret_path, size_t size)
{
    ssize_t n = fd_pread_all(k->fd[FD_SPEC], ret_path, size - 1, (off_t)k->spec.run_path);
    if (n <= 0)
        return -ENOENT;
    ret_path[n] = '\0';
    char *slash = strrchr(ret_path, '/');
    if (ret_path[0] != '/' || !slash || slash == ret_path ||
        strcmp(slash + 1, nacre_id_format(&k->st.id).s) != 0)
        return -ENOENT;
    *slash = '\0';
    return 0;
}

/* A home that was removed is made again, and one that somebody made in its place is ours too. One
 * that was only moved is still where we can reach it. */
static void find_runs(struct keeper *k)
{
    char path[PATH_MAX];
    struct stat ours, there;
    if (fstat(k->fd[FD_RUNS], &ours) < 0 || path_of_runs(k, path, sizeof path) < 0)
        return;
    bool found = lstat(path, &there) == 0;
    if (ours.st_nlink > 0 && (!found || is_same_file(&ours, &there)))
        return;
    if (!found)
        fd_make_dirs(path);
    cleanup_close int fd =
        fd_lift_consume(open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (fd < 0 || fstat(fd, &there) < 0 || there.st_uid != geteuid())
        return;
    close_fd(&k->fd[FD_RUNS]);
    k->fd[FD_RUNS] = TAKE_FD(fd);
}

static int find_directory(struct keeper *k)
{
    nacre_id_text name = nacre_id_format(&k->st.id);
    struct stat ours, there;
    int runs = k->fd[FD_RUNS];
    if (fstat(k->fd[FD_DIR], &ours) == 0 &&
        fstatat(runs, name.s, &there, AT_SYMLINK_NOFOLLOW) == 0 && is_same_file(&ours, &there))
        return (ours.st_mode & 0700) == 0700 || fchmod(k->fd[FD_DIR], 0700) == 0 ? 0 : -errno;
    int fd = place_open(runs, name.s);
    if (fd < 0)
        return fd;
    close_fd(&k->fd[FD_DIR]);
    k->fd[FD_DIR] = k->log.dir = fd;
    return 0;
}

/* -- Files ------------------------------------------------------------------------------------ */

/* 0 = it has its name again; else the file itself cannot have one any more. */
static int link_back(int dir, const char *name, int fd)
{
    char path[32];
    int r = place_clear(dir, name);
    if (r < 0)
        return r;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, path, dir, name, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

static int copy_bytes(int from, int to, uint64_t size)
{
    char buf[16384];
    for (uint64_t at = 0; at < size;) {
        size_t want = (size_t)MIN(size - at, (uint64_t)sizeof buf);
        ssize_t n = fd_pread_all(from, buf, want, (off_t)at);
        if (n <= 0)
            return n < 0 ? (int)n : -EIO;
        int r = fd_pwrite_all(to, buf, (size_t)n, (off_t)at);
        if (r < 0)
            return r;
        at += (uint64_t)n;
    }
    return 0;
}

/* A file that is in its place, or has been put there: *fd, or a copy of its first bytes, which is
 * *fd then. If there is no room for that, the one without a name still has everything. */
static int put_back(int dir, const char *name, int *fd, uint64_t size)
{
    if (*fd < 0 || is_in_place(dir, name, *fd) || link_back(dir, name, *fd) == 0)
        return 0;
    cleanup_close int copy = run_make_file(dir, name);
    int r = copy < 0 ? copy : copy_bytes(*fd, copy, size);
    if (r < 0) {
        unlinkat(dir, name, 0);
        return r;
    }
    close_fd(fd);
    *fd = TAKE_FD(copy);
    return 0;
}

/* The lock is on the new one before it can be seen. */
static int put_back_state(struct keeper *k)
{
    int dir = k->fd[FD_DIR];
    if (is_in_place(dir, "state", k->fd[FD_STATE]) || link_back(dir, "state", k->fd[FD_STATE]) == 0)
        return 0;
    place_clear(dir, "state.new");
    cleanup_close int fd = -EBADF;
    int r = run_make_state(dir, &k->st, &fd);
    if (r < 0)
        return r;
    close_fd(&k->fd[FD_STATE]);
    k->fd[FD_STATE] = TAKE_FD(fd);
    return 0;
}

static int put_back_log(struct keeper *k)
{
    struct logw *w = &k->log;
    if (!logw_head_is_whole(w))
        logw_lose_head(w, EIO);
    int r = put_back(k->fd[FD_DIR], "log", &w->log_fd, w->index->head);
    int e =
        put_back(k->fd[FD_DIR], "spans", &w->spans_fd, w->index->head_spans * sizeof(struct span));
    return MIN(r, e);
}

static int put_back_ring(struct keeper *k)
{
    int dir = k->fd[FD_DIR];
    if (!k->log.ring || is_in_place(dir, "tail", k->log.tail_fd) ||
        link_back(dir, "tail", k->log.tail_fd) == 0)
        return 0;
    cleanup_close int fd = run_make_file(dir, "tail");
    int r = fd < 0 ? fd : logw_move_ring(&k->log, fd);
    if (r < 0)
        unlinkat(dir, "tail", 0);
    else
        TAKE_FD(fd);
    return r;
}

static int put_back_spec(struct keeper *k)
{
    struct stat st;
    if (fstat(k->fd[FD_SPEC], &st) < 0)
        return 0;
    return put_back(k->fd[FD_DIR], "spec", &k->fd[FD_SPEC], (uint64_t)st.st_size);
}

/* Who waits at the old one was let in before. */
static void put_back_socket(struct keeper *k)
{
    struct stat st;
    int dir = k->fd[FD_DIR];
    bool there = fstatat(dir, "ctl", &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISSOCK(st.st_mode) &&
                 st.st_ino == k->mark.ctl;
    if (there || k->fd[FD_LISTEN] < 0 || k->state == ST_DONE || place_clear(dir, "ctl") < 0)
        return;
    int fd = sock_listen_at(dir, "ctl");
    if (fd < 0)
        return;
    loop_close(k, FD_LISTEN);
    k->fd[FD_LISTEN] = fd;
    loop_watch(k, FD_LISTEN);
}

/* Both slots are written: whatever was in them is gone. */
static void tell_truth(struct keeper *k)
{
    struct run_state there;
    if (state_read(k->fd[FD_STATE], &there) == 0 && there.generation == k->st.generation &&
        there.sum == k->st.sum)
        return;
    state_write(k->fd[FD_STATE], &k->st);
    state_write(k->fd[FD_STATE], &k->st);
}

/* Whether there is no room for what is to be put back; all else is somebody who is faster. */
static bool is_full(int r)
{
    return r == -ENOSPC || r == -EDQUOT || r == -EROFS || r == -EIO;
}

/* Who removes a directory may remove the new one, too, as long as it is empty. */
static int put_all_back(struct keeper *k)
{
    static int (*const steps[])(struct keeper *) = {find_directory, put_back_log, put_back_ring,
                                                    put_back_spec, put_back_state};
    int r = 0;
    for (int i = 0; i < PLACE_TRIES; i++) {
        struct stat st;
        r = 0;
        for (size_t step = 0; step < ARRAY_SIZE(steps); step++) {
            int e = steps[step](k);
            r = MIN(r, e);
        }
        if (is_full(r) || (r == 0 && fstat(k->fd[FD_DIR], &st) == 0 && st.st_nlink > 0))
            break;
    }
    return r;
}

void restore_files(struct keeper *k)
{
    if (k->state == ST_WARM || k->fd[FD_DIR] < 0 || clock_mono_ns() < k->mark.again)
        return;
    find_runs(k);
    int r = put_all_back(k);
    put_back_socket(k);
    tell_truth(k);
    restore_note(k);
    if (r < 0)
        k->mark = (struct restore_mark){.again = is_full(r) ? clock_mono_ns() + AGAIN_NS : 0,
                                        .ctl = k->mark.ctl};
}
