/* What nacre offers: its shells, by the tools; their runs as resources; questions about them. */
#include <nacre/nacre.h>

#include "base/defs.h"
#include "mcp/peer.h"
#include "tool/call.h"

static json_t *list_shell_tools(const struct mcp_peer *p)
{
    return tool_list(p->session);
}

static int begin_shell_call(const struct mcp_request *q, const char *tool, json_t *arguments,
                            bool progress, void **ret_call, nacre_error *err)
{
    nacre_call_options options = NACRE_CALL_OPTIONS_INIT;
    struct mcp_round round = {.request = q, .tool = tool, .arguments = arguments};
    nacre_call *call;
    options.progress = progress;
    *ret_call = NULL;
    q->peer->round = &round;
    int r = call_begin_object(q->peer->session, tool, arguments, &options, &call, err);
    q->peer->round = NULL;
    if (r < 0)
        json_decref(round.required);
    else if (mcp_round_answer(&round) == 0)
        *ret_call = call;
    else
        nacre_call_free(call);
    return r < 0 ? r : *ret_call ? 0 : 1;
}

static int shell_call_fd(const void *call)
{
    return nacre_call_fd(call);
}

static int64_t shell_call_timeout(const void *call)
{
    return nacre_call_timeout(call);
}

static int step_shell_call(void *call, nacre_error *err)
{
    return nacre_call_step(call, err);
}

static const char *shell_call_progress(void *call)
{
    return nacre_call_progress(call);
}

static json_t *take_shell_result(void *call)
{
    return call_take_result(call);
}

static void say_shell_memory(const void *call, nacre_error *err)
{
    call_no_memory(call, err);
}

static void shell_call_delivered(void *call)
{
    nacre_call_delivered(call);
}

static void cancel_shell_call(void *call)
{
    nacre_call_cancel(call);
}

static void free_shell_call(void *call)
{
    nacre_call_free(call);
}

static const struct mcp_tools shell_tools = {
    .list = list_shell_tools,
    .begin = begin_shell_call,
    .fd = shell_call_fd,
    .timeout = shell_call_timeout,
    .step = step_shell_call,
    .progress = shell_call_progress,
    .take_result = take_shell_result,
    .no_memory = say_shell_memory,
    .delivered = shell_call_delivered,
    .cancel = cancel_shell_call,
    .free = free_shell_call,
};

static const struct mcp_method shell_methods[] = {
    {"resources/list", MCP_BOTH_ERAS, mcp_list_resources},
    {"resources/templates/list", MCP_BOTH_ERAS, mcp_list_templates},
    {"resources/read", MCP_BOTH_ERAS, mcp_read_resource},
    {"resources/subscribe", MCP_LEGACY_ONLY, mcp_subscribe},
    {"resources/unsubscribe", MCP_LEGACY_ONLY, mcp_unsubscribe},
    {"subscriptions/listen", MCP_MODERN_ONLY, mcp_listen},
    {"prompts/list", MCP_BOTH_ERAS, mcp_list_prompts},
    {"prompts/get", MCP_BOTH_ERAS, mcp_get_prompt},
    {"completion/complete", MCP_BOTH_ERAS, mcp_complete},
    {0},
};

static json_t *shell_version(void)
{
    return json_string(nacre_version());
}

static json_t *shell_capabilities(void)
{
    return json_pack("{s:{}, s:{s:b}, s:{}, s:{}, s:{}}", "tools", "resources", "subscribe", 1,
                     "prompts", "completions", "logging");
}

static json_t *shell_instructions(const struct mcp_peer *p)
{
    cleanup_free char *text = NULL;
    return nacre_instructions(p->session, &text, NULL) < 0 ? NULL : json_string(text);
}

const struct mcp_table mcp_shells = {
    .name = "nacre",
    .title = "nacre shells",
    .version = shell_version,
    .capabilities = shell_capabilities,
    .instructions = shell_instructions,
    .tools = &shell_tools,
    .methods = shell_methods,
    .hear = mcp_hear_decision,
};
