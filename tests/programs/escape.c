/*
 * escape ATTEMPT [ARGUMENT]...
 *
 * Makes one attempt to do outside of a fence what the fence forbids. Whether it came through is not
 * for this program to say: whoever runs it looks. What it reads it prints. The exit code says only
 * that an attempt of this name exists.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/io_uring.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#ifndef RENAME_WHITEOUT
#define RENAME_WHITEOUT (1 << 2)
#endif
#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif
#define TREE_CLONE     1u
#define TREE_RECURSIVE 0x8000u
#define PUT_FROM_EMPTY 4u

struct attributes {
    uint64_t set, clear, propagation, user_ns;
};

static void say(const char *what, long result)
{
    printf("%s: %ld %s\n", what, result, result < 0 ? strerror(errno) : "");
}

static void show(int fd)
{
    char text[4096];
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text);
    if (n > 0)
        fwrite(text, 1, (size_t)n, stdout);
}

static void scribble(int dir, const char *path)
{
    int fd = openat(dir, path, O_WRONLY | O_APPEND | O_CREAT, 0644);
    say("open", fd);
    if (fd >= 0)
        say("write", write(fd, "escaped", 7));
    show(openat(dir, path, O_RDONLY));
}

/* -- Files ------------------------------------------------------------------------------------ */

static void try_truncate(char **a)
{
    say("truncate", truncate(a[0], 1));
    say("read and truncate", open(a[0], O_RDONLY | O_TRUNC));
    say("neither", open(a[0], 3 | O_TRUNC));
    say("write and truncate", open(a[0], O_WRONLY | O_TRUNC));
}

static void try_tmpfile(char **a)
{
    char link[32];
    char *slash = strrchr(a[0], '/');
    *slash = 0;
    int fd = open(a[0], O_TMPFILE | O_RDWR, 0600);
    if (fd < 0)
        fd = open(".", O_TMPFILE | O_RDWR, 0600);
    *slash = '/';
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    say("linkat", linkat(AT_FDCWD, link, AT_FDCWD, a[0], AT_SYMLINK_FOLLOW));
}

static void try_handle(char **a)
{
    struct {
        struct file_handle head;
        char room[MAX_HANDLE_SZ];
    } handle = {.head.handle_bytes = MAX_HANDLE_SZ};
    int mount_id, at = open("/", O_RDONLY);
    say("name", name_to_handle_at(AT_FDCWD, a[0], &handle.head, &mount_id, 0));
    int fd = open_by_handle_at(open(a[0], O_PATH | O_NOFOLLOW), &handle.head, O_RDWR);
    if (fd < 0)
        fd = open_by_handle_at(at, &handle.head, O_RDWR);
    say("open", fd);
    show(fd);
    say("write", write(fd, "escaped", 7));
}

static void try_metadata(char **a)
{
    int fd = open(a[0], O_RDONLY), flags = 0;
    struct timespec times[2] = {{1, 0}, {1, 0}};
    say("fchmod", fchmod(fd, 0777));
    say("fchown", fchown(fd, 12, 12));
    say("futimens", futimens(fd, times));
    say("fsetxattr", fsetxattr(fd, "user.escaped", "x", 1, 0));
    say("getflags", ioctl(fd, FS_IOC_GETFLAGS, &flags));
    flags |= FS_NODUMP_FL;
    say("setflags", ioctl(fd, FS_IOC_SETFLAGS, &flags));
    say("fallocate", fallocate(fd, 0, 0, 65536));
    say("setxattr", setxattr(a[0], "user.escaped", "x", 1, 0));
    say("utimensat", utimensat(AT_FDCWD, a[0], times, 0));
    fd = open(a[0], O_PATH);
    say("fchmodat2", syscall(452, fd, "", 0777, AT_EMPTY_PATH));
    say("fchownat", fchownat(fd, "", 12, 12, AT_EMPTY_PATH));
}

static void try_mmap(char **a)
{
    int fd = open(a[0], O_RDONLY);
    char *page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    int r = page == MAP_FAILED ? -1 : mprotect(page, 4096, PROT_READ | PROT_WRITE);
    say("mprotect", r);
    if (r == 0)
        page[0] = 'E';
}

