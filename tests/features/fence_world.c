#include "fence_world.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/capability.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#define QUEUE             format("/nacre-world-%d", getpid())
#define KEY               format("nacre-world-%d", getpid())
#define KEYCTL_SEARCH     10
#define KEYCTL_INVALIDATE 21
#define LISTENER_MAX      32
#define TEXT_MAX          65536

/* In memory that only the victim and the case have. */
struct victim {
    volatile int ready;
    volatile int signals;
    char word[64];
};

static struct {
    pid_t victim_pid;
    struct victim *victim;
    struct {
        int fd;
        char name[100];
    } listeners[LISTENER_MAX];
    int listener_count;
    int shared; /* SysV memory */
    char *memory;
    mqd_t queue;
    int messages; /* of the kernel; -1 = not for us */
    char state[TEXT_MAX];
} world;

/* -- Listeners -------------------------------------------------------------------------------- */

static void keep_listener(int fd, const char *name)
{
    CHECK(fd >= 0 && world.listener_count < LISTENER_MAX);
    world.listeners[world.listener_count].fd = fd;
    snprintf(world.listeners[world.listener_count++].name, 100, "%s", name);
}

void world_listen(const char *path, int kind)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    size_t n = strlen(path);
    int fd = socket(AF_UNIX, kind | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    memcpy(name.sun_path, path, n);
    socklen_t size = sizeof name;
    if (path[0] == '@') {
        name.sun_path[0] = '\0';
        size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
    }
    CHECK_EQ_INT(0, bind(fd, (void *)&name, size));
    if (kind != SOCK_DGRAM)
        CHECK_EQ_INT(0, listen(fd, 1000));
    keep_listener(fd, path);
}

/* All kinds on one port. */
static void listen_inet(void)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof v4;
    int tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    CHECK_EQ_INT(0, bind(tcp, (void *)&v4, size));
    CHECK_EQ_INT(0, listen(tcp, 100));
    CHECK_EQ_INT(0, getsockname(tcp, (void *)&v4, &size));
    CHECK_EQ_INT(0, bind(udp, (void *)&v4, size));
    keep_listener(tcp, "tcp");
    keep_listener(udp, "udp");
    setenv("PORT", format("%d", ntohs(v4.sin_port)), 1);
}

static const char *look_at_listeners(void)
{
    for (int i = 0; i < world.listener_count; i++) {
        struct pollfd poller = {.fd = world.listeners[i].fd, .events = POLLIN};
        if (poll(&poller, 1, 0) > 0)
            return format("somebody reached the listener %s", world.listeners[i].name);
    }
    return NULL;
}

/* -- The victim ------------------------------------------------------------------------------- */

static void on_any(int sig)
{
    (void)sig;
    world.victim->signals++;
}

/* Those that came with the namespace: who has them is out of reach for its user's other processes.
 */
static void drop_capabilities(void)
{
    struct __user_cap_header_struct version = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{0}};
    syscall(SYS_capset, &version, none);
}

static void be_victim(void)
{
    struct sigaction action = {.sa_handler = on_any};
    for (int sig = 1; sig < SIGRTMAX; sig++)
        if (sig != SIGCHLD)
            sigaction(sig, &action, NULL);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (geteuid() != 0)
        drop_capabilities();
    memcpy(getenv("PATH"), SECRET, strlen(SECRET)); /* where /proc looks; longer as a rule */
    if (chdir(OUTSIDE "/hidden") < 0 || open("secret", O_RDWR) < 0)
        _exit(1);
    world.victim->ready = 1;
    for (;;)
        pause();
}

