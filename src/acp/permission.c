#include "acp/permission.h"

#include <stdio.h>
#include <string.h>

#include "base/defs.h"
#include "session/asking.h"
#include "view/record_words.h"

#define PERMISSION_PREFIX "nacre-ask-"

/* Two of them are "always" to a client, which shows their names. */
static const struct {
    const char *id, *name, *kind;
    nacre_answer_kind answer;
} permission_options[] = {
    {"once", "Allow once", "allow_once", NACRE_ANSWER_ONCE},
    {"session", "Allow for this session", "allow_always", NACRE_ANSWER_SESSION},
    {"always", "Always allow: write it into the configuration", "allow_always",
     NACRE_ANSWER_ALWAYS},
    {"no", "Reject", "reject_once", NACRE_ANSWER_NO},
    {"never", "Reject for this session", "reject_always", NACRE_ANSWER_NEVER},
};

static json_t *options_for(const nacre_question *q)
{
    json_t *list = json_array();
    for (size_t i = 0; i < ARRAY_SIZE(permission_options); i++)
        if (permission_options[i].answer != NACRE_ANSWER_ALWAYS || *q->always)
            json_array_append_new(
                list, json_pack("{s:s, s:s, s:s}", "optionId", permission_options[i].id, "name",
                                permission_options[i].name, "kind", permission_options[i].kind));
    return list;
}

static int write_details(struct buf *out, const nacre_question *q)
{
    int r = buf_printf(out, "%s\n", q->command);
    if (r == 0 && strcmp(q->command, q->commands) != 0)
        r = buf_printf(out, "\nCommands in it:\n%s\n", q->commands);
    if (r == 0 && *q->cwd)
        r = buf_printf(out, "\nIn %s\n", q->cwd);
    if (r == 0 && *q->description)
        r = buf_printf(out, "\nThe agent says about it: %s\n", q->description);
    if (r == 0)
        r = buf_printf(out, "\nAsked because of: %s", q->reason);
    return r == 0 && *q->always
               ? buf_printf(out, "\n\nAlways would write into your configuration:\n%s", q->always)
               : r;
}

/* A tool call of ours: the agent's own is not known here. */
static json_t *tool_call_for(const nacre_question *q, const char *id)
{
    struct buf text cleanup_buf = BUF_UP_TO(RPC_MESSAGE_MAX);
    if (write_details(&text, q) < 0)
        return NULL;
    return json_pack("{s:s, s:o, s:s, s:s, s:[{s:s, s:{s:s, s:o}}], s:{s:o, s:o}}", "toolCallId",
                     id, "title", json_text(q->command, strlen(q->command)), "kind", "execute",
                     "status", "pending", "content", "type", "content", "content", "type", "text",
                     "text", json_text(text.data, text.len), "rawInput", "command",
                     json_text(q->command, strlen(q->command)), "cwd",
                     json_text(q->cwd, strlen(q->cwd)));
}

int permission_request(const char *session_id, const nacre_question *q, struct buf *out)
{
    char id[40];
    snprintf(id, sizeof id, PERMISSION_PREFIX "%llu", (unsigned long long)q->number);
    json_t *call = tool_call_for(q, id);
    json_auto_t *request =
        call ? json_pack("{s:s, s:s, s:s, s:{s:s, s:o, s:o}}", "jsonrpc", "2.0", "id", id, "method",
                         "session/request_permission", "params", "sessionId", session_id,
                         "toolCall", call, "options", options_for(q))
             : NULL;
    return request ? rpc_append_json(out, request) : -ENOMEM;
}

/* Whatever is none of what was offered is a no. */
static nacre_answer_kind read_outcome(const json_t *result)
{
    const json_t *outcome = json_object_get(result, "outcome");
    const char *what = rpc_text(json_object_get(outcome, "outcome"));
    const char *chosen = rpc_text(json_object_get(outcome, "optionId"));
    if (!what)
        return NACRE_ANSWER_CANNOT;
    if (strcmp(what, "selected") != 0)
        return NACRE_ANSWER_CANCELLED;
    for (size_t i = 0; chosen && i < ARRAY_SIZE(permission_options); i++)
        if (strcmp(chosen, permission_options[i].id) == 0)
            return permission_options[i].answer;
    return NACRE_ANSWER_NO;
}

bool permission_hear(nacre_session *session, const struct rpc_message *m)
{
    unsigned long long number;
    char rest;
    const char *id = m->kind == RPC_RESPONSE ? rpc_text(m->id) : NULL;
    if (!id || sscanf(id, PERMISSION_PREFIX "%20llu%c", &number, &rest) != 1)
        return false;
    int r = asking_answer(session, number, read_outcome(m->result), "client", NULL);
    if (r < 0 && r != NACRE_ENOTFOUND)
        asking_answer(session, number, NACRE_ANSWER_CANNOT, "client", NULL);
    return true;
}
