#include "sys/sock_diag.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/defs.h"
#include "sys/fd.h"

#define ROOM     16384
#define ANSWER_S 1 /* the kernel answers at once; a socket that says nothing is none of ours */

int sock_diag_open(void)
{
    struct timeval moment = {.tv_sec = ANSWER_S};
    int fd = fd_lift_consume(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
    if (fd >= 0)
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &moment, sizeof moment);
    return fd;
}

struct diag_answer {
    sock_diag_fn *fn;
    void *userdata;
    bool dump; /* of many messages; else there is one */
    bool done;
    int result;
};

/* What of the answer came in one piece. */
static void take_messages(struct diag_answer *a, const char *piece, size_t size)
{
    const struct nlmsghdr *m = (const void *)piece;
    for (; !a->done && NLMSG_OK(m, size); m = NLMSG_NEXT(m, size)) {
        bool tells = m->nlmsg_type != NLMSG_DONE && m->nlmsg_type != NLMSG_ERROR;
        a->done = !tells || !a->dump;
        if (m->nlmsg_type == NLMSG_ERROR && a->result == 0)
            a->result = -EOPNOTSUPP;
        if (tells && a->result == 0)
            a->result = a->fn(m, a->userdata);
    }
}

int sock_diag_ask(int fd, const void *question, size_t size, unsigned flags, sock_diag_fn *fn,
                  void *userdata)
{
    _Alignas(struct nlmsghdr) char piece[ROOM];
    struct nlmsghdr head = {
        .nlmsg_len = (uint32_t)(sizeof head + size),
        .nlmsg_type = SOCK_DIAG_BY_FAMILY,
        .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags),
    };
    struct iovec parts[] = {{&head, sizeof head}, {(void *)question, size}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = ARRAY_SIZE(parts)};
    struct diag_answer answer = {
        .fn = fn, .userdata = userdata, .dump = (flags & NLM_F_DUMP) == NLM_F_DUMP};
    if (fd < 0 || sendmsg(fd, &message, MSG_NOSIGNAL) < 0)
        return fd < 0 ? -EBADF : -errno;
    while (!answer.done) {
        ssize_t n = RETRY(recv(fd, piece, sizeof piece, 0));
        if (n <= 0)
            return n < 0 ? -errno : -EPROTO;
        take_messages(&answer, piece, (size_t)n);
    }
    return answer.result;
}

/* -- Who listens ------------------------------------------------------------------------------ */

struct port_search {
    uint16_t port;
    listening_fn *fn;
    void *userdata;
};

static int take_listening(const struct nlmsghdr *message, void *userdata)
{
    const struct port_search *search = userdata;
    const struct inet_diag_msg *one = NLMSG_DATA(message);
    if (message->nlmsg_len < NLMSG_LENGTH(sizeof *one))
        return 0;
    struct listening socket = {
        .inode = one->idiag_inode, .port = ntohs(one->id.idiag_sport), .user = one->idiag_uid};
    if (socket.port == 0 || (search->port != 0 && search->port != socket.port))
        return 0;
    return search->fn(&socket, search->userdata);
}

int sock_diag_listening(int fd, uint16_t port, listening_fn *fn, void *userdata)
{
    static const uint8_t families[] = {AF_INET, AF_INET6};
    struct port_search search = {.port = port, .fn = fn, .userdata = userdata};
    int r = 0;
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(families); i++) {
        struct inet_diag_req_v2 question = {
            .sdiag_family = families[i],
            .sdiag_protocol = IPPROTO_TCP,
            .idiag_states = 1u << TCP_LISTEN,
        };
        r = sock_diag_ask(fd, &question, sizeof question, NLM_F_DUMP, take_listening, &search);
        /* A kernel without this version of IP. */
        if (r == -EOPNOTSUPP && i > 0)
            r = 0;
    }
    return r;
}

/* -- Pairs ------------------------------------------------------------------------------------ */

static int take_peer(const struct nlmsghdr *message, void *userdata)
{
    const struct unix_diag_msg *one = NLMSG_DATA(message);
    const struct rtattr *a = (const void *)(one + 1);
    if (message->nlmsg_len < NLMSG_LENGTH(sizeof *one))
        return 0;
    size_t left = message->nlmsg_len - NLMSG_LENGTH(sizeof *one);
    for (; RTA_OK(a, left); a = RTA_NEXT(a, left))
        if (a->rta_type == UNIX_DIAG_PEER && RTA_PAYLOAD(a) >= sizeof(uint32_t))
            *(unsigned long *)userdata = *(const uint32_t *)RTA_DATA(a);
    return 0;
}

unsigned long sock_diag_peer(unsigned long inode)
{
    struct unix_diag_req question = {
        .sdiag_family = AF_UNIX,
        .udiag_states = ~0u,
        .udiag_ino = (uint32_t)inode,
        .udiag_show = UDIAG_SHOW_PEER,
        .udiag_cookie = {~0u, ~0u}, /* whichever has the number */
    };
    unsigned long peer = 0;
    cleanup_close int fd = sock_diag_open();
    if (fd >= 0)
        sock_diag_ask(fd, &question, sizeof question, 0, take_peer, &peer);
    return peer;
}