static void make_victim(void)
{
    world.victim =
        mmap(NULL, sizeof *world.victim, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    strcpy(world.victim->word, SECRET);
    world.victim_pid = fork();
    if (world.victim_pid == 0)
        be_victim();
    CHECK(AWAIT(world.victim->ready, 5000));
    setenv("VICTIM", format("%d", world.victim_pid), 1);
    setenv("HOST", format("%d", getpid()), 1);
    setenv("WORD", format("%lx", (unsigned long)world.victim->word), 1);
}

/* What can be changed of a process from outside. */
static int describe_process(char *text, size_t size, pid_t pid)
{
    struct rlimit files = {0};
    cpu_set_t set;
    CPU_ZERO(&set);
    sched_getaffinity(pid, sizeof set, &set);
    prlimit(pid, RLIMIT_NOFILE, NULL, &files);
    char *oom = slurp(format("/proc/%d/oom_score_adj", pid), NULL);
    int n = snprintf(
        text, size, "process %d: oom %d, nice %d, policy %d, cpus %d, files %lu, io %d\n", pid,
        oom ? atoi(oom) : -1, getpriority(PRIO_PROCESS, (id_t)pid), sched_getscheduler(pid),
        CPU_COUNT(&set), (unsigned long)files.rlim_cur, (int)syscall(SYS_ioprio_get, 1, pid));
    free(oom);
    return n;
}

static const char *look_at_victim(void)
{
    if (waitpid(world.victim_pid, NULL, WNOHANG) != 0)
        return "the victim is dead";
    if (world.victim->signals > 0)
        return "the victim was signalled";
    return strcmp(world.victim->word, SECRET) != 0 ? "the victim's memory was written" : NULL;
}

/* -- Files ------------------------------------------------------------------------------------ */

static size_t written;

static int describe_file(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)ftw;
    (void)type;
    int n = snprintf(world.state + written, TEXT_MAX - written,
                     "%s: %lu %o %u:%u %ld bytes %lu links, changed %ld.%ld %ld.%ld\n", path,
                     (unsigned long)st->st_ino, st->st_mode, st->st_uid, st->st_gid,
                     (long)st->st_size, (unsigned long)st->st_nlink, (long)st->st_mtim.tv_sec,
                     st->st_mtim.tv_nsec, (long)st->st_ctim.tv_sec, st->st_ctim.tv_nsec);
    written += (size_t)n;
    return written < TEXT_MAX ? 0 : -1;
}

static void describe_all(void)
{
    const char *const trees[] = {OUTSIDE,
                                 WORLD "/user",
                                 WORKSPACE "/.git/hooks",
                                 WORKSPACE "/.git/config",
                                 WORKSPACE "/.git/modules/libs/foo/hooks",
                                 WORKSPACE "/.git/modules/libs/foo/config",
                                 WORKSPACE "/.git/worktrees/tree/commondir",
                                 WORKSPACE "/.husky",
                                 WORKSPACE "/etc/gitinclude",
                                 WORKSPACE "/etc/missing",
                                 WORKSPACE "/.mcp.json",
                                 WORKSPACE "/.idea",
                                 "/dev/null",
                                 "/dev/full",
                                 "/dev/zero",
                                 "/proc/sys/fs/binfmt_misc/nacre-escaped",
                                 "/sys/fs/cgroup/nacre-escaped",
                                 WORKSPACE "/left-the-cgroup",
                                 getenv("KEEPER"),
                                 getenv("PRELOAD")};
    written = 0;
    for (size_t i = 0; i < sizeof trees / sizeof trees[0]; i++)
        nftw(trees[i], describe_file, 16, FTW_PHYS);
    written += (size_t)describe_process(world.state + written, TEXT_MAX - written, getpid());
    written +=
        (size_t)describe_process(world.state + written, TEXT_MAX - written, world.victim_pid);
    char *pattern = slurp("/proc/sys/kernel/core_pattern", NULL);
    written += (size_t)snprintf(world.state + written, TEXT_MAX - written, "core_pattern: %s",
                                pattern ? pattern : "?\n");
    free(pattern);
    struct utsname names;
    uname(&names);
    written += (size_t)snprintf(world.state + written, TEXT_MAX - written, "domain: %s\n",
                                names.domainname);
}

/* The first line that is not as it was. */
static const char *compare(const char *before)
{
    describe_all();
    const char *now = world.state;
    while (*before && *now) {
        size_t n = strcspn(before, "\n"), m = strcspn(now, "\n");
        if (n != m || strncmp(before, now, n) != 0)
            return format("changed: %.*s -> %.*s", (int)n, before, (int)m, now);
        before += n + (before[n] == '\n');
        now += m + (now[m] == '\n');
    }
    return *before || *now ? format("more or less: %.200s%.200s", before, now) : NULL;
}

