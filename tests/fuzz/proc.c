/* Arbitrary text where /proc has a process's state and command line. */
#include "fuzz.h"

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
    return 0;
}
