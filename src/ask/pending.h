/*
 * The questions of all sessions of a home, as somebody sees them who did not ask any: each session
 * is asked for its own, and an answer goes to the one that has the question. Operations: nothing
 * here waits. Who does not answer within a while (its process is stopped, or looks after nothing)
 * is counted.
 */
#pragma once

#include <nacre/ask.h>
#include <nacre/backend.h>

#include "ask/question.h"

struct pending_list {
    struct question *items;
    size_t count, room;
    int silent; /* sessions that did not say anything */
};

/* The result is a struct pending_list, oldest first, released with the operation. */
int pending_show(const char *home, nacre_op **ret_op, nacre_error *err);

struct pending_wish {
    const char *prefix; /* of the id; at least four digits */
    nacre_answer_kind kind;
    const char *way;
};

/* Answers the one whose id begins so. The result is the struct question that it was. */
int pending_answer(const char *home, const struct pending_wish *wish, nacre_op **ret_op,
                   nacre_error *err);
