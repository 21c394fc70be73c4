#include "run/inside.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "sys/fd.h"
#include "sys/proc.h"

#define TRIES 3 /* an ancestor may end while it is looked at */

/* 1, 0, or -ESRCH. */
static int descends(pid_t keeper, pid_t pid)
{
    struct proc_stat stat;
    for (; pid > 1; pid = stat.parent) {
        if (pid == keeper)
            return 1;
        int r = proc_stat(pid, &stat);
        if (r < 0)
            return r;
    }
    return 0;
}

static bool is_in_leaf(const nacre_id *run, pid_t pid)
{
    char path[32], leaf[NACRE_ID_DIGITS + 16], text[4096];
    snprintf(path, sizeof path, "/proc/%d/cgroup", pid);
    snprintf(leaf, sizeof leaf, "/nacre-%s", nacre_id_format(run).s);
    return fd_slurp_at(AT_FDCWD, path, text, sizeof text) > 0 && strstr(text, leaf);
}

bool inside_of(const nacre_id *run, pid_t keeper, pid_t pid)
{
    char mark[NACRE_ID_DIGITS + 16];
    int r = -1;
    snprintf(mark, sizeof mark, "NACRE_ID=%s", nacre_id_format(run).s);
    for (int i = 0; pid > 0 && r < 0 && i < TRIES; i++)
        r = descends(keeper, pid);
    return r != 0 || is_in_leaf(run, pid) || proc_has_env(pid, mark) > 0;
}
