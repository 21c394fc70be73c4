/*
 * What the files of the server share. One thread, one poll(): the client's two streams, the
 * signals, the calls that are under way, and the ends of background shells.
 *
 *   server.c     the loop, and its life
 *   dispatch.c   which method does what, and in which era
 *   batch.c      several messages in one array
 *   hello.c      initialize, server/discover and the like
 *   calls.c      tools: calls, progress, cancellation, delivery
 *   resources.c  runs as resources, completion of their ids
 *   events.c     who hears of the end of a shell: subscriptions and log messages
 *   clients.c    how clients are configured
 *
 * There are two eras of the protocol. In the legacy one (up to 2025-11-25) a client introduces
 * itself once, with initialize; in the modern one (2026-07-28) each request says its version in its
 * _meta, and nothing is remembered. Both may come over one connection, so the era belongs to the
 * request.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>
#include <nacre/nacre.h>

#include "base/buf.h"
#include "mcp/mcp.h"
#include "rpc/message.h"
#include "rpc/rpc_lines.h"

#define MCP_MODERN           "2026-07-28"
#define MCP_META             "io.modelcontextprotocol/"
#define MCP_NOT_FOUND        (-32002) /* a resource; legacy only */
#define MCP_BAD_VERSION      (-32022)
#define MCP_CALLS_MAX        128               /* under way at a time */
#define MCP_WAITING_MAX      1024              /* further ones that wait for their turn */
#define MCP_WAITING_SIZE     ((size_t)8 << 20) /* bytes of the lines they came in */
#define MCP_QUEUE_MAX        ((size_t)96 << 20)
#define MCP_QUEUE_PAUSE      ((size_t)1 << 20) /* beyond this the client is not served on */
#define MCP_SUBSCRIPTION_MAX 256

struct mcp_batch;
struct mcp_call;
struct subscription;

enum log_level {
    LOG_DEBUG,
    LOG_INFO,
    LOG_NOTICE,
    LOG_WARNING,
    LOG_ERROR,
    LOG_CRITICAL,
    LOG_ALERT,
    LOG_EMERGENCY,
    LOG_LEVELS
};

#define MCP_LEVELS "debug, info, notice, warning, error, critical, alert, emergency"

struct mcp_server {
    nacre_session *session;
    struct rpc_reader reader;
    struct rpc_writer writer;
    int signals; /* a signalfd */
    bool log;
    bool ended; /* the client is gone, or a signal came */

    /* What the client said of itself in the legacy era. */
    bool initialized;
    bool knows_client; /* its name was noted */
    bool takes_batches;
    enum log_level level;

    bool omits_ids; /* an error whose request is not known has no id, rather than null */

    struct mcp_call *calls; /* in the order they came */
    size_t waiting;         /* how many of them have not begun */
    size_t waiting_size;    /* bytes of their lines */
    size_t line_size;       /* of the line that is being taken */
    struct mcp_batch *batches;
    size_t held; /* bytes of answers in them */

    struct subscription *subscriptions;
    int bell;             /* readable when a background shell has ended */
    int64_t bell_rest_ns; /* until then it is not listened to */
    nacre_id *announced;  /* the completions that were due when it was last heard */
    size_t announced_count;
    bool delivered;    /* an answer, since then */
    bool asked_to_log; /* by the request that is being taken up */
};

/* A request that is being answered. Borrowed. */
struct mcp_request {
    struct mcp_server *server;
    const char *method;
    const json_t *id;
    json_t *params; /* an object, or NULL */
    bool modern;
    bool logs;               /* it wants to hear of what happens meanwhile */
    struct mcp_batch *batch; /* that it came in, or NULL */
    size_t slot;
};

/* -- server.c --------------------------------------------------------------------------------- */

/* Whether the client has to read before it is served on. */
bool mcp_is_paused(const struct mcp_server *s);

/* -- dispatch.c ------------------------------------------------------------------------------- */

/* Does what a line says; what a message of one says, that is the one at index of a batch or none.
 */
void mcp_take_line(struct mcp_server *s, const char *line, size_t size);
void mcp_take_message(struct mcp_server *s, json_t *value, struct mcp_batch *b, size_t index);

/* Sends a response, or puts it where its batch collects them. The line is taken. -E2BIG if the
 * batch has no room for it: then an error was put there. */
int mcp_answer(const struct mcp_request *q, struct buf *line);

/* Answers. The value is taken, and gets what the era wants in every result. Below 0 if the answer
 * is an error instead. */
int mcp_reply(const struct mcp_request *q, json_t *value);

/* Likewise, with what is said if there is no memory for the answer. */
int mcp_reply_or(const struct mcp_request *q, json_t *value, const char *otherwise);

/* Of a result that may be kept for a while: ms, by everybody or by this client alone. */
void mcp_reply_cacheable(const struct mcp_request *q, json_t *value, int ttl_ms, bool is_public);

