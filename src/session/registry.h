/*
 * The shells of one session, in memory: which are alive, which are listed, how far each was read.
 * It knows no backend and makes no system call; every function is atomic and thread-safe.
 */
#pragma once

#include <nacre/id.h>
#include <nacre/record.h>
#include <nacre/view.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct registry;

enum shell_life {
    SHELL_RUNNING = 0,   /* no outcome yet */
    SHELL_LINGERING = 1, /* an outcome, and processes */
    SHELL_OVER = 2,
};

struct shell {
    nacre_id id;
    enum shell_life life;
    bool background; /* takes a place while it runs, and is listed */
    bool kept;
    bool foreign;    /* another session's that was read here: only its cursor counts */
    bool awaited;    /* its outcome is a completion of this session's, and not in the catalog yet */
    bool end_seen;   /* its end was delivered */
    bool ended_here; /* this session has asked for its end */
    int64_t started_ns; /* calendar; 0 = not known */
    uint64_t end;       /* of its log, as last heard */
    uint64_t read_to;
    int64_t looked_ms;       /* when its state was last looked at */
    nacre_position position; /* what was shown up to read_to; of size 0 if that is not known */
};

/* NULL if out of memory. */
struct registry *registry_new(void);
void registry_free(struct registry *r);

/*
 * Takes one of places for a background shell: 0, or -EAGAIN if running ones and reservations have
 * them all. Given back by registry_add() with that shell, or by registry_unreserve().
 */
int registry_reserve(struct registry *r, size_t places);
void registry_unreserve(struct registry *r);

/* How many are taken by starts that are under way. */
size_t registry_reserved(struct registry *r);

/* -ENOMEM, and then nothing has changed. reserved: it has a place already. */
int registry_add(struct registry *r, const struct shell *shell, bool reserved);
void registry_remove(struct registry *r, const nacre_id *id);

size_t registry_count(struct registry *r);

bool registry_get(struct registry *r, const nacre_id *id, struct shell *ret_shell);

/* It is in the background now, and awaited. False if it is not here, or was already. */
bool registry_set_background(struct registry *r, const nacre_id *id);

/*
 * What was heard of a shell: lives only get less, ends only grow. True if it has just got its
 * outcome. A foreground shell that is over leaves.
 */
bool registry_note(struct registry *r, const nacre_id *id, enum shell_life life, uint64_t end,
                   int64_t now_ms);

/* This session asks for its end. */
void registry_mark_ended(struct registry *r, const nacre_id *id);

/* It is not awaited any more. True if it was. */
bool registry_stop_awaiting(struct registry *r, const nacre_id *id);

/* The cursor only moves on. False if it is not here. */
bool registry_mark_read(struct registry *r, const nacre_id *id, uint64_t offset, bool saw_end);

/* Likewise. */
bool registry_set_position(struct registry *r, const nacre_id *id, const nacre_position *position);

/* Copies up to max shells that fit, oldest first; returns how many fit. */
typedef bool registry_match_fn(const struct shell *shell, const void *argument);
size_t registry_select(struct registry *r, registry_match_fn *match, const void *argument,
                       struct shell *ret_shells, size_t max);

/*
 * Drops listed shells that are over until at most `listed` background shells are left: oldest
 * first, those that were read before those that were not, never one that is alive or awaited.
 * Returns how many were dropped, and stores those up to max.
 */
size_t registry_evict(struct registry *r, size_t listed, struct shell *ret_dropped, size_t max);
