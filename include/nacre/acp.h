/*
 * Terminals of the Agent Client Protocol (ACP, version 1), for editors and other clients that
 * serve terminal/create, output, wait_for_exit, kill and release to an agent.
 *
 * A host answers these requests with the shells of a session: contained, logged and listed like
 * any other, so that a terminal's id is the id of its shell. It does no input or output of its
 * own: messages come in as text, answers go out by a callback, and one descriptor says when to
 * call it. Nothing here blocks for longer than a command takes to start.
 *
 * A host belongs to one thread at a time.
 */
#ifndef NACRE_ACP_H
#define NACRE_ACP_H

#include <stddef.h>
#include <stdint.h>

#include <nacre/error.h>
#include <nacre/id.h>
#include <nacre/session.h>
#include <nacre/version.h>

NACRE_BEGIN_DECLS

/*
 * Gets one message, JSON without a newline, valid during the call. Must not call the host. What
 * it cannot send it has to keep or lose: an answer is given once.
 */
typedef void nacre_acp_send_fn(const char *message, size_t size, void *userdata);

typedef struct nacre_acp_host_options {
    size_t size;             /* sizeof(nacre_acp_host_options), set by the macro below */
    nacre_acp_send_fn *send; /* must be set */
    void *userdata;          /* for send */
    size_t output_default;   /* bytes kept of a terminal that sets no outputByteLimit; 0 = 1 MiB */
    size_t output_max;       /* the most a terminal may ask for; 0 = 16 MiB */
    size_t terminals_max;    /* at once; 0 = 64 */
} nacre_acp_host_options;

#define NACRE_ACP_HOST_OPTIONS_INIT                         \
    {                                                       \
        sizeof(nacre_acp_host_options), NULL, NULL, 0, 0, 0 \
    }

typedef struct nacre_acp_host nacre_acp_host;

/* Opens a host whose terminals are shells of session, which must outlive it. On success *ret_host
 * is owned by the caller, who ends it with nacre_acp_host_close(). */
NACRE_API int nacre_acp_host_open(nacre_session *session, const nacre_acp_host_options *options,
                                  nacre_acp_host **ret_host, nacre_error *reterr);

/*
 * Takes a message of the agent's. 1 = it was for the host, which has answered or will; 0 = it is
 * somebody else's: neither a terminal/... request nor a $/cancel_request for one that is open.
 * What is no JSON, or no message, is answered with an error too. Below 0 only if memory or
 * descriptors ran out; then there is no answer.
 *
 * A terminal belongs to the ACP session that made it; to another one it does not exist.
 *   create         answers when the command runs, or with an error that says why it cannot. A
 *                  command without args that is no file but looks like a line for a shell is
 *                  given to the shell of the session's settings
 *   output         all that is kept, never more than the limit, cut at a character. What the log's
 *                  quota dropped is not there either, and truncated says so
 *   wait_for_exit  answers when the command has exited, whatever still holds its output
 *   kill           answers when every process of the terminal is gone
 *   release        the same; the id is unknown from the request on. Who waits for the exit is
 *                  told before
 * If a kill leaves processes behind, its answer is an error that says so.
 */
NACRE_API int nacre_acp_host_feed(nacre_acp_host *host, const char *message, size_t size,
                                  nacre_error *reterr);

/* The descriptor to poll for reading: nacre_acp_host_dispatch() is due. It belongs to the host. */
NACRE_API int nacre_acp_host_fd(const nacre_acp_host *host);

/* Gives the answers that are due, without blocking. */
NACRE_API int nacre_acp_host_dispatch(nacre_acp_host *host, nacre_error *reterr);

/* The terminals that were not released yet. */
NACRE_API size_t nacre_acp_host_count(const nacre_acp_host *host);

/* Ends the host and begins to kill what runs in its terminals; nacre_close() of the session
 * brings the proof. Open requests are not answered. NULL is ignored. */
NACRE_API void nacre_acp_host_close(nacre_acp_host *host);

NACRE_END_DECLS

#endif
