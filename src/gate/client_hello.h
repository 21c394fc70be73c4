/* The name in a TLS ClientHello (RFC 8446, section 4.1.2; RFC 6066, section 3), which may come in
 * several records. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "run/hosts.h"

#define TLS_HANDSHAKE  22
#define TLS_HELLO_SIZE 32768 /* of the message; it may be spread over twice as many bytes */

struct client_hello {
    bool named;
    struct net_host host;
};

/* 1; 0 = it is not whole yet; -EPROTO = it is none, or is broken. */
int client_hello_read(const uint8_t *data, size_t size, struct client_hello *ret);
