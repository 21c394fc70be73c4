/*
 * Reaching a running keeper by its control socket. A keeper may be gone, stopped, or busy: nothing
 * here waits for it. Returns >= 0 or -errno.
 */
#pragma once

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

#include "run/rundir.h"
#include "run/wire.h"
#include "sys/sock.h"

/*
 * A connection to the keeper: -ECONNREFUSED if there is none any more, -EAGAIN if too many wait to
 * be heard. By its abstract name, which also reaches a keeper whose directory is gone and makes it
 * put that back; by the directory (dir, or below 0) where that name means nothing: in another
 * network namespace.
 */
static inline int keeper_line_open(const nacre_id *id, int dir)
{
    int sock = sock_connect_abstract(nacre_id_format(id).s);
    if (sock == -ECONNREFUSED && dir >= 0)
        sock = sock_connect_at(dir, "ctl");
    if (sock >= 0 && !sock_peer_is_us(sock)) {
        close(sock);
        sock = -ECONNREFUSED;
    }
    return sock == -ENOENT ? -ECONNREFUSED : sock;
}

static inline int keeper_line_connect(const struct run *run)
{
    return keeper_line_open(&run->id, run->dir);
}

static inline struct wire_head keeper_line_head(enum wire_type type)
{
    return (struct wire_head){.type = type, .format = RUN_FORMAT};
}

static inline int keeper_line_send(int sock, const void *message, size_t size)
{
    int r = sock_send(sock, message, size, NULL, 0, 0);
    return r == -EPIPE || r == -ECONNRESET ? -ECONNREFUSED : r;
}