/* -- What is shared by number ------------------------------------------------------------------ */

static void make_shared(void)
{
    world.shared = shmget(IPC_PRIVATE, 4096, 0600);
    world.memory = shmat(world.shared, NULL, 0);
    shmctl(world.shared, IPC_RMID, NULL); /* usable by number as long as we have it */
    struct mq_attr room = {.mq_maxmsg = 4, .mq_msgsize = 16};
    world.queue = mq_open(QUEUE, O_RDWR | O_CREAT | O_NONBLOCK | O_CLOEXEC, 0600, &room);
    setenv("SHM", format("%d", world.shared), 1);
    setenv("QUEUE", QUEUE, 1);
    setenv("TICKET", KEY, 1);
    world.messages = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (world.messages >= 0)
        lseek(world.messages, 0, SEEK_END);
}

/* In the keyrings of a user, and of a user's session. */
static long find_key(void)
{
    long key = syscall(SYS_keyctl, KEYCTL_SEARCH, -4, "user", KEY, 0);
    return key > 0 ? key : syscall(SYS_keyctl, KEYCTL_SEARCH, -5, "user", KEY, 0);
}

static const char *look_at_shared(void)
{
    char text[1024];
    if (world.memory[0] != '\0')
        return "shared memory was written";
    if (world.queue >= 0 && mq_receive(world.queue, text, sizeof text, NULL) >= 0)
        return "a message came through a queue";
    if (find_key() > 0)
        return "a key was added";
    for (ssize_t n; world.messages >= 0 && (n = read(world.messages, text, sizeof text - 1)) > 0;) {
        text[n] = '\0';
        if (strstr(text, "nacre-escaped") || strstr(text, "sysrq"))
            return format("the kernel was spoken to: %.100s", text);
    }
    return NULL;
}

/* -- A terminal ------------------------------------------------------------------------------- */

static void make_terminal(void)
{
    int fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    CHECK(fd >= 0 && grantpt(fd) == 0 && unlockpt(fd) == 0);
    setenv("TERMINAL", ptsname(fd), 1);
    keep_listener(fd, "terminal");
}

/* -- The whole -------------------------------------------------------------------------------- */

static void write_map(const char *path, unsigned id)
{
    const char *text = format("%u %u 1", id, id);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    CHECK(fd >= 0 && write(fd, text, strlen(text)) > 0);
    close(fd);
}

