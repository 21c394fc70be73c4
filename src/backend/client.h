/*
 * Talking to a running keeper over its control socket. A keeper may be gone, stopped, or busy;
 * every exchange has a deadline. Returns >= 0 or -errno.
 */
#ifndef NACRE_BACKEND_CLIENT_H
#define NACRE_BACKEND_CLIENT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "run/rundir.h"
#include "run/wire.h"

/* A connection to the keeper: -ECONNREFUSED if there is none any more. */
int client_connect(const struct run *run);

/* Connects and asks to be told what happens. */
int client_watch(const struct run *run);

int client_send(int sock, const void *message, size_t size);

/* The next message; -ETIMEDOUT at the deadline (monotonic ns), 0 if the keeper is gone. */
ssize_t client_recv(int sock, void *buf, size_t size, int64_t deadline_ns);

struct wire_head client_head(enum wire_type type);

#endif
