#include "run/spare.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/defs.h"
#include "base/text.h"
#include "sys/fd.h"

/* In the order in which they are tried; of_user: in the directory of that name below it. */
static const struct spare_base {
    const char *path;
    bool of_user;
} spare_bases[RUN_SPARES] = {{"/dev/shm", false}, {"/run/user", true}, {"/tmp", false}};

static int spare_prefix(int index, char *ret_path, size_t size)
{
    const struct spare_base *base = &spare_bases[index];
    char user[16] = "";
    if (base->of_user)
        snprintf(user, sizeof user, "/%u", geteuid());
    int n = snprintf(ret_path, size, "%s%s/nacre-spare-%u-", base->path, user, geteuid());
    return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : n;
}

/* Two homes of a user have two places. */
int run_spare_path(const char *home, int index, char *ret_path, size_t size)
{
    int used = spare_prefix(index, ret_path, size);
    if (used < 0)
        return used;
    int n = snprintf(ret_path + used, size - (size_t)used, "%016" PRIx64, text_hash(home));
    return n < 0 || (size_t)used + (size_t)n >= size ? -ENAMETOOLONG : 0;
}

bool run_path_is_spare(const char *path)
{
    char prefix[128];
    for (int i = 0; i < RUN_SPARES; i++) {
        int n = spare_prefix(i, prefix, sizeof prefix);
        if (n > 0 && strncmp(path, prefix, (size_t)n) == 0)
            return true;
    }
    return false;
}

int run_open_spare(const char *home, int index, bool create)
{
    char path[PATH_MAX];
    struct stat st;
    int r = run_spare_path(home, index, path, sizeof path);
    if (r < 0)
        return r;
    if (create && mkdir(path, 0700) < 0 && errno != EEXIST)
        return -errno;
    cleanup_close int fd =
        fd_lift_consume(open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    return st.st_uid == geteuid() && (st.st_mode & 077) == 0 ? TAKE_FD(fd) : -EPERM;
}

int run_each_spare(const char *home, spare_fn *fn, void *userdata)
{
    for (int i = 0; i < RUN_SPARES; i++) {
        cleanup_close int fd = run_open_spare(home, i, false);
        int r = fd < 0 ? 0 : fn(fd, userdata);
        if (r != 0)
            return r;
    }
    return 0;
}

void run_remove_spares(const char *home)
{
    char path[PATH_MAX];
    for (int i = 0; i < RUN_SPARES; i++)
        if (run_spare_path(home, i, path, sizeof path) == 0)
            rmdir(path);
}

bool run_has_no_room(int error)
{
    return error == ENOSPC || error == EDQUOT || error == EROFS;
}
