#include "home/locate.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/err.h"
#include "base/text.h"
#include "sys/fd.h"
#include "sys/user.h"

/* File systems whose locks, sockets or mappings end at another machine. */
static const long network[] = {
    NFS_SUPER_MAGIC,
    SMB_SUPER_MAGIC,
    0xFF534D42 /* CIFS */,
    0xFE534D42 /* SMB2 */,
    AFS_SUPER_MAGIC,
    CODA_SUPER_MAGIC,
    V9FS_MAGIC,
    0x00C36400 /* Ceph */,
    0x0BD00BD0 /* Lustre */,
};

/* Looks at the nearest directory above that exists. */
static bool is_network(const char *path)
{
    char at[PATH_MAX];
    struct statfs fs;
    snprintf(at, sizeof at, "%s", path);
    while (statfs(at, &fs) < 0) {
        char *slash = strrchr(at, '/');
        if (!slash || slash == at)
            return false;
        *slash = '\0';
    }
    for (size_t i = 0; i < ARRAY_SIZE(network); i++)
        if ((unsigned long)fs.f_type == (unsigned long)network[i])
            return true;
    return false;
}

static int join_home_path(char *ret_path, const char *base, const char *rest)
{
    int n = snprintf(ret_path, PATH_MAX, "%s%s", base, rest);
    return n < 0 || n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

static int configured_path(const char *configured, char *ret_path)
{
    if (configured)
        return join_home_path(ret_path, configured, "");
    return user_path("XDG_STATE_HOME", ".local/state", "nacre", ret_path);
}

static int local_path(char *ret_path)
{
    const char *runtime = user_variable("XDG_RUNTIME_DIR");
    if (runtime && !is_network(runtime))
        return join_home_path(ret_path, runtime, "/nacre");
    char name[32];
    snprintf(name, sizeof name, "/nacre-%u", geteuid());
    const char *tmp = user_variable("TMPDIR");
    return join_home_path(ret_path, tmp && !is_network(tmp) ? tmp : "/tmp", name);
}

/* A path that ends with one names what a link leads to, and not the link. */
static void cut_slashes(char *path)
{
    size_t size = strlen(path);
    while (size > 1 && path[size - 1] == '/')
        path[--size] = '\0';
}

/* Of the path without links, as far as there is something yet. */
static uint32_t number_of(const char *path)
{
    char real[PATH_MAX] = "", whole[2 * PATH_MAX];
    size_t size = strlen(path);
    for (; size > 0; size = (size_t)(strrchr(whole, '/') - whole)) {
        snprintf(whole, sizeof whole, "%.*s", (int)size, path);
        if (realpath(whole, real))
            break;
        real[0] = '\0';
    }
    snprintf(whole, sizeof whole, "%s%s", real, path + size);
    uint64_t hash = text_hash(whole);
    return (uint32_t)(hash ^ hash >> 32);
}

int home_locate(const char *configured, struct home_location *ret_home, nacre_error *err)
{
    struct home_location home = {0};
    int r = configured_path(configured, home.path);
    if (r < 0)
        return err_sys(err, NACRE_EIO, -r, "home",
                       "cannot tell where to keep shells; set NACRE_HOME to a directory");
    if (home.path[0] != '/')
        return err_set(err, NACRE_EINVAL, "the home \"%.150s\" must be an absolute path",
                       home.path);
    if (is_network(home.path)) {
        char wanted[PATH_MAX];
        memcpy(wanted, home.path, sizeof wanted);
        if (local_path(home.path) < 0)
            return err_set(err, NACRE_EIO, "no local directory to keep shells in; set NACRE_HOME");
        snprintf(home.note, sizeof home.note, "%.90s is on a network file system; using %.90s",
                 wanted, home.path);
    }
    cut_slashes(home.path);
    home.number = number_of(home.path);
    *ret_home = home;
    return 0;
}

/* -- Whose it is ------------------------------------------------------------------------------ */

static bool others_may_write(const struct stat *st)
{
    return (st->st_mode & (S_IWGRP | S_IWOTH)) != 0;
}

/* Nobody but us and root can put another thing in the place of what lies in it. */
static bool is_safe_place(const char *directory)
{
    struct stat st;
    if (stat(directory, &st) < 0 || (st.st_uid != geteuid() && st.st_uid != 0))
        return false;
    return !others_may_write(&st) || (st.st_mode & S_ISVTX);
}

/* A link that we or root made, where nobody else could have: it says where the home lies. */
static int check_link(const char *path, nacre_error *err)
{
    char at[PATH_MAX];
    struct stat st;
    if (lstat(path, &st) < 0 || !S_ISLNK(st.st_mode))
        return 0;
    if (st.st_uid != geteuid() && st.st_uid != 0)
        return err_set(err, NACRE_EPERM,
                       "the home %.100s is a link that uid %u made; remove it, or set NACRE_HOME "
                       "to a directory of your own",
                       path, st.st_uid);
    snprintf(at, sizeof at, "%s", path);
    for (char *slash; (slash = strrchr(at, '/'));) {
        slash[slash == at] = '\0';
        if (!is_safe_place(at))
            return err_set(err, NACRE_EPERM,
                           "the home %.80s is a link, and others may write to %.80s; set "
                           "NACRE_HOME to what it leads to",
                           path, at);
        if (slash == at)
            break;
    }
    return 0;
}

static int check_owner(int fd, const char *shown, nacre_error *err)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return err_sys(err, NACRE_EIO, errno, "home", "cannot look at the home %.120s", shown);
    if (st.st_uid != geteuid())
        return err_set(err, NACRE_EPERM,
                       "the home %.100s belongs to uid %u, not to us (uid %u); set NACRE_HOME to "
                       "a directory of your own",
                       shown, st.st_uid, geteuid());
    if (others_may_write(&st))
        return err_set(err, NACRE_EPERM,
                       "others may write to the home %.80s; take that right away: chmod go-w %.80s",
                       shown, shown);
    return 0;
}

