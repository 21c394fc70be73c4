#include "home/denials.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/defs.h"
#include "run/denial.h"
#include "run/rundir.h"
#include "sys/fd.h"

int denials_add(nacre_record *record, const nacre_denial *denial)
{
    for (int i = 0; i < record->denial_count; i++)
        if (record->denials[i].kind == denial->kind &&
            strcmp(record->denials[i].target, denial->target) == 0)
            return 0;
    size_t count = (size_t)record->denial_count + 1;
    nacre_denial *more = realloc(record->denials, count * sizeof *more);
    if (!more)
        return -ENOMEM;
    more[count - 1] = *denial;
    record->denials = more;
    record->denial_count = (int)count;
    return 0;
}

static void copy_text(char *to, size_t size, const char *from, size_t from_size)
{
    snprintf(to, size, "%.*s", (int)strnlen(from, from_size), from);
}

static nacre_denial take_denial(const struct denial *d)
{
    nacre_denial taken = {.kind = (nacre_denial_kind)d->kind, .pid = d->pid};
    copy_text(taken.program, sizeof taken.program, d->program, sizeof d->program);
    copy_text(taken.target, sizeof taken.target, d->target, sizeof d->target);
    copy_text(taken.why, sizeof taken.why, d->why, sizeof d->why);
    return taken;
}

bool denials_are_kept(const struct spec *spec)
{
    return spec &&
           (spec->head->gated || (spec->head->sandbox && *spec_string(spec, spec->head->sandbox)));
}

int denials_read(int dir, const struct spec *spec, nacre_record *record)
{
    struct denial d;
    if (!denials_are_kept(spec))
        return 0;
    cleanup_close int fd = run_open_file(dir, "denied", O_RDONLY);
    int r = 0;
    for (int i = 0; fd >= 0 && r == 0 && i < DENIALS_MAX; i++) {
        if (fd_read_all(fd, &d, sizeof d) != sizeof d || d.kind >= DENIAL_KIND_COUNT)
            break;
        nacre_denial taken = take_denial(&d);
        r = denials_add(record, &taken);
    }
    return r;
}
