#include "sys/cgroup.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/defs.h"
#include "sys/fd.h"
#include "sys/proc.h"

#define MEMBERS "keepers" /* the group for those of a scope who are in no leaf */

struct cgroup_mount {
    const char *controller;      /* of a tree of version 1; NULL = version 2 */
    char own[CGROUP_PATH_MAX];   /* the path after "0::" */
    char root[CGROUP_PATH_MAX];  /* the part of the tree that is mounted */
    char mount[CGROUP_PATH_MAX]; /* where */
};

/* Whether a list with commas between, which ends at a colon or the end, has this word. */
static bool list_has(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (;;) {
        size_t n = strcspn(list, ",:");
        if (n == length && memcmp(list, word, n) == 0)
            return true;
        if (list[n] != ',')
            return false;
        list += n + 1;
    }
}

/* A line of cgroup: number ":" controllers ":" path; without number and controllers of version 2.
 */
static int note_own(char *line, void *userdata)
{
    struct cgroup_mount *where = userdata;
    const char *controllers = strchr(line, ':');
    const char *path = controllers ? strchr(controllers + 1, ':') : NULL;
    bool wanted = path && path[1] == '/' &&
                  (where->controller ? list_has(controllers + 1, where->controller)
                                     : strncmp(line, "0::", 3) == 0);
    if (wanted)
        snprintf(where->own, sizeof where->own, "%s", path + 1);
    return wanted;
}

/* A line of mountinfo: id parent dev ROOT MOUNT options [optional...] - TYPE source super. */
static int note_mount(char *line, void *userdata)
{
    struct cgroup_mount *where = userdata;
    const char *type = strstr(line, " - ");
    const char *kind = where->controller ? "cgroup " : "cgroup2 ";
    if (!type || strncmp(type + 3, kind, strlen(kind)) != 0)
        return 0;
    const char *options = strrchr(type, ' ') + 1;
    if (where->controller && !list_has(options, where->controller))
        return 0;
    return sscanf(line, "%*s %*s %*s %511s %511s", where->root, where->mount) == 2;
}

int cgroup_own(char *ret_path, size_t size)
{
    return cgroup_own_of(NULL, ret_path, size);
}

int cgroup_own_of(const char *controller, char *ret_path, size_t size)
{
    struct cgroup_mount where = {.controller = controller};
    int r = fd_each_line_in("/proc/self/cgroup", note_own, &where);
    if (r > 0)
        r = fd_each_line_in("/proc/self/mountinfo", note_mount, &where);
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

static bool is_our_scope(const char *path)
{
    const char *name = strrchr(path, '/');
    size_t length = name ? strlen(name) : 0, suffix = strlen(SCOPE_SUFFIX);
    return length > suffix && strncmp(name + 1, CGROUP_PREFIX, strlen(CGROUP_PREFIX)) == 0 &&
           strcmp(name + length - suffix, SCOPE_SUFFIX) == 0;
}

int cgroup_divide(char *ret_path, size_t size)
{
    static const char *const controllers[] = {"+memory", "+pids", "+cpu"};
    int r = cgroup_own(ret_path, size);
    if (r < 0)
        return r;
    if (!is_our_scope(ret_path))
        return -ESRCH;
    cleanup_close int dir = open(ret_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 || (mkdirat(dir, MEMBERS, 0755) < 0 && errno != EEXIST))
        return -errno;
    r = fd_poke_at(dir, MEMBERS "/cgroup.procs", "0");
    for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(controllers); i++)
        fd_poke_at(dir, "cgroup.subtree_control", controllers[i]);
    return MIN(r, 0);
}

bool cgroup_is_divided(const char *path)
{
    char controllers[256];
    cleanup_close int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return dir >= 0 && faccessat(dir, ".", W_OK, AT_EACCESS) == 0 &&
           faccessat(dir, "cgroup.procs", W_OK, AT_EACCESS) == 0 &&
           fd_slurp_at(dir, "cgroup.subtree_control", controllers, sizeof controllers) >= 0 &&
           strstr(controllers, "memory");
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

#define NESTING_MAX 16

/* A walk through a cgroup and all below it. */
struct descent {
    int dir;
    int depth;
    cgroup_member_fn *fn;
    void *userdata;
};

static int visit_member(char *line, void *userdata)
{
    const struct descent *here = userdata;
    return here->fn((pid_t)fd_parse_number(line), here->userdata);
}

static int visit_below(const char *name, void *userdata);

static int visit_members(struct descent *here)
{
    cleanup_close int members = openat(here->dir, "cgroup.procs", O_RDONLY | O_CLOEXEC);
    int r = members < 0 ? -errno : fd_each_line(members, visit_member, here);
    return r == 0 && here->depth < NESTING_MAX ? fd_walk(here->dir, visit_below, here) : r;
}

static int visit_below(const char *name, void *userdata)
{
    const struct descent *up = userdata;
    cleanup_close int fd = openat(up->dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return 0;
    struct descent here = {
        .dir = fd, .depth = up->depth + 1, .fn = up->fn, .userdata = up->userdata};
    int r = visit_members(&here);
    return MAX(r, 0);
}

int cgroup_each_member(int fd, cgroup_member_fn *fn, void *userdata)
{
    struct descent here = {.dir = fd, .fn = fn, .userdata = userdata};
    return visit_members(&here);
}

/* For kernels before 5.14, in rounds of the caller's: who is born meanwhile is met in the next. */
static int kill_member(pid_t pid, void *userdata UNUSED)
{
    struct proc_ref ref;
    if (proc_ref(pid, &ref) == 0)
        proc_kill(&ref, SIGKILL);
    return 0;
}

int cgroup_kill(int fd)
{
    int r = fd_poke_at(fd, "cgroup.kill", "1");
    return r == -ENOENT ? cgroup_each_member(fd, kill_member, NULL) : r;
}

int cgroup_open_events(int fd)
{
    int events = openat(fd, "cgroup.events", O_RDONLY | O_CLOEXEC);
    return events < 0 ? -errno : fd_lift_consume(events);
}

/* Whether the file of events has this line; 1 or 0. */
static int events_say(int events, const char *line)
{
    char text[256];
    ssize_t n = RETRY(pread(events, text, sizeof text - 1, 0));
    if (n < 0)
        return -errno;
    text[n] = '\0';
    return strstr(text, line) != NULL;
}

/* The file is readable with priority when something in it has changed. Who gets no processor for
 * longer than it wanted to wait looks once more. */
static int await_frozen(int fd, int wait_ms)
{
    cleanup_close int events = cgroup_open_events(fd);
    if (events < 0)
        return events;
    for (int64_t deadline = clock_deadline(wait_ms);;) {
        int left = clock_left_ms(deadline);
        int r = events_say(events, "frozen 1");
        if (r != 0)
            return MIN(r, 0);
        struct pollfd poller = {.fd = events, .events = POLLPRI};
        if (left == 0 || (poll(&poller, 1, left) < 0 && errno != EINTR))
            return -ETIMEDOUT;
    }
}

int cgroup_freeze(int fd, int wait_ms)
{
    int r = fd_poke_at(fd, "cgroup.freeze", "1");
    return r < 0 ? r : await_frozen(fd, wait_ms);
}

int cgroup_thaw(int fd)
{
    return fd_poke_at(fd, "cgroup.freeze", "0");
}

int cgroup_events_populated(int events)
{
    return events_say(events, "populated 1");
}

int cgroup_populated(int fd)
{
    cleanup_close int events = cgroup_open_events(fd);
    return events < 0 ? events : cgroup_events_populated(events);
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
