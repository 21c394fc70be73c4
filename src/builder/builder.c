/* nacre-fence: started by the library, never by hand. */
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/defs.h"
#include "builder/builder.h"
#include "sys/fd.h"
#include "sys/mounts.h"
#include "sys/sock.h"

#define SOCKET_FD    3
#define GATE_BACKLOG 128

static struct builder the_builder; /* static, since nothing is allocated */

static int slot_in_builder(enum wire_fence_fds which)
{
    return __builtin_ctz(which);
}

/* -- Namespaces ------------------------------------------------------------------------------- */

static int write_map(const char *path, unsigned id)
{
    char text[64];
    snprintf(text, sizeof text, "%u %u 1\n", id, id);
    return fd_poke_at(AT_FDCWD, path, text);
}

/* Everybody is who they were, and nobody else is there. */
static int make_user_namespace(struct builder *b)
{
    unsigned uid = geteuid(), gid = getegid();
    b->step = FENCE_STEP_USER_NS;
    if (unshare(CLONE_NEWUSER) < 0)
        return -errno;
    b->step = FENCE_STEP_MAPS;
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); /* else these files are root's */
    int r = fd_poke_at(AT_FDCWD, "/proc/self/setgroups", "deny");
    if (r >= 0)
        r = write_map("/proc/self/uid_map", uid);
    return r < 0 ? r : MIN(write_map("/proc/self/gid_map", gid), 0);
}

static int keep_namespace(struct builder *b, const char *name, enum wire_fence_fds which)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/self/ns/%s", name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    b->fd[slot_in_builder(which)] = fd;
    return fd < 0 ? -errno : 0;
}

/* One of a fence that this one takes the place of: 1 = joined, 0 = there is none. */
static int join_given(const struct builder *b, enum wire_fence_fds which, int kind)
{
    int fd = b->fd[slot_in_builder(which)];
    return fd < 0 ? 0 : setns(fd, kind) < 0 ? -errno : 1;
}

/* Root needs no user namespace, where it has the rights of root: in one, all files of others would
 * be nobody's. */
static int make_mount_namespace(struct builder *b)
{
    b->step = FENCE_STEP_USER_NS;
    int r = join_given(b, FENCE_FD_USER, CLONE_NEWUSER);
    if (r == 0 && b->root && unshare(CLONE_NEWNS) == 0)
        return 0;
    if (r == 0)
        r = make_user_namespace(b);
    if (r == 0)
        r = keep_namespace(b, "user", FENCE_FD_USER);
    r = MIN(r, 0);
    b->step = FENCE_STEP_MOUNT_NS;
    return r < 0 ? r : unshare(CLONE_NEWNS) < 0 ? -errno : 0;
}

/* -- The network ------------------------------------------------------------------------------ */

static int bring_loopback_up(struct builder *b)
{
    struct ifreq request = {.ifr_name = "lo"};
    b->step = FENCE_STEP_LOOPBACK;
    cleanup_close int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &request) < 0)
        return -errno;
    request.ifr_flags = (short)(request.ifr_flags | IFF_UP | IFF_RUNNING);
    return ioctl(fd, SIOCSIFFLAGS, &request) < 0 ? -errno : 0;
}

/* Made inside, and served from outside: no process has to stand in between. */
static int listen_for_gate(struct builder *b)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    b->step = FENCE_STEP_GATE;
    int fd = fd_lift_consume(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    b->fd[slot_in_builder(FENCE_FD_GATE)] = fd;
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) < 0 ||
        listen(fd, GATE_BACKLOG) < 0 || getsockname(fd, (struct sockaddr *)&address, &size) < 0)
        return -errno;
    b->port = ntohs(address.sin_port);
    return 0;
}

