/* The filter of commands, interpreted: what becomes of each call, by its arguments. */
#include "unit.h"

#include <linux/netlink.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/defs.h"
#include "sys/filter.h"

#define ASK       SECCOMP_RET_USER_NOTIF
#define PASS      SECCOMP_RET_ALLOW
#define NOT(what) (SECCOMP_RET_ERRNO | (what))

/* Only what such a program may consist of: anything else fails the test. */
static uint32_t interpret(const struct filter_wish *wish, const struct seccomp_data *data)
{
    struct sock_filter code[FILTER_SIZE_MAX];
    int length = filter_program(wish, code);
    uint32_t a = 0;
    for (int at = 0; at < length; at++) {
        const struct sock_filter *op = &code[at];
        switch (op->code) {
        case BPF_LD | BPF_W | BPF_ABS:
            assert_true(op->k + 4 <= sizeof *data && op->k % 4 == 0);
            memcpy(&a, (const char *)data + op->k, 4);
            break;
        case BPF_ALU | BPF_AND | BPF_K:
            a &= op->k;
            break;
        case BPF_JMP | BPF_JEQ | BPF_K:
            at += a == op->k ? op->jt : op->jf;
            break;
        case BPF_JMP | BPF_JGE | BPF_K:
            at += a >= op->k ? op->jt : op->jf;
            break;
        case BPF_RET | BPF_K:
            return op->k;
        default:
            fail_msg("instruction %d is %#x", at, op->code);
        }
    }
    fail_msg("it runs over its end");
    return 0;
}

#define HIGH     (1ULL << 32)

#define PASS_ONE 0x1122334455667788ULL
#define PASS_TWO 0x99aabbccddeeff00ULL

static const struct filter_wish fenced = {.fence = true};
static const struct filter_wish gated = {.execs = true, .pass = {PASS_ONE, PASS_TWO}};
static const struct filter_wish both = {.fence = true, .execs = true, .pass = {PASS_ONE, PASS_TWO}};

