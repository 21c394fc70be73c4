/* Arbitrary text where /proc has a process's state, command line and sockets. */
#include "fuzz.h"

#include <sys/mman.h>

#include "sys/fd.h"

static struct input given;

/* The content of whatever small file is asked for. */
static ssize_t slurp_input(int dirfd, const char *path, char *buf, size_t size)
{
    (void)dirfd;
    (void)path;
    size_t n = given.left < size - 1 ? given.left : size - 1;
    if (n > 0)
        memcpy(buf, given.at, n);
    buf[n] = '\0';
    return (ssize_t)n;
}

#define fd_slurp_at slurp_input
#include "sys/proc.c"

/* The table is streamed from a file, and no process has what is in it. */
static void look_for_sockets(void)
{
    static int table = -EBADF;
    struct ports ports = {.fds = -EBADF};
    if (table < 0)
        table = memfd_create("table", MFD_CLOEXEC);
    MUST(table >= 0 && ftruncate(table, 0) == 0);
    MUST(fd_pwrite_all(table, given.at, given.left, 0) == 0);
    MUST(lseek(table, 0, SEEK_SET) == 0);
    each_piece(table, '\n', note_socket, &ports);
    compare_portion(&ports);
    MUST(ports.count == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct proc_stat stat;
    given = (struct input){data, size};
    uint8_t room = take8(&given);
    int r = proc_stat(42, &stat);
    MUST(r == 0 || r == -ESRCH);
    if (r == 0)
        MUST(stat.ref.pid == 42);
    /* The exact room, so that a step too far is seen. */
    char *line = malloc((size_t)room + 2);
    MUST(proc_cmdline(42, line, (size_t)room + 2) == 0);
    MUST(strlen(line) <= (size_t)room + 1);
    free(line);
    look_for_sockets();
    return 0;
}
