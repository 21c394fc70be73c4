#include "run/marks.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/defs.h"
#include "base/sum.h"
#include "run/rundir.h"
#include "sys/fd.h"

static uint64_t sum_of_mark(const struct run_mark *mark)
{
    return sum64(mark, offsetof(struct run_mark, sum));
}

int marks_add(int dir, uint32_t number, const struct run_mark *mark)
{
    struct run_mark sealed = *mark;
    if (number >= MARKS_MAX)
        return -EFBIG;
    /* The command may have put anything in its place. */
    struct stat st;
    int flags = O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    cleanup_close int fd = openat(dir, "marks", flags, 0600);
    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode) || st.st_nlink != 1)
        return -EINVAL;
    sealed.sum = sum_of_mark(&sealed);
    return fd_pwrite_all(fd, &sealed, sizeof sealed, (off_t)(number * sizeof sealed));
}

size_t marks_read(int dir, size_t from, struct run_mark marks[MARKS_MAX])
{
    size_t n = 0, most = MARKS_MAX - MIN(from, (size_t)MARKS_MAX);
    cleanup_close int fd = most > 0 ? run_open_file(dir, "marks", O_RDONLY) : -EBADF;
    off_t at = (off_t)(from * sizeof *marks);
    ssize_t got = fd < 0 ? fd : fd_pread_all(fd, marks, most * sizeof *marks, at);
    while (got > 0 && n < (size_t)got / sizeof *marks && marks[n].sum == sum_of_mark(&marks[n]))
        n++;
    return n;
}
