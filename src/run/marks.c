#include "run/marks.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/defs.h"
#include "base/sum.h"
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
    cleanup_close int fd = openat(dir, "marks", O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    sealed.sum = sum_of_mark(&sealed);
    return fd_pwrite_all(fd, &sealed, sizeof sealed, (off_t)(number * sizeof sealed));
}

size_t marks_read(int dir, uint32_t count, struct run_mark marks[MARKS_MAX])
{
    size_t n = 0, most = MIN(count, (uint32_t)MARKS_MAX);
    cleanup_close int fd = most > 0 ? fd_open_file_at(dir, "marks", O_RDONLY) : -EBADF;
    ssize_t got = fd < 0 ? fd : fd_pread_all(fd, marks, most * sizeof *marks, 0);
    while (got > 0 && n < (size_t)got / sizeof *marks && marks[n].sum == sum_of_mark(&marks[n]))
        n++;
    return n;
}
