/* Asking the person behind a client of the legacy era: a form with one choice. Who was asked too
 * late, or by a call that is over, is not heard. */
#include <stdio.h>
#include <string.h>

#include "base/defs.h"
#include "mcp/peer.h"

#define ELICIT_SINCE "2025-06-18"
#define MODES_SINCE  "2025-11-25" /* there are others than forms */
#define ID_PREFIX    "nacre-ask-"

/* Whether the client shows forms; {} says so as well. */
void mcp_note_elicitation(struct mcp_peer *p, const json_t *capabilities, const char *version)
{
    const json_t *elicitation = json_object_get(capabilities, "elicitation");
    p->elicits = json_is_object(elicitation) && strcmp(version, ELICIT_SINCE) >= 0 &&
                 (json_object_size(elicitation) == 0 || json_object_get(elicitation, "form"));
}

static json_t *choice_schema(void)
{
    return json_pack("{s:s, s:{s:{s:s, s:s, s:[s,s,s], s:[s,s,s]}}, s:[s]}", "type", "object",
                     "properties", "decision", "type", "string", "title", "May it run?", "enum",
                     "once", "session", "no", "enumNames", "Once", "For this session", "No",
                     "required", "decision");
}

static int write_message(struct buf *out, const nacre_question *q)
{
    int r = buf_printf(out, "May this command run?\n\n%s\n", q->command);
    if (r == 0 && strcmp(q->command, q->commands) != 0)
        r = buf_printf(out, "\nCommands in it:\n%s\n", q->commands);
    if (r == 0 && *q->cwd)
        r = buf_printf(out, "\nIn %s\n", q->cwd);
    if (r == 0 && *q->description)
        r = buf_printf(out, "\nThe model says about it: %s\n", q->description);
    return r == 0 ? buf_printf(out, "\nAsked because of: %s", q->reason) : r;
}

static int send_form(struct mcp_peer *p, struct mcp_stream *stream, const nacre_question *q)
{
    struct buf message cleanup_buf = BUF_UP_TO(RPC_MESSAGE_MAX);
    struct buf line cleanup_buf = BUF_UP_TO(RPC_MESSAGE_MAX);
    char id[40];
    if (write_message(&message, q) < 0)
        return -ENOMEM;
    snprintf(id, sizeof id, ID_PREFIX "%llu", (unsigned long long)q->number);
    const char *mode = strcmp(p->version, MODES_SINCE) >= 0 ? "form" : NULL;
    json_auto_t *request = json_pack("{s:s, s:s, s:s, s:{s:s*, s:s, s:o}}", "jsonrpc", "2.0", "id",
                                     id, "method", "elicitation/create", "params", "mode", mode,
                                     "message", message.data, "requestedSchema", choice_schema());
    if (!request || rpc_append_json(&line, request) < 0)
        return -ENOMEM;
    mcp_send(p, stream, &line, MCP_NOTE, NULL);
    return 0;
}

/* Only while a call begins is it known whose client is to be asked, and where. */
int mcp_ask(nacre_session *session UNUSED, const nacre_question *question, void *userdata)
{
    struct mcp_peer *p = userdata;
    const struct mcp_request *q = p->beginning;
    if (!q || q->modern || !p->elicits || !q->stream)
        return 0;
    return send_form(p, q->stream, question) == 0;
}

static nacre_answer_kind read_decision(const struct rpc_message *m)
{
    const char *action = rpc_text(json_object_get(m->result, "action"));
    const char *decision =
        rpc_text(json_object_get(json_object_get(m->result, "content"), "decision"));
    if (!action)
        return NACRE_ANSWER_CANNOT;
    if (strcmp(action, "accept") == 0 && decision && strcmp(decision, "once") == 0)
        return NACRE_ANSWER_ONCE;
    if (strcmp(action, "accept") == 0 && decision && strcmp(decision, "session") == 0)
        return NACRE_ANSWER_SESSION;
    return strcmp(action, "cancel") == 0 ? NACRE_ANSWER_CANCELLED : NACRE_ANSWER_NO;
}

void mcp_hear_decision(struct mcp_peer *p, const struct rpc_message *m)
{
    unsigned long long number;
    char rest;
    const char *id = rpc_text(m->id);
    if (id && sscanf(id, ID_PREFIX "%20llu%c", &number, &rest) == 1)
        nacre_answer(p->session, number, read_decision(m), NULL);
}
