#include "acp/greeting.h"

#include <string.h>

#include <nacre/acp.h>

#include "base/defs.h"

#define VERSION 1

bool acp_greeting_is_ours(const struct rpc_message *m)
{
    const json_t *version = json_object_get(m->params, "protocolVersion");
    return m->kind == RPC_REQUEST && strcmp(m->method, "initialize") == 0 &&
           json_is_integer(version) && json_integer_value(version) == VERSION;
}

bool acp_greeting_has_terminals(const struct rpc_message *m)
{
    const json_t *capabilities = json_object_get(m->params, "clientCapabilities");
    return json_is_true(json_object_get(capabilities, "terminal"));
}

int nacre_acp_client_has_terminals(const char *initialize, size_t size)
{
    struct rpc_fault fault;
    struct rpc_message m;
    json_auto_t *value = rpc_decode(initialize, size, &fault);
    return value && rpc_read(value, &m, &fault) == 0 && acp_greeting_is_ours(&m) &&
           acp_greeting_has_terminals(&m);
}
