/*
 * tty-probe
 *
 * Looks for a terminal to ask on, by every way there is, and prints what it found: which of 0
 * to 2 are terminals, whether /dev/tty opens, and the terminal that /proc names. Exit code 0 if
 * there is none at all.
 */
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int controlling_terminal(void)
{
    char buf[1024] = "";
    int tty = -1, fd = open("/proc/self/stat", O_RDONLY);
    ssize_t got = fd < 0 ? -1 : read(fd, buf, sizeof(buf) - 1);
    const char *rest = got > 0 ? strrchr(buf, ')') : NULL;

    if (!rest || sscanf(rest + 1, " %*c %*d %*d %*d %d", &tty) != 1)
        return -1;
    return tty;
}

int main(void)
{
    int found = 0;
    int tty = open("/dev/tty", O_RDWR);

    for (int fd = 0; fd < 3; fd++) {
        if (isatty(fd)) {
            printf("%d is a terminal\n", fd);
            found = 1;
        }
    }
    if (tty >= 0) {
        printf("/dev/tty opens\n");
        found = 1;
    }
    if (controlling_terminal() != 0) {
        printf("the controlling terminal is %d\n", controlling_terminal());
        found = 1;
    }
    if (!found)
        printf("no terminal\n");
    return found;
}
