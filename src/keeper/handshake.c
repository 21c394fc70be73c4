/* The conversation with the library until the go: who we are, and that all is ready. */
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/defs.h"
#include "keeper/keeper.h"
#include "sys/sock.h"

/* What the commands of this session run in. */
static int hear_fence(struct keeper *k)
{
    static const enum keeper_fd in_order[FENCE_FDS] = {
        FD_FENCE_RECORD,  FD_FENCE_PRIVATE, FD_FENCE_USER,  FD_FENCE_MOUNT,
        FD_FENCE_NETWORK, FD_FENCE_IPC,     FD_FENCE_RULES, FD_COUNT};
    struct wire_fence word;
    int fds[FENCE_FDS];
    size_t next = 0;
    ssize_t n = sock_recv(k->fd[FD_LAUNCH], &word, sizeof word, fds, ARRAY_SIZE(fds), 0);
    if (n != sizeof word || word.head.type != WIRE_FENCE)
        return n < 0 ? (int)n : -EPROTO;
    for (unsigned i = 0; i < FENCE_FDS; i++)
        if ((word.fds & 1u << i) && in_order[i] != FD_COUNT) {
            k->fd[in_order[i]] = fds[next++];
            if (k->fd[in_order[i]] < 0)
                return k->fd[in_order[i]];
        }
    return fence_map(k->fd[FD_FENCE_RECORD], &k->session.fence);
}

/* Mapped for good: it is the same memory for all keepers of the session. */
static int take_policy(struct keeper *k, int fd)
{
    cleanup_close int file = fd;
    struct stat st;
    if (fstat(file, &st) < 0 || st.st_size <= 0 || (size_t)st.st_size > PACKED_SIZE_MAX)
        return -EBADMSG;
    void *map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    if (map == MAP_FAILED)
        return -errno;
    k->session.policy = map;
    return packed_check(map, (size_t)st.st_size);
}

int handshake_hello(struct keeper *k)
{
    struct wire_hello *hello = &k->session.hello;
    int fds[5];
    ssize_t n = sock_recv(k->fd[FD_LAUNCH], hello, sizeof *hello, fds, ARRAY_SIZE(fds), 0);
    if (n != sizeof *hello || hello->head.type != WIRE_HELLO)
        return n < 0 ? (int)n : -EPROTO;
    hello->cgroup_parent[sizeof hello->cgroup_parent - 1] = '\0';
    size_t next = 0;
    k->fd[FD_RUNS] = fds[next++];
    k->fd[FD_LINE] = fds[next++];
    if (hello->fds & WIRE_FD_TEXT)
        k->fd[FD_TEXT] = fds[next++];
    if (hello->fds & WIRE_FD_OWNER)
        k->fd[FD_OWNER] = fds[next++];
    if (hello->head.format != RUN_FORMAT)
        return -EPROTO;
    int r = hello->fds & WIRE_FD_POLICY ? take_policy(k, fds[next++]) : 0;
    if (r < 0)
        return r;
    return hello->fds & WIRE_FD_FENCE ? hear_fence(k) : 0;
}

void handshake_made(struct keeper *k)
{
    struct wire_made made = {.head = {.type = WIRE_MADE, .format = RUN_FORMAT}, .pid = getpid()};
    struct proc_ref ref;
    if (proc_ref(made.pid, &ref) == 0)
        made.start = ref.start;
    sock_send(k->fd[FD_LAUNCH], &made, sizeof made, NULL, 0, MSG_DONTWAIT);
}

int handshake_ready(struct keeper *k, int error, enum fence_step step)
{
    int pair[2] = {-EBADF, -EBADF};
    if (error == 0)
        error = sock_pair(pair);
    if (error < 0)
        machine_event(k, EV_NOT_STARTED);
    cleanup_close int theirs = pair[0];
    k->fd[FD_NEXT] = pair[1];
    loop_watch(k, FD_NEXT);
    struct wire_ready ready = {
        .head = {.type = WIRE_READY, .format = RUN_FORMAT},
        .error = -error,
        .pid = getpid(),
        .start = k->st.keeper_start,
        .id = k->st.id,
        .child_of_host = getppid() == k->session.hello.host_pid,
        .tier = k->st.tier,
        .copies = k->session.copies,
        .version = WIRE_VERSION,
        .step = error < 0 ? step : FENCE_STEP_NONE,
    };
    int fds[] = {k->fd[FD_BORN], theirs};
    size_t count = error < 0 ? 0 : ARRAY_SIZE(fds);
    sock_send(k->fd[FD_LAUNCH], &ready, sizeof ready, fds, count, 0);
    return error;
}
