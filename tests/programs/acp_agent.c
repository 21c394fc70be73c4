/*
 * A small agent on stdin and stdout that links the library: what it is prompted with it runs with
 * the tools, in its client's terminals if there are any, else here.
 *
 * A prompt is a command for `bash`, or {"tool": NAME, "arguments": {...}}. It is shown as a tool
 * call with the terminal in it; the tool's answer is the agent's message. session/cancel cancels
 * the call.
 */
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>
#include <nacre/nacre.h>

#define SESSION "session-1"
#define CALL    "call-1"

struct agent {
    bool has_terminals;
    nacre_acp_agent *terminals;
    nacre_session *session;
    char *in; /* what came and is no whole line yet */
    size_t in_size, in_cap;
    json_t *inbox; /* messages that are for the agent itself */
    bool ended;
};

/* -- Lines ------------------------------------------------------------------------------------- */

static int send_text(const char *text, size_t size, void *userdata)
{
    (void)userdata;
    return fwrite(text, 1, size, stdout) == size && putchar('\n') == '\n' && fflush(stdout) == 0
               ? 0
               : -1;
}

static void send_consume(json_t *message)
{
    char *text = json_dumps(message, JSON_COMPACT);
    send_text(text, strlen(text), NULL);
    free(text);
    json_decref(message);
}

static void answer_consume(const json_t *request, json_t *result)
{
    send_consume(json_pack("{s:s, s:O, s:o}", "jsonrpc", "2.0", "id",
                           json_object_get(request, "id"), "result", result));
}

static void refuse(const json_t *request, int code, const char *text)
{
    send_consume(json_pack("{s:s, s:O, s:{s:i, s:s}}", "jsonrpc", "2.0", "id",
                           json_object_get(request, "id"), "error", "code", code, "message", text));
}

static void update_consume(json_t *update)
{
    send_consume(json_pack("{s:s, s:s, s:{s:s, s:o}}", "jsonrpc", "2.0", "method", "session/update",
                           "params", "sessionId", SESSION, "update", update));
}

static void take_line(struct agent *a, const char *line, size_t size)
{
    json_t *message = json_loadb(line, size, 0, NULL);
    if (!message)
        return;
    const char *method = json_string_value(json_object_get(message, "method"));
    if (method && strcmp(method, "initialize") == 0)
        a->has_terminals = nacre_acp_client_has_terminals(line, size);
    if (!a->terminals || nacre_acp_agent_feed(a->terminals, line, size, NULL) != 1)
        json_array_append(a->inbox, message);
    json_decref(message);
}

/* Reads for up to that long; below 0 at the end. */
static int receive(int timeout_ms, void *userdata)
{
    struct agent *a = userdata;
    struct pollfd poller = {.fd = STDIN_FILENO, .events = POLLIN};
    if (poll(&poller, 1, timeout_ms) <= 0)
        return 0;
    if (a->in_cap - a->in_size < 65536) {
        a->in_cap = a->in_size + 131072;
        a->in = realloc(a->in, a->in_cap);
    }
    ssize_t n = read(STDIN_FILENO, a->in + a->in_size, a->in_cap - a->in_size);
    if (n <= 0) {
        a->ended = true;
        return -1;
    }
    a->in_size += (size_t)n;
    char *line = a->in, *end;
    size_t left = a->in_size;
    while ((end = memchr(line, '\n', left))) {
        take_line(a, line, (size_t)(end - line));
        left -= (size_t)(end + 1 - line);
        line = end + 1;
    }
    memmove(a->in, line, left);
    a->in_size = left;
    return 0;
}

/* Shows a terminal while there is one: clients do not know it any more once it is released. */
static void embed(const nacre_id *id, const char *terminal, void *userdata)
{
    (void)id;
    (void)userdata;
    update_consume(json_pack("{s:s, s:s, s:[{s:s, s:s}]}", "sessionUpdate", "tool_call_update",
                             "toolCallId", CALL, "content", "type", "terminal", "terminalId",
                             terminal));
}

/* -- Sessions ---------------------------------------------------------------------------------- */

static const char **directories_of(const json_t *params)
{
    const json_t *list = json_object_get(params, "additionalDirectories");
    const char **result = calloc(json_array_size(list) + 1, sizeof *result);
    for (size_t i = 0; i < json_array_size(list); i++)
        result[i] = json_string_value(json_array_get(list, i));
    return result;
}

static int open_session(struct agent *a, const json_t *params, nacre_error *err)
{
    nacre_options options = NACRE_OPTIONS_INIT;
    nacre_acp_agent_options terminals = NACRE_ACP_AGENT_OPTIONS_INIT;
    const char **directories = directories_of(params);
    int r = 0;
    options.cwd = json_string_value(json_object_get(params, "cwd"));
    terminals.session_id = SESSION;
    terminals.cwd = options.cwd;
    terminals.directories = directories;
    terminals.send = send_text;
    terminals.receive = receive;
    terminals.receive_fd = STDIN_FILENO;
    terminals.created = embed;
    terminals.userdata = a;
    if (a->has_terminals)
        r = nacre_acp_agent_open(&terminals, &a->terminals, err);
    if (r == 0 && a->terminals)
        options.backend = nacre_backend_acp(a->terminals);
    if (r == 0)
        r = nacre_open(&options, &a->session, err);
    free(directories);
    return r;
}

static void do_new(struct agent *a, const json_t *request)
{
    nacre_error err = NACRE_ERROR_INIT;
    if (a->session)
        refuse(request, -32603, "there is one session only");
    else if (open_session(a, json_object_get(request, "params"), &err) < 0)
        refuse(request, -32603, err.msg);
    else
        answer_consume(request, json_pack("{s:s}", "sessionId", SESSION));
}

