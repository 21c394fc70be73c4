/*
 * fd-list
 *
 * Prints the numbers of its open descriptors in one line, without the one it looks with.
 */
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <stdio.h>

int main(void)
{
    const char *blank = "";

    for (int fd = 0; fd < 65536; fd++) {
        if (fcntl(fd, F_GETFD) < 0)
            continue;
        printf("%s%d", blank, fd);
        blank = " ";
    }
    printf("\n");
    return 0;
}
