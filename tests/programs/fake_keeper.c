/*
 * fake-keeper, keeper-without-pipe, keeper-that-says-less
 *
 * A keeper from another time: on the socket it is born with it answers that it is ready, in a
 * format that nobody knows yet; or in today's, but without the descriptors that belong to it, or
 * in fewer bytes. Then it stays, without detaching itself, until it is told to go or a minute is
 * over.
 */
#define _GNU_SOURCE 1
#include <poll.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef FORMAT
#define FORMAT 4711
#define WORDS  16
#endif

int main(void)
{
    /* its type, its format, ..., its version: 0.0.9 */
    const uint32_t ready[16] = {2, FORMAT, [13] = 9};
    struct pollfd pfd = {3, POLLHUP | POLLRDHUP, 0};

    if (send(3, ready, WORDS * sizeof ready[0], MSG_NOSIGNAL) < 0)
        return 1;
    poll(&pfd, 1, 60000);
    return 0;
}
