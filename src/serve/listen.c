/* Where the server listens: an address of the loopback, both families of it if it is called
 * localhost, or a Unix socket. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/err.h"
#include "base/number.h"
#include "serve/house.h"
#include "sys/fd.h"

#define BACKLOG 512

static int add_listener(struct house *h, int fd, nacre_error *err)
{
    size_t i = 0;
    while (i < LISTENERS_MAX && h->listeners[i] >= 0)
        i++;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &h->listeners[i]};
    fd = fd_lift_consume(fd);
    if (fd < 0)
        return err_sys(err, NACRE_ELIMIT, -fd, "socket", "cannot open a socket");
    h->listeners[i] = fd;
    if (listen(fd, BACKLOG) < 0 || epoll_ctl(h->epoll, EPOLL_CTL_ADD, fd, &event) < 0)
        return err_sys(err, NACRE_EIO, errno, "listen", "cannot listen on %s", h->where);
    return 0;
}

static int bind_address(struct house *h, const struct sockaddr *address, socklen_t size,
                        nacre_error *err)
{
    int on = 1;
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_sys(err, NACRE_ELIMIT, errno, "socket", "cannot open a socket");
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (address->sa_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    if (bind(fd, address, size) < 0) {
        int e = errno;
        close(fd);
        return err_sys(err, NACRE_EIO, e, "bind",
                       e == EADDRINUSE ? "%s is in use; --listen takes another ADDRESS:PORT"
                                       : "cannot listen on %s",
                       h->where);
    }
    return add_listener(h, fd, err);
}

/* -- Addresses -------------------------------------------------------------------------------- */

struct place {
    char host[64];
    unsigned port;
    struct in_addr four;
    struct in6_addr six;
    bool has_four, has_six;
};

static bool read_place(const char *text, struct place *ret)
{
    uint64_t port;
    const char *colon = strrchr(text, ':');
    size_t size = colon ? (size_t)(colon - text) : 0;
    *ret = (struct place){0};
    if (size == 0 || size >= sizeof ret->host || !number_parse(colon + 1, &port) || port > 65535)
        return false;
    memcpy(ret->host, text, size);
    ret->port = (unsigned)port;
    bool brackets = ret->host[0] == '[' && ret->host[size - 1] == ']';
    if (brackets) {
        char inner[64];
        snprintf(inner, sizeof inner, "%.*s", (int)size - 2, ret->host + 1);
        ret->has_six = inet_pton(AF_INET6, inner, &ret->six) == 1;
    } else if (strcmp(ret->host, "localhost") == 0) {
        ret->has_four = ret->has_six = true;
        ret->four.s_addr = htonl(INADDR_LOOPBACK);
        ret->six = in6addr_loopback;
    } else {
        ret->has_four = inet_pton(AF_INET, ret->host, &ret->four) == 1;
    }
    return ret->has_four || ret->has_six;
}

static bool is_loopback(const struct place *p)
{
    return (!p->has_four || ntohl(p->four.s_addr) >> 24 == 127) &&
           (!p->has_six || IN6_IS_ADDR_LOOPBACK(&p->six));
}

static int bind_four(struct house *h, struct place *p, nacre_error *err)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)p->port), .sin_addr = p->four};
    int r = bind_address(h, (struct sockaddr *)&address, sizeof address, err);
    socklen_t size = sizeof address;
    if (r == 0 && p->port == 0 &&
        getsockname(h->listeners[0], (struct sockaddr *)&address, &size) == 0)
        p->port = ntohs(address.sin_port);
    return r;
}

static int bind_six(struct house *h, struct place *p, nacre_error *err)
{
    struct sockaddr_in6 address = {
        .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)p->port), .sin6_addr = p->six};
    int r = bind_address(h, (struct sockaddr *)&address, sizeof address, err);
    socklen_t size = sizeof address;
    if (r == 0 && p->port == 0 &&
        getsockname(h->listeners[0], (struct sockaddr *)&address, &size) == 0)
        p->port = ntohs(address.sin6_port);
    return r;
}

