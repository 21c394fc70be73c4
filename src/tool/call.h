/* Tools for servers that have read JSON already and write it themselves: what <nacre/tool.h> does
 * with text, with objects. */
#pragma once

#include <jansson.h>

#include <nacre/tool.h>

/* The table as an array, which the caller owns; NULL if out of memory. */
json_t *tool_list(const nacre_session *session);

/* nacre_call_begin() with arguments that were read already: an object that is kept as it is as long
 * as the call lives, or NULL. */
int call_begin_object(nacre_session *session, const char *tool, json_t *object,
                      const nacre_call_options *options, nacre_call **ret_call,
                      nacre_error *reterr);

/* The result of a finished call, which the caller owns: the call has none from then on. */
json_t *call_take_result(nacre_call *call);

/* NACRE_ENOMEM for an answer that cannot be made; the sentence names what the call has started. */
int call_no_memory(const nacre_call *call, nacre_error *err);
