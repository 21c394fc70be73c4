/* What a program of ours does first, when the library has started it: being a process of its own,
 * of which nothing but what it is sent belongs to the host. */
#pragma once

#define APART_FD 3 /* the socket that it was started with */

/* A session of its own in `/`, with /dev/null as 0 to 2 and nothing above APART_FD. Ends the
 * process where that cannot be. */
void apart_detach(const char *name);

/* Nothing but SIGKILL and SIGSTOP reaches us: `kill $PPID` is for others. */
void apart_shield(void);
