/* The client's `initialize`, by which an agent learns whether there are terminals. */
#pragma once

#include <stdbool.h>

#include "rpc/message.h"

/* Whether a message is an `initialize` of version 1, whose terminals are the ones known here. */
bool acp_greeting_is_ours(const struct rpc_message *m);

/* Whether the client says in it that it has terminals. */
bool acp_greeting_has_terminals(const struct rpc_message *m);
