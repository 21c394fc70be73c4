#include "sys/filter.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/defs.h"
#include "sys/spawn.h"

/* The interface of 32 bit programs has numbers of its own: execve, execveat, and what a program
 * does once, at its beginning, before anything of its own: to say where its thread's memory is. */
#if defined(__x86_64__)
#define OUR_ARCH     AUDIT_ARCH_X86_64
#define OLD_ARCH     AUDIT_ARCH_I386
#define OLD_EXECVE   11
#define OLD_EXECVEAT 358
#define OLD_BEGUN    243 /* set_thread_area */
#define BEGUN        SYS_arch_prctl
#define BEGUN_SAYING 0x1002 /* ARCH_SET_FS */
#elif defined(__aarch64__)
#define OUR_ARCH     AUDIT_ARCH_AARCH64
#define OLD_ARCH     AUDIT_ARCH_ARM
#define OLD_EXECVE   11
#define OLD_EXECVEAT 387
#define OLD_BEGUN    0x0f0005 /* set_tls */
#define BEGUN        SYS_set_tid_address
#else
#define OUR_ARCH     0
#define OLD_ARCH     0
#define OLD_EXECVE   11
#define OLD_EXECVEAT 358
#define OLD_BEGUN    243
#define BEGUN        SYS_set_tid_address
#endif
#define X32_BIT 0x40000000u
#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif
#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS      SECCOMP_IOW(4, __u64)
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP (1UL << 0)
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
static const struct sock_filter fence_code[] = {
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

/* How the native interface executes. What is 0 in the first rows is put in by compose(). */
static const struct sock_filter exec_code[] = {
    LOAD(arch),
    IF(OUR_ARCH, 0, 0), /* else over all of this */
    LOAD(nr),
#if defined(__x86_64__)
    BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1),
    REFUSE(ENOSYS),
#endif
    WHERE(SYS_execveat, ASK),
#if defined(__x86_64__)
    IF(BEGUN, 0, 4),
    LOW_HALF(0),
    IF(BEGUN_SAYING, 0, 1),
    ASK,
    ALLOW,
#else
    WHERE(BEGUN, ASK),
#endif
    IF(SYS_execve, 0, 10),
    LOW_HALF(3),
    IF(0, 0, 7),
    HIGH_HALF(3),
    IF(0, 0, 5),
    LOW_HALF(4),
    IF(0, 0, 3),
    HIGH_HALF(4),
    IF(0, 0, 1),
    ALLOW,
    ASK,
};
#define SKIPS_AT 1
#define PASS_AT  (ARRAY_SIZE(exec_code) - 9) /* the first of four, every other instruction */

/* Behind it where there is no fence: the rest of the native interface, and the other one. */
static const struct sock_filter open_code[] = {
    ALLOW,
    IF(OLD_ARCH, 1, 0),
    REFUSE(ENOSYS),
    LOAD(nr),
    WHERE(OLD_EXECVE, ASK),
    WHERE(OLD_EXECVEAT, ASK),
    WHERE(OLD_BEGUN, ASK),
    ALLOW,
};
#define OPEN_OTHERS 1 /* where what is not native goes on */

_Static_assert(ARRAY_SIZE(exec_code) + ARRAY_SIZE(fence_code) <= FILTER_SIZE_MAX, "it fits");
_Static_assert(ARRAY_SIZE(exec_code) + OPEN_OTHERS < 250, "a jump reaches over it");

static int append_code(struct sock_filter *program, int length, const struct sock_filter *code,
                       size_t count)
{
    memcpy(program + length, code, count * sizeof *code);
    return length + (int)count;
}

int filter_program(const struct filter_wish *wish, struct sock_filter *ret_program)
{
    int length = 0;
    if (!OUR_ARCH)
        return -EOPNOTSUPP;
    if (wish->execs) {
        length = append_code(ret_program, 0, exec_code, ARRAY_SIZE(exec_code));
        ret_program[SKIPS_AT].jf =
            (uint8_t)(ARRAY_SIZE(exec_code) - SKIPS_AT - 1 + (wish->fence ? 0 : OPEN_OTHERS));
        for (size_t i = 0; i < (size_t)2 * FILTER_PASS_WORDS; i++)
            ret_program[PASS_AT + 2 * i].k = (uint32_t)(wish->pass[i / 2] >> (i % 2 * 32));
    }
    return wish->fence ? append_code(ret_program, length, fence_code, ARRAY_SIZE(fence_code))
                       : append_code(ret_program, length, open_code, ARRAY_SIZE(open_code));
}

static int set_filter(const struct filter_wish *wish, unsigned long flags)
{
    struct sock_filter code[FILTER_SIZE_MAX];
    int length = filter_program(wish, code);
    struct sock_fprog program = {.len = (unsigned short)length, .filter = code};
    if (length < 0)
        return length;
    long fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
    return fd < 0 ? -errno : (int)fd;
}

/* A signal that ends nothing does not interrupt a call that is looked at, where that can be asked
 * for. */
static int enter_listening(const struct filter_wish *wish)
{
    int fd =
        set_filter(wish, SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV);
    return fd == -EINVAL ? set_filter(wish, SECCOMP_FILTER_FLAG_NEW_LISTENER) : fd;
}

int filter_enter(const struct filter_wish *wish)
{
    int fd = enter_listening(wish);
    if (fd != -EACCES)
        return fd;
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : enter_listening(wish);
}

NO_SANITIZE static int try_to_enter(void *data)
{
    return filter_enter(data);
}

int filter_try(void)
{
    struct filter_wish wish = {.execs = true};
    int fd = spawn_try(try_to_enter, &wish);
    return MIN(fd, 0);
}

void filter_take_turns(int fd)
{
    (void)ioctl(fd, SECCOMP_IOCTL_NOTIF_SET_FLAGS, SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP);
}

enum filter_call filter_which(uint32_t arch, int number, size_t *ret_pointer)
{
    bool native = arch == OUR_ARCH;
    *ret_pointer = native ? 8 : 4;
    if (number == (native ? SYS_execve : OLD_EXECVE))
        return FILTERED_EXECVE;
    if (number == (native ? SYS_execveat : OLD_EXECVEAT))
        return FILTERED_EXECVEAT;
    return number == (native ? BEGUN : OLD_BEGUN) ? FILTERED_BEGUN : FILTERED_OTHER;
}

int filter_pass_execve(const struct filter_wish *wish, const char *path, char *const *argv,
                       char *const *env)
{
    syscall(SYS_execve, path, argv, env, wish->pass[0], wish->pass[1]);
    return -errno;
}
