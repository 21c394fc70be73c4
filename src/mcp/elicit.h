/* The form by which the person behind a client is asked, and what they chose: in both eras. */
#pragma once

#include <jansson.h>
#include <nacre/ask.h>
#include <nacre/session.h>
#include <stdbool.h>

/* Whether a client that declares this shows forms; {} says so as well. */
bool mcp_shows_forms(const json_t *elicitation);

/* The parameters of elicitation/create; mode NULL = the revision has none. NULL if out of memory.
 */
json_t *mcp_form(const nacre_question *q, const char *mode);

/* Answers a question with what the result of one says; NULL = there is none. What cannot be put
 * into practice, such as a line that cannot be written, is no yes. */
void mcp_decide(nacre_session *session, uint64_t question, const json_t *result);
