/* Everything a run needs before it can start: directory, lock, socket, pipes, cgroup, child. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/defs.h"
#include "keeper/keeper.h"
#include "run/rundir.h"
#include "sys/calls.h"
#include "sys/fd.h"
#include "sys/host.h"
#include "sys/lock.h"
#include "sys/sock.h"

static int create(const struct keeper *k, const char *name)
{
    int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
    int fd = openat(k->dir_fd, name, flags, 0600);
    return fd < 0 ? -errno : fd_lift_consume(fd);
}

/* The lock is taken before the run can be seen: who finds it free knows that we are gone. */
static int make_directory(struct keeper *k)
{
    nacre_id_text name = nacre_id_format(&k->st.id);
    if (mkdirat(k->runs_fd, name.s, 0700) < 0)
        return -errno;
    k->dir_fd = openat(k->runs_fd, name.s, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (k->dir_fd < 0)
        return -errno;
    k->state_fd = create(k, "state");
    int r = k->state_fd < 0 ? k->state_fd : lock_take(k->state_fd);
    if (r == 0)
        r = state_write(k->state_fd, &k->st);
    if (r == 0)
        r = k->spec_fd = create(k, "spec");
    int log_fd = r < 0 ? r : create(k, "log");
    int spans_fd = log_fd < 0 ? log_fd : create(k, "spans");
    if (spans_fd < 0)
        return spans_fd;
    logw_init(&k->log, k->dir_fd, log_fd, spans_fd, &k->st.log, LOG_QUOTA_MIN);
    k->listen_fd = sock_listen_at(k->dir_fd, "ctl", name.s);
    return MIN(k->listen_fd, 0);
}

static int open_streams(struct keeper *k, struct stub_ends *ends)
{
    int fds[4][2];
    for (int i = 0; i < 4; i++) {
        int r = fd_pipe(fds[i]);
        if (r < 0)
            return r;
    }
    k->in_fd = fds[0][1];
    k->out_fd[0] = fds[1][0];
    k->out_fd[1] = fds[2][0];
    k->start_pipe = fds[3][0];
    *ends =
        (struct stub_ends){.in = fds[0][0], .out = fds[1][1], .err = fds[2][1], .start = fds[3][1]};
    fd_set_nonblock(k->in_fd);
    fd_set_nonblock(k->out_fd[0]);
    fd_set_nonblock(k->out_fd[1]);
    fd_set_nonblock(k->start_pipe);
    return 0;
}

static void close_ends(struct stub_ends *ends)
{
    close_fd(&ends->in);
    close_fd(&ends->out);
    close_fd(&ends->err);
    close_fd(&ends->start);
}

static void open_cgroup(struct keeper *k)
{
    const char *parent = k->hello.cgroup_parent;
    if (k->st.tier != NACRE_TIER_CGROUP)
        return;
    char name[64];
    snprintf(name, sizeof name, "nacre-%s", nacre_id_format(&k->st.id).s);
    if (parent[0])
        k->cgroup_fd = cgroup_create(parent, name);
    if (k->cgroup_fd < 0)
        k->st.tier = NACRE_TIER_SUBREAPER;
    else
        snprintf(k->st.cgroup, sizeof k->st.cgroup, "%.440s/%s", parent, name);
}

static void close_cgroup(struct keeper *k)
{
    close_fd(&k->cgroup_fd);
    if (k->st.cgroup[0])
        cgroup_remove(k->st.cgroup);
    k->st.cgroup[0] = '\0';
}

/*
 * The child is made now, so that a start costs no fork: it waits for the go and then becomes the
 * command. It is born in the cgroup; where clone3 is not to be had it walks in by itself, and
 * where that is refused too, the run does without.
 */
static pid_t fork_stub(struct keeper *k, const struct stub_ends *ends)
{
    bool walk_in = false;
    pid_t pid = sys_fork_into(k->cgroup_fd);
    if (pid < 0 && k->cgroup_fd >= 0) {
        walk_in = true;
        pid = sys_fork_into(-1);
    }
    if (pid < 0)
        return pid;
    if (pid == 0)
        stub_main(k, ends);
    if (walk_in) {
        char text[16];
        snprintf(text, sizeof text, "%d", pid);
        if (fd_poke_at(k->cgroup_fd, "cgroup.procs", text) < 0) {
            close_cgroup(k);
            k->st.tier = NACRE_TIER_SUBREAPER;
        }
    }
    return pid;
}

static void identify(struct keeper *k)
{
    struct proc_ref ref;
    memcpy(k->st.boot, k->host.boot, sizeof k->host.boot);
    k->st.pid_ns = k->host.pid_ns;
    k->st.main_pid = k->main;
    k->proc_ours = proc_is_ours();
    if (k->proc_ours && proc_ref(getpid(), &ref) == 0)
        k->st.keeper_start = ref.start;
    if (k->proc_ours && proc_ref(k->main, &ref) == 0)
        k->st.main_start = ref.start;
}

int setup(struct keeper *k)
{
    struct stub_ends ends = {-EBADF, -EBADF, -EBADF, -EBADF};
    nacre_id id;
    int r = host_random(&id, sizeof id);
    if (r < 0)
        return r;
    state_init(&k->st, &id, &k->hello.session);
    k->st.keeper_pid = getpid();
    k->st.tier = k->hello.tier;
    if (k->st.tier < NACRE_TIER_GROUP && prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
        k->st.tier = NACRE_TIER_GROUP;
    r = make_directory(k);
    if (r == 0)
        r = open_streams(k, &ends);
    if (r == 0) {
        open_cgroup(k);
        k->main = fork_stub(k, &ends);
        r = MIN(k->main, 0);
    }
    close_ends(&ends);
    if (r == 0) {
        identify(k);
        r = state_write(k->state_fd, &k->st);
    }
    if (r < 0)
        setup_undo(k, true);
    return r;
}

void setup_undo(struct keeper *k, bool all)
{
    if (all && k->main > 0)
        tree_end(k);
    close_cgroup(k);
    if (k->dir_fd < 0)
        return;
    unlinkat(k->dir_fd, "ctl", 0);
    if (!all)
        return;
    run_remove(k->runs_fd, &k->st.id);
}
