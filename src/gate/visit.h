/*
 * One connection of a client, from its first byte to its end: what it wants, whether it may, and
 * what it is told if not. Each visit has a process of its own, so it waits where it has to.
 */
#pragma once

#include <nacre/id.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "gate/http_head.h"
#include "run/hosts.h"

/* How it ends for the client, if not well. */
enum outcome {
    OUT_BLOCKED,
    OUT_ODD,
    OUT_LATE,
    OUT_LONG,
    OUT_CROWDED,
    OUT_UNKNOWN,
    OUT_UNREACHED,
    OUT_REFUSED,
    OUT_SLOW,
    OUT_COUNT,
};

/* In what the client is spoken to at this moment. */
enum voice {
    VOICE_HTTP,
    VOICE_SOCKS_GREETING,
    VOICE_SOCKS,
    VOICE_SOCKS_4,
    VOICE_TLS,  /* in a tunnel: an alert */
    VOICE_NONE, /* in a tunnel that carries anything */
};

struct visit {
    const char *rules;
    int patience_ms;
    bool crowded; /* there is no place: it is only told so */
    int client;
    int server;
    enum voice voice;
    int64_t until_ns; /* what is waited for has come by then, or never will */
    bool has_asker;
    nacre_id asker;
    struct net_host host;
    uint16_t port;
    size_t size; /* what was read and is not used up yet */
    char data[HTTP_HEAD_MAX];
};

void visit_run(struct visit *v);

/* -- For the parts of a visit ---------------------------------------------------------------------
 */

/* Reads more: its size, 0 at the end, -ETIMEDOUT, -E2BIG, ... */
int visit_fill(struct visit *v);

/* Forgets the first bytes of what was read. */
void visit_use_up(struct visit *v, size_t size);

/* Starts the clock anew. */
void visit_allow_time(struct visit *v);

/* Sends all of it to one of both ends, or fails. */
int visit_send(struct visit *v, int fd, const void *data, size_t size);

/* The last word to the client, in a sentence, and the end of what we say. */
PRINTF(3, 4) void visit_refuse(struct visit *v, enum outcome outcome, const char *fmt, ...);

/* The same for what the rules do not allow; the keeper of the asker hears it, too. */
PRINTF(2, 3) void visit_block(struct visit *v, const char *fmt, ...);

/* What a failed visit_fill() comes to. */
void visit_refuse_read(struct visit *v, int error);

/* Ends what we say, and waits a moment for the client's end: to close with something unread would
 * take away from it what it was told. */
void visit_say_goodbye(struct visit *v);
