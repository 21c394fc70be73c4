/*
 * nacre-fence: makes the namespaces and mounts of a fence, hands them over as descriptors, and
 * goes. What keeps a fence in being is whoever holds these: the session and its keepers. It is
 * started by the library with a socket as descriptor 3, once for each fence of a session.
 *
 *   builder.c  the conversation, the namespaces, the network
 *   places.c   what lies where inside
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "run/fence.h"
#include "run/wire.h"

/* How far it is, for who is told of a failure. */
struct builder {
    struct fence fence;
    enum fence_step step;
    uint32_t place;
    bool root; /* whose rights reach further than those of a user: more is taken away */
    int opened[FENCE_PLACES_MAX]; /* copies of what will be put in, made before anything changes */
    int devices[8];
    int fd[FENCE_FDS]; /* in the order of enum wire_fence_fds */
    uint32_t landlock;
    uint32_t port;
};

/* In a mount namespace of its own: 0 or -errno. */
int places_open(struct builder *b);
int places_close_off(struct builder *b);
int places_put(struct builder *b);

/* The rules that hold even for what mounts do not see: a ruleset. */
int places_allow(struct builder *b);
