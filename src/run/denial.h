/*
 * What a fence, or the rules, refused: a record of fixed size, as the keeper writes it to the file
 * `denied` of the run, one after the other, and as the gate tells it to the keeper.
 */
#pragma once

#include <stdint.h>

#include "run/format.h"

#define DENIALS_MAX 32 /* kept of one run; what is the same counts once */

enum denial_kind {
    DENIAL_NETWORK = 0,   /* target is host:port or address:port */
    DENIAL_SOCKET = 1,    /* target is the path of a Unix socket */
    DENIAL_PROTECTED = 2, /* target is the path of something that appeared under a protected name */
    DENIAL_EXEC = 6, /* target is what was to be executed, as words; as nacre_denial_kind has it */
    DENIAL_KIND_COUNT
};

struct denial {
    uint32_t kind;
    int32_t pid;      /* 0 = not known */
    char program[64]; /* "" = not known */
    char target[256];
    char why[128];
};

FORMAT_PIN(5, struct denial, 456);