static int cannot_open(int e, const char *shown, nacre_error *err)
{
    return err_sys(err, e == ENOENT ? NACRE_ENOTFOUND : NACRE_EIO, e, "home",
                   "cannot open the home %.120s", shown);
}

/* Consumes the descriptor. */
static int take_owned(int fd, const char *shown, nacre_error *err)
{
    int r = check_owner(fd, shown, err);
    if (r == 0)
        return fd_lift_consume(fd);
    close(fd);
    return r;
}

static int open_home(const char *path, nacre_error *err)
{
    int r = check_link(path, err);
    if (r < 0)
        return r;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? cannot_open(errno, path, err) : take_owned(fd, path, err);
}

/* Inside of a home nothing leads elsewhere. */
static int open_inside(int home_fd, const char *name, const char *path, nacre_error *err)
{
    char shown[PATH_MAX + 16];
    struct stat st;
    snprintf(shown, sizeof shown, "%s/%s", path, name);
    int fd = fd_open_dir_at(home_fd, name);
    if (fd >= 0)
        return take_owned(fd, shown, err);
    if (fstatat(home_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode))
        return err_set(err, NACRE_EPERM,
                       "%.100s is a link, which is not followed; remove it, or set NACRE_HOME to "
                       "where it leads",
                       shown);
    return cannot_open(-fd, shown, err);
}

int home_open_runs(const struct home_location *home, int create, nacre_error *err)
{
    if (create) {
        int r = fd_make_dirs(home->path);
        if (r < 0)
            return err_sys(err, NACRE_EIO, -r, "home", "cannot create the home %.120s", home->path);
    }
    cleanup_close int fd = open_home(home->path, err);
    if (fd < 0)
        return fd;
    if (create && mkdirat(fd, "runs", 0700) < 0 && errno != EEXIST)
        return err_sys(err, NACRE_EIO, errno, "home", "cannot create %.120s/runs", home->path);
    return open_inside(fd, "runs", home->path, err);
}