static void try_rename(char **a)
{
    const char *kind = a[0];
    unsigned flags = strcmp(kind, "exchange") == 0   ? RENAME_EXCHANGE
                     : strcmp(kind, "whiteout") == 0 ? RENAME_WHITEOUT
                                                     : 0;
    say(kind, syscall(SYS_renameat2, AT_FDCWD, a[1], AT_FDCWD, a[2], flags));
}

/* -- Mounts ----------------------------------------------------------------------------------- */

static void poke(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY);
    say(path, fd < 0 ? -1 : write(fd, text, strlen(text)));
    close(fd);
}

/* A user namespace in which one is root, and all that comes with it. */
static void nest(void)
{
    char map[64];
    unsigned uid = geteuid(), gid = getegid();
    say("unshare", unshare(CLONE_NEWUSER | CLONE_NEWNS));
    poke("/proc/self/setgroups", "deny");
    snprintf(map, sizeof map, "0 %u 1", uid);
    poke("/proc/self/uid_map", map);
    snprintf(map, sizeof map, "0 %u 1", gid);
    poke("/proc/self/gid_map", map);
}

static void try_mounts(char **a)
{
    struct attributes writable = {.clear = 1};
    if (strcmp(a[0], "nested") == 0)
        nest();
    for (int i = 2; a[i]; i++) {
        say("remount", mount(NULL, a[i], NULL, MS_REMOUNT | MS_BIND, NULL));
        say("setattr", syscall(SYS_mount_setattr, AT_FDCWD, a[i], 0, &writable, sizeof writable));
        say("umount", umount2(a[i], MNT_DETACH));
    }
    say("bind", mount("/", ".", NULL, MS_BIND | MS_REC, NULL));
    say("pivot", syscall(SYS_pivot_root, ".", "."));
    scribble(AT_FDCWD, a[1]);
}

static void try_tree(char **a)
{
    struct attributes writable = {.clear = 1};
    if (strcmp(a[0], "nested") == 0)
        nest();
    char *slash = strrchr(a[1], '/');
    *slash = 0;
    int tree = (int)syscall(SYS_open_tree, AT_FDCWD, a[1], TREE_CLONE);
    if (tree < 0)
        tree = (int)syscall(SYS_open_tree, AT_FDCWD, a[1], TREE_CLONE | TREE_RECURSIVE);
    say("open_tree", tree);
    say("setattr", syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &writable, sizeof writable));
    scribble(tree, slash + 1);
    say("move", syscall(SYS_move_mount, tree, "", AT_FDCWD, ".", PUT_FROM_EMPTY));
    scribble(AT_FDCWD, slash + 1);
}

/* A file system of one's own over what one may not change. */
static void try_overlay(char **a)
{
    nest();
    (void)(mkdir("upper", 0755) + mkdir("lowest", 0755));
    int fs = (int)syscall(SYS_fsopen, "overlay", 0);
    say("fsopen", fs);
    syscall(SYS_fsconfig, fs, 1, "lowerdir", "lowest", 0);
    syscall(SYS_fsconfig, fs, 1, "upperdir", a[0], 0);
    syscall(SYS_fsconfig, fs, 1, "workdir", a[0], 0);
    say("create", syscall(SYS_fsconfig, fs, 6, NULL, NULL, 0));
    int at = (int)syscall(SYS_fsmount, fs, 0, 0);
    scribble(at, "file");
}

/* What is hidden by a mount over it, as a lower layer without that mount. */
static void try_lower(char **a)
{
    nest();
    int fs = (int)syscall(SYS_fsopen, "overlay", 0);
    syscall(SYS_fsconfig, fs, 1, "lowerdir", a[0], 0);
    say("create", syscall(SYS_fsconfig, fs, 6, NULL, NULL, 0));
    int at = (int)syscall(SYS_fsmount, fs, 0, 0);
    say("fsmount", at);
    show(openat(at, a[1], O_RDONLY));
    (void)mkdir("top", 0755);
    say("move", syscall(SYS_move_mount, at, "", AT_FDCWD, "top", PUT_FROM_EMPTY));
}

