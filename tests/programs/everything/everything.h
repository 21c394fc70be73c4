/*
 * A server with one of everything that MCP has, for suites that test servers: tools that answer
 * with pictures, ask their client, tell of progress; resources, prompts. It is made of the objects
 * of `nacre serve` with another table, so what such a suite finds is true of them. What it offers
 * stands in everything.json:
 *
 *   tools      a tool is answered with its `result`. Before that its `notes` are sent, 50 ms apart.
 * With `needs` it refuses a client without these capabilities. `ask` is a request to a client of
 * the legacy era. `rounds` are what a client of the modern era has to answer in turn, each an
 * object of requests; `sealed` says that their state is given out. prompts    `messages`, in which
 * {NAME} is an argument; or `rounds` before resources  by their `uri`, in which {id} is any word
 *
 *   main.c     the table, and the server
 *   calls.c    tools
 *   rounds.c   asking a client of the modern era, by answers that want input
 *   reads.c    prompts, resources, completion
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "mcp/peer.h"

/* The text of everything.json. */
extern const json_t *everything;

/* The entry of a list whose member is this text, or NULL. */
const json_t *everything_find(const char *list, const char *member, const char *text);

/* A copy in which {NAME} stands for a text; words is an object of texts. */
json_t *everything_fill(const json_t *value, const json_t *words);

/* -- calls.c ---------------------------------------------------------------------------------- */

extern const struct mcp_tools everything_tools;
void everything_hear(struct mcp_peer *p, const struct rpc_message *m);

/* -- rounds.c --------------------------------------------------------------------------------- */

/*
 * Where a request stands in the rounds of its entry: a result that wants input, or NULL if all was
 * answered. *ret_refused: its state is none that was given out, and it was answered with an error.
 */
json_t *rounds_next(const struct mcp_request *q, const json_t *entry, bool *ret_refused);

/* Whether the client has declared what an object of capabilities names; what it lacks is answered.
 */
bool rounds_may(const struct mcp_request *q, const json_t *needs);

/* -- reads.c ---------------------------------------------------------------------------------- */

extern const struct mcp_method everything_methods[];
