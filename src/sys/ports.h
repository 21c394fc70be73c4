/*
 * TCP ports on which processes listen. The kernel is asked by sock_diag where a process is in our
 * own network namespace, which takes a few microseconds. From another one it does not answer: there
 * the tables are read that a process has in /proc, which takes milliseconds. No function allocates.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sys/sock_diag.h"

/* The number of the network that a process is in; 0 = that cannot be seen. */
uint64_t ports_network(pid_t pid);

/* Calls fn for each socket that listens at a port (0 = any) where a process is. 0, what fn said, or
 * -errno. */
int ports_listening(pid_t pid, uint16_t port, listening_fn *fn, void *userdata);

/* The same for those of some sockets that the process holds; -EACCES if that may not be seen. */
int ports_held(pid_t pid, const struct listening *sockets, size_t count, listening_fn *fn,
               void *userdata);

/* The ports a process listens on, each once; returns how many were stored. */
size_t ports_of(pid_t pid, uint16_t *ret_ports, size_t max);
