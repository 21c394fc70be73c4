#include "gate/resolve.h"

#include <netdb.h>
#include <resolv.h>
#include <string.h>
#include <sys/socket.h>

bool resolve_bytes(const struct sockaddr *from, uint8_t ret[HOST_BYTES])
{
    memset(ret, 0, HOST_BYTES);
    if (from->sa_family == AF_INET6) {
        memcpy(ret, &((const struct sockaddr_in6 *)from)->sin6_addr, HOST_BYTES);
        return true;
    }
    ret[10] = ret[11] = 0xff;
    memcpy(ret + 12, &((const struct sockaddr_in *)from)->sin_addr, 4);
    return from->sa_family == AF_INET;
}

/* Only that name: no domain of this machine's is put behind it. */
size_t resolve_name(const char *name, uint8_t (*ret)[HOST_BYTES], size_t max)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
    size_t count = 0;
    if (res_init() == 0)
        _res.options &= ~(unsigned long)(RES_DEFNAMES | RES_DNSRCH);
    if (getaddrinfo(name, NULL, &hints, &list) != 0)
        return 0;
    for (struct addrinfo *i = list; i && count < max; i = i->ai_next)
        count += resolve_bytes(i->ai_addr, ret[count]);
    freeaddrinfo(list);
    return count;
}
