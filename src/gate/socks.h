/* What a client of SOCKS5 says, read strictly. Each function returns how many bytes it took, 0 if
 * they are not whole yet, or -EPROTO. */
#pragma once

#include <nacre/id.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "run/hosts.h"

enum socks_method {
    SOCKS_OPEN = 0x00,
    SOCKS_LOGIN = 0x02,
    SOCKS_NO_METHOD = 0xff,
};

enum socks_reply {
    SOCKS_GRANTED = 0x00,
    SOCKS_FAILED = 0x01,
    SOCKS_BLOCKED = 0x02,
    SOCKS_UNREACHABLE = 0x04,
    SOCKS_REFUSED = 0x05,
    SOCKS_TIMED_OUT = 0x06,
    SOCKS_NO_COMMAND = 0x07,
    SOCKS_NO_ADDRESS = 0x08,
};

struct socks_request {
    enum socks_reply reply; /* what is to be said at once; SOCKS_GRANTED if nothing is wrong */
    struct net_host host;
    uint16_t port;
};

/* How the client may say who it is: a login, which says for whom it asks, goes before nothing. */
ssize_t socks_greeting(const uint8_t *data, size_t size, enum socks_method *ret);

/* The login; the run it names, if it names one. */
ssize_t socks_login(const uint8_t *data, size_t size, bool *ret_has_asker, nacre_id *ret_asker);

ssize_t socks_request(const uint8_t *data, size_t size, struct socks_request *ret);
