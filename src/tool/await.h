/* The arguments wait, until, idle, until_input and port of a tool: what they mean, and what is said
 * of them after. */
#pragma once

#include <nacre/session.h>
#include <stdbool.h>
#include <stdint.h>

#include "tool/beside.h"
#include "tool/follow.h"
#include "tool/tool.h"

struct await_args {
    int64_t wait; /* ms; below 0 = not given, as idle */
    const char *until;
    int64_t idle;
    bool all; /* of each shell, not of any */
    bool until_input;
    int64_t port; /* 0 = any; below 0 = not given */
};

struct await {
    struct match *until;
    struct follow *follow; /* NULL = nothing is waited for */
    int64_t deadline_ns;
    int64_t waited_ms; /* what it was allowed to */
    bool cut;          /* it was asked to wait longer */
    bool came_true;
    struct beside reading; /* who reads is waited for; */
    nacre_reading read;    /* who does, once that came */
    struct beside listening;
    nacre_port listens; /* likewise for a port */
    int port;
};

/* Whether there is anything to wait for, once the arguments are read. */
int await_read(struct await *w, const nacre_call *c, const struct await_args *args,
               nacre_error *err);
static inline bool await_is_wanted(const struct await *w)
{
    return w->waited_ms > 0 || w->until;
}

/* Begins to listen, to each shell from an offset of its log on. The time runs from await_start().
 */
int await_listen(struct await *w, nacre_call *c, const struct await_args *args, const nacre_id *ids,
                 const uint64_t *offsets, size_t count, nacre_error *err);
void await_start(struct await *w);

/* TOOL_DONE when it came true or the time is over. */
int await_step(struct await *w, nacre_call *c, nacre_error *err);

/* Whether what was waited for came, in words: of shell i, and of the time. */
void await_note(const struct await *w, struct answer *a, size_t i, const nacre_record *record);
void await_note_time(const struct await *w, struct answer *a);

void await_done(struct await *w);