static const struct call {
    int nr;
    uint64_t args[3];
    uint32_t answer;
} calls[] = {
    {SYS_read, {0}, PASS},
    {SYS_openat, {0}, PASS},
    {SYS_execve, {0}, PASS},
    {SYS_ptrace, {0}, PASS},
    {SYS_clone3, {0}, NOT(ENOSYS)},
    {SYS_unshare, {CLONE_NEWUSER}, PASS},
    {SYS_connect, {3}, ASK},
    {SYS_io_uring_setup, {8}, NOT(ENOSYS)},
    {SYS_io_uring_enter, {8}, NOT(ENOSYS)},
    {SYS_io_uring_register, {8}, NOT(ENOSYS)},
    {SYS_open_by_handle_at, {0}, NOT(EPERM)},
    {SYS_add_key, {0}, NOT(EPERM)},
    {SYS_request_key, {0}, NOT(EPERM)},
    {SYS_keyctl, {0}, NOT(EPERM)},
    {SYS_bpf, {0}, NOT(EPERM)},
    {SYS_perf_event_open, {0}, NOT(EPERM)},
    {SYS_userfaultfd, {0}, NOT(EPERM)},
    {SYS_kexec_load, {0}, NOT(EPERM)},
    {SYS_ioctl, {0, TCGETS}, PASS},
    {SYS_ioctl, {0, TIOCSTI}, NOT(EPERM)},
    {SYS_ioctl, {0, TIOCSTI | HIGH}, NOT(EPERM)},
    {SYS_ioctl, {0, TIOCLINUX}, NOT(EPERM)},
    {SYS_socket, {AF_UNIX, SOCK_STREAM}, PASS},
    {SYS_socket, {AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK}, PASS},
    {SYS_socket, {AF_UNIX, SOCK_SEQPACKET}, PASS},
    {SYS_socket, {AF_UNIX, SOCK_DGRAM}, NOT(EPROTONOSUPPORT)},
    {SYS_socket, {AF_UNIX | HIGH, SOCK_DGRAM | SOCK_CLOEXEC}, NOT(EPROTONOSUPPORT)},
    {SYS_socket, {AF_UNIX, SOCK_RAW}, NOT(EPROTONOSUPPORT)},
    {SYS_socketpair, {AF_UNIX, SOCK_STREAM}, PASS},
    {SYS_socketpair, {AF_UNIX, SOCK_DGRAM}, NOT(EPROTONOSUPPORT)},
    {SYS_socket, {AF_INET, SOCK_STREAM}, PASS},
    {SYS_socket, {AF_INET6, SOCK_DGRAM}, PASS},
    {SYS_socket, {AF_NETLINK, SOCK_RAW, NETLINK_ROUTE}, PASS},
    {SYS_socket, {AF_NETLINK, SOCK_RAW, NETLINK_AUDIT}, NOT(EPROTONOSUPPORT)},
    {SYS_socket, {AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG}, NOT(EPROTONOSUPPORT)},
    {SYS_socket, {AF_PACKET, SOCK_RAW}, NOT(EAFNOSUPPORT)},
    {SYS_socket, {AF_VSOCK, SOCK_STREAM}, NOT(EAFNOSUPPORT)},
    {SYS_socket, {AF_ALG, SOCK_SEQPACKET}, NOT(EAFNOSUPPORT)},
    {SYS_sched_setaffinity, {0}, PASS},
    {SYS_sched_setaffinity, {HIGH}, PASS},
    {SYS_sched_setaffinity, {4711}, ASK},
    {SYS_sched_setscheduler, {4711}, ASK},
    {SYS_sched_setparam, {4711}, ASK},
    {SYS_sched_setattr, {4711}, ASK},
    {SYS_setpriority, {PRIO_PROCESS, 0}, PASS},
    {SYS_setpriority, {PRIO_PROCESS, 4711}, ASK},
    {SYS_setpriority, {PRIO_PGRP, 0}, PASS},
    {SYS_setpriority, {PRIO_PGRP, 4711}, ASK},
    {SYS_setpriority, {PRIO_USER, 0}, NOT(EPERM)},
    {SYS_setpriority, {PRIO_USER, 1000}, NOT(EPERM)},
    {SYS_ioprio_set, {1, 0}, PASS},
    {SYS_ioprio_set, {1, 4711}, ASK},
    {SYS_ioprio_set, {3, 0}, NOT(EPERM)},
    {SYS_prlimit64, {0, RLIMIT_NOFILE, 4096}, PASS},
    {SYS_prlimit64, {4711, RLIMIT_NOFILE, 0}, PASS},
    {SYS_prlimit64, {4711, RLIMIT_NOFILE, 4096}, ASK},
    {SYS_prlimit64, {4711, RLIMIT_NOFILE, HIGH}, ASK},
};

static void each_call(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
        struct seccomp_data data = {.nr = calls[i].nr, .arch = UNIT_ARCH};
        memcpy(data.args, calls[i].args, sizeof calls[i].args);
        uint32_t answer = interpret(&fenced, &data);
        bool executes = calls[i].nr == SYS_execve;
        if (!executes)
            assert_int_equal(interpret(&both, &data), answer);
        assert_int_equal(interpret(&gated, &data), executes ? ASK : PASS);
        if (answer != calls[i].answer)
            fail_msg("row %zu, call %d: %#x, wanted %#x", i, calls[i].nr, answer, calls[i].answer);
    }
}

