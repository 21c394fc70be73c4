/* Waiting for one or several shells: for new output, a text in it, silence, or the end. */
#pragma once

#include <nacre/session.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tool/excerpt.h"

/* Bytes of a stream that a match may span; of a longer one the beginning may be forgotten. */
#define FOLLOW_SPAN ((size_t)32 * 1024)

/* What is waited for. Without a text and without silence it is any new output. */
struct follow_want {
    struct match *until; /* borrowed; NULL = no text */
    int64_t idle_ms;     /* below 0 = no silence */
    bool all;            /* of each shell, not of any */
    bool joined;         /* other things are waited for, too: what is polled stays the same */
    bool only_end;       /* only the end counts, not what is printed */
};

struct follow;

/* Each shell from an offset of its log on. */
int follow_new(nacre_session *session, const struct follow_want *want, const nacre_id *ids,
               const uint64_t *offsets, size_t count, struct follow **ret, nacre_error *err);
void follow_free(struct follow *f);

/* 1 = it has come true, 0 = not yet. */
int follow_step(struct follow *f, nacre_error *err);

/* What to poll, and when to step without it. */
int follow_fd(const struct follow *f);
int64_t follow_wake_ns(const struct follow *f);

/* Whether the text was seen in shell i. */
bool follow_matched(const struct follow *f, size_t i);
