/*
 * What the files of the protocol share. A peer is one client: what it said of itself, its calls,
 * batches and subscriptions, and the session that its shells belong to. What it is answered goes to
 * streams (mcp_stream.h); what it is offered stands in a table (mcp_table.h). Whoever has the loop
 * hands a peer its messages, and steps it: stdio.c for the client on stdin and stdout, the room
 * `serve` for clients over HTTP.
 *
 *   stdio.c        the loop of the client on stdin and stdout
 *   peer.c         the life of a peer, and its turns
 *   dispatch.c     which method does what, and in which era
 *   batch.c        several messages in one array
 *   hello.c        initialize, server/discover and the like
 *   calls.c        tools: calls, progress, cancellation, delivery
 *   shell_table.c  the table of nacre
 *   resources.c    runs as resources, completion of their ids
 *   prompts.c      questions about shells that a person may pick
 *   events.c       who hears of the end of a shell: subscriptions and log messages
 *   elicit.c       asking the person behind a client; round.c in the modern era
 *   clients.c      how clients are configured
 *
 * There are two eras of the protocol. In the legacy one (up to 2025-11-25) a client introduces
 * itself once, with initialize; in the modern one (2026-07-28) each request says its version in its
 * _meta, and nothing is remembered. Both may come to one peer, so the era belongs to the request.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>
#include <nacre/nacre.h>

#include "base/buf.h"
#include "mcp/mcp_stream.h"
#include "mcp/mcp_table.h"
#include "mcp/round.h"
#include "rpc/message.h"

#define MCP_MODERN           "2026-07-28"
#define MCP_META             "io.modelcontextprotocol/"
#define MCP_NOT_FOUND        (-32002) /* a resource; legacy only */
#define MCP_NO_CAPABILITY    (-32021) /* the client has not declared what is needed */
#define MCP_BAD_VERSION      (-32022)
#define MCP_CALLS_MAX        128               /* under way at a time */
#define MCP_WAITING_MAX      1024              /* further ones that wait for their turn */
#define MCP_WAITING_SIZE     ((size_t)8 << 20) /* bytes of the lines they came in */
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

struct mcp_peer {
    const struct mcp_table *table;
    nacre_session *session;
    const char *fault;       /* of the configuration, or NULL: then no tool does anything */
    struct mcp_stream *main; /* what belongs to no request goes there; NULL = to nobody */
    bool log;                /* a line on stderr for every message */
    bool paused;             /* it has to read before it is served on */
    bool ended;              /* nothing can be sent to it any more, or its loop wants an end */

    /* What the client said of itself in the legacy era. */
    bool initialized;
    bool knows_client; /* its name was noted */
    bool takes_batches;
    const char *version; /* that was negotiated, or NULL */
    enum log_level level;

    bool elicits;                        /* its person can be asked */
    const struct mcp_request *beginning; /* the call that begins just now, or NULL */
    struct mcp_round *round;             /* likewise, what comes of asking in the modern era */
    struct mcp_seal seal;                /* of states that were given out there */
    int asking;                          /* readable when others want to answer; or below 0 */

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
    uint64_t news;                   /* how often people were told something */
    bool delivered;                  /* an answer, since then */
    struct mcp_stream *asked_to_log; /* by the request that is being taken up */
};

/* A request that is being answered. Borrowed. */
struct mcp_request {
    struct mcp_peer *peer;
    struct mcp_stream *stream; /* where its answer goes */
    const char *method;
    const json_t *id;
    json_t *params; /* an object, or NULL */
    bool modern;
    bool logs;               /* it wants to hear of what happens meanwhile */
    struct mcp_batch *batch; /* that it came in, or NULL */
    size_t slot;
};

/* -- peer.c ----------------------------------------------------------------------------------- */

/* A peer of a table; the session becomes its own. */
void mcp_peer_init(struct mcp_peer *p, const struct mcp_table *table, nacre_session *session);

/* Calls end with what they own, subscriptions are forgotten. The session is not closed: it is
 * returned, and p is of no use any more. */
nacre_session *mcp_peer_end(struct mcp_peer *p);

#define MCP_POLL_FIRST 2 /* before those of calls */
#define MCP_POLL_MAX   (MCP_POLL_FIRST + MCP_CALLS_MAX)

