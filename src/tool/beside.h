/* An operation that a call waits for beside what its shell does: one descriptor for both. */
#pragma once

#include <nacre/backend.h>
#include <nacre/error.h>
#include <stdint.h>

struct beside {
    nacre_op *op; /* NULL = nothing is waited for */
    int epoll;
};

/* Consumes the operation. A shell is heard by the other descriptor, which stays the same. */
int beside_begin(struct beside *b, nacre_op *op, int other, nacre_error *err);

/* 1 = it is done, and its result is there until it is ended; 0 = not yet; or a code. */
int beside_step(struct beside *b, nacre_error *err);

/* What to poll for both, and when to step without it. */
int beside_fd(const struct beside *b);
int64_t beside_wake_ns(const struct beside *b);

void beside_end(struct beside *b);
