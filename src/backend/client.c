#include "backend/client.h"

#include <poll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/defs.h"
#include "sys/sock.h"

struct wire_head client_head(enum wire_type type)
{
    return (struct wire_head){.type = type, .format = RUN_FORMAT};
}

int client_connect(const struct run *run)
{
    int sock = sock_connect_at(run->dir, "ctl", nacre_id_format(&run->id).s);
    return sock == -ENOENT ? -ECONNREFUSED : sock;
}

int client_watch(const struct run *run)
{
    cleanup_close int sock = client_connect(run);
    if (sock < 0)
        return sock;
    struct wire_head watch = client_head(WIRE_WATCH);
    int r = client_send(sock, &watch, sizeof watch);
    return r < 0 ? r : TAKE_FD(sock);
}

int client_send(int sock, const void *message, size_t size)
{
    int r = sock_send(sock, message, size, NULL, 0, 0);
    return r == -EPIPE || r == -ECONNRESET ? -ECONNREFUSED : r;
}

ssize_t client_recv(int sock, void *buf, size_t size, int64_t deadline_ns)
{
    struct pollfd poller = {.fd = sock, .events = POLLIN};
    int n = RETRY(poll(&poller, 1, clock_left_ms(deadline_ns)));
    if (n < 0)
        return -errno;
    if (n == 0)
        return -ETIMEDOUT;
    ssize_t got = sock_recv(sock, buf, size, NULL, 0, MSG_DONTWAIT);
    if (got == -ECONNRESET)
        return 0;
    if (got > 0 && got < (ssize_t)sizeof(struct wire_head))
        return -EBADMSG;
    return got;
}
