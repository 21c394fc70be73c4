#include "sys/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 1 /* byte: the kernel makes a page of it */

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

/* Nobody ever looks at the page, so that it does not matter what becomes of the file. */
int lock_pin(int fd, struct lock_pin *ret_pin)
{
    void *page = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE, fd, 0);
    if (page == MAP_FAILED)
        return -errno;
    if (madvise(page, PAGE, MADV_DONTFORK) < 0) {
        int r = -errno;
        munmap(page, PAGE);
        return r;
    }
    *ret_pin = (struct lock_pin){.page = page, .owner = getpid()};
    return 0;
}

/* In a forked child something else may be where the page was. */
void lock_unpin(struct lock_pin *pin)
{
    if (pin->page && pin->owner == getpid())
        munmap(pin->page, PAGE);
    *pin = (struct lock_pin){0};
}
