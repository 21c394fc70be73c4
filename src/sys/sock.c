#include "sys/sock.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/assert.h"
#include "base/defs.h"
#include "sys/fd.h"

#define BACKLOG 64       /* who may wait to be accepted */
#define PREFIX  "nacre/" /* of all abstract names */

int sock_pair(int ret_fds[2])
{
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
        return -errno;
    return fd_lift_pair_consume(fds, ret_fds);
}

static socklen_t address_in(struct sockaddr_un *addr, int dirfd, const char *name)
{
    *addr = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(addr->sun_path, sizeof addr->sun_path, "/proc/self/fd/%d/%s", dirfd, name);
    return sizeof *addr;
}

static socklen_t address_abstract(struct sockaddr_un *addr, const char *name)
{
    *addr = (struct sockaddr_un){.sun_family = AF_UNIX};
    int n = snprintf(addr->sun_path + 1, sizeof addr->sun_path - 1, PREFIX "%s", name);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static int new_socket(int kind)
{
    int fd = socket(AF_UNIX, kind | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return fd < 0 ? -errno : fd_lift_consume(fd);
}

static int listen_as(const struct sockaddr_un *addr, socklen_t len)
{
    cleanup_close int fd = new_socket(SOCK_SEQPACKET);
    if (fd < 0)
        return fd;
    if (bind(fd, (const struct sockaddr *)addr, len) < 0 || listen(fd, BACKLOG) < 0)
        return -errno;
    return TAKE_FD(fd);
}

static int connect_to(int kind, const struct sockaddr_un *addr, socklen_t len)
{
    cleanup_close int fd = new_socket(kind);
    if (fd < 0)
        return fd;
    return connect(fd, (const struct sockaddr *)addr, len) < 0 ? -errno : TAKE_FD(fd);
}

int sock_listen_at(int dirfd, const char *name)
{
    struct sockaddr_un addr;
    return listen_as(&addr, address_in(&addr, dirfd, name));
}

int sock_listen_abstract(const char *name)
{
    struct sockaddr_un addr;
    return listen_as(&addr, address_abstract(&addr, name));
}

int sock_bind_abstract(const char *name)
{
    struct sockaddr_un addr;
    socklen_t len = address_abstract(&addr, name);
    cleanup_close int fd = new_socket(SOCK_SEQPACKET);
    if (fd < 0)
        return fd;
    return bind(fd, (const struct sockaddr *)&addr, len) < 0 ? -errno : TAKE_FD(fd);
}

int sock_each_abstract(sock_name_fn *fn, void *userdata)
{
    static const char before[] = " @" PREFIX;
    char *line = NULL;
    size_t size = 0;
    int r = 0;
    FILE *names = fopen("/proc/self/net/unix", "re");
    while (r == 0 && names && getline(&line, &size, names) > 0) {
        const char *at = strstr(line, before);
        line[strcspn(line, "\n")] = '\0';
        if (at)
            r = fn(at + strlen(before), userdata);
    }
    free(line);
    if (names)
        fclose(names);
    return r;
}

int sock_connect_at(int dirfd, const char *name)
{
    struct sockaddr_un addr;
    struct stat st;
    if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (!S_ISSOCK(st.st_mode))
        return -ECONNREFUSED;
    return connect_to(SOCK_SEQPACKET, &addr, address_in(&addr, dirfd, name));
}

int sock_connect_abstract(const char *name)
{
    struct sockaddr_un addr;
    return connect_to(SOCK_SEQPACKET, &addr, address_abstract(&addr, name));
}

int sock_connect_stream(const char *path)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    int n = snprintf(addr.sun_path, sizeof addr.sun_path, "%s", path);
    return (size_t)n >= sizeof addr.sun_path ? -ENAMETOOLONG
                                             : connect_to(SOCK_STREAM, &addr, sizeof addr);
}

static int peer_of(int fd, struct ucred *ret_peer)
{
    socklen_t len = sizeof *ret_peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, ret_peer, &len) < 0 ? -errno : 0;
}

bool sock_peer_is_us(int fd)
{
    struct ucred peer;
    return peer_of(fd, &peer) == 0 && peer.uid == geteuid();
}

pid_t sock_peer_pid(int fd)
{
    struct ucred peer;
    return peer_of(fd, &peer) == 0 ? peer.pid : 0;
}

int sock_send(int fd, const void *data, size_t size, const int *fds, size_t fd_count, int flags)
{
    union {
        char space[CMSG_SPACE(SOCK_FDS_MAX * sizeof(int))];
        struct cmsghdr align;
    } control;
    must(fd_count <= SOCK_FDS_MAX);
    struct iovec iov = {.iov_base = (void *)data, .iov_len = size};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    if (fd_count > 0) {
        memset(&control, 0, sizeof control);
        msg.msg_control = &control;
        msg.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
        struct cmsghdr *head = CMSG_FIRSTHDR(&msg);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
        memcpy(CMSG_DATA(head), fds, fd_count * sizeof(int));
    }
    return RETRY(sendmsg(fd, &msg, MSG_NOSIGNAL | flags)) < 0 ? -errno : 0;
}

static void keep_fds(struct msghdr *msg, int *ret_fds, size_t fd_max)
{
    size_t kept = 0;
    for (size_t i = 0; i < fd_max; i++)
        ret_fds[i] = msg->msg_flags & MSG_CTRUNC ? -EMFILE : -EBADF;
    for (struct cmsghdr *head = CMSG_FIRSTHDR(msg); head; head = CMSG_NXTHDR(msg, head)) {
        if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS)
            continue;
        size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(head) + i * sizeof fd, sizeof fd);
            if (kept < fd_max)
                ret_fds[kept++] = fd_lift_consume(fd);
            else
                close(fd);
        }
    }
}

ssize_t sock_recv(int fd, void *buf, size_t size, int *ret_fds, size_t fd_max, int flags)
{
    union {
        char space[CMSG_SPACE(SOCK_FDS_MAX * sizeof(int))];
        struct cmsghdr align;
    } control;
    must(fd_max <= SOCK_FDS_MAX);
    for (size_t i = 0; i < fd_max; i++)
        ret_fds[i] = -EBADF;
    struct iovec iov = {.iov_base = buf, .iov_len = size};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = &control,
                         .msg_controllen = sizeof control};
    ssize_t n = RETRY(recvmsg(fd, &msg, MSG_CMSG_CLOEXEC | flags));
    if (n < 0)
        return -errno;
    keep_fds(&msg, ret_fds, fd_max);
    return msg.msg_flags & MSG_TRUNC ? -EMSGSIZE : n;
}
