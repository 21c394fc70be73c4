/* The addresses of a name, as the resolver of the system has them; it may take its time. */
#pragma once

#include "run/hosts.h"

struct sockaddr;

/* How many were stored, at most max. */
size_t resolve_name(const char *name, uint8_t (*ret)[HOST_BYTES], size_t max);

/* The bytes of one; false if it is of another family. */
bool resolve_bytes(const struct sockaddr *from, uint8_t ret[HOST_BYTES]);
