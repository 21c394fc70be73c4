/*
 * Terminals of the Agent Client Protocol (ACP, version 1): terminal/create, output, wait_for_exit,
 * kill and release. Both sides are here: a host for clients, which run commands for an agent, and
 * a backend for agents, whose commands are run by their client.
 *
 * A host answers these requests with the shells of a session: contained, logged and listed like
 * any other, so that a terminal's id is the id of its shell. It does no input or output of its
 * own: messages come in as text, answers go out by a callback, and one descriptor says when to
 * call it. Nothing here blocks.
 *
 * A host belongs to one thread at a time.
 */
#ifndef NACRE_ACP_H
#define NACRE_ACP_H

#include <stddef.h>
#include <stdint.h>

#include <nacre/backend.h>
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

/* -- The agent's side ---------------------------------------------------------------------------
 *
 * A backend whose shells are terminals of an ACP client. It has no thread and no connection of its
 * own: requests leave by a callback, and every message that comes from the client is offered to
 * nacre_acp_agent_feed().
 *
 * What is fetched from the client is written into a run directory of the session's home, in the
 * place of a keeper by the process of the agent. So these shells are listed, read, searched and
 * told of like any other, also after the session; if the process dies they are NACRE_LOST.
 *
 * What a client can do is less than what a keeper can: both streams are one (NACRE_STDOUT), there
 * is no stdin and no signal, nothing can be kept, whether a tree is empty is only known by the
 * client's word (NACRE_TIER_CLIENT), and no other process can kill such a shell. Output is fetched
 * when somebody reads, watches or waits, and once more after the exit; then the terminal is
 * released. What a client cuts it cuts without saying by how much: a gap of one byte stands for
 * all that is missing, and as a log has one gap, what was fetched between the first and the last
 * of several is dropped with it.
 */

/* Whether a client's `initialize` request, of version 1, says that it has terminals: 1 = take
 * nacre_backend_acp(); 0 = it must not be asked for any, so run commands here (no backend). */
NACRE_API int nacre_acp_client_has_terminals(const char *initialize, size_t size);

typedef struct nacre_acp_agent nacre_acp_agent;

typedef struct nacre_acp_agent_options {
    size_t size;            /* sizeof(nacre_acp_agent_options), set by the macro below */
    const char *session_id; /* of the ACP session; must be set */
    /* Sends one message, JSON without a newline: 0, or below 0 if the connection is gone. Must be
     * set, thread-safe, and must not call the agent. */
    int (*send)(const char *message, size_t size, void *userdata);
    /* NULL = another thread reads the connection. Else whoever waits for an answer calls it, with a
     * timeout_ms of 0: it feeds what has come; below 0 = the connection is gone. */
    int (*receive)(int timeout_ms, void *userdata);
    /* NULL, or hears of each terminal right after it was made, in the thread that starts it: the
     * moment to embed it in a tool call, since a short command is over and released soon. Must not
     * call the agent or its session. */
    void (*created)(const nacre_id *id, const char *terminal, void *userdata);
    void *userdata;
    size_t output_limit; /* bytes of output asked for; 0 = 4 MiB */
    int64_t answer_ms;   /* the longest a client may take to answer; 0 = 30 s */
    /* The workspace: the cwd of the ACP session, absolute, and its additionalDirectories, ended by
     * NULL. Commands run in cwd if nothing else is said; a directory that is not in or below one
     * of these is refused with NACRE_EPERM, and the client is not asked. cwd NULL = anywhere. */
    const char *cwd;
    const char *const *directories;
    int receive_fd; /* readable when receive has something to read; below 0 = not known: it is
                       called each millisecond while an answer is awaited */
} nacre_acp_agent_options;

#define NACRE_ACP_AGENT_OPTIONS_INIT                                                        \
    {                                                                                       \
        sizeof(nacre_acp_agent_options), NULL, NULL, NULL, NULL, NULL, 0, 0, NULL, NULL, -1 \
    }

/* On success *ret_agent is owned by the caller; close it after the session that uses it. */
NACRE_API int nacre_acp_agent_open(const nacre_acp_agent_options *options,
                                   nacre_acp_agent **ret_agent, nacre_error *reterr);

/* The backend, for nacre_options; valid until the agent is closed, for one session at a time.
 * Timeouts are kept by whoever waits, watches or calls the session at all: after them the terminal
 * is killed. */
NACRE_API const nacre_backend *nacre_backend_acp(nacre_acp_agent *agent);

/* Takes a message of the client's. 1 = it answers a request of ours, 0 = it is somebody else's.
 * Thread-safe. */
NACRE_API int nacre_acp_agent_feed(nacre_acp_agent *agent, const char *message, size_t size,
                                   nacre_error *reterr);

/* The connection has ended: calls fail with NACRE_EBACKEND, what ran is NACRE_LOST. Thread-safe. */
NACRE_API void nacre_acp_agent_gone(nacre_acp_agent *agent);

/* The client's name for a shell, to embed it in a tool call while it runs; the caller frees it.
 * Clients forget it with its release. */
NACRE_API int nacre_acp_agent_terminal(nacre_acp_agent *agent, const nacre_id *id,
                                       char **ret_terminal, nacre_error *reterr);

/* Frees everything. NULL is ignored. */
NACRE_API void nacre_acp_agent_close(nacre_acp_agent *agent);

/* -- Version 2 ----------------------------------------------------------------------------------
 *
 * The draft of ACP's next version has no requests for terminals: an agent runs its commands itself
 * and shows them to its client. These functions make the messages, out of any shell of a session;
 * its id is the terminal's. Use them only when version 2 was agreed upon. Messages are JSON without
 * a newline, NUL-terminated, freed by the caller.
 */

/* A terminal_update: command, directory, the right to cancel it while it runs, and how it ended
 * once it has. */
NACRE_API int nacre_acp_v2_update(nacre_session *session, const nacre_id *id,
                                  const char *session_id, char **ret_message, nacre_error *reterr);

/*
 * The output from *cursor on (0 = from the beginning, or any offset of the log), which is advanced:
 * a terminal_output_chunk of at most max bytes (0 = 48 KiB) before base64. Where the log has a gap,
 * it is a terminal_update whose output replaces what was shown. Returns the bytes; 0 = there is no
 * more at present, and no message.
 */
NACRE_API int64_t nacre_acp_v2_chunk(nacre_session *session, const nacre_id *id,
                                     const char *session_id, uint64_t *cursor, size_t max,
                                     char **ret_message, nacre_error *reterr);

NACRE_END_DECLS

#endif
