/* Everything a run needs before it can start: directory, lock, socket, pipes, cgroup. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/defs.h"
#include "keeper/keeper.h"
#include "run/make.h"
#include "run/rundir.h"
#include "sys/fd.h"
#include "sys/host.h"
#include "sys/sock.h"

static int make_directory(struct keeper *k)
{
    struct run_files files = RUN_FILES_NONE;
    int r = run_make(k->runs_fd, &k->st, &files);
    k->dir_fd = files.dir;
    k->state_fd = files.state;
    k->spec_fd = files.spec;
    logw_init(&k->log, k->dir_fd, files.log, files.spans, &k->st.log, LOG_QUOTA_MIN);
    if (r < 0)
        return r;
    k->listen_fd = sock_listen_at(k->dir_fd, "ctl", nacre_id_format(&k->st.id).s);
    return MIN(k->listen_fd, 0);
}

static int open_streams(struct keeper *k)
{
    for (int i = 0; i < 2; i++) {
        int fds[2];
        int r = fd_pipe(fds);
        if (r < 0)
            return r;
        k->out_fd[i] = fds[0];
        k->child_fd[i] = fds[1];
        fd_set_nonblock(k->out_fd[i]);
    }
    int in[2];
    int r = fd_pipe(in);
    if (r < 0)
        return r;
    k->child_in = in[0];
    k->in_fd = in[1];
    fd_set_nonblock(k->in_fd);
    void *page =
        mmap(NULL, sizeof *k->result, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return -errno;
    k->result = page;
    return 0;
}

#define CGROUP_PREFIX "nacre-"

/* It stands in the state before it is made: what is left if we are killed in between is found. */
static void name_cgroup(struct keeper *k)
{
    const char *parent = k->hello.cgroup_parent;
    if (k->st.tier != NACRE_TIER_CGROUP)
        return;
    if (parent[0])
        snprintf(k->st.cgroup, sizeof k->st.cgroup, "%.440s/" CGROUP_PREFIX "%s", parent,
                 nacre_id_format(&k->st.id).s);
    else
        k->st.tier = NACRE_TIER_SUBREAPER;
}

static void open_cgroup(struct keeper *k)
{
    char name[64];
    if (k->st.tier != NACRE_TIER_CGROUP)
        return;
    snprintf(name, sizeof name, CGROUP_PREFIX "%s", nacre_id_format(&k->st.id).s);
    k->cgroup_fd = cgroup_create(k->hello.cgroup_parent, name);
    if (k->cgroup_fd >= 0)
        return;
    k->st.tier = NACRE_TIER_SUBREAPER;
    k->st.cgroup[0] = '\0';
}

static void identify(struct keeper *k)
{
    struct proc_ref ref;
    memcpy(k->st.boot, k->host.boot, sizeof k->host.boot);
    k->st.pid_ns = k->host.pid_ns;
    k->st.keeper_pid = getpid();
    k->proc_ours = proc_is_ours();
    if (k->proc_ours && proc_ref(getpid(), &ref) == 0)
        k->st.keeper_start = ref.start;
}

int setup(struct keeper *k)
{
    nacre_id id;
    int r = host_random(&id, sizeof id);
    if (r < 0)
        return r;
    state_init(&k->st, &id, &k->hello.session);
    k->st.tier = k->hello.tier;
    if (k->st.tier < NACRE_TIER_GROUP && prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
        k->st.tier = NACRE_TIER_GROUP;
    identify(k);
    name_cgroup(k);
    r = make_directory(k);
    if (r == 0)
        r = open_streams(k);
    if (r == 0) {
        open_cgroup(k);
        r = state_write(k->state_fd, &k->st);
    }
    if (r < 0)
        setup_undo(k, true);
    return r;
}

void setup_leave_cgroup(struct keeper *k)
{
    close_fd(&k->cgroup_fd);
    if (k->st.cgroup[0])
        cgroup_remove(k->st.cgroup);
    k->st.cgroup[0] = '\0';
}

void setup_undo(struct keeper *k, bool all)
{
    setup_leave_cgroup(k);
    if (k->dir_fd < 0)
        return;
    unlinkat(k->dir_fd, "ctl", 0);
    if (all)
        run_remove(k->runs_fd, &k->st.id);
}
