#include "sys/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int lock_take(int fd)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(fd, F_OFD_SETLK, &lock) < 0)
        return errno == EACCES ? -EAGAIN : -errno;
    return 0;
}

int lock_held(int fd)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(fd, F_OFD_GETLK, &lock) < 0)
        return -errno;
    return lock.l_type != F_UNLCK;
}