/* A browser may resolve localhost to either address; where the machine has no IPv6 one is enough.
 */
static int bind_place(struct house *h, struct place *p, nacre_error *err)
{
    int r = p->has_four ? bind_four(h, p, err) : 0;
    if (r == 0 && p->has_six) {
        r = bind_six(h, p, p->has_four ? NULL : err);
        r = p->has_four ? 0 : r;
    }
    return r;
}

static int note_names(struct house *h, const struct place *p, nacre_error *err)
{
    struct admit *a = &h->admit;
    bool fits = admit_add(a, p->host, p->port);
    if (is_loopback(p))
        fits = fits && admit_add(a, "localhost", p->port) && admit_add(a, "127.0.0.1", p->port) &&
               admit_add(a, "[::1]", p->port);
    for (const char *const *name = h->options->host; fits && name && *name; name++)
        fits = admit_add(a, *name, p->port);
    return fits ? 0 : err_set(err, NACRE_EINVAL, "there are too many names, or they are too long");
}

static int listen_at_address(struct house *h, const char *text, nacre_error *err)
{
    struct place place;
    const struct serve_options *o = h->options;
    if (!read_place(text, &place))
        return err_set(err, NACRE_EINVAL,
                       "\"%s\" is no ADDRESS:PORT, such as 127.0.0.1:8737, [::1]:8737 or "
                       "localhost:8737, nor the absolute path of a socket",
                       text);
    if (!is_loopback(&place) && !o->anywhere)
        return err_set(err, NACRE_EFORBIDDEN,
                       "%s is not of this machine alone: whoever reaches it and has the token runs "
                       "commands as you, and nothing is encrypted. Use an ssh tunnel, or say "
                       "--listen-anywhere",
                       text);
    if (!is_loopback(&place) && o->no_token)
        return err_set(err, NACRE_EFORBIDDEN, "--no-token is for addresses of the loopback");
    int r = bind_place(h, &place, err);
    snprintf(h->where, sizeof h->where, "http://%s:%u", place.host, place.port);
    return r < 0 ? r : note_names(h, &place, err);
}

/* -- Sockets ---------------------------------------------------------------------------------- */

/* One that nobody listens on any more may be taken away. */
static bool is_deserted(const struct sockaddr_un *address)
{
    struct stat st;
    if (lstat(address->sun_path, &st) < 0 || !S_ISSOCK(st.st_mode) || st.st_uid != geteuid())
        return false;
    int fd cleanup_close = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return fd >= 0 && connect(fd, (const struct sockaddr *)address, sizeof *address) < 0 &&
           errno == ECONNREFUSED;
}

static int listen_at_path(struct house *h, const char *path, nacre_error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path)
        return err_set(err, NACRE_EINVAL, "the path of a socket has at most %zu bytes",
                       sizeof address.sun_path - 1);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    if (is_deserted(&address))
        unlink(path);
    mode_t mask = umask(0177);
    int r = bind_address(h, (struct sockaddr *)&address, sizeof address, err);
    umask(mask);
    if (r == 0)
        snprintf(h->path, sizeof h->path, "%s", path);
    h->admit.any_name = h->admit.open = true;
    h->admit.hosts = h->options->host;
    return r;
}

int listen_open(struct house *h, nacre_error *err)
{
    const char *text = h->options->listen ? h->options->listen : SERVE_ADDRESS;
    snprintf(h->where, sizeof h->where, "%s", text);
    return *text == '/' ? listen_at_path(h, text, err) : listen_at_address(h, text, err);
}

void listen_close(struct house *h)
{
    for (size_t i = 0; i < LISTENERS_MAX; i++)
        close_fd(&h->listeners[i]);
    if (*h->path)
        unlink(h->path);
}
