/* From a host that the rules allow to a connection: names are resolved here and nowhere else, and
 * what is connected to is the very address that was looked at. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "run/hosts.h"

/*
 * A connection, non-blocking, or -errno: -ENOENT if the name has no address, -ETIMEDOUT,
 * -ECONNREFUSED, ...; -EPERM if no address of it is allowed, with the reason in why; -ECANCELED if
 * the client has gone meanwhile.
 */
int reach_host(const struct net_host *host, uint16_t port, int client, int64_t until_ns, char *why,
               size_t why_size);
