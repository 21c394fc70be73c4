/*
 * Tools: what a model may call, and what it is answered. One table serves every front end: its
 * names, descriptions and schemas, and a handler for each.
 *
 * A call is a small state machine: it never blocks for long, starts no thread, and is driven by the
 * host's own loop. Poll its descriptor and honour its timeout, step it until it is finished, send
 * its result, and say that it was delivered. Any number of calls of a session may be under way;
 * each belongs to one thread at a time, and must be freed before the session is closed.
 *
 * Completions (completion.h) of the session ride in front of the next answer, as a content item of
 * their own. They are acknowledged, and cursors move on, when an answer was delivered; an answer
 * that was not is as if it had never been made.
 */
#ifndef NACRE_TOOL_H
#define NACRE_TOOL_H

#include <stddef.h>
#include <stdint.h>

#include <nacre/error.h>
#include <nacre/session.h>
#include <nacre/version.h>

NACRE_BEGIN_DECLS

typedef struct nacre_call nacre_call;

/* Start from NACRE_CALL_OPTIONS_INIT. */
typedef struct nacre_call_options {
    size_t size;
    int progress;    /* 1 = the client hears of progress: it may be made to wait longer (the setting
                        `wait_progress` instead of `wait`) */
    uint64_t budget; /* bytes of text of the answer; 0 = the setting `answer` (10 KiB). What the
                        call itself asks for (max_output_tokens) goes over both */
} nacre_call_options;

#define NACRE_CALL_OPTIONS_INIT          \
    {                                    \
        sizeof(nacre_call_options), 0, 0 \
    }

/*
 * Begins a call: json, of json_size bytes, is the object of its arguments; NULL = {}. options may
 * be NULL. Wrong arguments, an unknown shell, a command that cannot be started and the like are no
 * errors here, but a finished call whose result says so with isError. NACRE_ENOTFOUND: there is no
 * such tool. On success *ret_call is owned by the caller, who frees it; it may be finished already:
 * step it once before polling.
 */
NACRE_API int nacre_call_begin(nacre_session *session, const char *tool, const char *json,
                               size_t json_size, const nacre_call_options *options,
                               nacre_call **ret_call, nacre_error *reterr);

/* The descriptor to poll for reading while the call is not finished. It belongs to the call; -1
 * while there is nothing to poll for, and it may change from step to step. */
NACRE_API int nacre_call_fd(const nacre_call *call);

/* Milliseconds after which it wants to be stepped although the descriptor is silent; 0 = at once,
 * -1 = never. */
NACRE_API int64_t nacre_call_timeout(const nacre_call *call);

/* Goes on as far as possible without waiting: 1 = finished, there is a result; 0 = not yet. An
 * error is one of the session; the call can then only be freed. */
NACRE_API int nacre_call_step(nacre_call *call, nacre_error *reterr);

/*
 * For progress notifications: the last line that was printed, rendered and cut to a line of a
 * screen, or how long it has been waiting; NULL if there is nothing new since the last time. Valid
 * until the next call of any function on it.
 */
NACRE_API const char *nacre_call_progress(nacre_call *call);

/*
 * The result of a finished call, as tools/call of MCP wants it: {"content":[{"type":"text",
 * "text":...},...],"isError":false,"_meta":{"nacre/run":{...}}}; with the setting `structured` also
 * "structuredContent". One line of JSON; valid until the call is freed. NULL before the call is
 * finished, and when there is no memory for the text.
 */
NACRE_API const char *nacre_call_result(nacre_call *call);

/* The answer was fully written, and its request was not cancelled: cursors move on, completions are
 * acknowledged. Once, before the call is freed. */
NACRE_API void nacre_call_delivered(nacre_call *call);

/*
 * Nobody wants the answer any more. A command that runs in the foreground of the call is ended with
 * its whole tree (outcome cancelled); a background one goes on, whatever the call waited for. Does
 * not wait: step the call until it is finished, when nothing is left of the tree, or free it at
 * once; the command is ended either way, and one that has not begun does not. The result is not to
 * be sent.
 */
NACRE_API void nacre_call_cancel(nacre_call *call);

/* Frees a call. One that is not finished is cancelled; what a result that was not delivered offered
 * is due again. NULL is ignored. */
NACRE_API void nacre_call_free(nacre_call *call);

/*
 * The same, blocking: begins a call, steps it to its end, and takes its result as delivered.
 * *ret_json is owned by the caller, who frees it with free().
 */
NACRE_API int nacre_tool_call(nacre_session *session, const char *tool, const char *json,
                              char **ret_json, nacre_error *reterr);

/*
 * The table as tools/list wants it: a JSON array of objects with name, title, description,
 * inputSchema, annotations and _meta, always in the same order. The limits in it are those of the
 * session's settings. To be freed with free().
 */
NACRE_API int nacre_tools_json(nacre_session *session, char **ret_json, nacre_error *reterr);

/* What a model should know about the tools together: a few sentences. To be freed with free(). */
NACRE_API int nacre_instructions(nacre_session *session, char **ret_text, nacre_error *reterr);

NACRE_END_DECLS

#endif
