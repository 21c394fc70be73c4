/* nacre mcp --install: the server in the file of an agent. */
#pragma once

#include "mcp/clients.h"

/* Writes it there, keeps the old file beside it, and says what it did. The status to exit with. */
int mcp_install(const struct mcp_client *client, const struct mcp_launch *launch);