/* A file system of the kernel's own, once more. */
static void try_fresh(char **a)
{
    nest();
    say("unshare", unshare(CLONE_NEWNET | CLONE_NEWCGROUP));
    int fs = (int)syscall(SYS_fsopen, a[0], 0);
    say("create", syscall(SYS_fsconfig, fs, 6, NULL, NULL, 0));
    int at = (int)syscall(SYS_fsmount, fs, 0, 0);
    say("fsmount", at);
    say("mkdirat", mkdirat(at, "nacre-escaped", 0755));
    scribble(at, a[1]);
}

/* A fresh /proc, whose settings are the whole machine's. */
static void try_fresh_proc(char **a)
{
    (void)a;
    nest();
    say("unshare", unshare(CLONE_NEWPID));
    if (fork() == 0) {
        int fs = (int)syscall(SYS_fsopen, "proc", 0);
        say("create", syscall(SYS_fsconfig, fs, 6, NULL, NULL, 0));
        int at = (int)syscall(SYS_fsmount, fs, 0, 0);
        say("fsmount", at);
        int fd = openat(at, "sys/kernel/core_pattern", O_WRONLY);
        say("core_pattern", fd < 0 ? -1 : write(fd, "escaped", 7));
        exit(0);
    }
    wait(NULL);
}

static void try_chroot(char **a)
{
    nest();
    int top = open(".", O_RDONLY);
    (void)mkdir("jail", 0755);
    say("chroot", chroot("jail"));
    (void)!fchdir(top);
    for (int i = 0; i < 64; i++)
        (void)!chdir("..");
    say("chroot", chroot("."));
    scribble(AT_FDCWD, a[0]);
}

static void try_setns(char **a)
{
    static const char *const names[] = {"user", "mnt", "net", "ipc", "pid", "cgroup"};
    char path[64];
    for (int i = 0; i < 6; i++) {
        snprintf(path, sizeof path, "/proc/%s/ns/%s", a[0], names[i]);
        say(path, setns(open(path, O_RDONLY), 0));
    }
    int pidfd = (int)syscall(SYS_pidfd_open, atoi(a[0]), 0);
    say("pidfd", setns(pidfd, CLONE_NEWNS | CLONE_NEWNET));
    say("pidfd", setns(pidfd, CLONE_NEWUSER | CLONE_NEWNS));
    scribble(AT_FDCWD, a[1]);
}

static void try_mknod(char **a)
{
    struct stat st;
    dev_t device = stat("/", &st) == 0 ? st.st_dev : makedev(7, 0);
    say("mknod", mknod(a[0], S_IFBLK | 0600, device));
    nest();
    say("mknod", mknod(a[0], S_IFBLK | 0600, device));
    show(open(a[0], O_RDONLY));
}

/* -- Processes -------------------------------------------------------------------------------- */

static void try_memory(char **a)
{
    pid_t pid = atoi(a[0]);
    void *there = (void *)strtoul(a[1], NULL, 16);
    char word[64] = {0}, path[64];
    struct iovec ours = {word, 32}, theirs = {there, 32};
    say("readv", process_vm_readv(pid, &ours, 1, &theirs, 1, 0));
    printf("%s\n", word);
    strcpy(word, "escaped");
    say("writev", process_vm_writev(pid, &ours, 1, &theirs, 1, 0));
    snprintf(path, sizeof path, "/proc/%d/mem", pid);
    int fd = open(path, O_RDWR);
    say("mem", fd);
    say("pwrite", pwrite(fd, word, 8, (off_t)(uintptr_t)there));
    say("seize", ptrace(PTRACE_SEIZE, pid, 0, 0));
    say("attach", ptrace(PTRACE_ATTACH, pid, 0, 0));
}

static void try_steal(char **a)
{
    int pidfd = (int)syscall(SYS_pidfd_open, atoi(a[0]), 0);
    for (int i = 0; i < 16; i++) {
        int fd = (int)syscall(SYS_pidfd_getfd, pidfd, i, 0);
        if (fd >= 0 && lseek(fd, 0, SEEK_SET) == 0)
            show(fd);
    }
}

