/*
 * Who asks inside the fence: mostly to connect. The filter has each connect() wait for us, and we
 * make it instead: the address is copied before it is judged, so that nobody can change it in
 * between, and a path is opened before it is judged, for the same reason. To let the call itself go
 * on would be to judge something else than what then happens.
 *
 * A Unix socket that lies where nothing may be written is somebody else's. So is one that nobody
 * inside listens on, wherever it lies; see listeners.c.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>

#include "base/defs.h"
#include "keeper/keeper.h"
#include "sys/fd.h"
#include "sys/sock_diag.h"
#include "sys/syscalls.h"

#define IOPRIO_PROCESS 1
#define CROWDED_US     20000 /* for a place in the queue of a listener */
#define PORT_OF_NAMES  53

/* One that is looked at. */
struct visitor {
    uint64_t id; /* of the call that waits */
    pid_t pid;
    int sock;
    socklen_t size;
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
        struct sockaddr_un local;
        char room[sizeof(struct sockaddr_storage) + 1];
    } address;
};

static void note_refusal(struct keeper *k, const struct visitor *v, enum denial_kind kind,
                         const char *target, const char *why)
{
    struct denial d = {.kind = kind};
    denied_name(&d, v->pid);
    snprintf(d.target, sizeof d.target, "%s", target);
    snprintf(d.why, sizeof d.why, "%s", why);
    denied_note(k, &d);
}

/* -- Who asks --------------------------------------------------------------------------------- */

/* A thread is not opened; the process that it belongs to is. */
static int open_process(pid_t thread)
{
    int fd = sys_pidfd_open(thread);
    if (fd >= 0)
        return fd;
    pid_t leader = calls_leader(thread);
    return leader > 0 ? sys_pidfd_open(leader) : leader;
}

static int take_address(struct visitor *v, uint64_t from, uint64_t size)
{
    struct iovec ours = {v->address.room, (size_t)size};
    struct iovec theirs = {(void *)(uintptr_t)from, (size_t)size};
    if (size > sizeof v->address.room - 1)
        return -EINVAL;
    v->size = (socklen_t)size;
    ssize_t n = size == 0 ? 0 : process_vm_readv(v->pid, &ours, 1, &theirs, 1, 0);
    return n == (ssize_t)size ? 0 : -EFAULT;
}

static int meet(struct visitor *v, const struct seccomp_notif *n)
{
    *v = (struct visitor){.id = n->id, .pid = (pid_t)n->pid, .sock = -EBADF};
    cleanup_close int process = open_process(v->pid);
    if (process < 0)
        return -EACCES;
    v->sock = sys_pidfd_getfd(process, (int)n->data.args[0]);
    if (v->sock < 0)
        return v->sock == -EBADF ? -EBADF : -EACCES;
    return take_address(v, n->data.args[1], n->data.args[2]);
}

/* -- Connecting for them ---------------------------------------------------------------------- */

/* The description is theirs, too; nobody does anything else with a socket that is being connected.
 * 0, -errno, or CALL_WAITS: then it stays as it is until it is known. */
static int connect_for(int sock, const struct sockaddr *address, socklen_t size)
{
    int flags = fcntl(sock, F_GETFL);
    bool waits = flags >= 0 && !(flags & O_NONBLOCK);
    if (waits)
        fcntl(sock, F_SETFL, flags | O_NONBLOCK);
    int r = connect(sock, address, size) < 0 ? -errno : 0;
    if (waits && (r == -EINPROGRESS || r == -EALREADY))
        return CALL_WAITS;
    if (waits)
        fcntl(sock, F_SETFL, flags);
    if (!waits || r != -EAGAIN)
        return r;
    /* The queue of a Unix socket is full. */
    struct timeval before = {0}, moment = {.tv_usec = CROWDED_US};
    socklen_t length = sizeof before;
    getsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &before, &length);
    setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &moment, sizeof moment);
    r = connect(sock, address, size) < 0 ? -errno : 0;
    setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &before, sizeof before);
    return r;
}

/* Who waits for a peer that is slow to answer. */
static int let_wait(struct keeper *k, struct visitor *v)
{
    for (int i = 0; i < WAITING_MAX; i++) {
        if (k->session.room->waiting[i].sock > 0)
            continue;
        k->session.room->waiting[i] = (struct waiting){.id = v->id, .sock = TAKE_FD(v->sock)};
        loop_watch_waiting(k, i);
        return CALL_WAITS;
    }
    return -ENOBUFS;
}

