/*
 * Names that are protected and were not there when the fence was made: nothing can be put over a
 * name that does not exist. What has appeared under one while the command ran is moved aside, and
 * told, before its end is. Whoever uses it in between uses what the command made.
 */
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "base/defs.h"
#include "keeper/keeper.h"

#define COARSE_NS (INT64_C(20) * 1000000) /* clocks of file systems go by ticks */

/* Without following a link anywhere: else the way to it could be made to lead elsewhere. */
static int open_above(const char *path)
{
    char above[PATH_MAX];
    struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
                           .resolve = RESOLVE_NO_SYMLINKS};
    snprintf(above, sizeof above, "%s", path);
    char *slash = strrchr(above, '/');
    if (!slash || slash == above)
        return -EINVAL;
    *slash = '\0';
    int fd = (int)syscall(SYS_openat2, AT_FDCWD, above, &how, sizeof how);
    return fd < 0 ? -errno : fd;
}

/* What somebody outside has made before is not the command's. */
static bool is_of_run(const struct keeper *k, int above, const char *name)
{
    struct statx st;
    if (statx(above, name, AT_SYMLINK_NOFOLLOW, STATX_BTIME | STATX_CTIME, &st) < 0)
        return false;
    const struct statx_timestamp *made = st.stx_mask & STATX_BTIME ? &st.stx_btime : &st.stx_ctime;
    return made->tv_sec * NS_PER_S + made->tv_nsec >= k->st.started_ns - COARSE_NS;
}

static void look_for(struct keeper *k, const char *path)
{
    char aside[NAME_MAX + 1];
    struct denial d = {.kind = DENIAL_PROTECTED};
    const char *name = strrchr(path, '/') + 1;
    cleanup_close int above = open_above(path);
    if (above < 0 || !is_of_run(k, above, name))
        return;
    int n = snprintf(aside, sizeof aside, "%s.nacre-%s", name, nacre_id_short(&k->st.id).s);
    if (n < 0 || (size_t)n >= sizeof aside || renameat(above, name, above, aside) < 0)
        return;
    snprintf(d.target, sizeof d.target, "%.*s", (int)sizeof d.target - 1, path);
    snprintf(d.why, sizeof d.why, "the name is protected; it is %.80s now", aside);
    denied_note(k, &d);
}

void appeared_look(struct keeper *k)
{
    const struct fence *fence = &k->session.fence;
    for (uint32_t i = 0; fence->head && i < fence->head->count; i++)
        if (fence_places(fence)[i].kind == FENCE_WATCH)
            look_for(k, fence_string(fence, fence_places(fence)[i].path));
}
