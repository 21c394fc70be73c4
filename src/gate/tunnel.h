/* What goes on between a client and the host that it reached, and the look at how it begins. */
#pragma once

#include "gate/http_head.h"
#include "gate/visit.h"

/* Everything that comes, both ways, to the end. What has port 443, or begins like TLS, must name
 * the host in its ClientHello; what has port 80 and is not TLS is one request, with that Host. */
void tunnel_run(struct visit *v);

/* One request, whose head was read and stands at the beginning of what was, and its answer. */
void tunnel_request(struct visit *v, const struct http_head *head);
