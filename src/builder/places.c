/* What lies where in a fence: everything is opened first, then all is made read-only, and then what
 * may be changed, is protected, private or hidden is put over it. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/defs.h"
#include "builder/builder.h"
#include "sys/fd.h"
#include "sys/landlock.h"
#include "sys/mounts.h"

#define HIDDEN_FILE "/dev/.hidden"

static const char *const device_names[] = {"null", "zero", "full", "random", "urandom", "tty"};
_Static_assert(ARRAY_SIZE(device_names) <= ARRAY_SIZE(((struct builder *)0)->devices), "room");

static const struct fence_place *place_at(struct builder *b, uint32_t i)
{
    b->place = i;
    return &fence_places(&b->fence)[i];
}

static const char *path_inside(const struct builder *b, const struct fence_place *place)
{
    return fence_string(&b->fence, place->path);
}

/* -- Opening ---------------------------------------------------------------------------------- */

/* A mount that other mounts are locked to cannot be copied without them. */
static int copy_alone(const char *path)
{
    int fd = mounts_copy(AT_FDCWD, path, 0);
    return fd == -EINVAL ? mounts_copy(AT_FDCWD, path, 1) : fd;
}

static int open_one(struct builder *b, const struct fence_place *place)
{
    const char *path = path_inside(b, place);
    switch ((enum fence_kind)place->kind) {
    case FENCE_PRIVATE:
        return copy_alone(fence_string(&b->fence, place->source));
    case FENCE_PIN:
        return copy_alone(path);
    case FENCE_PROTECT:
        return mounts_copy_itself(AT_FDCWD, path);
    case FENCE_WRITE:
    case FENCE_SHOW:
    case FENCE_SOCKET:
        return mounts_copy(AT_FDCWD, path, 1);
    default:
        return -ENOENT;
    }
}

/* What was there when the fence was composed may be gone by now; only what is written to has to be
 * there. */
static bool may_be_missing(const struct fence_place *place)
{
    return place->kind != FENCE_WRITE && place->kind != FENCE_PRIVATE;
}

int places_open(struct builder *b)
{
    char path[32];
    b->step = FENCE_STEP_OPEN;
    for (uint32_t i = 0; i < b->fence.head->count; i++) {
        const struct fence_place *place = place_at(b, i);
        b->opened[i] = open_one(b, place);
        if (b->opened[i] < 0 && (b->opened[i] != -ENOENT || !may_be_missing(place)))
            return b->opened[i];
    }
    for (size_t i = 0; i < ARRAY_SIZE(device_names); i++) {
        snprintf(path, sizeof path, "/dev/%s", device_names[i]);
        b->devices[i] = mounts_copy(AT_FDCWD, path, 0);
    }
    return 0;
}

/* -- Closing off ------------------------------------------------------------------------------- */

/* /proc, too: by their names there the host's processes of the same user can be changed, and by
 * that of root the kernel's settings. */
int places_close_off(struct builder *b)
{
    b->step = FENCE_STEP_READ_ONLY;
    return mounts_change_at("/", MOUNTS_READ_ONLY | MOUNTS_NO_DEVICE, 0, 1);
}

/* -- Putting in ------------------------------------------------------------------------------- */

/* A place to mount on, in what is ours and empty. */
static int make_point(const char *path, bool directory)
{
    char above[PATH_MAX];
    struct stat st;
    if (lstat(path, &st) == 0)
        return 0;
    snprintf(above, sizeof above, "%s", path);
    char *slash = strrchr(above, '/');
    if (slash && slash != above) {
        *slash = '\0';
        int r = make_point(above, true);
        if (r < 0)
            return r;
    }
    if (directory)
        return mkdir(path, 0755) < 0 && errno != EEXIST ? -errno : 0;
    cleanup_close int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return fd < 0 && errno != EEXIST ? -errno : 0;
}

static int put_over(int fd, const char *path)
{
    struct stat st;
    int r = fstatat(fd, "", &st, AT_EMPTY_PATH) < 0 ? -errno : 0;
    if (r == 0)
        r = make_point(path, S_ISDIR(st.st_mode));
    return r < 0 ? r : mounts_put(fd, AT_FDCWD, path);
}

/* A device or a socket can be used all the same; its owner, mode and times cannot be changed. */
static int put_read_only(int fd, const char *path)
{
    int r = mounts_change(fd, MOUNTS_READ_ONLY, 0, 1);
    return r < 0 ? r : put_over(fd, path);
}

static int put_memory(const char *path, const char *options)
{
    cleanup_close int fd = mounts_new("tmpfs", options);
    int r = fd < 0 ? fd : make_point(path, true);
    return r < 0 ? r : mounts_put(fd, AT_FDCWD, path);
}

/* Nothing is lost but terminals where this cannot be had. */
static void put_terminals(void)
{
    cleanup_close int fd = mounts_new("devpts", "newinstance,ptmxmode=0666,mode=620");
    if (fd >= 0 && mkdir("/dev/pts", 0755) == 0 && symlink("pts/ptmx", "/dev/ptmx") == 0)
        (void)mounts_put(fd, AT_FDCWD, "/dev/pts");
}

