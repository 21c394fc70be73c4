/*
 * What a keeper owes, and by when: the end of its command when its time is over, and the end of
 * everything when its owner is gone. A command may stop its keeper, trace it or starve it. So
 * whoever waits for a run, or looks at one, wakes its keeper, and ends what it keeps from outside
 * if that is of no use.
 */
#pragma once

#include <nacre/record.h>
#include <stdbool.h>
#include <stdint.h>

#include "run/rundir.h"
#include "sys/proc.h"

struct overdue {
    bool known; /* the next three, from the spec */
    int64_t timeout_ms;
    int64_t grace_ms;
    struct proc_ref owner;
    int64_t left_ns;  /* when its session was closed by this process; 0 = it was not */
    int64_t since_ns; /* when it was first seen to be late; 0 = it was not */
    int wakes;        /* it was stopped so many times when it was looked at */
    bool timed_out;   /* its keeper was seen to live when its time was over */
};

/* What was asked of it, by a spec or by that of a run. */
void overdue_learn(struct overdue *o, const struct spec_head *spec);
void overdue_read(struct overdue *o, const struct run *run);

/* Whether there is something to do for the keeper of a run that is not over: it is stopped or
 * traced, or late. */
bool overdue_is(const struct overdue *o, const struct run_state *state);

/*
 * A look, by somebody who comes again: a keeper that is stopped is woken. What it owes now, or
 * NACRE_REASON_NONE; with *ret_force it does not come to it, and is to be ended by force.
 */
nacre_reason overdue_look(struct overdue *o, const struct run_state *state, bool *ret_force);

/* Ends the tree of a run whose keeper lives: one round, which returns how many were there, and the
 * first of them. While the keeper lives, orphans are its children, and are found. */
size_t overdue_end_tree(const struct run_state *state, struct proc_ref *ret_refs, size_t max);

/* Whether the leaf that a state names is that of its run. */
bool overdue_has_leaf(const struct run_state *state);
