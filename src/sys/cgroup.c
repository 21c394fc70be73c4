#include "sys/cgroup.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/defs.h"
#include "sys/fd.h"
#include "sys/proc.h"

/* Reads a file of /proc line by line; a result != 0 of fn ends it and is returned. */
static int each_line_of(int fd, int (*fn)(char *line, void *userdata), void *userdata)
{
    char buf[8192];
    size_t kept = 0;
    for (;;) {
        ssize_t n = RETRY(read(fd, buf + kept, sizeof buf - 1 - kept));
        if (n <= 0)
            return n < 0 ? -errno : 0;
        buf[kept + (size_t)n] = '\0';
        char *p = buf;
        for (char *end; (end = strchr(p, '\n')); p = end + 1) {
            *end = '\0';
            int r = fn(p, userdata);
            if (r != 0)
                return r;
        }
        kept = strlen(p);
        memmove(buf, p, kept + 1);
        if (kept == sizeof buf - 1)
            return -E2BIG;
    }
}

static int each_line(const char *path, int (*fn)(char *line, void *userdata), void *userdata)
{
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : each_line_of(fd, fn, userdata);
}

struct where {
    char own[CGROUP_PATH_MAX];   /* the path after "0::" */
    char root[CGROUP_PATH_MAX];  /* the part of the tree that is mounted */
    char mount[CGROUP_PATH_MAX]; /* where */
};

static int note_own(char *line, void *userdata)
{
    struct where *where = userdata;
    if (strncmp(line, "0::/", 4) != 0)
        return 0;
    snprintf(where->own, sizeof where->own, "%s", line + 3);
    return 1;
}

/* A line of mountinfo: id parent dev ROOT MOUNT options [optional...] - TYPE source super. */
static int note_mount(char *line, void *userdata)
{
    struct where *where = userdata;
    const char *type = strstr(line, " - ");
    if (!type || strncmp(type + 3, "cgroup2 ", 8) != 0)
        return 0;
    return sscanf(line, "%*s %*s %*s %511s %511s", where->root, where->mount) == 2;
}

int cgroup_own(char *ret_path, size_t size)
{
    struct where where = {0};
    int r = each_line("/proc/self/cgroup", note_own, &where);
    if (r > 0)
        r = each_line("/proc/self/mountinfo", note_mount, &where);
    if (r <= 0)
        return r < 0 ? r : -ENOENT;
    const char *below = where.own;
    size_t root = strlen(where.root);
    if (root > 1) {
        if (strncmp(below, where.root, root) != 0)
            return -ENOENT;
        below += root;
    }
    if (strcmp(below, "/") == 0)
        below = "";
    int n = snprintf(ret_path, size, "%s%s", where.mount, below);
    return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

int cgroup_create(const char *parent, const char *name)
{
    char path[CGROUP_PATH_MAX];
    int n = snprintf(path, sizeof path, "%s/%s", parent, name);
    if (n < 0 || (size_t)n >= sizeof path)
        return -ENAMETOOLONG;
    if (mkdir(path, 0755) < 0)
        return -errno;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = fd < 0 ? -errno : faccessat(fd, "cgroup.procs", W_OK, AT_EACCESS) < 0 ? -errno : 0;
    if (r == 0)
        return fd_lift_consume(fd);
    close_fd(&fd);
    rmdir(path);
    return r;
}

/* For kernels before 5.14, in rounds of the caller's: who is born meanwhile is met in the next. */
static int kill_member(char *line, void *userdata UNUSED)
{
    struct proc_ref ref;
    if (proc_ref((pid_t)fd_parse_number(line), &ref) == 0)
        proc_kill(&ref, SIGKILL);
    return 0;
}

int cgroup_kill(int fd)
{
    int r = fd_poke_at(fd, "cgroup.kill", "1");
    if (r != -ENOENT)
        return r;
    cleanup_close int members = openat(fd, "cgroup.procs", O_RDONLY | O_CLOEXEC);
    return members < 0 ? -errno : each_line_of(members, kill_member, NULL);
}

/* The file of events is readable with priority when something in it has changed. */
static int await_frozen(int fd, int wait_ms)
{
    cleanup_close int events = openat(fd, "cgroup.events", O_RDONLY | O_CLOEXEC);
    if (events < 0)
        return -errno;
    for (int64_t deadline = clock_deadline(wait_ms);;) {
        char text[256];
        ssize_t n = RETRY(pread(events, text, sizeof text - 1, 0));
        if (n < 0)
            return -errno;
        text[n] = '\0';
        if (strstr(text, "frozen 1"))
            return 0;
        int left = clock_left_ms(deadline);
        struct pollfd poller = {.fd = events, .events = POLLPRI};
        if (left == 0 || (poll(&poller, 1, left) < 0 && errno != EINTR))
            return -ETIMEDOUT;
    }
}

int cgroup_freeze(int fd, int wait_ms)
{
    int r = fd_poke_at(fd, "cgroup.freeze", "1");
    if (r < 0)
        return r;
    r = await_frozen(fd, wait_ms);
    if (r < 0)
        cgroup_thaw(fd);
    return r;
}

int cgroup_thaw(int fd)
{
    return fd_poke_at(fd, "cgroup.freeze", "0");
}

int cgroup_populated(int fd)
{
    char buf[256];
    ssize_t n = fd_slurp_at(fd, "cgroup.events", buf, sizeof buf);
    if (n < 0)
        return (int)n;
    return strstr(buf, "populated 1") != NULL;
}

int64_t cgroup_cpu_ms(const char *path)
{
    static const char key[] = "usage_usec ";
    char buf[1024], file[CGROUP_PATH_MAX + 16];
    snprintf(file, sizeof file, "%.*s/cpu.stat", CGROUP_PATH_MAX, path);
    ssize_t n = fd_slurp_at(AT_FDCWD, file, buf, sizeof buf);
    if (n < 0)
        return n;
    const char *value = strstr(buf, key);
    return value ? fd_parse_number(value + strlen(key)) / 1000 : -ENODATA;
}

struct removal {
    int dir;
    int depth;
};

#define NESTING_MAX 16

static int remove_below(const char *name, void *userdata)
{
    const struct removal *up = userdata;
    int fd = openat(up->dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return 0;
    struct removal here = {.dir = fd, .depth = up->depth + 1};
    if (here.depth < NESTING_MAX)
        fd_walk(fd, remove_below, &here);
    close(fd);
    unlinkat(up->dir, name, AT_REMOVEDIR);
    return 0;
}

int cgroup_remove(const char *path)
{
    if (rmdir(path) == 0 || errno == ENOENT)
        return 0;
    cleanup_close int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    struct removal here = {.dir = fd};
    fd_walk(fd, remove_below, &here);
    return rmdir(path) < 0 && errno != ENOENT ? -errno : 0;
}
