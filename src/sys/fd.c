#include "sys/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/defs.h"
#include "sys/syscalls.h"

#define LOW_COUNT  3 /* stdin, stdout, stderr: the host's, also if they are closed */

#define BLOCK_SIZE 512
#define INODE_COST ((uint64_t)1024)

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
    must(taken < 1u << LOW_COUNT);
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

/* What an open says of a link, a socket or a directory. */
static bool is_no_file(int e)
{
    return e == ELOOP || e == ENXIO || e == EISDIR;
}

int fd_open_file_at(int dirfd, const char *name, int flags)
{
    struct stat st;
    /* A FIFO would keep the open waiting for a partner, a terminal would become ours. */
    cleanup_close int fd =
        openat(dirfd, name, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
    if (fd < 0 || fstat(fd, &st) < 0)
        return is_no_file(errno) ? -EINVAL : -errno;
    if (!S_ISREG(st.st_mode))
        return -EINVAL;
    return st.st_uid == geteuid() ? fd_lift_consume(TAKE_FD(fd)) : -EPERM;
}

int fd_open_dir_at(int dirfd, const char *name)
{
    int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd_lift_consume(fd);
}

void fd_own_dir_at(int dirfd, const char *name)
{
    char path[32];
    cleanup_close int fd = openat(dirfd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    (void)chmod(path, 0700);
}

bool fd_own_file_at(int dirfd, const char *name)
{
    char path[32];
    struct stat st;
    cleanup_close int fd = openat(dirfd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
        st.st_nlink != 1)
        return false;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return chmod(path, 0600) == 0;
}

uint64_t fd_cost_at(int dirfd, const char *name)
{
    struct stat st;
    if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    return MAX((uint64_t)st.st_blocks * BLOCK_SIZE, INODE_COST);
}

int fd_make_dirs(const char *path)
{
    char at[PATH_MAX];
    int n = snprintf(at, sizeof at, "%s", path);
    if (n < 2 || (size_t)n >= sizeof at)
        return -ENAMETOOLONG;
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

ssize_t fd_slurp_at(int dirfd, const char *path, char *buf, size_t size)
{
    cleanup_close int fd = openat(dirfd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
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

void fd_arm_timer(int fd, int64_t at_ns)
{
    struct itimerspec when = {.it_value = {at_ns / NS_PER_S, at_ns % NS_PER_S}};
    timerfd_settime(fd, TFD_TIMER_ABSTIME, &when, NULL);
}

/* -- Locks ------------------------------------------------------------------------------------ */

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

int fd_each_line(int fd, fd_line_fn *fn, void *userdata)
{
    char buf[8192];
    size_t kept = 0;
    for (;;) {
        ssize_t n = RETRY(read(fd, buf + kept, sizeof buf - 1 - kept));
        if (n <= 0)
            return n < 0 ? -errno : 0;
        buf[kept + (size_t)n] = '\0';
        char *p = buf;
        for (char *end; (end = strchr(p, '\n')); p = end + 1) {
            *end = '\0';
            int r = fn(p, userdata);
            if (r != 0)
                return r;
        }
        kept = strlen(p);
        memmove(buf, p, kept + 1);
        if (kept == sizeof buf - 1)
            return -E2BIG;
    }
}

int fd_each_line_in(const char *path, fd_line_fn *fn, void *userdata)
{
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : fd_each_line(fd, fn, userdata);
}
