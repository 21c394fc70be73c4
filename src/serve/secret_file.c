#include "serve/secret_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "sys/fd.h"

#define NEW_SUFFIX ".new"

/* It is written beside and takes the name then. */
int secret_file_write(const char *path, const char *text, size_t size)
{
    char temporary[4096];
    int n = snprintf(temporary, sizeof temporary, "%s" NEW_SUFFIX, path);
    if (n < 0 || (size_t)n >= sizeof temporary)
        return -ENAMETOOLONG;
    unlink(temporary);
    int fd cleanup_close =
        open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -errno;
    int r = fd_write_all(fd, text, size);
    if (r == 0 && (fchmod(fd, 0600) < 0 || rename(temporary, path) < 0))
        r = -errno;
    if (r < 0)
        unlink(temporary);
    return r;
}

ssize_t secret_file_read(const char *path, char *ret, size_t size, nacre_error *err)
{
    struct stat st;
    int fd cleanup_close = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return err_sys(err, errno == ENOENT ? NACRE_ENOTFOUND : NACRE_EIO, errno, "open",
                       "cannot open %s", path);
    if (fstat(fd, &st) < 0)
        return err_sys(err, NACRE_EIO, errno, "fstat", "cannot look at %s", path);
    if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077) != 0)
        return err_set(err, NACRE_EFORBIDDEN,
                       "%s must be a file of yours that nobody else can read: chmod 600 it, or "
                       "remove it and have a new one made",
                       path);
    ssize_t n = fd_read_all(fd, ret, size - 1);
    if (n < 0)
        return err_sys(err, NACRE_EIO, (int)-n, "read", "cannot read %s", path);
    ret[n] = '\0';
    return n;
}
