#include "sys/fd.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/defs.h"
#include "sys/calls.h"

#define LOW_COUNT 3 /* stdin, stdout, stderr: the host's, also if they are closed */

unsigned fd_plug_low(void)
{
    unsigned taken = 0;
    for (int low = 0; low < LOW_COUNT; low++) {
        if (fcntl(low, F_GETFD) >= 0)
            continue;
        int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (fd == low)
            taken |= 1u << low;
        else
            close_fd(&fd); /* another thread was faster */
    }
    return taken;
}

void fd_unplug_low(unsigned taken)
{
    for (int low = 0; low < LOW_COUNT; low++)
        if (taken & 1u << low)
            close(low);
}

int fd_dup(int fd)
{
    int r = fcntl(fd, F_DUPFD_CLOEXEC, LOW_COUNT);
    return r < 0 ? -errno : r;
}

int fd_lift_consume(int fd)
{
    if (fd < 0 || fd >= LOW_COUNT)
        return fd;
    int lifted = fd_dup(fd);
    close(fd);
    return lifted;
}

int fd_lift_pair_consume(const int fds[2], int ret_fds[2])
{
    int lifted[2] = {fd_lift_consume(fds[0]), fd_lift_consume(fds[1])};
    int r = lifted[0] < 0 ? lifted[0] : lifted[1] < 0 ? lifted[1] : 0;
    if (r < 0) {
        close_fd(&lifted[0]);
        close_fd(&lifted[1]);
        return r;
    }
    ret_fds[0] = lifted[0];
    ret_fds[1] = lifted[1];
    return 0;
}

int fd_pipe(int ret_fds[2])
{
    int fds[2];
    return pipe2(fds, O_CLOEXEC) < 0 ? -errno : fd_lift_pair_consume(fds, ret_fds);
}

int fd_set_nonblock(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
        return -errno;
    return 0;
}

struct from {
    int first;
    int walker; /* the descriptor of the walk itself */
    bool cloexec;
};

static int apply_to(const char *name, void *userdata)
{
    const struct from *from = userdata;
    long fd = fd_parse_number(name);
    if (fd < from->first || fd == from->walker)
        return 0;
    if (from->cloexec)
        fcntl((int)fd, F_SETFD, FD_CLOEXEC);
    else
        close((int)fd);
    return 0;
}

static int apply_from(int first, bool cloexec)
{
    int r = sys_close_range((unsigned)first, UINT_MAX, cloexec ? SYS_CLOSE_RANGE_CLOEXEC : 0);
    if (r == 0)
        return 0;
    cleanup_close int dir = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return -errno;
    struct from from = {.first = first, .walker = dir, .cloexec = cloexec};
    return fd_walk(dir, apply_to, &from);
}

int fd_close_from(int first)
{
    return apply_from(first, false);
}

int fd_cloexec_from(int first)
{
    return apply_from(first, true);
}

int fd_write_all(int fd, const void *data, size_t size)
{
    const char *p = data;
    while (size > 0) {
        ssize_t n = RETRY(write(fd, p, size));
        if (n < 0)
            return -errno;
        p += n;
        size -= (size_t)n;
    }
    return 0;
}

ssize_t fd_read_all(int fd, void *buf, size_t size)
{
    size_t done = 0;
    while (done < size) {
        ssize_t n = RETRY(read(fd, (char *)buf + done, size - done));
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        done += (size_t)n;
    }
    return (ssize_t)done;
}

ssize_t fd_pread_all(int fd, void *buf, size_t size, off_t offset)
{
    size_t done = 0;
    while (done < size) {
        ssize_t n = RETRY(pread(fd, (char *)buf + done, size - done, offset + (off_t)done));
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        done += (size_t)n;
    }
    return (ssize_t)done;
}

int fd_pwrite_all(int fd, const void *data, size_t size, off_t offset)
{
    size_t done = 0;
    while (done < size) {
        ssize_t n = RETRY(pwrite(fd, (const char *)data + done, size - done, offset + (off_t)done));
        if (n < 0)
            return -errno;
        done += (size_t)n;
    }
    return 0;
}

int fd_open_file_at(int dirfd, const char *name, int flags)
{
    struct stat st;
    /* A FIFO would keep the open waiting for a partner. */
    cleanup_close int fd = openat(dirfd, name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    return S_ISREG(st.st_mode) ? fd_lift_consume(TAKE_FD(fd)) : -EINVAL;
}

ssize_t fd_slurp_at(int dirfd, const char *path, char *buf, size_t size)
{
    cleanup_close int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t n = fd_read_all(fd, buf, size - 1);
    if (n >= 0)
        buf[n] = '\0';
    return n;
}

int fd_poke_at(int dirfd, const char *path, const char *text)
{
    cleanup_close int fd = openat(dirfd, path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    return fd_write_all(fd, text, strlen(text));
}

struct dirent_head {
    uint64_t ino;
    int64_t off;
    uint16_t reclen;
    uint8_t type;
    char name[];
};

int fd_walk(int dirfd, fd_entry_fn *fn, void *userdata)
{
    _Alignas(struct dirent_head) char buf[4096];
    if (lseek(dirfd, 0, SEEK_SET) < 0)
        return -errno;
    for (;;) {
        ssize_t n = sys_getdents(dirfd, buf, sizeof buf);
        if (n <= 0)
            return (int)n;
        for (ssize_t at = 0; at < n;) {
            const struct dirent_head *entry = (const void *)(buf + at);
            at += entry->reclen;
            if (strcmp(entry->name, ".") == 0 || strcmp(entry->name, "..") == 0)
                continue;
            int r = fn(entry->name, userdata);
            if (r != 0)
                return r;
        }
    }
}

long fd_parse_number(const char *s)
{
    long value = 0;
    if (*s < '0' || *s > '9')
        return -1;
    for (; *s >= '0' && *s <= '9'; s++) {
        if (value > (LONG_MAX - 9) / 10)
            return -1;
        value = value * 10 + (*s - '0');
    }
    return value;
}
