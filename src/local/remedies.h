/*
 * Why there is no fence, and what to do about it: the property that it would have held, and a
 * remedy that goes by what this machine is like, since one error has many causes.
 */
#pragma once

#include <nacre/error.h>
#include <stdbool.h>

#include "run/fence.h"

/* What forbids namespaces, mounts and Landlock, as far as one can see it. */
struct machine_rules {
    bool apparmor;     /* restricts user namespaces (Ubuntu) */
    bool clone_off;    /* user namespaces are root's (Debian) */
    bool none_allowed; /* no user namespaces at all */
    bool filtered;     /* we run under somebody's seccomp filter, as in a container */
    bool landlock_off; /* the kernel has it, and it is not switched on */
    int major, minor;  /* of the kernel; 0 = not known */
};

struct machine_rules remedy_look_around(void);

/* What to do about a step that failed, in a few words. */
const char *remedy_for(const struct machine_rules *around, enum fence_step step, int error);

/* Why a fence could not be made or entered: what it would have held, and what to do. place: "" =
 * none. */
int fences_failed(enum fence_step step, int error, const char *place, nacre_error *err);
