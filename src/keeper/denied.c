/* What the fence refused, written down for whoever reads of the run: each thing once. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/defs.h"
#include "base/sum.h"
#include "keeper/keeper.h"
#include "run/rundir.h"
#include "sys/fd.h"

static uint64_t sum_of_denial(const struct denial *d)
{
    return sum_text(sum_text(SUM_TEXTS ^ d->kind, d->target), d->program);
}

static bool is_noted(const struct keeper *k, uint64_t sum)
{
    for (uint32_t i = 0; i < k->denied_count; i++)
        if (k->session.room->denied[i] == sum)
            return true;
    return false;
}

void denied_note(struct keeper *k, const struct denial *denial)
{
    struct denial d = *denial;
    d.program[sizeof d.program - 1] = d.target[sizeof d.target - 1] = d.why[sizeof d.why - 1] =
        '\0';
    uint64_t sum = sum_of_denial(&d);
    if (k->denied_count == DENIALS_MAX || d.kind >= DENIAL_KIND_COUNT || is_noted(k, sum))
        return;
    if (k->fd[FD_DENIED] < 0)
        k->fd[FD_DENIED] = run_make_file(k->fd[FD_DIR], "denied");
    if (k->fd[FD_DENIED] < 0 ||
        fd_pwrite_all(k->fd[FD_DENIED], &d, sizeof d, (off_t)(k->denied_count * sizeof d)) < 0)
        return;
    k->session.room->denied[k->denied_count++] = sum;
}

/* Who it was, by its pid. */
void denied_name(struct denial *d, pid_t pid)
{
    char path[32];
    d->pid = pid;
    snprintf(path, sizeof path, "/proc/%d/comm", pid);
    if (fd_slurp_at(AT_FDCWD, path, d->program, sizeof d->program) < 0)
        d->program[0] = '\0';
    d->program[strcspn(d->program, "\n")] = '\0';
}
