/* Asking the person behind a client, by a form with one choice. In the legacy era it is a request
 * of ours on the stream of the call, and its response comes on its own; who was asked too late, or
 * by a call that is over, is not heard. In the modern era see round.c. */
#include "mcp/elicit.h"

#include <stdio.h>
#include <string.h>

#include "base/defs.h"
#include "mcp/peer.h"
#include "mcp/round.h"
#include "session/asking.h"

#define ELICIT_SINCE "2025-06-18"
#define MODES_SINCE  "2025-11-25" /* there are others than forms */
#define ID_PREFIX    "nacre-ask-"

bool mcp_shows_forms(const json_t *elicitation)
{
    return json_is_object(elicitation) &&
           (json_object_size(elicitation) == 0 || json_object_get(elicitation, "form"));
}

void mcp_note_elicitation(struct mcp_peer *p, const json_t *capabilities, const char *version)
{
    p->elicits = strcmp(version, ELICIT_SINCE) >= 0 &&
                 mcp_shows_forms(json_object_get(capabilities, "elicitation"));
}

/* -- The form --------------------------------------------------------------------------------- */

static const struct {
    const char *name, *title;
    nacre_answer_kind kind;
} choices[] = {{"once", "Once", NACRE_ANSWER_ONCE},
               {"session", "For this session", NACRE_ANSWER_SESSION},
               {"always", "Always", NACRE_ANSWER_ALWAYS},
               {"no", "No", NACRE_ANSWER_NO}};

static json_t *choice_schema(bool has_always)
{
    json_t *names = json_array(), *titles = json_array();
    for (size_t i = 0; i < ARRAY_SIZE(choices); i++) {
        if (choices[i].kind == NACRE_ANSWER_ALWAYS && !has_always)
            continue;
        json_array_append_new(names, json_string(choices[i].name));
        json_array_append_new(titles, json_string(choices[i].title));
    }
    return json_pack("{s:s, s:{s:{s:s, s:s, s:o, s:o}}, s:[s]}", "type", "object", "properties",
                     "decision", "type", "string", "title", "May it run?", "enum", names,
                     "enumNames", titles, "required", "decision");
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
    if (r == 0)
        r = buf_printf(out, "\nAsked because of: %s", q->reason);
    return r == 0 && *q->always
               ? buf_printf(out, "\n\nAlways would write into your configuration:\n%s", q->always)
               : r;
}

json_t *mcp_form(const nacre_question *q, const char *mode)
{
    struct buf message cleanup_buf = BUF_UP_TO(RPC_MESSAGE_MAX);
    return write_message(&message, q) < 0
               ? NULL
               : json_pack("{s:s*, s:s, s:o}", "mode", mode, "message", message.data,
                           "requestedSchema", choice_schema(*q->always != '\0'));
}

static nacre_answer_kind read_decision(const json_t *result)
{
    const char *action = rpc_text(json_object_get(result, "action"));
    const char *decision =
        rpc_text(json_object_get(json_object_get(result, "content"), "decision"));
    if (!action)
        return NACRE_ANSWER_CANNOT;
    for (size_t i = 0; i < ARRAY_SIZE(choices); i++)
        if (strcmp(action, "accept") == 0 && decision && strcmp(decision, choices[i].name) == 0)
            return choices[i].kind;
    return strcmp(action, "cancel") == 0 ? NACRE_ANSWER_CANCELLED : NACRE_ANSWER_NO;
}

void mcp_decide(nacre_session *session, uint64_t question, const json_t *result)
{
    int r = asking_answer(session, question, read_decision(result), "form", NULL);
    if (r < 0 && r != NACRE_ENOTFOUND)
        asking_answer(session, question, NACRE_ANSWER_CANNOT, "form", NULL);
}

/* -- The legacy era --------------------------------------------------------------------------- */

static int send_form(struct mcp_peer *p, struct mcp_stream *stream, const nacre_question *q)
{
    struct buf line cleanup_buf = BUF_UP_TO(RPC_MESSAGE_MAX);
    char id[40];
    snprintf(id, sizeof id, ID_PREFIX "%llu", (unsigned long long)q->number);
    json_t *form = mcp_form(q, strcmp(p->version, MODES_SINCE) >= 0 ? "form" : NULL);
    json_auto_t *request = form ? json_pack("{s:s, s:s, s:s, s:o}", "jsonrpc", "2.0", "id", id,
                                            "method", "elicitation/create", "params", form)
                                : NULL;
    if (!request || rpc_append_json(&line, request) < 0)
        return -ENOMEM;
    mcp_send(p, stream, &line, MCP_NOTE, NULL);
    return 0;
}

/* Of a command that is about to begin the client is asked by the call. What a program of one that
 * runs wants to execute is no call's any more: a client of the legacy era is asked beside them.
 * From the first question on others may come to the desk. */
int mcp_ask(nacre_session *session, const nacre_question *question, void *userdata)
{
    struct mcp_peer *p = userdata;
    const struct mcp_request *q = p->beginning;
    p->asking = nacre_asking_fd(session, NULL);
    struct mcp_stream *stream = q ? q->stream : p->main;
    if (!stream)
        return NACRE_ASK_CANNOT;
    if (q && q->modern)
        return p->round ? mcp_round_ask(p->round, session, question) : NACRE_ASK_CANNOT;
    return p->elicits && send_form(p, stream, question) == 0 ? NACRE_ASK_WAITS : NACRE_ASK_CANNOT;
}

void mcp_hear_decision(struct mcp_peer *p, const struct rpc_message *m)
{
    unsigned long long number;
    char rest;
    const char *id = rpc_text(m->id);
    if (id && sscanf(id, ID_PREFIX "%20llu%c", &number, &rest) == 1)
        mcp_decide(p->session, number, m->result);
}