/* -- Prompts ----------------------------------------------------------------------------------- */

static bool was_cancelled(struct agent *a)
{
    for (size_t i = 0; i < json_array_size(a->inbox); i++) {
        const json_t *method = json_object_get(json_array_get(a->inbox, i), "method");
        if (strcmp(json_string_value(method) ? json_string_value(method) : "", "session/cancel"))
            continue;
        json_array_remove(a->inbox, i);
        return true;
    }
    return false;
}

/* Steps the call as a loop of the agent's own would; whether it was cancelled. */
static bool drive(struct agent *a, nacre_call *call)
{
    bool cancelled = false;
    while (nacre_call_step(call, NULL) == 0 && !a->ended) {
        struct pollfd polls[] = {{.fd = nacre_call_fd(call), .events = POLLIN},
                                 {.fd = STDIN_FILENO, .events = POLLIN}};
        int64_t wait = nacre_call_timeout(call);
        poll(polls, 2, wait < 0 || wait > 1000 ? 1000 : (int)wait);
        if (polls[1].revents)
            receive(0, a);
        if (!cancelled && was_cancelled(a)) {
            nacre_call_cancel(call);
            cancelled = true;
        }
    }
    return cancelled;
}

/* The text items of a tool's result, joined. */
static json_t *text_of(const json_t *result)
{
    const json_t *content = json_object_get(result, "content");
    json_t *text = json_string("");
    for (size_t i = 0; i < json_array_size(content); i++) {
        json_t *joined =
            json_sprintf("%s%s", json_string_value(text),
                         json_string_value(json_object_get(json_array_get(content, i), "text")));
        json_decref(text);
        text = joined;
    }
    return text;
}

static void show_result(nacre_call *call)
{
    json_t *result = json_loads(nacre_call_result(call), 0, NULL);
    const char *status = json_is_true(json_object_get(result, "isError")) ? "failed" : "completed";
    update_consume(json_pack("{s:s, s:s, s:s, s:O}", "sessionUpdate", "tool_call_update",
                             "toolCallId", CALL, "status", status, "rawOutput",
                             json_object_get(json_object_get(result, "_meta"), "nacre/run")
                                 ? json_object_get(result, "_meta")
                                 : result));
    update_consume(json_pack("{s:s, s:{s:s, s:o}}", "sessionUpdate", "agent_message_chunk",
                             "content", "type", "text", "text", text_of(result)));
    nacre_call_delivered(call);
    json_decref(result);
}

/* {"tool":...,"arguments":...}, owned by the caller. */
static json_t *tool_of(const json_t *params)
{
    const json_t *block = json_array_get(json_object_get(params, "prompt"), 0);
    const char *text = json_string_value(json_object_get(block, "text"));
    json_t *tool = text && text[0] == '{' ? json_loads(text, 0, NULL) : NULL;
    return tool ? tool
                : json_pack("{s:s, s:{s:s}}", "tool", "bash", "arguments", "command",
                            text ? text : "");
}

static void do_prompt(struct agent *a, const json_t *request)
{
    nacre_error err = NACRE_ERROR_INIT;
    nacre_call *call;
    json_t *tool = tool_of(json_object_get(request, "params"));
    const char *name = json_string_value(json_object_get(tool, "tool"));
    char *arguments = json_dumps(json_object_get(tool, "arguments"), JSON_COMPACT);
    update_consume(json_pack("{s:s, s:s, s:s, s:s, s:s}", "sessionUpdate", "tool_call",
                             "toolCallId", CALL, "title", name, "kind", "execute", "status",
                             "in_progress"));
    int r = nacre_call_begin(a->session, name, arguments, strlen(arguments), NULL, &call, &err);
    if (r < 0) {
        refuse(request, -32602, err.msg);
    } else {
        bool cancelled = drive(a, call);
        if (!cancelled && !a->ended)
            show_result(call);
        nacre_call_free(call);
        answer_consume(request,
                       json_pack("{s:s}", "stopReason", cancelled ? "cancelled" : "end_turn"));
    }
    free(arguments);
    json_decref(tool);
}

/* -- All --------------------------------------------------------------------------------------- */

static void do_message(struct agent *a, const json_t *message)
{
    const char *method = json_string_value(json_object_get(message, "method"));
    if (!method || !json_object_get(message, "id"))
        return;
    if (strcmp(method, "initialize") == 0)
        answer_consume(message, json_pack("{s:i, s:{}, s:{s:s, s:s}, s:[]}", "protocolVersion", 1,
                                          "agentCapabilities", "agentInfo", "name", "nacre-test",
                                          "version", "1", "authMethods"));
    else if (strcmp(method, "session/new") == 0)
        do_new(a, message);
    else if (strcmp(method, "session/prompt") == 0 && a->session)
        do_prompt(a, message);
    else
        refuse(message, -32601, "Method not found");
}

int main(void)
{
    struct agent a = {.inbox = json_array()};
    nacre_error err = NACRE_ERROR_INIT;
    while (!a.ended) {
        receive(1000, &a);
        while (json_array_size(a.inbox) > 0) {
            json_t *message = json_incref(json_array_get(a.inbox, 0));
            json_array_remove(a.inbox, 0);
            do_message(&a, message);
            json_decref(message);
        }
    }
    if (a.terminals)
        nacre_acp_agent_gone(a.terminals);
    int left = nacre_close(a.session, &err);
    nacre_acp_agent_close(a.terminals);
    json_decref(a.inbox);
    free(a.in);
    return left == 0 ? 0 : 1;
}
