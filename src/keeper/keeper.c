/* nacre-keeper: started by the library, never by hand. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/defs.h"
#include "keeper/keeper.h"
#include "sys/apart.h"
#include "sys/cgroup.h"

/* The one keeper of the process, and its room: static, since nothing is allocated. */
static struct keeper the_keeper;
static struct keeper_room the_room;

/* The host's soft limits are for the host and for the command, which gets them with the go: what is
 * written down here, and for how many, is not theirs to decide. */
static void note_limits(struct keeper *k)
{
    static const int ours[] = {RLIMIT_NOFILE, RLIMIT_FSIZE};
    struct rlimit limit;
    for (size_t i = 0; i < ARRAY_SIZE(ours); i++)
        if (getrlimit((__rlimit_resource_t)ours[i], &limit) == 0) {
            limit.rlim_cur = limit.rlim_max;
            setrlimit((__rlimit_resource_t)ours[i], &limit);
        }
    for (int i = 0; i < SPEC_LIMITS && i < (int)RLIM_NLIMITS; i++)
        if (getrlimit((__rlimit_resource_t)i, &limit) == 0)
            k->session.limits[i] = (struct spec_limit){limit.rlim_cur, limit.rlim_max};
}

/* Leaves are made in the scope that the service manager has put us in; else where the host is. */
static void settle_in_scope(struct keeper *k)
{
    struct wire_hello *hello = &k->session.hello;
    char scope[CGROUP_PATH_MAX];
    if ((hello->fds & WIRE_IN_SCOPE) && cgroup_divide(scope, sizeof scope) == 0)
        memcpy(hello->cgroup_parent, scope, sizeof hello->cgroup_parent);
}

/* What is done once; a successor inherits it. */
static int introduce(struct keeper *k)
{
    apart_shield();
    /* Our command runs as the same user, and might look into us or hold us by ptrace. */
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    int r = handshake_hello(k);
    if (r == 0)
        r = host_identify(&k->session.host);
    settle_in_scope(k);
    owner_note(k);
    plan_note_preload(k);
    k->session.nice = getpriority(PRIO_PROCESS, 0);
    proc_get_oom(getpid(), &k->session.oom_score);
    note_limits(k);
    if (r < 0)
        handshake_ready(k, r, FENCE_STEP_NONE);
    return r;
}

/* From the preparation of a run to its end. */
static int keep_run(struct keeper *k)
{
    for (int i = 0; i < AT_COUNT; i++)
        k->at[i] = NEVER;
    k->life = LIFE_READY;
    k->state = ST_WARM;
    k->stray_pause = LATE_NS;
    int r = setup(k);
    if (r == 0)
        r = loop_open(k);
    drain_guard(k);
    enum fence_step step = FENCE_STEP_NONE;
    if (r == 0)
        r = standin_make(k);
    if (r == 0)
        r = enter_await(k, &step);
    r = handshake_ready(k, r, step);
    if (r < 0)
        return r;
    loop_run(k);
    life_event(k, LE_RUN_OVER);
    return 0;
}

#if SANITIZED
/* Allocates nothing, so there is nothing to search its memory for whenever one ends. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}
#endif

int main(void)
{
    struct keeper *k = &the_keeper;
    struct stat st;
    if (fstat(APART_FD, &st) < 0 || !S_ISSOCK(st.st_mode)) {
        fputs("nacre-keeper is started by nacre, not by hand; see nacre(1).\n", stderr);
        return 2;
    }
    apart_detach("nacre-keeper");
    loop_forget(k);
    k->session.room = &the_room;
    k->fd[FD_LAUNCH] = APART_FD;
    if (introduce(k) < 0)
        return 1;
    int r;
    do
        r = keep_run(k);
    while (k->life == LIFE_REBORN);
    return r < 0;
}
