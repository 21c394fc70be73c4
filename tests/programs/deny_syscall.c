/*
 * deny-syscall NAME[=ERRNO][,NAME[=ERRNO]]... -- COMMAND [ARGUMENT]...
 *
 * Runs COMMAND, and all it starts, with some system calls failing: ENOSYS unless another error
 * is given by number or as EPERM, EACCES, ENOSYS, EINVAL, EMFILE or ENOMEM. So the fallbacks that
 * no current kernel would take are taken. With KILL whoever makes the call is killed.
 *
 * The name cgroup is no system call: the cgroup trees are mounted read-only in a mount namespace
 * of the command's own, which needs root.
 *
 * Exit code 125 if the filter cannot be set, 126 or 127 if COMMAND cannot be run.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#elif defined(__riscv) && __riscv_xlen == 64
#define ARCH AUDIT_ARCH_RISCV64
#else
#error "say here which architecture this is"
#endif

#define NAMES_MAX 16
#define KILL      0xfff /* beyond every errno */

struct name {
    const char *name;
    int number;
};

static const struct name calls[] = {
    {"bind", SYS_bind},
    {"capset", SYS_capset},
#ifdef SYS_chmod
    {"chmod", SYS_chmod},
    {"dup2", SYS_dup2},
    {"mkdir", SYS_mkdir},
    {"symlink", SYS_symlink},
#endif
    {"clone3", SYS_clone3},
    {"close_range", SYS_close_range},
    {"dup3", SYS_dup3},
    {"execveat", SYS_execveat},
    {"fcntl", SYS_fcntl},
    {"flock", SYS_flock},
    {"fsconfig", SYS_fsconfig},
    {"fsmount", SYS_fsmount},
    {"fsopen", SYS_fsopen},
    {"fstatfs", SYS_fstatfs},
    {"getsockname", SYS_getsockname},
    {"getsockopt", SYS_getsockopt},
    {"ioctl", SYS_ioctl},
    {"landlock_add_rule", SYS_landlock_add_rule},
    {"landlock_create_ruleset", SYS_landlock_create_ruleset},
    {"landlock_restrict_self", SYS_landlock_restrict_self},
    {"listen", SYS_listen},
    {"memfd_create", SYS_memfd_create},
    {"mkdirat", SYS_mkdirat},
    {"mount_setattr", SYS_mount_setattr},
    {"move_mount", SYS_move_mount},
    {"open_tree", SYS_open_tree},
    {"openat2", SYS_openat2},
    {"pidfd_getfd", SYS_pidfd_getfd},
    {"pidfd_open", SYS_pidfd_open},
    {"pidfd_send_signal", SYS_pidfd_send_signal},
    {"prctl", SYS_prctl},
    {"process_vm_readv", SYS_process_vm_readv},
    {"ptrace", SYS_ptrace},
    {"seccomp", SYS_seccomp},
    {"sendfile", SYS_sendfile},
    {"setns", SYS_setns},
    {"setsid", SYS_setsid},
    {"setsockopt", SYS_setsockopt},
    {"socket", SYS_socket},
    {"socketpair", SYS_socketpair},
    {"splice", SYS_splice},
    {"statx", SYS_statx},
    {"timerfd_create", SYS_timerfd_create},
    {"timerfd_settime", SYS_timerfd_settime},
    {"unshare", SYS_unshare},
    {"waitid", SYS_waitid},
};

static const struct name errors[] = {
    {"EPERM", EPERM},   {"EACCES", EACCES}, {"ENOSYS", ENOSYS}, {"EINVAL", EINVAL},
    {"EMFILE", EMFILE}, {"ENOMEM", ENOMEM}, {"KILL", KILL},
};

static int look_up(const struct name *table, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(table[i].name, name) == 0)
            return table[i].number;
    }
    return -1;
}

static int fail(const char *what, const char *why)
{
    fprintf(stderr, "deny-syscall: %s: %s\n", what, why);
    return 125;
}

/* Every cgroup mount becomes read-only, for this process and its descendants. */
static int deny_cgroup(void)
{
    FILE *mounts = fopen("/proc/self/mounts", "re");
    char line[4096], point[1024], type[64];

    if (!mounts || unshare(CLONE_NEWNS) < 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return fail("cgroup", strerror(errno));
    while (fgets(line, sizeof(line), mounts)) {
        if (sscanf(line, "%*s %1023s %63s", point, type) == 2 && strncmp(type, "cgroup", 6) == 0 &&
            mount(NULL, point, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL) < 0)
            return fail(point, strerror(errno));
    }
    fclose(mounts);
    return 0;
}

static int set_filter(const struct name *denied, size_t count)
{
    struct sock_filter code[4 + 2 * NAMES_MAX + 1] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    };
    struct sock_fprog filter = {4, code};

    for (size_t i = 0; i < count; i++) {
        unsigned call = (unsigned)look_up(calls, sizeof(calls) / sizeof(calls[0]), denied[i].name);
        unsigned answer = denied[i].number == KILL ? SECCOMP_RET_KILL_PROCESS
                                                   : SECCOMP_RET_ERRNO | (unsigned)denied[i].number;
        code[filter.len++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1);
        code[filter.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, answer);
    }
    code[filter.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) < 0)
        return fail("seccomp", strerror(errno));
    return 0;
}

int main(int argc, char **argv)
{
    struct name denied[NAMES_MAX];
    size_t count = 0;

    if (argc < 4 || strcmp(argv[2], "--") != 0)
        return fail("usage", "deny-syscall NAME[=ERRNO][,NAME...] -- COMMAND [ARGUMENT]...");
    for (char *save, *name = strtok_r(argv[1], ",", &save); name;
         name = strtok_r(NULL, ",", &save)) {
        char *error = strchr(name, '=');
        if (strcmp(name, "cgroup") == 0) {
            if (deny_cgroup() != 0)
                return 125;
            continue;
        }
        if (count == NAMES_MAX)
            return fail(name, "too many names");
        denied[count] = (struct name){name, ENOSYS};
        if (error) {
            *error++ = 0;
            int number = look_up(errors, sizeof(errors) / sizeof(errors[0]), error);
            denied[count].number = number >= 0 ? number : atoi(error);
        }
        if (look_up(calls, sizeof(calls) / sizeof(calls[0]), name) < 0)
            return fail(name, "not a name I know");
        count++;
    }
    if (count > 0 && set_filter(denied, count) != 0)
        return 125;
    execvp(argv[3], argv + 3);
    fprintf(stderr, "deny-syscall: %s: %s\n", argv[3], strerror(errno));
    return errno == ENOENT ? 127 : 126;
}
