/* How a desk is reached from outside: a socket `asking/SESSION` in the home, there while something
 * is asked. Who asks has the texts, and says them itself: no file has them that others could
 * change. */
#pragma once

#include <nacre/ask.h>
#include <nacre/id.h>

#include "base/buf.h"
#include "sys/fd.h"

struct desk;

#define DOOR_DIR      "asking"
#define DOOR_WORD_MAX 1024 /* bytes of a request, and of its answer */
#define DOOR_CALLERS  8    /* that have not said anything yet; the oldest goes */

struct desk_door {
    int epoll; /* of the next ones */
    int listener;
    int callers[DOOR_CALLERS];
    size_t caller_count;
    char path[4200]; /* "" = it is not open */
};

/* Readable when somebody comes. 0 or -errno. */
int desk_door_init(struct desk_door *door);
void desk_door_done(struct desk_door *door, bool forked);

/* 0 or -errno. */
int desk_door_open(struct desk_door *door, const char *home, const nacre_id *session);
void desk_door_close(struct desk_door *door);

/* Who has come and said what they want. The descriptor is the caller's. */
struct door_word {
    int fd;
    char text[DOOR_WORD_MAX + 1];
};
size_t desk_door_hear(struct desk_door *door, struct door_word words[DOOR_CALLERS]);

/* Does what somebody wants of the desk, and answers. */
void desk_door_serve(struct desk *d, struct door_word *word);
