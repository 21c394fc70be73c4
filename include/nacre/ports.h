/*
 * TCP ports of shells: waiting until something listens. To listen is not to serve: nothing is
 * connected to. Both versions of IP count. A port counts for every process that holds the socket.
 */
#ifndef NACRE_PORTS_H
#define NACRE_PORTS_H

#include <stddef.h>
#include <stdint.h>

#include <nacre/error.h>
#include <nacre/id.h>
#include <nacre/version.h>

NACRE_BEGIN_DECLS

struct nacre_session;

typedef struct nacre_port {
    size_t size; /* sizeof(nacre_port), set by NACRE_PORT_INIT */
    int port;
    int32_t pid;   /* of who listens */
    char name[16]; /* of that process, whatever bytes */
} nacre_port;

#define NACRE_PORT_INIT           \
    {                             \
        sizeof(nacre_port), 0, 0, \
        {                         \
            0                     \
        }                         \
    }

/*
 * Waits until a process of a shell listens on a port (0 = on any; the lowest is told), up to
 * timeout_ms (< 0 = no limit, 0 = just look): NACRE_ETIMEOUT when that is over. NACRE_ECLOSED if
 * the shell ends before; NACRE_EBUSY if somebody else listens there, whom the message names;
 * NACRE_EUNSUPPORTED if its processes cannot be seen here.
 */
NACRE_API int nacre_wait_port(struct nacre_session *session, const nacre_id *id, int port,
                              int64_t timeout_ms, nacre_port *ret_port, nacre_error *reterr);

NACRE_END_DECLS

#endif
