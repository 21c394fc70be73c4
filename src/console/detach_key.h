/*
 * The keys by which a person leaves a shell: one after the other, and anywhere among the others
 * that go to the program. Whoever wants the first of them itself presses it twice.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

#define DETACH_KEY     "C-] d"
#define DETACH_KEY_MAX 16

struct detach_key {
    char name[48];
    char bytes[DETACH_KEY_MAX];
    size_t size;    /* 0 = there is none */
    size_t matched; /* of them were pressed, and are held back */
    size_t first;   /* bytes of the first key */
};

/* Reads "C-] d", "C-p,C-q", "f12" or "none"; false if it is none of these. */
bool detach_key_parse(struct detach_key *key, const char *text);

static inline bool detach_key_is_begun(const struct detach_key *key)
{
    return key->matched > 0;
}

/* Appends what is for the program to the buffer. True: they leave, and what follows was not typed
 * for anybody. */
bool detach_key_feed(struct detach_key *key, const char *bytes, size_t size, struct buf *out);
