#include "backend/client.h"

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