static void try_signal(char **a)
{
    pid_t pid = atoi(a[0]);
    siginfo_t info = {.si_code = SI_QUEUE};
    struct f_owner_ex owner = {F_OWNER_PID, pid};
    int pair[2];
    say("kill", kill(pid, SIGUSR1));
    say("group", kill(-getpgid(pid), SIGUSR1));
    say("tgkill", syscall(SYS_tgkill, pid, pid, SIGUSR1));
    say("queue", syscall(SYS_rt_sigqueueinfo, pid, SIGUSR1, &info));
    say("pidfd", syscall(SYS_pidfd_send_signal, syscall(SYS_pidfd_open, pid, 0), SIGUSR1, 0, 0));
    (void)!socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    say("owner", fcntl(pair[0], F_SETOWN_EX, &owner));
    say("sig", fcntl(pair[0], F_SETSIG, SIGUSR1));
    say("async", fcntl(pair[0], F_SETFL, O_ASYNC));
    (void)!write(pair[1], "x", 1);
}

/* Whoever is traced stops at every signal, and its tracer hears of that instead of its end. */
static void try_traced(char **a)
{
    (void)a;
    say("traceme", ptrace(PTRACE_TRACEME, 0, 0, 0));
    if (fork() == 0) {
        say("orphan", ptrace(PTRACE_TRACEME, 0, 0, 0));
        exit(0);
    }
    wait(NULL);
}

static void try_type(char **a)
{
    int fd = open(a[0], O_RDWR | O_NOCTTY);
    say("open", fd);
    say("ctty", ioctl(fd, TIOCSCTTY, 1));
    say("type", ioctl(fd, TIOCSTI, "x"));
    say("write", write(fd, "x", 1));
}

static void try_domain(char **a)
{
    (void)a;
    say("domain", setdomainname("nacre-escaped", 13));
    say("unshare", unshare(CLONE_NEWUSER));
    say("domain", setdomainname("nacre-escaped", 13));
}

/* Into another cgroup at birth: no file there is written to. The new one makes a cgroup to be seen
 * by. */
static void try_clone_into(char **a)
{
    struct {
        uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid,
            set_tid_size, cgroup;
    } args = {.flags = 0x200000000ULL, .exit_signal = SIGCHLD};
    char was[4096] = {0}, is[4096] = {0};
    args.cgroup = (uint64_t)open(a[0], O_RDONLY | O_DIRECTORY);
    (void)!read(open("/proc/self/cgroup", O_RDONLY), was, sizeof was - 1);
    long pid = syscall(SYS_clone3, &args, sizeof args);
    say("clone", pid);
    if (pid != 0)
        return;
    (void)!read(open("/proc/self/cgroup", O_RDONLY), is, sizeof is - 1);
    if (strcmp(was, is) != 0) /* outside of what ends it with its shell */
        say("left", mkdir("/mnt/ws/left-the-cgroup", 0755));
    exit(0);
}

static void try_levers(char **a)
{
    pid_t pid = atoi(a[0]);
    struct rlimit64 small = {17, 17};
    struct sched_param param = {0};
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t rest[3];
    } attributes = {.size = sizeof attributes, .policy = 3, .nice = 7};
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    say("prlimit", syscall(SYS_prlimit64, pid, RLIMIT_NOFILE, &small, NULL));
    say("setpriority", setpriority(PRIO_PROCESS, (id_t)pid, 5));
    say("of group", setpriority(PRIO_PGRP, (id_t)getpgid(pid), 6));
    say("of user", setpriority(PRIO_USER, geteuid(), 6));
    say("of user", setpriority(PRIO_USER, 0, 6));
    say("sched", sched_setscheduler(pid, SCHED_BATCH, &param));
    say("sched_setattr", syscall(SYS_sched_setattr, pid, &attributes, 0));
    say("affinity", sched_setaffinity(pid, sizeof one, &one));
    say("ioprio", syscall(SYS_ioprio_set, 1, pid, 3 << 13));
    say("ioprio", syscall(SYS_ioprio_set, 3, geteuid(), 3 << 13));
}

/* -- Sockets ---------------------------------------------------------------------------------- */

static socklen_t name_of(struct sockaddr_un *name, const char *text)
{
    size_t n = strlen(text);
    *name = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(name->sun_path, text, n < sizeof name->sun_path ? n : sizeof name->sun_path - 1);
    if (text[0] != '@')
        return sizeof *name;
    name->sun_path[0] = 0;
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
}