void mcp_fail(const struct mcp_request *q, int code, const char *fmt, ...) PRINTF(3, 4);
#define mcp_fail_params(q, ...) mcp_fail(q, RPC_INVALID_PARAMS, __VA_ARGS__)

/* Sends a notification; params are taken. */
void mcp_notify(struct mcp_server *s, const char *method, json_t *params);

/* Sends a line that is there already. The stream's error ends the server. */
void mcp_send(struct mcp_server *s, struct buf *line);

/* {"name": ..., "version": ...} */
json_t *mcp_server_info(void);

/* What the parameters say; NULL if they do not, or if it is no string. */
const char *mcp_param(const struct mcp_request *q, const char *name);

/* Likewise; NULL was answered with an error already. */
const char *mcp_require(const struct mcp_request *q, const char *name);

/* -- batch.c ---------------------------------------------------------------------------------- */

void mcp_take_batch(struct mcp_server *s, const json_t *array);

/* A request at index of a batch waits for its answer; here it is. */
void mcp_batch_open(struct mcp_batch *b, size_t index, const json_t *id);
void mcp_batch_answer(struct mcp_server *s, struct mcp_batch *b, size_t index, struct buf *text);

/* Whether an answer of this size can be held. */
bool mcp_batch_has_room(const struct mcp_server *s, size_t size);

/* Whether an answer for this id waits, or is waited for; and that it is not wanted any more. */
bool mcp_batch_has(const struct mcp_server *s, const json_t *id);
void mcp_batch_cancel(struct mcp_server *s, const json_t *id);
void mcp_batches_end(struct mcp_server *s);

/* -- hello.c ---------------------------------------------------------------------------------- */

void mcp_initialize(const struct mcp_request *q);
void mcp_note_client(const struct mcp_request *q, const json_t *info);
void mcp_discover(const struct mcp_request *q);
void mcp_ping(const struct mcp_request *q);
void mcp_set_level(const struct mcp_request *q);
/* LOG_LEVELS if there is none of that name. */
enum log_level mcp_level_find(const char *name);

/* -- calls.c ---------------------------------------------------------------------------------- */

void mcp_list_tools(const struct mcp_request *q);
void mcp_call_tool(const struct mcp_request *q);

/* Whether a call of that id is under way, or waits for its turn. */
bool mcp_call_exists(const struct mcp_server *s, const json_t *id);
void mcp_cancel_call(struct mcp_server *s, const json_t *id);

/* The answers of a batch have left with this ticket. */
void mcp_calls_leave_batch(struct mcp_server *s, const struct mcp_batch *b, uint64_t ticket);

/* Whether so many wait for their turn that the client has to. */
bool mcp_calls_are_full(const struct mcp_server *s);

/* Whether one of them wants to hear of the ends of shells. */
bool mcp_calls_want_log(const struct mcp_server *s);

/* The descriptor and the time of the next one to be stepped. */
struct pollfd;
size_t mcp_calls_poll(const struct mcp_server *s, struct pollfd *fds);
int64_t mcp_calls_deadline(const struct mcp_server *s);

/* Steps those that are due; sends progress and answers; frees what was delivered; begins those
 * whose turn has come. */
void mcp_calls_step(struct mcp_server *s, const struct pollfd *fds, size_t count);
void mcp_calls_end(struct mcp_server *s);

/* -- resources.c ------------------------------------------------------------------------------ */

void mcp_list_resources(const struct mcp_request *q);
void mcp_list_templates(const struct mcp_request *q);
void mcp_read_resource(const struct mcp_request *q);
void mcp_complete(const struct mcp_request *q);

/* The run that a uri names: 0, or a code with a sentence. */
enum resource_kind { RESOURCE_SUMMARY, RESOURCE_LOG };
int mcp_find_resource(struct mcp_server *s, const char *uri, nacre_id *ret_id,
                      enum resource_kind *ret_kind, nacre_error *reterr);

/* -- events.c --------------------------------------------------------------------------------- */

void mcp_subscribe(const struct mcp_request *q);
void mcp_unsubscribe(const struct mcp_request *q);
void mcp_listen(const struct mcp_request *q);
void mcp_cancel_listen(struct mcp_server *s, const json_t *id);
bool mcp_listen_exists(const struct mcp_server *s, const json_t *id);

/* The descriptor to poll, or -1 while nobody wants to know; and until when it is not polled. */
int mcp_events_fd(struct mcp_server *s);
int64_t mcp_events_deadline(const struct mcp_server *s);

/* Tells those who want to know which shells have ended. */
void mcp_events_step(struct mcp_server *s);

/* An answer has left: what it showed of ends, subscribers hear of. */
void mcp_events_delivered(struct mcp_server *s);

/* The same for a request that asks for it: before its answer. */
void mcp_events_tell(const struct mcp_request *q);

/* Those who listen are told that nothing will come any more. */
void mcp_listeners_end(struct mcp_server *s);
void mcp_events_end(struct mcp_server *s);
