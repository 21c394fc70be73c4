/*
 * Reaching a running keeper by its control socket. A keeper may be gone, stopped, or busy: nothing
 * here waits for it. Returns >= 0 or -errno.
 */
#ifndef NACRE_BACKEND_CLIENT_H
#define NACRE_BACKEND_CLIENT_H

#include <stddef.h>

#include "run/rundir.h"
#include "run/wire.h"

/* A connection to the keeper: -ECONNREFUSED if there is none any more, -EAGAIN if too many wait to
 * be heard. */
int client_connect(const struct run *run);

/* Connects and asks to be told what happens. */
int client_watch(const struct run *run);

int client_send(int sock, const void *message, size_t size);

struct wire_head client_head(enum wire_type type);

#endif
