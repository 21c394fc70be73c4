/* What the programs of this layer use of a host besides its public functions. */
#pragma once

#include <nacre/acp.h>
#include <stdbool.h>

#include "rpc/message.h"

enum { ACP_NOT_FOUND = -32002, ACP_CANCELLED = -32800 };

/* nacre_acp_host_feed() for a message that was read already. */
int acp_host_take(nacre_acp_host *host, const struct rpc_message *message, nacre_error *reterr);

/* Whether a terminal/create is still to be answered. */
bool acp_host_is_starting(const nacre_acp_host *host);
