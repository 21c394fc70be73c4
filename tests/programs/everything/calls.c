/* Tools of everything.json. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "everything.h"
#include "serve/house.h"

#define PAUSE_MS  50
#define ID_PREFIX "everything-"

struct tool_call {
    struct tool_call *next;
    const json_t *tool;
    struct mcp_peer *peer;
    struct mcp_stream *stream;
    json_t *result; /* NULL = not yet */
    json_t *token;  /* of progress */
    size_t note;    /* the next one */
    int64_t next_ns;
    uint64_t asked; /* number of the request to the client that is not answered; 0 = none */
    bool modern, logs;
};

static struct tool_call *calls; /* all that are under way */
static uint64_t last_asked;

static json_t *list_tools(const struct mcp_peer *p)
{
    (void)p;
    size_t i;
    json_t *entry, *list = json_array();
    json_array_foreach(json_object_get(everything, "tools"), i, entry)
    {
        json_t *schema = json_object_get(entry, "inputSchema");
        json_array_append_new(
            list, json_pack("{s:O, s:O, s:o}", "name", json_object_get(entry, "name"),
                            "description", json_object_get(entry, "description"), "inputSchema",
                            schema ? json_incref(schema) : json_pack("{s:s}", "type", "object")));
    }
    return list;
}

/* The answer ends without one; who comes back for the rest of the stream gets it. */
static void hang_up(struct mcp_stream *stream)
{
    struct reply *reply = (struct reply *)stream;
    reply_stream(reply);
    if (!reply->guest)
        return;
    http_stream_end(&reply->guest->http);
    reply_detach(reply);
}

static void ask_client(struct tool_call *c, const json_t *ask, const json_t *arguments)
{
    struct buf line cleanup_buf = BUF_UP_TO(RPC_MESSAGE_MAX);
    char id[40];
    c->asked = ++last_asked;
    snprintf(id, sizeof id, ID_PREFIX "%llu", (unsigned long long)c->asked);
    json_auto_t *request = json_pack("{s:s, s:s, s:O, s:o}", "jsonrpc", "2.0", "id", id, "method",
                                     json_object_get(ask, "method"), "params",
                                     everything_fill(json_object_get(ask, "params"), arguments));
    if (rpc_append_json(&line, request) == 0)
        mcp_send(c->peer, c->stream, &line, MCP_NOTE, NULL);
}

/* The answer of a client becomes the text of the result. */
void everything_hear(struct mcp_peer *p, const struct rpc_message *m)
{
    unsigned long long number;
    const char *id = json_string_value(m->id);
    if (!id || sscanf(id, ID_PREFIX "%20llu", &number) != 1)
        return;
    for (struct tool_call *c = calls; c; c = c->next)
        if (c->asked == number && c->peer == p) {
            cleanup_free char *answer = json_dumps(m->result, JSON_COMPACT | JSON_ENCODE_ANY);
            c->asked = 0;
            c->result = json_pack("{s:[{s:s, s:s}]}", "content", "type", "text", "text",
                                  answer ? answer : "it was an error");
            c->next_ns = 0;
        }
}

static struct tool_call *new_call(const struct mcp_request *q, const json_t *tool)
{
    struct tool_call *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    *c = (struct tool_call){.next = calls,
                            .tool = tool,
                            .peer = q->peer,
                            .stream = q->stream,
                            .token = json_incref(mcp_progress_token(q)),
                            .modern = q->modern,
                            .logs = q->logs};
    calls = c;
    return c;
}

static int begin_call(const struct mcp_request *q, const char *name, json_t *arguments,
                      bool progress, void **ret_call, nacre_error *err)
{
    (void)progress;
    bool refused;
    const json_t *tool = everything_find("tools", "name", name);
    if (!tool)
        return err_set(err, NACRE_ENOTFOUND, "no such tool");
    if (!rounds_may(q, json_object_get(tool, "needs")))
        return 1;
    json_t *wants = rounds_next(q, tool, &refused);
    if (refused)
        return 1;
    struct tool_call *c = new_call(q, tool);
    if (!c) {
        json_decref(wants);
        return err_set(err, NACRE_ENOMEM, "out of memory");
    }
    *ret_call = c;
    c->result = wants;
    if (!wants && !q->modern && json_object_get(tool, "ask"))
        ask_client(c, json_object_get(tool, "ask"), arguments);
    if (json_is_true(json_object_get(tool, "hangs_up")) && !q->modern) {
        hang_up(q->stream);
        c->next_ns = clock_deadline(2 * PAUSE_MS);
    }
    return 0;
}

/* Progress for who asked for it, log messages for who wants to hear them. */
static void send_note(struct tool_call *c, const json_t *note)
{
    const char *method = json_string_value(json_object_get(note, "method"));
    json_auto_t *params = json_deep_copy(json_object_get(note, "params"));
    bool is_progress = strcmp(method, "notifications/progress") == 0;
    if (is_progress && c->token)
        json_object_set(params, "progressToken", c->token);
    if (is_progress ? c->token != NULL : !c->modern || c->logs)
        mcp_notify(c->peer, c->stream, method, json_incref(params));
}

static int step_call(void *self, nacre_error *err)
{
    (void)err;
    struct tool_call *c = self;
    const json_t *notes = json_object_get(c->tool, "notes");
    if (c->asked || clock_left_ms(c->next_ns) > 0)
        return 0;
    if (c->note < json_array_size(notes)) {
        send_note(c, json_array_get(notes, c->note++));
        c->next_ns = clock_deadline(PAUSE_MS);
        return 0;
    }
    if (!c->result)
        c->result = json_deep_copy(json_object_get(c->tool, "result"));
    return 1;
}

static int call_fd(const void *self)
{
    (void)self;
    return -1;
}

static int64_t call_timeout(const void *self)
{
    const struct tool_call *c = self;
    return c->asked ? PAUSE_MS : clock_left_ms(c->next_ns);
}

static const char *call_progress(void *self)
{
    (void)self;
    return NULL;
}

static json_t *take_result(void *self)
{
    struct tool_call *c = self;
    return TAKE_PTR(c->result);
}

static void say_no_memory(const void *self, nacre_error *err)
{
    (void)self;
    err_set(err, NACRE_ENOMEM, "out of memory");
}

static void ignore(void *self)
{
    (void)self;
}

static void free_call(void *self)
{
    struct tool_call *c = self;
    struct tool_call **at = &calls;
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    json_decref(c->result);
    json_decref(c->token);
    free(c);
}

const struct mcp_tools everything_tools = {
    .list = list_tools,
    .begin = begin_call,
    .fd = call_fd,
    .timeout = call_timeout,
    .step = step_call,
    .progress = call_progress,
    .take_result = take_result,
    .no_memory = say_no_memory,
    .delivered = ignore,
    .cancel = ignore,
    .free = free_call,
};
