/*
 * What the kernel says of sockets, by sock_diag. It answers for one network namespace: that in
 * which the asking socket was made. Nothing is allocated. Returns >= 0 or -errno.
 */
#pragma once

#include <linux/netlink.h>
#include <stddef.h>
#include <stdint.h>

/* A socket to ask by. */
int sock_diag_open(void);

/* Asks, and calls fn for each message of the answer; all of it is read, so that none is left for
 * the next question, but after a result of fn other than 0, which is returned, fn is not called any
 * more. -EOPNOTSUPP if the kernel does not tell it. */
typedef int sock_diag_fn(const struct nlmsghdr *message, void *userdata);
int sock_diag_ask(int fd, const void *question, size_t size, unsigned flags, sock_diag_fn *fn,
                  void *userdata);

/* A TCP socket that listens. */
struct listening {
    unsigned long inode;
    uint16_t port;
    unsigned user;
};

/* Those of a port, or all of them (0), over both versions of IP; each as often as it listens. */
typedef int listening_fn(const struct listening *socket, void *userdata);
int sock_diag_listening(int fd, uint16_t port, listening_fn *fn, void *userdata);

/* The other one of a pair of Unix sockets in our namespace, by their inodes; 0 if that is not
 * told. */
unsigned long sock_diag_peer(unsigned long inode);