static int make_network_namespace(struct builder *b)
{
    b->step = FENCE_STEP_NETWORK_NS;
    if (b->fence.head->network == FENCE_NETWORK_ON)
        return 0;
    int r = join_given(b, FENCE_FD_NETWORK, CLONE_NEWNET);
    if (r != 0)
        return MIN(r, 0);
    if (unshare(CLONE_NEWNET) < 0)
        return -errno;
    r = bring_loopback_up(b);
    if (r == 0)
        r = keep_namespace(b, "net", FENCE_FD_NETWORK);
    return r == 0 && b->fence.head->network == FENCE_NETWORK_GATE ? listen_for_gate(b) : r;
}

static int make_ipc_namespace(struct builder *b)
{
    int r = join_given(b, FENCE_FD_IPC, CLONE_NEWIPC);
    if (r != 0)
        return MIN(r, 0);
    return unshare(CLONE_NEWIPC) < 0 ? -errno : keep_namespace(b, "ipc", FENCE_FD_IPC);
}

/* -- The whole -------------------------------------------------------------------------------- */

static int build(struct builder *b)
{
    int r = make_mount_namespace(b);
    if (r == 0)
        r = make_network_namespace(b);
    if (r == 0)
        r = make_ipc_namespace(b);
    b->step = r == 0 ? FENCE_STEP_MOUNT_NS : b->step;
    if (r == 0)
        r = mounts_make_private();
    if (r == 0)
        r = places_open(b);
    if (r == 0)
        r = places_close_off(b);
    if (r == 0)
        r = places_put(b);
    if (r < 0)
        return r;
    r = b->fd[slot_in_builder(FENCE_FD_RULES)] = places_allow(b);
    return r < 0 ? r : keep_namespace(b, "mnt", FENCE_FD_MOUNT);
}

static int hear_order(struct builder *b)
{
    struct wire_fence order;
    int fds[FENCE_FDS], *record = &b->fd[slot_in_builder(FENCE_FD_RECORD)];
    b->step = FENCE_STEP_RECORD;
    ssize_t n = sock_recv(SOCKET_FD, &order, sizeof order, fds, FENCE_FDS, 0);
    if (n != sizeof order || order.head.type != WIRE_FENCE || order.head.format != RUN_FORMAT)
        return n < 0 ? (int)n : -EPROTO;
    for (unsigned i = 0, next = 0; i < FENCE_FDS; i++)
        if (order.fds & 1u << i)
            b->fd[i] = fds[next++];
    int r = fence_map(*record, &b->fence);
    close_fd(record);
    return r;
}

static void answer(const struct builder *b, int error)
{
    struct wire_fenced word = {.head = {.type = WIRE_FENCED, .format = RUN_FORMAT},
                               .error = -error,
                               .step = b->step,
                               .place = b->place,
                               .landlock = b->landlock,
                               .port = b->port};
    int fds[FENCE_FDS];
    size_t count = 0;
    for (unsigned i = 0; error == 0 && i < FENCE_FDS; i++)
        if (b->fd[i] >= 0) {
            fds[count++] = b->fd[i];
            word.fds |= 1u << i;
        }
    (void)sock_send(SOCKET_FD, &word, sizeof word, fds, count, 0);
}

int main(void)
{
    struct builder *b = &the_builder;
    struct stat st;
    if (fstat(SOCKET_FD, &st) < 0 || !S_ISSOCK(st.st_mode)) {
        fputs("nacre-fence is started by nacre, not by hand; see nacre(1).\n", stderr);
        return 2;
    }
    fd_close_from(SOCKET_FD + 1);
    fcntl(SOCKET_FD, F_SETFD, FD_CLOEXEC);
    umask(0);
    b->root = geteuid() == 0;
    for (size_t i = 0; i < ARRAY_SIZE(b->fd); i++)
        b->fd[i] = -EBADF;
    for (size_t i = 0; i < ARRAY_SIZE(b->devices); i++)
        b->devices[i] = -EBADF;
    int r = hear_order(b);
    answer(b, r < 0 ? r : build(b));
    return r < 0;
}