/* What to poll, and until when. */
struct pollfd;
size_t mcp_peer_poll(struct mcp_peer *p, struct pollfd *fds);
int64_t mcp_peer_deadline(const struct mcp_peer *p);

/* Goes on with all that is due. */
void mcp_peer_step(struct mcp_peer *p, const struct pollfd *fds, size_t count);

/* Whether it has calls that are not answered. */
bool mcp_peer_is_busy(const struct mcp_peer *p);

/* Nothing can be sent to a stream any more, and it is about to go. What was asked for by it is
 * cancelled. */
void mcp_peer_forget(struct mcp_peer *p, struct mcp_stream *stream);

/* -- dispatch.c ------------------------------------------------------------------------------- */

/* Does what a line says, or the value of one that has so many bytes; what a message of one says,
 * that is the one at index of a batch or none. */
void mcp_take_line(struct mcp_peer *p, struct mcp_stream *stream, const char *line, size_t size);
void mcp_take_value(struct mcp_peer *p, struct mcp_stream *stream, json_t *value, size_t size);
void mcp_take_message(struct mcp_peer *p, struct mcp_stream *stream, json_t *value,
                      struct mcp_batch *b, size_t index);

/* Whether two requests are one: the same id, where ids mean the same. */
bool mcp_is_same(const struct mcp_stream *a, const json_t *id_a, const struct mcp_stream *b,
                 const json_t *id_b);

/* Sends a response, or puts it where its batch collects them. The line is taken. -E2BIG if the
 * batch has no room for it: then an error was put there. */
int mcp_answer(const struct mcp_request *q, struct buf *line, enum mcp_sort sort,
               uint64_t *ret_ticket);

/* Answers. The value is taken, and gets what the era wants in every result. Below 0 if the answer
 * is an error instead. */
int mcp_reply(const struct mcp_request *q, json_t *value);

/* Likewise, with what is said if there is no memory for the answer. */
int mcp_reply_or(const struct mcp_request *q, json_t *value, const char *otherwise,
                 uint64_t *ret_ticket);

/* Of a result that may be kept for a while: ms, by everybody or by this client alone. */
void mcp_reply_cacheable(const struct mcp_request *q, json_t *value, int ttl_ms, bool is_public);

void mcp_fail(const struct mcp_request *q, int code, const char *fmt, ...) PRINTF(3, 4);
#define mcp_fail_params(q, ...) mcp_fail(q, RPC_INVALID_PARAMS, __VA_ARGS__)

/* There is no resource of this uri. */
void mcp_no_resource(const struct mcp_request *q, const char *uri, const char *text);

/* The same for a request that is not whole as a message; data may be NULL. */
void mcp_refuse(const struct mcp_request *q, int code, const char *text, const json_t *data);

/* Sends a notification; params are taken. Without a stream it goes nowhere. */
void mcp_notify(struct mcp_peer *p, struct mcp_stream *stream, const char *method, json_t *params);

/* Sends a line that is there already. */
void mcp_send(struct mcp_peer *p, struct mcp_stream *stream, struct buf *line, enum mcp_sort sort,
              uint64_t *ret_ticket);

/* {"name": ..., "version": ...} */
json_t *mcp_server_info(const struct mcp_peer *p);

/* What the parameters say; NULL if they do not, or if it is no string. */
const char *mcp_param(const struct mcp_request *q, const char *name);

/* Likewise; NULL was answered with an error already. */
const char *mcp_require(const struct mcp_request *q, const char *name);

/* -- batch.c ---------------------------------------------------------------------------------- */

void mcp_take_batch(struct mcp_peer *p, struct mcp_stream *stream, const json_t *array);

/* A request at index of a batch waits for its answer; here it is. */
void mcp_batch_open(struct mcp_batch *b, size_t index, const json_t *id);
void mcp_batch_answer(struct mcp_peer *p, struct mcp_batch *b, size_t index, struct buf *text);

/* Whether an answer of this size can be held. */
bool mcp_batch_has_room(const struct mcp_peer *p, size_t size);

/* Whether an answer for this id waits, or is waited for; and that it is not wanted any more. */
bool mcp_batch_has(const struct mcp_peer *p, const json_t *id);
void mcp_batch_cancel(struct mcp_peer *p, const json_t *id);

