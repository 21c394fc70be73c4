#include "run/home.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/defs.h"
#include "base/err.h"
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

static int join(char *ret_path, const char *base, const char *rest)
{
    int n = snprintf(ret_path, PATH_MAX, "%s%s", base, rest);
    return n < 0 || n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

static int configured_path(const char *configured, char *ret_path)
{
    if (configured)
        return join(ret_path, configured, "");
    return user_path("XDG_STATE_HOME", ".local/state", "nacre", ret_path);
}

static int local_path(char *ret_path)
{
    const char *runtime = user_variable("XDG_RUNTIME_DIR");
    if (runtime && !is_network(runtime))
        return join(ret_path, runtime, "/nacre");
    char name[32];
    snprintf(name, sizeof name, "/nacre-%u", geteuid());
    const char *tmp = user_variable("TMPDIR");
    return join(ret_path, tmp && !is_network(tmp) ? tmp : "/tmp", name);
}

int home_find(const char *configured, struct home *ret_home, nacre_error *err)
{
    struct home home = {0};
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
    *ret_home = home;
    return 0;
}

static int make_parents(const char *path)
{
    char at[PATH_MAX];
    snprintf(at, sizeof at, "%s", path);
    for (char *p = at + 1; *p; p++) {
        if (*p != '/')
            continue;
        *p = '\0';
        if (mkdir(at, 0700) < 0 && errno != EEXIST)
            return -errno;
        *p = '/';
    }
    return mkdir(at, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

static int open_owned(int dirfd, const char *path, const char *shown, nacre_error *err)
{
    int fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(err, errno == ENOENT ? NACRE_ENOTFOUND : NACRE_EIO, errno, "home",
                       "cannot open the home %.120s", shown);
    struct stat st;
    if (fstat(fd, &st) < 0 || st.st_uid != geteuid()) {
        close(fd);
        return err_set(err, NACRE_EPERM,
                       "the home %.100s belongs to uid %u, not to us (uid %u); set NACRE_HOME to "
                       "a directory of your own",
                       shown, st.st_uid, geteuid());
    }
    return fd_lift_consume(fd);
}

int home_open_runs(const struct home *home, int create, nacre_error *err)
{
    if (create) {
        int r = make_parents(home->path);
        if (r < 0)
            return err_sys(err, NACRE_EIO, -r, "home", "cannot create the home %.120s", home->path);
    }
    cleanup_close int fd = open_owned(AT_FDCWD, home->path, home->path, err);
    if (fd < 0)
        return fd;
    if (create && mkdirat(fd, "runs", 0700) < 0 && errno != EEXIST)
        return err_sys(err, NACRE_EIO, errno, "home", "cannot create %.120s/runs", home->path);
    return open_owned(fd, "runs", home->path, err);
}
