#include "sys/ports.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/defs.h"
#include "sys/fd.h"

#define LISTENS 10 /* TCP_LISTEN, as the tables have it */
#define PORTION 256

/* -- Who listens ------------------------------------------------------------------------------ */

uint64_t ports_network(pid_t pid)
{
    char path[40];
    struct stat st;
    snprintf(path, sizeof path, "/proc/%d/ns/net", pid);
    return stat(path, &st) < 0 ? 0 : (uint64_t)st.st_ino;
}

struct table_search {
    uint16_t port;
    listening_fn *fn;
    void *userdata;
};

/* A line of net/tcp or net/tcp6. */
static int take_line(char *line, void *userdata)
{
    const struct table_search *search = userdata;
    struct listening socket;
    unsigned state;
    if (sscanf(line, " %*d: %*[0-9A-F]:%" SCNx16 " %*s %x %*s %*s %*s %u %*d %lu", &socket.port,
               &state, &socket.user, &socket.inode) != 4 ||
        state != LISTENS || socket.port == 0 || (search->port != 0 && search->port != socket.port))
        return 0;
    return search->fn(&socket, search->userdata);
}

static int read_tables(pid_t pid, uint16_t port, listening_fn *fn, void *userdata)
{
    static const char *const files[] = {"net/tcp", "net/tcp6"};
    struct table_search search = {.port = port, .fn = fn, .userdata = userdata};
    int r = 0;
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(files); i++) {
        char path[40];
        snprintf(path, sizeof path, "/proc/%d/%s", pid, files[i]);
        r = fd_each_line_in(path, take_line, &search);
        /* A kernel without this version of IP. */
        if (r == -ENOENT && i > 0)
            r = 0;
    }
    return r;
}

int ports_listening(pid_t pid, uint16_t port, listening_fn *fn, void *userdata)
{
    uint64_t network = ports_network(pid);
    bool ours = network != 0 && network == ports_network(getpid());
    cleanup_close int diag = ours ? sock_diag_open() : -EBADF;
    int r = diag < 0 ? -EBADF : sock_diag_listening(diag, port, fn, userdata);
    return r == -EBADF || r == -EOPNOTSUPP ? read_tables(pid, port, fn, userdata) : r;
}

/* -- Who holds them --------------------------------------------------------------------------- */

struct held_search {
    int descriptors;
    const struct listening *sockets;
    size_t count;
    listening_fn *fn;
    void *userdata;
    bool any; /* it is enough to know whether there is a socket at all */
};

static int compare_descriptor(const char *name, void *userdata)
{
    const struct held_search *s = userdata;
    char target[64];
    ssize_t n = readlinkat(s->descriptors, name, target, sizeof target - 1);
    if (n <= 0 || (target[n] = '\0', strncmp(target, "socket:[", 8) != 0))
        return 0;
    if (s->any)
        return 1;
    unsigned long inode = strtoul(target + 8, NULL, 10);
    int r = 0;
    for (size_t i = 0; r == 0 && i < s->count; i++)
        if (s->sockets[i].inode == inode)
            r = s->fn(&s->sockets[i], s->userdata);
    return r;
}

static int walk_descriptors(pid_t pid, struct held_search *s)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/fd", pid);
    cleanup_close int fd = s->descriptors = fd_open_dir_at(AT_FDCWD, path);
    return fd < 0 ? fd : fd_walk(fd, compare_descriptor, s);
}

int ports_held(pid_t pid, const struct listening *sockets, size_t count, listening_fn *fn,
               void *userdata)
{
    struct held_search s = {.sockets = sockets, .count = count, .fn = fn, .userdata = userdata};
    return walk_descriptors(pid, &s);
}

/* -- Of one process --------------------------------------------------------------------------- */

/* What listens comes in portions; each is compared with all descriptors of the process. */
struct ports {
    pid_t pid;
    struct listening portion[PORTION];
    size_t portion_count;
    uint16_t *found;
    size_t count, max;
};

static int note_port(const struct listening *socket, void *userdata)
{
    struct ports *ports = userdata;
    for (size_t i = 0; i < ports->count; i++)
        if (ports->found[i] == socket->port)
            return 0;
    if (ports->count < ports->max)
        ports->found[ports->count++] = socket->port;
    return 0;
}

static void compare_portion(struct ports *ports)
{
    if (ports->portion_count > 0)
        ports_held(ports->pid, ports->portion, ports->portion_count, note_port, ports);
    ports->portion_count = 0;
}

static int add_to_portion(const struct listening *socket, void *userdata)
{
    struct ports *ports = userdata;
    ports->portion[ports->portion_count++] = *socket;
    if (ports->portion_count == PORTION)
        compare_portion(ports);
    return 0;
}

/* Most processes have no socket at all. */
size_t ports_of(pid_t pid, uint16_t *ret_ports, size_t max)
{
    struct held_search any = {.any = true};
    struct ports ports = {.pid = pid, .found = ret_ports, .max = max};
    if (walk_descriptors(pid, &any) <= 0)
        return 0;
    ports_listening(pid, 0, add_to_portion, &ports);
    compare_portion(&ports);
    return ports.count;
}
