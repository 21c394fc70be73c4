/* The MCP server: an agent's way to the tools, over stdin and stdout. */
#ifndef NACRE_MCP_H
#define NACRE_MCP_H

#include <stdbool.h>

#include <nacre/error.h>

struct mcp_options {
    bool log;         /* a line on stderr for every message */
    const char *name; /* of the session; NULL = the environment's */
};

/*
 * Serves the client on descriptors 0 and 1 until it closes its end or SIGTERM, SIGINT or SIGHUP
 * comes. These signals are blocked from then on, and SIGPIPE is ignored. 0, or the error that ended
 * it.
 */
int mcp_serve(const struct mcp_options *options, nacre_error *reterr);

/* How a client is told to use the server, as text for a person; NULL for one that is not known.
 * Valid forever, with @NACRE@ in place of the path of the program. */
const char *mcp_client_config(const char *client);

/* The names of the known clients, as a sentence has them. */
const char *mcp_client_names(void);

#endif