void connects_know(struct keeper *k, int which)
{
    struct waiting *w = &k->session.room->waiting[which];
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(w->sock, SOL_SOCKET, SO_ERROR, &error, &size);
    fcntl(w->sock, F_SETFL, fcntl(w->sock, F_GETFL) & ~O_NONBLOCK);
    loop_close_waiting(k, which);
    calls_answer(k, w->id, -error);
}

void connects_forget(struct keeper *k)
{
    for (int i = 0; i < WAITING_MAX; i++)
        if (k->session.room->waiting[i].sock > 0)
            k->session.room->waiting[i].sock = 0;
}

void connects_drop(struct keeper *k)
{
    for (int i = 0; i < WAITING_MAX; i++)
        if (k->session.room->waiting[i].sock > 0)
            loop_close_waiting(k, i);
    loop_close(k, FD_LISTENERS);
}

/* -- Unix sockets ----------------------------------------------------------------------------- */

/* As they see it: from their root, and from the directory where they are. */
static int find_socket(const struct visitor *v, const char *path)
{
    char link[32], whole[PATH_MAX + sizeof v->address];
    struct open_how how = {.flags = O_PATH | O_CLOEXEC,
                           .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
    size_t n = 0;
    if (path[0] != '/') {
        snprintf(link, sizeof link, "/proc/%d/cwd", v->pid);
        ssize_t got = readlink(link, whole, PATH_MAX);
        if (got < 0)
            return -errno;
        n = (size_t)got;
    }
    snprintf(whole + n, sizeof whole - n, "/%s", path);
    snprintf(link, sizeof link, "/proc/%d/root", v->pid);
    cleanup_close int root = open(link, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return -errno;
    int fd = (int)syscall(SYS_openat2, root, whole, &how, sizeof how);
    return fd < 0 ? -errno : fd;
}

/* Named in the settings: the same file as outside. */
static bool is_open_to_all(const struct keeper *k, int fd)
{
    const struct fence *fence = &k->session.fence;
    struct stat here, there;
    for (uint32_t i = 0; i < fence->head->count; i++) {
        const struct fence_place *place = &fence_places(fence)[i];
        if (place->kind == FENCE_SOCKET && fstat(fd, &here) == 0 &&
            stat(fence_string(fence, place->path), &there) == 0 && here.st_ino == there.st_ino &&
            here.st_dev == there.st_dev)
            return true;
    }
    return false;
}

/* 0 = who listens there is inside; -ECONNREFUSED = nobody does; -EACCES = it is the host's. */
static int judge_socket(const struct keeper *k, const struct socket_name *name)
{
    uint32_t socket;
    bool is_apart = k->fd[FD_FENCE_NETWORK] >= 0;
    int r = listeners_find(k->fd[FD_LISTENERS], name, &socket);
    if (r == 0)
        return is_apart || listeners_is_held_inside(k->fd[FD_FENCE_IPC], socket) ? 0 : -EACCES;
    if (r != -ENOENT || !is_apart)
        return r == -ENOENT ? -ECONNREFUSED : -EACCES;
    cleanup_close int outside = sock_diag_open();
    return listeners_find(outside, name, &socket) == -ENOENT ? -ECONNREFUSED : -EACCES;
}

static int refuse_socket(struct keeper *k, const struct visitor *v, const char *path)
{
    note_refusal(k, v, DENIAL_SOCKET, path, "it is a socket of the host");
    return -EACCES;
}

static int connect_by_path(struct keeper *k, struct visitor *v)
{
    struct sockaddr_un there = {.sun_family = AF_UNIX};
    struct socket_name name;
    struct statvfs fs;
    const char *path = v->address.local.sun_path;
    cleanup_close int fd = find_socket(v, path);
    if (fd < 0)
        return fd;
    int r = is_open_to_all(k, fd) ? 0 : listeners_name(fd, v->pid, &name);
    if (r == 0 && !is_open_to_all(k, fd))
        r = fstatvfs(fd, &fs) < 0 || fs.f_flag & ST_RDONLY ? -EACCES : judge_socket(k, &name);
    if (r < 0)
        return r == -ECONNREFUSED ? r : refuse_socket(k, v, path);
    snprintf(there.sun_path, sizeof there.sun_path, "/proc/self/fd/%d", fd);
    return connect_for(v->sock, (struct sockaddr *)&there, sizeof there);
}

/* In a network of the fence's own there are no names but those of its shells. */
static int connect_by_name(struct keeper *k, struct visitor *v)
{
    const char *text = v->address.local.sun_path;
    struct socket_name name = {.size = v->size - offsetof(struct sockaddr_un, sun_path)};
    char path[sizeof name.abstract + 2] = "@";
    memcpy(name.abstract, text, MIN(name.size, sizeof name.abstract));
    snprintf(path + 1, sizeof path - 1, "%.*s", (int)name.size - 1, text + 1);
    int r = k->fd[FD_FENCE_NETWORK] >= 0 ? 0 : judge_socket(k, &name);
    if (r == -EACCES)
        return refuse_socket(k, v, path);
    return r < 0 ? r : connect_for(v->sock, &v->address.any, v->size);
}

static int connect_unix(struct keeper *k, struct visitor *v)
{
    if (v->address.any.sa_family != AF_UNIX || v->size > sizeof v->address.local ||
        v->size <= offsetof(struct sockaddr_un, sun_path))
        return -EINVAL;
    return v->address.local.sun_path[0] ? connect_by_path(k, v) : connect_by_name(k, v);
}

/* -- The network ------------------------------------------------------------------------------ */

static void note_unreachable(struct keeper *k, const struct visitor *v)
{
    char address[INET6_ADDRSTRLEN] = "?", target[INET6_ADDRSTRLEN + 16];
    bool is_v6 = v->address.any.sa_family == AF_INET6;
    unsigned port = ntohs(is_v6 ? v->address.v6.sin6_port : v->address.v4.sin_port);
    inet_ntop(v->address.any.sa_family,
              is_v6 ? (const void *)&v->address.v6.sin6_addr : &v->address.v4.sin_addr, address,
              sizeof address);
    snprintf(target, sizeof target, is_v6 ? "[%s]:%u" : "%s:%u", address, port);
    note_refusal(k, v, DENIAL_NETWORK, target,
                 k->session.fence.head->network == FENCE_NETWORK_GATE
                     ? "hosts are reached by the proxy only"
                 : port == PORT_OF_NAMES ? "network is off, so names are not looked up"
                                         : "network is off");
}

static int connect_by_address(struct keeper *k, const struct visitor *v)
{
    int r = connect_for(v->sock, &v->address.any, v->size);
    if ((r == -ENETUNREACH || r == -EHOSTUNREACH) && k->fd[FD_FENCE_NETWORK] >= 0)
        note_unreachable(k, v);
    return r;
}

/* -- The door --------------------------------------------------------------------------------- */

static int serve_connect(struct keeper *k, struct visitor *v)
{
    int domain = -1;
    socklen_t size = sizeof domain;
    getsockopt(v->sock, SOL_SOCKET, SO_DOMAIN, &domain, &size);
    if (domain != AF_UNIX && domain != AF_INET && domain != AF_INET6)
        return -EPERM; /* we may do more with it than they may */
    int r = domain == AF_UNIX ? connect_unix(k, v) : connect_by_address(k, v);
    return r == CALL_WAITS ? let_wait(k, v) : r;
}

/* Another process is to be changed by its number, which nobody can exchange in between: if it is
 * inside, the call itself may go on. */
static int serve_change(struct keeper *k, const struct seccomp_notif *n)
{
    bool has_kind = n->data.nr == SYS_setpriority || n->data.nr == SYS_ioprio_set;
    char pid[24];
    if (n->data.nr == SYS_setpriority && n->data.args[0] != PRIO_PROCESS)
        return -EPERM;
    if (n->data.nr == SYS_ioprio_set && n->data.args[0] != IOPRIO_PROCESS)
        return -EPERM;
    snprintf(pid, sizeof pid, "%d", (int)n->data.args[has_kind ? 1 : 0]);
    return listeners_is_inside(k->fd[FD_FENCE_IPC], pid) ? CALL_GOES_ON : -EPERM;
}

int connects_serve(struct keeper *k, const struct seccomp_notif *n)
{
    struct visitor v;
    if (n->data.nr != SYS_connect)
        return serve_change(k, n);
    int r = meet(&v, n);
    if (r == 0)
        r = calls_is_waiting(k, v.id) ? serve_connect(k, &v) : -EINTR;
    close_fd(&v.sock);
    return r;
}