static int put_devices(struct builder *b)
{
    static const char *const links[][2] = {{"/proc/self/fd", "/dev/fd"},
                                           {"/proc/self/fd/0", "/dev/stdin"},
                                           {"/proc/self/fd/1", "/dev/stdout"},
                                           {"/proc/self/fd/2", "/dev/stderr"}};
    char path[32];
    int r = put_memory("/dev", "mode=755,size=1m");
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(device_names); i++) {
        snprintf(path, sizeof path, "/dev/%s", device_names[i]);
        if (b->devices[i] >= 0)
            r = put_read_only(b->devices[i], path);
    }
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(links); i++)
        if (symlink(links[i][0], links[i][1]) < 0)
            r = -errno;
    if (r == 0)
        r = put_memory("/dev/shm", "mode=1777");
    if (r == 0)
        r = make_point(HIDDEN_FILE, false);
    if (r == 0 && chmod(HIDDEN_FILE, 0) < 0)
        r = -errno;
    put_terminals();
    return r;
}

/* Whether something of it is to be seen all the same. */
static bool shows_something(struct builder *b, const char *path)
{
    size_t n = strlen(path);
    for (uint32_t i = 0; i < b->fence.head->count; i++) {
        const struct fence_place *other = &fence_places(&b->fence)[i];
        const char *at = path_inside(b, other);
        if ((other->kind == FENCE_SHOW || other->kind == FENCE_SOCKET) &&
            strncmp(at, path, n) == 0 && at[n] == '/')
            return true;
    }
    return false;
}

static int hide(struct builder *b, const char *path)
{
    struct stat st;
    if (lstat(path, &st) < 0)
        return 0;
    if (S_ISDIR(st.st_mode))
        return put_memory(path, shows_something(b, path) ? "mode=755,size=1m" : "mode=0,size=4k");
    cleanup_close int fd = mounts_copy(AT_FDCWD, HIDDEN_FILE, 0);
    return fd < 0 ? fd : mounts_put(fd, AT_FDCWD, path);
}

/* A device is used only where it is named itself. */
static int put_writable(int fd, const char *path)
{
    struct stat st;
    int r = fstatat(fd, "", &st, AT_EMPTY_PATH) < 0 ? -errno : 0;
    if (r == 0 && S_ISDIR(st.st_mode))
        r = mounts_change(fd, MOUNTS_NO_DEVICE, 0, 1);
    return r < 0 ? r : put_over(fd, path);
}

static int put_one(struct builder *b, uint32_t i)
{
    const struct fence_place *place = place_at(b, i);
    const char *path = path_inside(b, place);
    int fd = b->opened[i];
    switch ((enum fence_kind)place->kind) {
    case FENCE_DEVICES:
        return put_devices(b);
    case FENCE_MEMORY:
        return put_memory(path, "mode=755,size=64m");
    case FENCE_HIDE:
        return hide(b, path);
    case FENCE_PROTECT:
    case FENCE_SHOW:
    case FENCE_SOCKET:
        return fd < 0 ? 0 : put_read_only(fd, path);
    case FENCE_PRIVATE:
    case FENCE_WRITE:
        return fd < 0 ? 0 : put_writable(fd, path);
    case FENCE_PIN:
        return fd < 0 ? 0 : put_over(fd, path);
    default:
        return 0;
    }
}

/* What was made to be put into is not for commands. */
static int close_hidden(struct builder *b)
{
    int r = 0;
    for (uint32_t i = 0; r == 0 && i < b->fence.head->count; i++) {
        const struct fence_place *place = place_at(b, i);
        struct stat st;
        if (place->kind == FENCE_DEVICES)
            unlink(HIDDEN_FILE);
        if ((place->kind == FENCE_HIDE && lstat(path_inside(b, place), &st) == 0) ||
            place->kind == FENCE_DEVICES)
            r = mounts_change_at(path_inside(b, place), MOUNTS_READ_ONLY, 0, 0);
    }
    return r;
}

int places_put(struct builder *b)
{
    int r = 0;
    b->step = FENCE_STEP_PLACE;
    for (enum fence_kind kind = 0; r == 0 && kind < FENCE_KIND_COUNT; kind++)
        for (uint32_t i = 0; r == 0 && i < b->fence.head->count; i++)
            if (fence_places(&b->fence)[i].kind == kind)
                r = put_one(b, i);
    return r < 0 ? r : close_hidden(b);
}

/* -- Rules ------------------------------------------------------------------------------------ */

static int allow_path(int rules, const char *path, uint64_t rights)
{
    cleanup_close int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : -errno;
    return landlock_allow(rules, fd, rights);
}

/* The mounts hold the same; these hold also for a descriptor that is opened anew, and they forbid
 * to mount. Only writing is asked about: to ask about reading would cost at every open, and so
 * would to ask about truncating, which enter_hold_file() does where it has to. */
int places_allow(struct builder *b)
{
    b->step = FENCE_STEP_LANDLOCK;
    int version = landlock_version();
    if (version < LL_SCOPES_SINCE)
        return -EOPNOTSUPP;
    uint64_t writes = landlock_writes(version);
    cleanup_close int rules = landlock_new(writes, LL_SCOPE_SOCKET | LL_SCOPE_SIGNAL);
    int r = MIN(rules, 0);
    for (uint32_t i = 0; r == 0 && i < b->fence.head->count; i++) {
        const struct fence_place *place = place_at(b, i);
        if (fence_place_is_writable(place))
            r = allow_path(rules, path_inside(b, place), writes);
    }
    b->landlock = (uint32_t)version;
    return r < 0 ? r : TAKE_FD(rules);
}
