#include "run/place.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/defs.h"
#include "sys/fd.h"

#define ASIDE_MAX 16 /* directories that are not empty */

int place_clear(int dir, const char *name)
{
    char aside[64];
    if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (unlinkat(dir, name, AT_REMOVEDIR) == 0)
        return 0;
    for (int i = 0; i < ASIDE_MAX; i++) {
        snprintf(aside, sizeof aside, "%s.aside%d", name, i);
        if (renameat(dir, name, dir, aside) == 0)
            return 0;
    }
    return -errno;
}

int place_open(int above, const char *name)
{
    int r = -ENOENT;
    for (int i = 0; i < PLACE_TRIES; i++) {
        struct stat st;
        cleanup_close int fd =
            fd_lift_consume(openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
        if (fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid() && fchmod(fd, 0700) == 0)
            return TAKE_FD(fd);
        r = place_clear(above, name);
        if (r == 0 && mkdirat(above, name, 0700) < 0)
            r = -errno;
        if (r < 0 && r != -EEXIST)
            return r;
    }
    return r;
}
