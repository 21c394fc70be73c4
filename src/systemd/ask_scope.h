/*
 * A scope of the user's own systemd: a place in the cgroup tree that belongs to us, with
 * controllers, which the cgroup of a login session is not. Whoever runs in a login session with a
 * service manager may ask it, over the user's bus, to put a process of his into a new one and to
 * leave what is below to him (`Delegate`). It is gone when its last process is.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* Whether there is somebody to ask, by what can be seen from here, and a reason to: 0; -EALREADY if
 * our own cgroup can be divided, controllers included; -ESRCH if this is not a login session of our
 * own user, or inside of a shell of ours, whose tree nothing may leave; or -errno. */
int scope_is_wanted(void);

/* Whether what is in a scope goes on when the last login of the user is over: lingering is on. */
bool scope_outlives_login(void);

/* A request under way. */
struct scope_ask;

/* Asks for a scope of that name (it ends in .scope) around a process of ours. Never waits. 0 or
 * -errno; -ENOENT if nobody listens. */
int scope_ask_begin(const char *name, pid_t pid, struct scope_ask **ret_ask);

/* The same of who listens behind a connected socket, which it takes. */
int scope_ask_of(int bus, const char *name, pid_t pid, struct scope_ask **ret_ask);

/* Goes on without waiting: 1 = the process is in its scope, 0 = to be stepped again when its
 * descriptor is readable; or -errno. */
int scope_ask_step(struct scope_ask *ask);
int scope_ask_fd(const struct scope_ask *ask);

/* Why it was refused, in the words of who did; "" if nobody said anything. */
const char *scope_ask_reason(const struct scope_ask *ask);

/* What was asked for may be granted all the same. */
void scope_ask_end(struct scope_ask *ask);
