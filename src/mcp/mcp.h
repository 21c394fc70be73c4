/* The MCP server: an agent's way to the tools, over stdin and stdout. */
#pragma once

#include <stdbool.h>

#include <nacre/error.h>
#include <nacre/settings.h>

struct mcp_options {
    bool log;                       /* a line on stderr for every message */
    const char *name;               /* of the session; NULL = the environment's */
    const nacre_settings *settings; /* NULL = the file and the environment */
    const char *fault; /* what is wrong with those: then no tool does anything, and each says it */
};

/*
 * Serves the client on descriptors 0 and 1 until it closes its end or SIGTERM, SIGINT or SIGHUP
 * comes. These signals are blocked from then on, and SIGPIPE is ignored. 0, or the error that ended
 * it.
 */
int mcp_serve(const struct mcp_options *options, nacre_error *reterr);
