/*
 * Asking the person behind a client of the modern era, where a server sends no requests: a call is
 * answered with what is asked, and comes again with the answer and with a state of ours. The state
 * is signed, good once and for a while, and for the very same call, question and rules: what a
 * client, or whoever else has it, makes of it is found out here.
 */
#pragma once

#include <jansson.h>
#include <nacre/ask.h>
#include <nacre/session.h>
#include <stdint.h>

#include "base/sha256.h"

struct mcp_request;
struct spent_state;

/* Of a peer. */
struct mcp_seal {
    uint8_t key[SHA256_SIZE];
    bool has_key;
    struct spent_state *spent; /* states that were used, until they lapse */
    size_t count, room;
};

void mcp_seal_done(struct mcp_seal *seal);

/* What came of asking while a call began. */
struct mcp_round {
    const struct mcp_request *request;
    const char *tool;
    const json_t *arguments;
    json_t *required;  /* the answer to the call: what is asked; NULL = nothing is */
    const char *fault; /* the state is none that counts; NULL = it does, or there was none */
};

/* For nacre_options.ask. */
int mcp_round_ask(struct mcp_round *round, nacre_session *session, const nacre_question *question);

/* 1 = the request was answered with what came of it; 0 = there is nothing to say. */
int mcp_round_answer(struct mcp_round *round);