static void try_unix(char **a)
{
    struct sockaddr_un name;
    socklen_t size = name_of(&name, a[0]);
    static const int kinds[] = {SOCK_STREAM, SOCK_SEQPACKET, SOCK_DGRAM, SOCK_RAW};
    for (int i = 0; i < 4; i++) {
        int pair[2], fd = socket(AF_UNIX, kinds[i], 0);
        say("connect", connect(fd, (void *)&name, size));
        say("sendto", sendto(fd, "x", 1, 0, (void *)&name, size));
        if (socketpair(AF_UNIX, kinds[i], 0, pair) == 0) {
            say("pair", sendto(pair[0], "x", 1, 0, (void *)&name, size));
            say("pair", connect(pair[0], (void *)&name, size));
        }
    }
}

/* Through a queue that no filter sees into. */
static void try_uring(char **a)
{
    struct sockaddr_un name;
    struct io_uring_params p = {0};
    socklen_t size = name_of(&name, a[0]);
    int ring = (int)syscall(SYS_io_uring_setup, 4, &p);
    say("setup", ring);
    if (ring < 0)
        return;
    char *queue = mmap(NULL, p.sq_off.array + 64, PROT_READ | PROT_WRITE, MAP_SHARED, ring,
                       IORING_OFF_SQ_RING);
    struct io_uring_sqe *e =
        mmap(NULL, 4 * sizeof *e, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
    *e = (struct io_uring_sqe){.opcode = IORING_OP_CONNECT,
                               .fd = socket(AF_UNIX, SOCK_STREAM, 0),
                               .addr = (uint64_t)(uintptr_t)&name,
                               .off = size};
    *(unsigned *)(void *)(queue + p.sq_off.array) = 0;
    ++*(volatile unsigned *)(void *)(queue + p.sq_off.tail);
    say("enter", syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0));
}

static struct sockaddr_un flipping;
static const char *volatile flip_to[2];
static volatile int flips_end;

static void *flip(void *unused)
{
    for (unsigned i = 0; !flips_end; i++)
        strcpy(flipping.sun_path, flip_to[i & 1]);
    return unused;
}

/* The address changes between the look and the deed. */
static void try_flip(char **a)
{
    pthread_t thread;
    struct sockaddr_un own;
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    unlink("own");
    bind(listener, (void *)&own, name_of(&own, "own"));
    listen(listener, 4096);
    flipping.sun_family = AF_UNIX;
    flip_to[0] = "own";
    flip_to[1] = a[0];
    pthread_create(&thread, NULL, flip, NULL);
    for (int i = 0; i < 300; i++) {
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        (void)connect(fd, (void *)&flipping, sizeof flipping);
        close(fd);
    }
    flips_end = 1;
    pthread_join(thread, NULL);
}

/* The name leads to another file between the look and the deed. */
static void *flip_file(void *target)
{
    while (!flips_end) {
        unlink("turning");
        (void)!symlink("own", "turning");
        unlink("turning");
        (void)!symlink(target, "turning");
    }
    return NULL;
}

static void try_flip_file(char **a)
{
    pthread_t thread;
    struct sockaddr_un own, turning;
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    socklen_t size = name_of(&turning, "turning");
    unlink("own");
    bind(listener, (void *)&own, name_of(&own, "own"));
    listen(listener, 4096);
    pthread_create(&thread, NULL, flip_file, a[0]);
    for (int i = 0; i < 300; i++) {
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        (void)connect(fd, (void *)&turning, size);
        close(fd);
    }
    flips_end = 1;
    pthread_join(thread, NULL);
}

/* By a directory's descriptor, as only this process sees it. */
static void try_unix_at(char **a)
{
    char path[128];
    int fd = open(a[0], O_RDONLY | O_DIRECTORY);
    snprintf(path, sizeof path, "/proc/self/fd/%d/%s", fd, a[1]);
    try_unix((char *[]){path, NULL});
    (void)!chdir(a[0]);
    try_unix((char *[]){a[1], NULL});
}

#if defined(__x86_64__)
static long call_32(long nr, long a, long b, long c)
{
    long r;
    __asm__ volatile("int $0x80" : "=a"(r) : "a"(nr), "b"(a), "c"(b), "d"(c) : "memory");
    return r;
}
#endif

