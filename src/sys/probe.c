#include "sys/probe.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/defs.h"
#include "sys/cgroup.h"
#include "sys/fd.h"
#include "sys/host.h"
#include "sys/proc.h"
#include "sys/syscalls.h"

/* A probe returns >= 0, or -errno; it may add a detail. */
typedef int probe_fn(char *detail, size_t size);

static int probe_kernel(char *detail, size_t size)
{
    return host_check_kernel(detail, size);
}

static int probe_proc(char *detail UNUSED, size_t size UNUSED)
{
    return proc_is_ours() ? 0 : -ENOENT;
}

static int probe_children(char *detail UNUSED, size_t size UNUSED)
{
    int fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
    int r = fd < 0 ? -errno : 0;
    close_fd(&fd);
    return r;
}

static int probe_subreaper(char *detail UNUSED, size_t size UNUSED)
{
    int status = 0;
    pid_t pid = sys_fork_into(-1);
    if (pid == 0)
        _exit(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0 ? errno : 0);
    if (pid < 0 || waitpid(pid, &status, 0) < 0)
        return pid < 0 ? pid : -errno;
    return -WEXITSTATUS(status);
}

static int probe_pidfd(char *detail UNUSED, size_t size UNUSED)
{
    int fd = sys_pidfd_open(getpid());
    int r = fd < 0 ? fd : sys_pidfd_send_signal(fd, 0);
    close_fd(&fd);
    return r;
}

static int probe_close_range(char *detail UNUSED, size_t size UNUSED)
{
    return sys_close_range(UINT_MAX - 1, UINT_MAX, 0);
}

static int probe_locks(char *detail UNUSED, size_t size UNUSED)
{
    cleanup_close int fd = memfd_create("lock", MFD_CLOEXEC);
    int r = fd < 0 ? -errno : lock_take(fd);
    return r < 0 ? r : lock_held(fd);
}

static int probe_cgroup_own(char *detail, size_t size)
{
    return cgroup_own(detail, size);
}

/* The whole way: a leaf, a child born in it, the kill, the proof, the removal. */
static int probe_cgroup_leaf(char *detail, size_t size)
{
    char own[CGROUP_PATH_MAX - 64], name[32], path[CGROUP_PATH_MAX];
    int r = cgroup_own(own, sizeof own);
    if (r < 0)
        return r;
    snprintf(name, sizeof name, "nacre-probe-%d", getpid());
    snprintf(path, sizeof path, "%s/%s", own, name);
    cleanup_close int fd = cgroup_create(own, name);
    if (fd < 0)
        return fd;
    pid_t pid = sys_fork_into(fd);
    if (pid == 0)
        for (;;)
            pause();
    if (pid > 0) {
        int status;
        r = cgroup_kill(fd);
        if (r < 0)
            kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
        snprintf(detail, size, "clone into, kill and proof worked");
    } else {
        snprintf(detail, size, "clone3 is refused; members move in by themselves");
    }
    cgroup_remove(path);
    return r;
}

static const struct {
    const char *name;
    const char *meaning;
    probe_fn *fn;
} probes[] = {
    {"kernel", "new enough to run nacre at all", probe_kernel},
    {"proc", "/proc shows the pids of this namespace; without it trees cannot be walked",
     probe_proc},
    {"children", "the kernel lists a process's children; without it every process is looked at",
     probe_children},
    {"subreaper", "what a command daemonises stays with its keeper", probe_subreaper},
    {"pidfd", "signals cannot hit a reused pid; without it start times are compared", probe_pidfd},
    {"close_range", "descriptors are closed in one call; without it one by one", probe_close_range},
    {"locks", "a lock tells whether a keeper lives", probe_locks},
    {"cgroup", "there is a cgroup v2 tree and we are in it", probe_cgroup_own},
    {"cgroup leaf", "a run gets a cgroup of its own: kills are atomic, also after a crash",
     probe_cgroup_leaf},
};

size_t probe_all(struct probe_result *ret, size_t max)
{
    size_t count = MIN(ARRAY_SIZE(probes), max);
    for (size_t i = 0; i < count; i++) {
        ret[i] = (struct probe_result){.name = probes[i].name, .meaning = probes[i].meaning};
        int r = probes[i].fn(ret[i].detail, sizeof ret[i].detail);
        ret[i].ok = r >= 0;
        ret[i].err = r < 0 ? -r : 0;
    }
    return count;
}
