/*
 * What the unit tests share: a directory that vanishes with the test program, children that do
 * not come back into cmocka, system calls that fail on demand, and skips that say why.
 */
#ifndef TESTS_UNIT_H
#define TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#define UNIT_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define UNIT_ARCH AUDIT_ARCH_AARCH64
#endif

#define UNIT __attribute__((unused)) static

#define SKIP(...)                        \
    do {                                 \
        printf("skipped: " __VA_ARGS__); \
        putchar('\n');                   \
        fflush(stdout);                  \
        skip();                          \
    } while (0)

/* -- A directory for the whole program --------------------------------------------------------- */

static char unit_place[PATH_MAX];

UNIT int unit_setup(void **state)
{
    const char *tmp = getenv("TMPDIR");
    (void)state;
    snprintf(unit_place, sizeof unit_place, "%s/nacre-unit.XXXXXX", tmp && *tmp ? tmp : "/tmp");
    return mkdtemp(unit_place) ? 0 : -1;
}

static int unit_unlink(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st;
    (void)kind;
    (void)ftw;
    return remove(path);
}

UNIT void unit_remove(const char *path)
{
    nftw(path, unit_unlink, 16, FTW_DEPTH | FTW_PHYS);
}

UNIT int unit_teardown(void **state)
{
    (void)state;
    unit_remove(unit_place);
    return 0;
}

/* A new directory in it, open; its path goes to ret_path if that is not NULL. */
UNIT int unit_dir(char ret_path[PATH_MAX])
{
    static int number;
    char path[PATH_MAX + 16];
    snprintf(path, sizeof path, "%s/%d", unit_place, ++number);
    assert_int_equal(mkdir(path, 0700), 0);
    if (ret_path)
        memcpy(ret_path, path, PATH_MAX);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

UNIT int unit_file(int dir, const char *name)
{
    int fd = openat(dir, name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    return fd;
}

/* -- Children ---------------------------------------------------------------------------------- */

/* For functions that run in a child: cmocka's own checks would go on with the test there. */
#define EXPECT(condition)                                                                     \
    do {                                                                                      \
        if (!(condition)) {                                                                   \
            fprintf(stderr, "%s:%d: %s (errno %d)\n", __FILE__, __LINE__, #condition, errno); \
            fflush(NULL);                                                                     \
            _exit(1);                                                                         \
        }                                                                                     \
    } while (0)

/* A crash in a child is its end; cmocka would go on with the next test there. */
UNIT void unit_leave_cmocka(void)
{
    static const int crashes[] = {SIGFPE, SIGILL, SIGSEGV, SIGBUS, SIGSYS};
    for (size_t i = 0; i < sizeof crashes / sizeof crashes[0]; i++)
        signal(crashes[i], SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}

UNIT pid_t unit_fork(void (*fn)(void *data), void *data)
{
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid > 0)
        return pid;
    unit_leave_cmocka();
    fn(data);
    fflush(NULL);
    _exit(0);
}

/* The status of a child, with a limit: a child that hangs is a failure and not a wait. */
UNIT int unit_join(pid_t pid)
{
    int status = 0;
    for (int ms = 0; ms < 30000; ms += 2) {
        if (waitpid(pid, &status, WNOHANG) == pid)
            return status;
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    fail_msg("a child did not end");
    return -1;
}

/* Runs fn in a child of its own; the test fails if an EXPECT() in it did. */
UNIT void unit_in_child(void (*fn)(void *data), void *data)
{
    assert_int_equal(unit_join(unit_fork(fn, data)), 0);
}

UNIT void unit_pause(int ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L}, NULL);
}

UNIT bool unit_is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

UNIT int unit_count_fds(void)
{
    int count = 0;
    for (int fd = 0; fd < 4096; fd++)
        count += unit_is_open(fd);
    return count;
}

/* Makes one system call fail in this process and its children; false if filters are refused. */
UNIT bool unit_deny(int call, int error)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, UNIT_ARCH, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {.len = sizeof code / sizeof code[0], .filter = code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == 0;
}

/* -- Numbers that look random and are the same each time --------------------------------------- */

struct unit_random {
    uint64_t state;
};

UNIT uint64_t unit_next(struct unit_random *random)
{
    uint64_t z = (random->state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

UNIT uint64_t unit_below(struct unit_random *random, uint64_t limit)
{
    return unit_next(random) % limit;
}

#endif