/* Through the interfaces of other architectures, which have numbers of their own. */
static void try_foreign(char **a)
{
    struct sockaddr_un *name = mmap((void *)0x10000000, 4096, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    socklen_t size = name_of(name, a[0]);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    say("x32", syscall(0x40000000 | SYS_connect, fd, name, size));
#if defined(__x86_64__)
    say("connect", call_32(362, fd, (long)name, size));
    unsigned *words = (void *)((char *)name + 512);
    words[0] = (unsigned)fd, words[1] = (unsigned)(uintptr_t)name, words[2] = size;
    say("socketcall", call_32(102, 3, (long)words, 0));
    say("socket", call_32(359, AF_UNIX, SOCK_DGRAM, 0));
#endif
}

static void try_inet(char **a)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)atoi(a[0])),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 v6 = {
        .sin6_family = AF_INET6, .sin6_port = v4.sin_port, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    say("tcp", connect(socket(AF_INET, SOCK_STREAM, 0), (void *)&v4, sizeof v4));
    say("tcp6", connect(socket(AF_INET6, SOCK_STREAM, 0), (void *)&v6, sizeof v6));
    say("mptcp", connect(socket(AF_INET, SOCK_STREAM, 262), (void *)&v4, sizeof v4));
    say("fast",
        sendto(socket(AF_INET, SOCK_STREAM, 0), "x", 1, MSG_FASTOPEN, (void *)&v4, sizeof v4));
    say("udp", sendto(socket(AF_INET, SOCK_DGRAM, 0), "x", 1, 0, (void *)&v4, sizeof v4));
    say("raw", socket(AF_INET, SOCK_RAW, IPPROTO_UDP));
    say("packet", socket(AF_PACKET, SOCK_RAW, 0));
    say("vsock", socket(AF_VSOCK, SOCK_STREAM, 0));
}

/* -- What is shared by number ------------------------------------------------------------------ */

static void try_shared(char **a)
{
    char *memory = shmat(atoi(a[0]), NULL, 0);
    if (memory != (void *)-1)
        strcpy(memory, "escaped");
    mqd_t queue = mq_open(a[1], O_WRONLY | O_NONBLOCK);
    say("mq", queue);
    say("send", mq_send(queue, "x", 1, 0));
    say("key", syscall(SYS_add_key, "user", a[2], "x", 1, -4));
    say("key", syscall(SYS_add_key, "user", a[2], "x", 1, -5));
}

static const struct attempt {
    const char *name;
    void (*make)(char **arguments);
    int arguments;
} attempts[] = {
    {"truncate", try_truncate, 1},   {"tmpfile", try_tmpfile, 1},
    {"handle", try_handle, 1},       {"metadata", try_metadata, 1},
    {"mmap", try_mmap, 1},           {"rename", try_rename, 3},
    {"mounts", try_mounts, 2},       {"tree", try_tree, 2},
    {"overlay", try_overlay, 1},     {"fresh-proc", try_fresh_proc, 0},
    {"chroot", try_chroot, 1},       {"setns", try_setns, 2},
    {"mknod", try_mknod, 1},         {"memory", try_memory, 2},
    {"steal", try_steal, 1},         {"signal", try_signal, 1},
    {"lower", try_lower, 2},         {"fresh", try_fresh, 2},
    {"traced", try_traced, 0},       {"type", try_type, 1},
    {"domain", try_domain, 0},       {"clone-into", try_clone_into, 1},
    {"uring", try_uring, 1},         {"levers", try_levers, 1},
    {"unix", try_unix, 1},           {"flip", try_flip, 1},
    {"flip-file", try_flip_file, 1}, {"unix-at", try_unix_at, 2},
    {"foreign", try_foreign, 1},     {"inet", try_inet, 1},
    {"shared", try_shared, 3},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof attempts / sizeof attempts[0]; i++)
        if (strcmp(attempts[i].name, argv[1]) == 0 && argc - 2 >= attempts[i].arguments) {
            attempts[i].make(argv + 2);
            return 0;
        }
    fprintf(stderr, "escape: no such attempt\n");
    return 64;
}
