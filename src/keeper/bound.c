/*
 * The limits of a command, taken by the stand-in for itself right before it becomes that command:
 * controllers of cgroups first, since the kernel holds them for the whole tree; then what the
 * kernel holds for each process. What is left over the keeper watches; see excess.c.
 */
#include <stdio.h>
#include <string.h>
#include <sys/statfs.h>

#include "base/defs.h"
#include "keeper/keeper.h"
#include "sys/cgroup.h"
#include "sys/fd.h"

#define CPU_GRACE_S 5  /* between SIGXCPU and SIGKILL, of one process */
#define NICE_MORE   10 /* of a command whose share cannot be held */
#define NICE_MOST   19

static const struct {
    nacre_limit limit;
    enum controller controller;
} controlled[CONTROLLER_COUNT] = {
    {NACRE_LIMIT_MEMORY, CONTROLLER_MEMORY},
    {NACRE_LIMIT_PROCESSES, CONTROLLER_PIDS},
    {NACRE_LIMIT_CPU, CONTROLLER_CPU},
};

/* A group of its own, with the limit, and ourselves in it; or nothing of that. */
static int join_group(const struct standin *s, const char *parent, enum controller which,
                      uint64_t limit, char ret_path[CGROUP_PATH_MAX])
{
    char name[64];
    snprintf(name, sizeof name, CGROUP_PREFIX "%s", nacre_id_format(&s->plan.spec.head->id).s);
    int n = snprintf(ret_path, CGROUP_PATH_MAX, "%s/%s", parent, name);
    cleanup_close int group =
        *parent && n < CGROUP_PATH_MAX ? cgroup_create(parent, name) : -ENOENT;
    int r = group < 0 ? group : controller_limit(group, which, true, limit);
    if (r >= 0)
        r = fd_poke_at(group, "cgroup.procs", "0");
    if (r < 0 && group >= 0)
        cgroup_remove(ret_path);
    if (r < 0)
        ret_path[0] = '\0';
    return r;
}

static void take_controllers(const struct keeper *k, const struct standin *s)
{
    struct standin_page *page = k->page;
    const char *parent = spec_string(&s->plan.spec, page->spec.groups);
    for (size_t i = 0; i < CONTROLLER_COUNT; i++, parent += strlen(parent) + 1) {
        nacre_limit limit = controlled[i].limit;
        enum controller which = controlled[i].controller;
        uint64_t bound = page->spec.bounds[limit];
        if (bound == 0)
            continue;
        if (s->fd[FD_CGROUP] >= 0 && !page->outside &&
            controller_limit(s->fd[FD_CGROUP], which, false, bound) >= 0)
            page->st.limits.held[limit] = NACRE_HELD_CGROUP2;
        else if (join_group(s, parent, which, bound, page->group[which]) >= 0)
            page->st.limits.held[limit] = NACRE_HELD_CGROUP1;
    }
}

/* What is left to the kernel, for each process, and to the keeper. Whom it cannot see it cannot
 * count. */
static void name_holders(const struct keeper *k)
{
    static const struct {
        nacre_limit limit;
        nacre_holder blind, seeing; /* where the keeper sees nobody, and where it does */
    } holders[] = {
        {NACRE_LIMIT_MEMORY, NACRE_HELD_NOT, NACRE_HELD_KEEPER},
        {NACRE_LIMIT_PROCESSES, NACRE_HELD_NOT, NACRE_HELD_KEEPER},
        {NACRE_LIMIT_CPU, NACRE_HELD_NICE, NACRE_HELD_NICE},
        {NACRE_LIMIT_CPU_TIME, NACRE_HELD_RLIMIT, NACRE_HELD_KEEPER},
        {NACRE_LIMIT_FILES, NACRE_HELD_RLIMIT, NACRE_HELD_RLIMIT},
        {NACRE_LIMIT_FILE_SIZE, NACRE_HELD_RLIMIT, NACRE_HELD_RLIMIT},
        {NACRE_LIMIT_DISK, NACRE_HELD_KEEPER, NACRE_HELD_KEEPER},
    };
    struct standin_page *page = k->page;
    for (size_t i = 0; i < ARRAY_SIZE(holders); i++) {
        uint8_t *held = &page->st.limits.held[holders[i].limit];
        if (page->spec.bounds[holders[i].limit] > 0 && *held == NACRE_HELD_NOT)
            *held = (uint8_t)(k->proc_ours ? holders[i].seeing : holders[i].blind);
    }
}

static void note_disk(struct standin_page *page)
{
    struct statfs disk;
    if (page->spec.bounds[NACRE_LIMIT_DISK] > 0 && statfs(".", &disk) == 0)
        page->disk_free = (uint64_t)disk.f_bfree * (uint64_t)disk.f_bsize;
}

nacre_limit bound_take(const struct keeper *k, const struct standin *s)
{
    struct standin_page *page = k->page;
    if (!spec_is_bounded(&page->spec))
        return NACRE_LIMIT_NONE;
    take_controllers(k, s);
    name_holders(k);
    note_disk(page);
    for (int i = 0; i < NACRE_LIMIT_COUNT && page->spec.strict; i++) {
        uint8_t held = page->st.limits.held[i];
        if (page->spec.bounds[i] > 0 && (held == NACRE_HELD_NOT || held == NACRE_HELD_NICE))
            return (nacre_limit)i;
    }
    return NACRE_LIMIT_NONE;
}

/* -- For each process ------------------------------------------------------------------------- */

/* Never more than it may have already. */
static void take_rlimit(int resource, uint64_t soft, uint64_t hard)
{
    struct rlimit limit;
    if (soft == 0 || getrlimit((__rlimit_resource_t)resource, &limit) < 0)
        return;
    limit.rlim_cur = MIN(limit.rlim_cur, (rlim_t)soft);
    limit.rlim_max = MIN(limit.rlim_max, (rlim_t)hard);
    setrlimit((__rlimit_resource_t)resource, &limit);
}

void bound_take_own(const struct spec_head *spec, const struct state_limits *st)
{
    const uint64_t *bounds = spec->bounds;
    uint64_t seconds = (bounds[NACRE_LIMIT_CPU_TIME] + 999) / 1000;
    if (!spec_is_bounded(spec))
        return;
    take_rlimit(RLIMIT_CPU, seconds, seconds + CPU_GRACE_S);
    take_rlimit(RLIMIT_NOFILE, bounds[NACRE_LIMIT_FILES], bounds[NACRE_LIMIT_FILES]);
    take_rlimit(RLIMIT_FSIZE, bounds[NACRE_LIMIT_FILE_SIZE], bounds[NACRE_LIMIT_FILE_SIZE]);
    if (st->held[NACRE_LIMIT_CPU] == NACRE_HELD_NICE)
        setpriority(PRIO_PROCESS, 0, MIN(getpriority(PRIO_PROCESS, 0) + NICE_MORE, NICE_MOST));
}