/* The answers of batches of this stream are wanted no more. */
void mcp_batches_forget(struct mcp_peer *p, const struct mcp_stream *stream);
void mcp_batches_end(struct mcp_peer *p);

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

/* Of such a request; NULL = there are none, or none was given. */
json_t *mcp_arguments(const struct mcp_request *q);
json_t *mcp_progress_token(const struct mcp_request *q);

/* Whether a call of that id is under way, or waits for its turn. */
bool mcp_call_exists(const struct mcp_peer *p, const struct mcp_stream *stream, const json_t *id);
void mcp_cancel_call(struct mcp_peer *p, const struct mcp_stream *stream, const json_t *id);

/* All of this stream. */
void mcp_calls_forget(struct mcp_peer *p, const struct mcp_stream *stream);

/* Calls fn with the stream of each call that wants to hear of the ends of shells. */
void mcp_calls_each_log(struct mcp_peer *p, void (*fn)(struct mcp_stream *, void *),
                        void *userdata);

/* The answers of a batch have left with this ticket. */
void mcp_calls_leave_batch(struct mcp_peer *p, const struct mcp_batch *b, uint64_t ticket);

/* Whether so many wait for their turn that the client has to. */
bool mcp_calls_are_full(const struct mcp_peer *p);

/* Whether one of them wants to hear of the ends of shells. */
bool mcp_calls_want_log(const struct mcp_peer *p);

/* The descriptor and the time of the next one to be stepped. */
size_t mcp_calls_poll(const struct mcp_peer *p, struct pollfd *fds);
int64_t mcp_calls_deadline(const struct mcp_peer *p);

/* Steps those that are due; sends progress and answers; frees what was delivered; begins those
 * whose turn has come. */
void mcp_calls_step(struct mcp_peer *p, const struct pollfd *fds, size_t count);
void mcp_calls_end(struct mcp_peer *p);

/* -- elicit.c --------------------------------------------------------------------------------- */

void mcp_note_elicitation(struct mcp_peer *p, const json_t *capabilities, const char *version);

/* For nacre_options.ask; userdata is the peer. */
nacre_ask_fn mcp_ask;

/* A response of the client; what was not asked is ignored. */
void mcp_hear_decision(struct mcp_peer *p, const struct rpc_message *m);

/* -- resources.c ------------------------------------------------------------------------------ */

void mcp_list_resources(const struct mcp_request *q);
void mcp_list_templates(const struct mcp_request *q);
void mcp_read_resource(const struct mcp_request *q);
void mcp_complete(const struct mcp_request *q);

/* The run that a uri names: 0, or a code with a sentence. */
enum resource_kind { RESOURCE_SUMMARY, RESOURCE_LOG };
int mcp_find_resource(const struct mcp_peer *p, const char *uri, nacre_id *ret_id,
                      enum resource_kind *ret_kind, nacre_error *reterr);

/* -- prompts.c -------------------------------------------------------------------------------- */

void mcp_list_prompts(const struct mcp_request *q);
void mcp_get_prompt(const struct mcp_request *q);
bool mcp_prompt_exists(const char *name);

/* -- events.c --------------------------------------------------------------------------------- */

void mcp_subscribe(const struct mcp_request *q);
void mcp_unsubscribe(const struct mcp_request *q);
void mcp_listen(const struct mcp_request *q);
void mcp_cancel_listen(struct mcp_peer *p, const struct mcp_stream *stream, const json_t *id);
bool mcp_listen_exists(const struct mcp_peer *p, const struct mcp_stream *stream, const json_t *id);
bool mcp_listens(const struct mcp_peer *p);
void mcp_listen_forget(struct mcp_peer *p, const struct mcp_stream *stream);

/* The descriptor to poll, or -1 while nobody wants to know; and until when it is not polled. */
int mcp_events_fd(struct mcp_peer *p);
int64_t mcp_events_deadline(const struct mcp_peer *p);

/* Tells those who want to know which shells have ended. */
void mcp_events_step(struct mcp_peer *p);

/* An answer has left: what it showed of ends, subscribers hear of. */
void mcp_events_delivered(struct mcp_peer *p);

/* The same for a request that asks for it: before its answer. */
void mcp_events_tell(const struct mcp_request *q);

/* Those who listen are told that nothing will come any more. */
void mcp_listeners_end(struct mcp_peer *p);
void mcp_events_end(struct mcp_peer *p);
