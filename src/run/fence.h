/*
 * What a fence is made of, as the library tells it to nacre-fence and to keepers: a fixed head,
 * then places, then the strings that they name. A fence knows no settings and no modes: whoever
 * composed it has decided what is hidden, protected and writable.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "run/format.h"

/* The directories in the private one of the session, and where the last one is seen inside. */
#define FENCE_TMP        "tmp"
#define FENCE_VAR_TMP    "var-tmp"
#define FENCE_RUN        "run"
#define FENCE_RUN_INSIDE "/run/nacre"

#define FENCE_PLACES_MAX 2048
#define FENCE_SIZE_MAX   ((size_t)512 * 1024)

/* In this order they are put into the fence, whatever their order in the record. */
enum fence_kind {
    FENCE_PIN,     /* a directory that cannot be moved, since something below it is protected: it is
                      put where it lies, before anything else lies over it, and is never met */
    FENCE_DEVICES, /* path gets the few devices that every program may use */
    FENCE_MEMORY,  /* an empty place in memory */
    FENCE_PRIVATE, /* source, a directory of the session, lies there */
    FENCE_WRITE,   /* may be changed, with all that is below */
    FENCE_PROTECT, /* may not be changed although what is around it may */
    FENCE_HIDE,    /* is not there, or is empty */
    FENCE_SHOW,    /* is there in a place that was hidden or is private */
    FENCE_SOCKET,  /* the same for a socket, which may be talked to */
    FENCE_WATCH,   /* a protected name that does not exist; it may not appear */
    FENCE_LISTED, /* nothing lies there; but what is in it, or that it does not exist, decided about
                     other places */
    FENCE_KIND_COUNT
};

enum fence_network {
    FENCE_NETWORK_OFF,  /* of its own: the session's shells reach each other */
    FENCE_NETWORK_GATE, /* the same, with a gate for named hosts */
    FENCE_NETWORK_ON,   /* the host's */
};

struct fence_head {
    uint8_t magic[8];
    uint32_t format;
    uint32_t size;    /* of all of it */
    uint32_t network; /* enum fence_network */
    uint32_t count;   /* of places, which follow the head */
    uint32_t canary;  /* offset of a directory that the user may change, and the fence may not; or
                         0 = there is none */
    uint32_t words;   /* offset of what people call it: "workspace-write, network off" */
    uint64_t sum;     /* over everything else: two fences with the same are the same */
};

struct fence_place {
    uint32_t kind;   /* enum fence_kind */
    uint32_t path;   /* offset of an absolute path without links */
    uint32_t source; /* of FENCE_PRIVATE: offset of the path outside; else 0 */
    uint32_t pad;
};

/* What lies there may be changed, with all that is below. */
static inline bool fence_place_is_writable(const struct fence_place *place)
{
    return place->kind == FENCE_WRITE || place->kind == FENCE_PRIVATE ||
           place->kind == FENCE_MEMORY || place->kind == FENCE_DEVICES;
}

FORMAT_PIN(5, struct fence_head, 40);
FORMAT_PIN(5, struct fence_place, 16);

/* A record in memory, checked: every offset is inside, every string ends. */
struct fence {
    const struct fence_head *head;
    size_t size;
};

/* -EBADMSG if anything in it does not hold. */
int fence_check(const void *data, size_t size, struct fence *ret_fence);

/* Maps one that came as a descriptor, privately and for good. */
int fence_map(int fd, struct fence *ret_fence);

/* The sum that belongs into the head. */
uint64_t fence_sum(const void *data, size_t size);

static inline const struct fence_place *fence_places(const struct fence *fence)
{
    return (const struct fence_place *)(fence->head + 1);
}

static inline const char *fence_string(const struct fence *fence, uint32_t offset)
{
    return (const char *)fence->head + offset;
}

/* -- How it went ------------------------------------------------------------------------------ */

/* What a fence holds; see docs/sandbox.md. */
enum fence_property {
    FENCE_P_NONE,
    FENCE_P_FILES,     /* what is outside the writable places stays as it is */
    FENCE_P_HIDDEN,    /* hidden places cannot be read */
    FENCE_P_PROTECTED, /* protected places inside the writable ones stay as they are */
    FENCE_P_NETWORK,   /* no network, or by the gate only */
    FENCE_P_SOCKETS,   /* no Unix socket of the host */
    FENCE_P_PROCESSES, /* processes of the host are neither signalled nor read */
    FENCE_P_PRIVILEGE, /* nothing gives more rights */
    FENCE_P_COUNT
};

/* The step that failed. Each belongs to a property. */
enum fence_step {
    FENCE_STEP_NONE,
    FENCE_STEP_RECORD,
    FENCE_STEP_USER_NS,
    FENCE_STEP_MAPS,
    FENCE_STEP_MOUNT_NS,
    FENCE_STEP_NETWORK_NS,
    FENCE_STEP_LOOPBACK,
    FENCE_STEP_OPEN,
    FENCE_STEP_READ_ONLY,
    FENCE_STEP_PLACE,
    FENCE_STEP_LANDLOCK,
    FENCE_STEP_GATE,
    FENCE_STEP_JOIN,
    FENCE_STEP_PRIVILEGES,
    FENCE_STEP_FILTER,
    FENCE_STEP_CANARY,
    FENCE_STEP_COUNT
};

enum fence_property fence_step_property(enum fence_step step);

/* What is being done in a step, for a sentence: "cannot ...". */
const char *fence_step_words(enum fence_step step);
