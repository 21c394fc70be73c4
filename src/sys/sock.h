/*
 * Unix sockets that keep message borders, with descriptors travelling along. The control socket
 * of a run has two names: one in its directory, reached through the descriptor of that, since a
 * path may be longer than a socket address; and an abstract one, which nothing that is done to
 * files can take away. Returns >= 0 or -errno.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define SOCK_FDS_MAX 8

int sock_pair(int ret_fds[2]);

/* Listens as `name` in a directory, or under an abstract name. Non-blocking. */
int sock_listen_at(int dirfd, const char *name);
int sock_listen_abstract(const char *name);

/* Has an abstract name, and listens to nobody: that it is there is all it says. */
int sock_bind_abstract(const char *name);

/* Calls fn for every abstract name of ours that there is in this network namespace, whoever made
 * it; more than once for some. A result != 0 ends it. */
typedef int sock_name_fn(const char *name, void *userdata);
int sock_each_abstract(sock_name_fn *fn, void *userdata);

/* Never waits: -EAGAIN if too many wait to be accepted. Non-blocking. In a directory no link is
 * followed, and what is no socket is -ECONNREFUSED. */
int sock_connect_at(int dirfd, const char *name);
int sock_connect_abstract(const char *name);

/* The same, without message borders, to a server of somebody else's. */
int sock_connect_stream(const char *path);

/* Whether the other side of a connection runs under our effective uid. */
bool sock_peer_is_us(int fd);

/* Who made the other side (of a pair: who made the pair), as our pid namespace numbers it; 0 if it
 * does not. */
pid_t sock_peer_pid(int fd);

/* Sends one message without ever raising SIGPIPE. flags: MSG_DONTWAIT or 0. */
int sock_send(int fd, const void *data, size_t size, const int *fds, size_t fd_count, int flags);

/*
 * Receives one message. Descriptors that came along are stored, close-on-exec; surplus ones are
 * closed and missing ones are -EBADF, or -EMFILE if they came and found no room. Returns the size;
 * 0 = the other side is gone. -EMSGSIZE if it was longer than the buffer.
 */
ssize_t sock_recv(int fd, void *buf, size_t size, int *ret_fds, size_t fd_max, int flags);
