#include "sys/mounts.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/defs.h"
#include "sys/fd.h"

/* The headers of a machine may be older than its kernel. */
#ifndef SYS_open_tree
#define SYS_open_tree  428
#define SYS_move_mount 429
#define SYS_fsopen     430
#define SYS_fsconfig   431
#define SYS_fsmount    432
#endif
#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif
#define TREE_CLONE     1u
#define TREE_RECURSIVE 0x8000u
#define TREE_CLOEXEC   ((unsigned)O_CLOEXEC)
#define PUT_FROM_EMPTY 0x04u
#define PUT_TO_EMPTY   0x40u
#define FS_CLOEXEC     1u
#define CONFIG_FLAG    0u
#define CONFIG_STRING  1u
#define CONFIG_CREATE  6u
#define OPTIONS_MAX    128

struct attributes {
    uint64_t set, clear, propagation, user_ns;
};

static int mounts_result(long r)
{
    return r < 0 ? -errno : (int)r;
}

/* Whoever may write to a directory on the way could have put a link there since the path was looked
 * at. */
static int open_without_links(int dirfd, const char *path, int as_link)
{
    struct open_how how = {.flags = O_PATH | O_CLOEXEC | (as_link ? O_NOFOLLOW : 0),
                           .resolve = RESOLVE_NO_SYMLINKS};
    return mounts_result(syscall(SYS_openat2, dirfd, path, &how, sizeof how));
}

static int copy(int dirfd, const char *path, int everything, int as_link)
{
    unsigned flags = AT_EMPTY_PATH | TREE_CLONE | TREE_CLOEXEC | (everything ? TREE_RECURSIVE : 0);
    cleanup_close int fd = open_without_links(dirfd, path, as_link);
    return fd < 0 ? fd : fd_lift_consume(mounts_result(syscall(SYS_open_tree, fd, "", flags)));
}

int mounts_copy(int dirfd, const char *path, int everything)
{
    return copy(dirfd, path, everything, 0);
}

int mounts_copy_itself(int dirfd, const char *path)
{
    return copy(dirfd, path, 1, 1);
}

/* "a=b,c" one after the other. */
static int set_options(int fs, const char *options)
{
    char text[OPTIONS_MAX], *rest = text;
    int r = 0;
    snprintf(text, sizeof text, "%s", options);
    for (char *option; r == 0 && (option = strsep(&rest, ","));) {
        char *value = strchr(option, '=');
        if (value)
            *value++ = '\0';
        if (*option)
            r = mounts_result(
                syscall(SYS_fsconfig, fs, value ? CONFIG_STRING : CONFIG_FLAG, option, value, 0));
    }
    return r;
}

int mounts_new(const char *type, const char *options)
{
    cleanup_close int fs = mounts_result(syscall(SYS_fsopen, type, FS_CLOEXEC));
    int r = fs < 0 ? fs : set_options(fs, options);
    if (r == 0)
        r = mounts_result(syscall(SYS_fsconfig, fs, CONFIG_CREATE, NULL, NULL, 0));
    if (r < 0)
        return r;
    return fd_lift_consume(mounts_result(syscall(SYS_fsmount, fs, FS_CLOEXEC, 0)));
}

static int change(int dirfd, const char *path, const struct attributes *a, int everything)
{
    unsigned flags = AT_EMPTY_PATH | (everything ? TREE_RECURSIVE : 0);
    return mounts_result(syscall(SYS_mount_setattr, dirfd, path, flags, a, sizeof *a));
}

int mounts_change(int fd, uint64_t set, uint64_t clear, int everything)
{
    struct attributes a = {.set = set, .clear = clear};
    return change(fd, "", &a, everything);
}

int mounts_change_at(const char *path, uint64_t set, uint64_t clear, int everything)
{
    struct attributes a = {.set = set, .clear = clear};
    return change(AT_FDCWD, path, &a, everything);
}

int mounts_put(int fd, int dirfd, const char *path)
{
    struct stat st;
    int as_link = fstatat(fd, "", &st, AT_EMPTY_PATH) == 0 && S_ISLNK(st.st_mode);
    cleanup_close int to = open_without_links(dirfd, path, as_link);
    return to < 0 ? to
                  : mounts_result(
                        syscall(SYS_move_mount, fd, "", to, "", PUT_FROM_EMPTY | PUT_TO_EMPTY));
}

int mounts_make_private(void)
{
    struct attributes a = {.propagation = MS_PRIVATE};
    return change(AT_FDCWD, "/", &a, 1);
}
