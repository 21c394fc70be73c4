/*
 * listener COUNT MARKER
 *
 * Listens on COUNT TCP ports of 127.0.0.1 that the system chooses, prints their numbers in one
 * line, and sleeps for ever.
 */
#define _GNU_SOURCE 1
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    for (int i = 0; i < atoi(argv[1]); i++) {
        struct sockaddr_in address = {.sin_family = AF_INET};
        socklen_t size = sizeof(address);
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) < 0 || listen(fd, 8) < 0 ||
            getsockname(fd, (struct sockaddr *)&address, &size) < 0)
            return 1;
        printf("%s%d", i ? " " : "", ntohs(address.sin_port));
    }
    printf("\n");
    fflush(stdout);
    for (;;)
        pause();
}
