#include "sys/replace.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/defs.h"
#include "sys/fd.h"
#include "sys/fsize.h"

static int fill_file(int fd, const void *data, size_t size, const struct stat *old)
{
    FSIZE_SHELTER();
    int r = fd_write_all(fd, data, size);
    if (r >= 0 && old && fchown(fd, old->st_uid, old->st_gid) < 0)
        r = -errno;
    if (r >= 0 && old && fchmod(fd, old->st_mode & 07777) < 0)
        r = -errno;
    return r >= 0 && fsync(fd) < 0 ? -errno : MIN(r, 0);
}

int replace_file(const char *path, const void *data, size_t size, const struct stat *old)
{
    char other[PATH_MAX];
    int n = snprintf(other, sizeof other, "%s.XXXXXX", path);
    if (n < 0 || (size_t)n >= sizeof other)
        return -ENAMETOOLONG;
    cleanup_close int fd = fd_lift_consume(mkostemp(other, O_CLOEXEC));
    if (fd < 0)
        return -errno;
    int r = fill_file(fd, data, size, old);
    if (r == 0 && rename(other, path) < 0)
        r = -errno;
    if (r < 0)
        unlink(other);
    return r;
}
