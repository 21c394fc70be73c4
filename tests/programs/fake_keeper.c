/*
 * fake-keeper
 *
 * A keeper from another time: on the socket it is born with it answers that it is ready, in a
 * format that nobody knows yet. Then it stays, without detaching itself, until it is told to go
 * or a minute is over.
 */
#define _GNU_SOURCE 1
#include <poll.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

int main(void)
{
    const uint32_t ready[16] = {2, 4711}; /* its type, its format */
    struct pollfd pfd = {3, POLLHUP | POLLRDHUP, 0};

    if (send(3, ready, sizeof(ready), MSG_NOSIGNAL) < 0)
        return 1;
    poll(&pfd, 1, 60000);
    return 0;
}
