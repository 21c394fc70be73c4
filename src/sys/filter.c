#include "sys/filter.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/defs.h"

#if defined(__x86_64__)
#define OUR_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OUR_ARCH AUDIT_ARCH_AARCH64
#else
#define OUR_ARCH 0
#endif
#define X32_BIT 0x40000000u
#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

#define LOAD(field)           BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define LOW_HALF(i)           LOAD(args[i]) /* little endian, which both are */
#define HIGH_HALF(i)          BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[i]) + 4)
#define ASK                   ANSWER(SECCOMP_RET_USER_NOTIF)
#define ANSWER(value)         BPF_STMT(BPF_RET | BPF_K, value)
#define REFUSE(error)         ANSWER(SECCOMP_RET_ERRNO | (error))
#define ALLOW                 ANSWER(SECCOMP_RET_ALLOW)
#define IF(value, then, else) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, then, else)
/* Two instructions: an answer for one value of what was loaded. */
#define WHERE(value, answer) IF(value, 0, 1), answer
/* A call whose first argument is a process: 0 = itself, and about any other somebody is asked. */
#define OF_PROCESS(call) IF(call, 0, 4), LOW_HALF(0), IF(0, 0, 1), ALLOW, ASK
/* The same of a kind of processes, and which; those of a whole user are also others'. */
#define OF_KIND(call, user) \
    IF(call, 0, 7), LOW_HALF(0), IF(user, 4, 0), LOW_HALF(1), IF(0, 0, 1), ALLOW, ASK, REFUSE(EPERM)
#define SOCKET_TYPE_MASK 0xf
#define IOPRIO_USER      3

/*
 * Datagrams between Unix sockets carry an address each, which nobody could look at without copying
 * every one of them: so there are none, and what is connected is looked at once. io_uring would go
 * around that look. clone3() puts a child into any cgroup that its caller may write to, though no
 * file there can be written; who is told that there is none takes clone(). What was opened by its
 * handle would go around every mount. Priority, processors and limits of a process are changed by
 * whoever has its user id, which the host's have.
 */
static const struct sock_filter filter_code[] = {
    LOAD(arch),
    IF(OUR_ARCH, 1, 0),
    REFUSE(ENOSYS),
    LOAD(nr),
#if defined(__x86_64__)
    BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1),
    REFUSE(ENOSYS),
#endif
    WHERE(SYS_connect, ASK),
    WHERE(SYS_io_uring_setup, REFUSE(ENOSYS)),
    WHERE(SYS_io_uring_enter, REFUSE(ENOSYS)),
    WHERE(SYS_io_uring_register, REFUSE(ENOSYS)),
    WHERE(SYS_clone3, REFUSE(ENOSYS)),
    WHERE(SYS_open_by_handle_at, REFUSE(EPERM)),
    WHERE(SYS_add_key, REFUSE(EPERM)),
    WHERE(SYS_request_key, REFUSE(EPERM)),
    WHERE(SYS_keyctl, REFUSE(EPERM)),
    WHERE(SYS_bpf, REFUSE(EPERM)),
    WHERE(SYS_perf_event_open, REFUSE(EPERM)),
    WHERE(SYS_userfaultfd, REFUSE(EPERM)),
    WHERE(SYS_kexec_load, REFUSE(EPERM)),
    OF_PROCESS(SYS_sched_setaffinity),
    OF_PROCESS(SYS_sched_setscheduler),
    OF_PROCESS(SYS_sched_setparam),
    OF_PROCESS(SYS_sched_setattr),
    OF_KIND(SYS_setpriority, PRIO_USER),
    OF_KIND(SYS_ioprio_set, IOPRIO_USER),
    IF(SYS_prlimit64, 0, 8),
    LOW_HALF(0),
    IF(0, 4, 0),
    LOW_HALF(2), /* the new limits: none are set where this is NULL */
    IF(0, 0, 3),
    HIGH_HALF(2),
    IF(0, 0, 1),
    ALLOW,
    ASK,
    IF(SYS_ioctl, 0, 5),
    LOW_HALF(1),
    IF(TIOCSTI, 1, 0),
    IF(TIOCLINUX, 0, 1),
    REFUSE(EPERM),
    ALLOW,
    IF(SYS_socketpair, 1, 0),
    IF(SYS_socket, 0, 13),
    LOW_HALF(0),
    IF(AF_UNIX, 5, 0),
    IF(AF_INET, 10, 0),
    IF(AF_INET6, 9, 0),
    IF(AF_NETLINK, 0, 7),
    LOW_HALF(2), /* of a netlink socket: its protocol */
    IF(NETLINK_ROUTE, 6, 4),
    LOW_HALF(1), /* of a Unix socket: its type */
    BPF_STMT(BPF_ALU | BPF_AND | BPF_K, SOCKET_TYPE_MASK),
    IF(SOCK_STREAM, 3, 0),
    IF(SOCK_SEQPACKET, 2, 0),
    REFUSE(EPROTONOSUPPORT),
    REFUSE(EAFNOSUPPORT),
    ALLOW,
};

int filter_program(const void **ret_program)
{
    *ret_program = filter_code;
    return OUR_ARCH ? (int)ARRAY_SIZE(filter_code) : -EOPNOTSUPP;
}

static int set_filter(unsigned long flags)
{
    struct sock_fprog program = {.len = ARRAY_SIZE(filter_code),
                                 .filter = (struct sock_filter *)filter_code};
    long fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
    return fd < 0 ? -errno : (int)fd;
}

/* A signal that ends nothing does not interrupt a connect that is looked at, where that can be
 * asked for. */
int filter_enter(void)
{
    if (!OUR_ARCH)
        return -EOPNOTSUPP;
    int fd = set_filter(SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV);
    return fd == -EINVAL ? set_filter(SECCOMP_FILTER_FLAG_NEW_LISTENER) : fd;
}