/* /tmp, where all else of a case lies, is another one inside a fence. */
static void enter_namespace(void)
{
    unsigned uid = geteuid(), gid = getegid();
    static bool done;
    if (!done && unshare(geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER) < 0)
        SKIP("needs a mount namespace");
    if (!done && uid != 0) {
        spit("/proc/self/setgroups", "deny", 4);
        write_map("/proc/self/uid_map", uid);
        write_map("/proc/self/gid_map", gid);
    }
    done = true;
    prctl(PR_SET_DUMPABLE, 1); /* the victim shall be one for all of its user */
    CHECK_EQ_INT(0, mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
    CHECK_EQ_INT(0, mount("world", WORLD, "tmpfs", 0, "mode=755"));
}

static void make_files(void)
{
    CHECK_EQ_INT(0, system("mkdir -p " WORKSPACE "/.git/hooks " WORKSPACE "/.git/objects " WORKSPACE
                           "/.git/modules/libs/foo/hooks " WORKSPACE "/.git/worktrees/tree " OUTSIDE
                           "/dir " OUTSIDE "/hidden " WORLD "/user/.ssh " WORLD "/user/.config"));
    spit(WORKSPACE "/.git/modules/libs/foo/HEAD", "ref: refs/heads/main\n", 21);
    spit(WORKSPACE "/.git/modules/libs/foo/config", "[core]\n", 7);
    spit(WORKSPACE "/.git/worktrees/tree/commondir", "../..\n", 6);
    spit(OUTSIDE "/file", "as it was\n", 10);
    spit(OUTSIDE "/dir/file", "as it was\n", 10);
    spit(OUTSIDE "/hidden/secret", SECRET "\n", sizeof SECRET);
    spit(WORLD "/user/.ssh/id_ed25519", SECRET "\n", sizeof SECRET);
    spit(WORKSPACE "/.git/HEAD", "ref: refs/heads/main\n", 21);
    static const char config[] =
        "[core]\n\tbare = false\n\thooksPath = .husky/_\n[include]\n\tpath = "
        "\"../etc/gitinclude\"\n\tpath = ../etc/missing\n";
    spit(WORKSPACE "/.git/config", config, sizeof config - 1);
    CHECK_EQ_INT(0, system("mkdir -p " WORKSPACE "/.husky/_ " WORKSPACE "/etc"));
    spit(WORKSPACE "/.husky/pre-commit", "#!/bin/sh\n", 10);
    spit(WORKSPACE "/etc/gitinclude", "[core]\n", 7);
    spit(WORKSPACE "/.git/hooks/pre-commit", "#!/bin/sh\n", 10);
    spit(WORKSPACE "/mine", "mine\n", 5);
    CHECK_EQ_INT(0, symlink(OUTSIDE "/file", WORKSPACE "/.mcp.json"));
    CHECK_EQ_INT(0, symlink("../out/dir", WORKSPACE "/.idea"));
    CHECK_EQ_INT(0, system(format("cp %s " WORKSPACE "/escape", program("escape"))));
    CHECK_EQ_INT(0, mkfifo(OUTSIDE "/fifo", 0600));
    keep_listener(open(OUTSIDE "/fifo", O_RDWR | O_NONBLOCK | O_CLOEXEC), "fifo");
}

/* Of a helper's path, which is BUILD/tests/programs/NAME. */
static int build_length(void)
{
    return (int)(strstr(program("escape"), "/tests/programs/") - program("escape"));
}

void world_make(void)
{
    world.listener_count = 0;
    enter_namespace();
    make_files();
    CHECK_EQ_INT(0, chdir(WORKSPACE));
    setenv("HOME", WORLD "/user", 1);
    setenv("OUT", OUTSIDE, 1);
    setenv("REAL_HOME", test_home(), 1);
    setenv("KEEPER", format("%.*s/nacre-keeper", build_length(), program("escape")), 1);
    setenv("PRELOAD", format("%.*s/nacre-text.so", build_length(), program("escape")), 1);
    setenv("NACRE", format("%.*s/nacre", build_length(), program("escape")), 1);
    make_victim();
    make_shared();
    make_terminal();
    listen_inet();
    world_listen(OUTSIDE "/stream", SOCK_STREAM);
    world_listen(OUTSIDE "/seqpacket", SOCK_SEQPACKET);
    world_listen(OUTSIDE "/dgram", SOCK_DGRAM);
    world_listen(WORKSPACE "/before", SOCK_STREAM);
    world_listen("relative", SOCK_STREAM);
    world_listen(WORKSPACE "/packets", SOCK_SEQPACKET);
    world_listen(WORKSPACE "/datagrams", SOCK_DGRAM);
    world_listen(format("@nacre-world-%d", getpid()), SOCK_STREAM);
    setenv("ABSTRACT", format("@nacre-world-%d", getpid()), 1);
    world_look(true);
}

const char *world_look(bool anew)
{
    static char before[TEXT_MAX];
    if (anew) {
        describe_all();
        memcpy(before, world.state, sizeof before);
        return NULL;
    }
    const char *seen = look_at_victim();
    if (!seen)
        seen = look_at_listeners();
    if (!seen)
        seen = look_at_shared();
    return seen ? seen : compare(before);
}

void world_end(void)
{
    kill(world.victim_pid, SIGKILL);
    waitpid(world.victim_pid, NULL, 0);
    for (int i = 0; i < world.listener_count; i++)
        close(world.listeners[i].fd);
    shmdt(world.memory);
    munmap(world.victim, sizeof *world.victim);
    mq_close(world.queue);
    mq_unlink(QUEUE);
    for (long key; (key = find_key()) > 0;)
        syscall(SYS_keyctl, KEYCTL_INVALIDATE, key);
    close(world.messages);
    CHECK_EQ_INT(0, chdir("/"));
    umount2(WORLD, MNT_DETACH);
}
