/*
 * The log of a shell drawn on a terminal with cells, with the sizes that it had: once, or again
 * and again as more comes.
 */
#pragma once

#include <nacre/error.h>
#include <nacre/id.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "run/marks.h"
#include "run/rundir.h"
#include "screen/grid.h"

struct nacre_session;

struct replay {
    struct nacre_session *session;
    nacre_id id;
    struct grid *grid;
    bool is_terminal; /* else it has pipes, and is drawn as on a terminal of the usual size */
    bool partial;     /* something that is needed for it is not in the log any more */
    struct run run;
    struct run_mark *marks; /* that are known; those from `next` on are not reached yet */
    size_t count, next;
};

/* Zeros, but for what is not open. */
#define REPLAY_NONE     \
    {                   \
        .run = RUN_NONE \
    }

int replay_begin(struct nacre_session *s, const nacre_id *id, struct replay *r, nacre_error *err);
void replay_done(struct replay *r);

/* Marks that were written since then; to be called when a piece was read, and before it is drawn.
 */
void replay_refresh(struct replay *r);

/* Bytes of the log; and sizes that follow the last of them. 0 or -ENOMEM. */
int replay_draw(struct replay *r, uint64_t offset, const char *data, size_t size);
int replay_finish(struct replay *r);
