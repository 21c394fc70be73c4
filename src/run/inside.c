#include "run/inside.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/defs.h"
#include "sys/fd.h"
#include "sys/proc.h"

#define TRIES       3 /* an ancestor may end while it is looked at */
#define KEEPER_NAME "nacre-keeper"
#define LEAF        "/nacre-"
#define MARK        "NACRE_ID="

/* 1, 0, or -ESRCH. keeper 0 = any: nobody but a process itself gives it its name. */
static int descends(pid_t keeper, pid_t pid)
{
    struct proc_stat stat;
    for (; pid > 1; pid = stat.parent) {
        if (pid == keeper)
            return 1;
        int r = proc_stat(pid, &stat);
        if (r < 0)
            return r;
        if (keeper == 0 && strcmp(stat.name, KEEPER_NAME) == 0)
            return 1;
    }
    return 0;
}

static int descends_surely(pid_t keeper, pid_t pid)
{
    int r = -ESRCH;
    for (int i = 0; pid > 0 && r < 0 && i < TRIES; i++)
        r = descends(keeper, pid);
    return r;
}

static bool is_in_leaf(const nacre_id *run, pid_t pid)
{
    char path[32], leaf[NACRE_ID_DIGITS + 16], text[4096];
    snprintf(path, sizeof path, "/proc/%d/cgroup", pid);
    snprintf(leaf, sizeof leaf, LEAF "%s", nacre_id_format(run).s);
    return fd_slurp_at(AT_FDCWD, path, text, sizeof text) > 0 && strstr(text, leaf);
}

bool inside_of(const nacre_id *run, pid_t keeper, pid_t pid)
{
    char mark[NACRE_ID_DIGITS + 16];
    snprintf(mark, sizeof mark, MARK "%s", nacre_id_format(run).s);
    return descends_surely(keeper, pid) != 0 || is_in_leaf(run, pid) || proc_has_env(pid, mark) > 0;
}

static bool is_in_any_leaf(pid_t pid)
{
    char path[32], text[4096];
    snprintf(path, sizeof path, "/proc/%d/cgroup", pid);
    if (fd_slurp_at(AT_FDCWD, path, text, sizeof text) <= 0)
        return true;
    for (const char *at = text; (at = strstr(at, LEAF)); at += strlen(LEAF))
        if (strspn(at + strlen(LEAF), "0123456789abcdef") == NACRE_ID_DIGITS)
            return true;
    return false;
}

bool inside_any(pid_t pid)
{
    return descends_surely(0, pid) != 0 || is_in_any_leaf(pid) || proc_has_variable(pid, MARK);
}