/* What executes waits, unless it has the words that nobody else knows, in their places. */
static void what_executes(void **state)
{
    (void)state;
    static const struct {
        int nr;
        uint64_t args[6];
        uint32_t answer;
    } rows[] = {
        {SYS_execve, {1, 2, 3, 0, 0, 0}, ASK},
        {SYS_execve, {1, 2, 3, PASS_ONE, PASS_TWO, 0}, PASS},
        {SYS_execve, {1, 2, 3, PASS_ONE, PASS_TWO ^ 1, 0}, ASK},
        {SYS_execve, {1, 2, 3, PASS_ONE ^ 1, PASS_TWO, 0}, ASK},
        {SYS_execve, {1, 2, 3, PASS_ONE ^ HIGH, PASS_TWO, 0}, ASK},
        {SYS_execve, {1, 2, 3, PASS_ONE, PASS_TWO ^ HIGH, 0}, ASK},
        {SYS_execve, {1, 2, 3, PASS_TWO, PASS_ONE, 0}, ASK},
        {SYS_execveat, {1, 2, 3, PASS_ONE, PASS_TWO, 0}, ASK},
        {SYS_openat, {1, 2, 3, 0, 0, 0}, PASS},
#if defined(__x86_64__)
        {SYS_arch_prctl, {0x1002}, ASK},
        {SYS_arch_prctl, {0x1001}, PASS},
        {SYS_set_tid_address, {1}, PASS},
#else
        {SYS_set_tid_address, {1}, ASK},
#endif
    };
    const struct filter_wish *wishes[] = {&gated, &both};
    for (size_t i = 0; i < ARRAY_SIZE(rows) * 2; i++) {
        size_t row = i / 2;
        struct seccomp_data data = {.nr = rows[row].nr, .arch = UNIT_ARCH};
        memcpy(data.args, rows[row].args, sizeof data.args);
        uint32_t answer = interpret(wishes[i % 2], &data);
        if (answer != rows[row].answer)
            fail_msg("row %zu: %#x, wanted %#x", row, answer, rows[row].answer);
    }
}

/* Calls of other interfaces have the numbers of others. */
static void no_other_interface(void **state)
{
    (void)state;
    const struct filter_wish *wishes[] = {&fenced, &both};
    for (int i = 0; i < 2 * 600; i++) {
        struct seccomp_data data = {.nr = i / 2, .arch = AUDIT_ARCH_I386};
        const struct filter_wish *wish = wishes[i % 2];
        assert_int_equal(interpret(wish, &data), NOT(ENOSYS));
        data.arch = AUDIT_ARCH_ARM;
        assert_int_equal(interpret(wish, &data), NOT(ENOSYS));
#if defined(__x86_64__)
        data = (struct seccomp_data){.nr = data.nr | 0x40000000, .arch = UNIT_ARCH};
        assert_int_equal(interpret(wish, &data), NOT(ENOSYS));
#endif
    }
}

#if defined(__x86_64__)
#define OLD_ARCH AUDIT_ARCH_I386
#define NO_ARCH  AUDIT_ARCH_ARM
static const int old_calls[] = {11, 358, 243};
#else
#define OLD_ARCH AUDIT_ARCH_ARM
#define NO_ARCH  AUDIT_ARCH_I386
static const int old_calls[] = {11, 387, 0x0f0005};
#endif

/* Without a fence 32 bit programs run, and what they execute waits like all else; there is no third
 * interface. */
static void the_old_interface(void **state)
{
    (void)state;
    for (int nr = 0; nr < 600; nr++) {
        struct seccomp_data data = {.nr = nr, .arch = OLD_ARCH};
        bool waits = nr == old_calls[0] || nr == old_calls[1] || nr == old_calls[2];
        assert_int_equal(interpret(&gated, &data), waits ? ASK : PASS);
        data.arch = NO_ARCH;
        assert_int_equal(interpret(&gated, &data), NOT(ENOSYS));
        size_t pointer;
        enum filter_call which = filter_which(OLD_ARCH, nr, &pointer);
        assert_int_equal(pointer, 4);
        assert_int_equal(which, nr == old_calls[0]   ? FILTERED_EXECVE
                                : nr == old_calls[1] ? FILTERED_EXECVEAT
                                : nr == old_calls[2] ? FILTERED_BEGUN
                                                     : FILTERED_OTHER);
#if defined(__x86_64__)
        data = (struct seccomp_data){.nr = nr | 0x40000000, .arch = UNIT_ARCH};
        assert_int_equal(interpret(&gated, &data), NOT(ENOSYS));
#endif
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_call),
        cmocka_unit_test(what_executes),
        cmocka_unit_test(no_other_interface),
        cmocka_unit_test(the_old_interface),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
