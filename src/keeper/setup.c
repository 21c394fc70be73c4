/* Everything a run needs before it can start: directory, lock, socket, pipes, cgroup. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "base/defs.h"
#include "keeper/keeper.h"
#include "run/rundir.h"
#include "run/sign.h"
#include "sys/fd.h"
#include "sys/host.h"
#include "sys/sock.h"

/* Whoever removes a run that is over may do so only when its sign is gone: else a look in between
 * would take the directory for one that its command took away. */
static void put_up_sign(struct keeper *k)
{
    char name[SIGN_MAX];
    if (k->session.hello.home == 0)
        return;
    sign_format(k->session.hello.home, nacre_id_format(&k->st.id).s, name);
    k->fd[FD_SIGN] = sock_bind_abstract(name);
}

/* A file system may have no sockets, and a system no abstract names: one of them is enough. */
static int open_doors(struct keeper *k)
{
    k->fd[FD_LISTEN] = sock_listen_at(k->fd[FD_DIR], "ctl");
    k->fd[FD_DOOR] = sock_listen_abstract(nacre_id_format(&k->st.id).s);
    put_up_sign(k);
    restore_note(k);
    return MIN(MAX(k->fd[FD_LISTEN], k->fd[FD_DOOR]), 0);
}

static int make_directory(struct keeper *k)
{
    struct run_files files = RUN_FILES_NONE;
    int r = run_make(k->fd[FD_RUNS], &k->st, &files);
    k->fd[FD_DIR] = files.dir;
    k->fd[FD_STATE] = files.state;
    k->fd[FD_SPEC] = files.spec;
    logw_init(&k->log, k->fd[FD_DIR], files.log, files.spans, &k->st.log, LOG_QUOTA_MIN);
    if (r < 0)
        return r;
    return open_doors(k);
}

static int open_stream(struct keeper *k, enum keeper_fd ours, enum keeper_fd theirs, bool is_input)
{
    int fds[2];
    int r = fd_pipe(fds);
    if (r < 0)
        return r;
    k->fd[ours] = fds[is_input];
    k->fd[theirs] = fds[!is_input];
    return fd_set_nonblock(k->fd[ours]);
}

static int open_streams(struct keeper *k)
{
    int r = open_stream(k, FD_OUT, FD_CHILD_OUT, false);
    if (r == 0)
        r = open_stream(k, FD_ERR, FD_CHILD_ERR, false);
    return r < 0 ? r : open_stream(k, FD_IN, FD_CHILD_IN, true);
}

/* It stands in the state before it is made: what is left if we are killed in between is found. */
static void name_cgroup(struct keeper *k)
{
    const char *parent = k->session.hello.cgroup_parent;
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
    k->fd[FD_CGROUP] = cgroup_create(k->session.hello.cgroup_parent, name);
    k->fd[FD_LEAF] = k->fd[FD_CGROUP] < 0 ? -EBADF : cgroup_open_events(k->fd[FD_CGROUP]);
    if (k->fd[FD_LEAF] >= 0)
        return;
    setup_leave_cgroup(k);
    k->st.tier = NACRE_TIER_SUBREAPER;
}

static void identify_run(struct keeper *k)
{
    struct proc_ref ref;
    memcpy(k->st.boot, k->session.host.boot, sizeof k->session.host.boot);
    k->st.pid_ns = k->session.host.pid_ns;
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
    state_init(&k->st, &id, &k->session.hello.session);
    k->st.tier = k->session.hello.tier;
    if (k->st.tier < NACRE_TIER_GROUP && prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
        k->st.tier = NACRE_TIER_GROUP;
    identify_run(k);
    name_cgroup(k);
    r = make_directory(k);
    if (r == 0)
        r = open_streams(k);
    if (r == 0) {
        open_cgroup(k);
        r = state_write(k->fd[FD_STATE], &k->st);
    }
    return r;
}

void setup_leave_cgroup(struct keeper *k)
{
    close_fd(&k->fd[FD_CGROUP]);
    loop_close(k, FD_LEAF);
    if (k->st.cgroup[0])
        cgroup_remove(k->st.cgroup);
    k->st.cgroup[0] = '\0';
}

/* Without a descriptor left nothing could be removed. */
static void close_some(struct keeper *k)
{
    static const enum keeper_fd some[] = {FD_LISTEN, FD_OUT, FD_ERR, FD_IN, FD_CHILD_OUT};
    for (size_t i = 0; i < ARRAY_SIZE(some); i++)
        loop_close(k, some[i]);
}

void setup_undo(struct keeper *k, bool all)
{
    if (all)
        close_some(k);
    close_fd(&k->fd[FD_SIGN]);
    setup_leave_cgroup(k);
    enter_leave(k);
    excess_leave(k);
    if (k->fd[FD_DIR] < 0)
        return;
    unlinkat(k->fd[FD_DIR], "ctl", 0);
    if (all)
        run_remove(k->fd[FD_RUNS], &k->st.id);
}
