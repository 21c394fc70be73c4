/* Asking the person behind an ACP client: session/request_permission, and what they chose. */
#pragma once

#include <jansson.h>
#include <nacre/ask.h>
#include <nacre/session.h>
#include <stdbool.h>

#include "base/buf.h"
#include "rpc/message.h"

/* Writes the request, with an id of ours. 0 or -errno. */
int permission_request(const char *session_id, const nacre_question *q, struct buf *out);

/* Whether a message is the response to such a request: then the question is answered with it. */
bool permission_hear(nacre_session *session, const struct rpc_message *m);
