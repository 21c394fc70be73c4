#include "gate/reach.h"

#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/defs.h"
#include "gate/address.h"
#include "gate/resolve.h"
#include "sys/fd.h"
#include "sys/syscalls.h"

#define ADDRESSES_MAX 16

struct addresses {
    size_t count;
    uint8_t each[ADDRESSES_MAX][HOST_BYTES];
};

/* -- Names --------------------------------------------------------------------------------------
 */

/* 1 = readable or writable, as asked; -ECANCELED = the client has gone; or -ETIMEDOUT. */
static int await_event(int fd, short events, int client, int64_t until_ns)
{
    struct pollfd polled[2] = {{.fd = fd, .events = events}, {.fd = client}};
    int r = RETRY(poll(polled, ARRAY_SIZE(polled), clock_left_ms(until_ns)));
    if (r < 0)
        return -errno;
    if (polled[0].revents)
        return 1;
    return polled[1].revents ? -ECANCELED : -ETIMEDOUT;
}

/*
 * The resolver of the system takes as long as it likes, and brings the code of others along: a
 * process of its own has it, which ends with us.
 */
static int resolve_apart(const char *name, int client, int64_t until_ns, struct addresses *ret)
{
    int ends[2];
    pid_t self = getpid();
    int r = fd_pipe(ends);
    if (r < 0)
        return r;
    pid_t pid = sys_fork_into(-EBADF);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != self)
            _exit(1);
        ret->count = resolve_name(name, ret->each, ADDRESSES_MAX);
        (void)fd_write_all(ends[1], ret, sizeof *ret);
        _exit(0);
    }
    close(ends[1]);
    cleanup_close int answer = ends[0];
    if (pid < 0)
        return pid;
    r = await_event(answer, POLLIN, client, until_ns);
    if (r < 0)
        return r;
    bool whole = fd_read_all(answer, ret, sizeof *ret) == sizeof *ret;
    (void)RETRY(waitpid(pid, NULL, 0));
    return whole && ret->count > 0 && ret->count <= ADDRESSES_MAX ? 0 : -ENOENT;
}

/* -- Addresses ----------------------------------------------------------------------------------
 */

union any_address {
    struct sockaddr any;
    struct sockaddr_in four;
    struct sockaddr_in6 six;
};

static socklen_t make_address(const uint8_t *bytes, uint16_t port, union any_address *ret)
{
    static const uint8_t four[12] = {[10] = 0xff, [11] = 0xff};
    memset(ret, 0, sizeof *ret);
    if (memcmp(bytes, four, sizeof four) == 0) {
        ret->four = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
        memcpy(&ret->four.sin_addr, bytes + sizeof four, 4);
        return sizeof ret->four;
    }
    ret->six = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(port)};
    memcpy(&ret->six.sin6_addr, bytes, HOST_BYTES);
    return sizeof ret->six;
}

/* Whether it is an address of this machine: who speaks to it would speak from it. Nothing is sent.
 */
static bool is_own(const uint8_t *bytes)
{
    union any_address to, from;
    uint8_t seen[HOST_BYTES];
    socklen_t size = make_address(bytes, 9, &to), got = sizeof from;
    cleanup_close int fd = socket(to.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, &to.any, size) < 0 || getsockname(fd, &from.any, &got) < 0)
        return false;
    return resolve_bytes(&from.any, seen) && memcmp(seen, bytes, HOST_BYTES) == 0;
}

/* NULL, or why this address is not for that host. A rule that is an address means it. */
static const char *fault_of_address(const struct net_host *host, const uint8_t *bytes)
{
    if (host->kind == HOST_ADDRESS)
        return NULL;
    const char *what = address_class(bytes);
    if (what && strcmp(what, "loopback") == 0 && net_host_is_localhost(host))
        return NULL;
    return what ? what : is_own(bytes) ? "this machine's own" : NULL;
}

static int connect_one(const uint8_t *bytes, uint16_t port, int client, int64_t until_ns)
{
    union any_address to;
    socklen_t size = make_address(bytes, port, &to), error_size = sizeof(int);
    cleanup_close int fd = socket(to.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int error = 0;
    if (fd < 0)
        return -errno;
    if (connect(fd, &to.any, size) < 0 && errno != EINPROGRESS)
        return -errno;
    int r = await_event(fd, POLLOUT, client, until_ns);
    if (r < 0)
        return r;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &error_size) < 0 || error)
        return error ? -error : -EIO;
    return TAKE_FD(fd);
}

/* Each gets its part of the time that is left. */
static int64_t share(int64_t until_ns, size_t left)
{
    int64_t now = clock_mono_ns();
    return until_ns <= now ? until_ns : now + (until_ns - now) / (int64_t)left;
}

static void note_fault(const uint8_t *bytes, const char *fault, char *why, size_t why_size)
{
    struct net_host address;
    net_host_of_address(bytes, &address);
    snprintf(why, why_size,
             "its name leads to %s (%s); only a rule that is the address allows that", address.name,
             fault);
}

int reach_host(const struct net_host *host, uint16_t port, int client, int64_t until_ns, char *why,
               size_t why_size)
{
    struct addresses found = {.count = 1};
    memcpy(found.each[0], host->address, HOST_BYTES);
    int r = host->kind == HOST_ADDRESS ? 0 : resolve_apart(host->name, client, until_ns, &found);
    if (r < 0)
        return r;
    r = -EPERM;
    for (size_t i = 0; i < found.count; i++) {
        const char *fault = fault_of_address(host, found.each[i]);
        if (fault) {
            note_fault(found.each[i], fault, why, why_size);
            continue;
        }
        r = connect_one(found.each[i], port, client, share(until_ns, found.count - i));
        if (r >= 0 || r == -ECANCELED)
            return r;
    }
    return r;
}
