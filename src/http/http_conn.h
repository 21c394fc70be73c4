/*
 * One connection of a client to a server of ours: requests one after the other, each answered
 * before the next is read. An answer is one message, or a stream that goes on until it is ended.
 * Nothing here waits; whoever has the loop asks what to poll for, says what happened, and when time
 * is up.
 *
 *   HEAD ──▶ BODY ──▶ ASKED ──▶ (answered: HEAD again)
 *                      │  └────▶ STREAMS ──▶ (ended: HEAD again)
 *                      └ refused, or the last one ──▶ LINGERS ──▶ CLOSED
 *
 * A client that is refused may still be sending: closed at once, the kernel would reset the
 * connection and the answer might never be read. So it lingers: what still comes is thrown away,
 * for a moment.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "http/http_body.h"
#include "http/http_request.h"

enum http_state {
    HTTP_AT_HEAD,
    HTTP_AT_BODY,
    HTTP_ASKED, /* the request is whole, and is to be answered */
    HTTP_STREAMS,
    HTTP_LINGERS,
    HTTP_CLOSED /* nothing can be said any more: to be freed */
};

struct http_limits {
    size_t body_max;
    size_t queue_max; /* bytes that wait to be written; a client that leaves more is let go */
    int head_ms, body_ms;
    int idle_ms; /* between requests; and of a client that does not read what is written to it */
};

struct http_conn {
    int fd;
    enum http_state state;
    const struct http_limits *limits;
    struct buf in;
    struct http_request request; /* from HTTP_AT_BODY on */
    struct http_body framing;
    struct buf body;
    bool half_closed;    /* the client said it would send no more */
    bool probed;         /* whether it still reads was asked */
    bool closes;         /* after this answer */
    const char *fields;  /* that every answer has: lines, each with its end */
    int64_t deadline_ns; /* of what it waits for in its state */
    struct buf out;
    size_t sent;        /* of out */
    uint64_t taken;     /* bytes that the kernel took, ever */
    bool writes_chunks; /* of the stream */
    void *later;        /* of whoever answers it, or goes on to; NULL = nobody does */
};

/* The descriptor becomes its own; fields are borrowed. */
void http_conn_init(struct http_conn *c, int fd, const struct http_limits *limits,
                    const char *fields);
void http_conn_done(struct http_conn *c);

/* Nothing more is said. Its descriptor is closed by http_conn_done(): until then whoever polls it
 * can stop to. */
void http_hang_up(struct http_conn *c);

/* What epoll is to look for. */
uint32_t http_conn_events(const struct http_conn *c);

/*
 * epoll has found these. True: a request is there to be answered (state HTTP_ASKED). Afterwards the
 * state may be HTTP_CLOSED, whatever it was.
 */
bool http_conn_turn(struct http_conn *c, uint32_t events);

/* After an answer: whether the next request is there already. */
bool http_conn_next(struct http_conn *c);

/* Time is up: a slow client is refused, one that lingers or idles is closed. */
void http_conn_tick(struct http_conn *c, int64_t now_ns);

/* -- Answers: all of them are taken, or the connection is closed ------------------------------- */

/* fields: further lines, each with its end; may be NULL. A HEAD gets no body. */
void http_answer(struct http_conn *c, int status, const char *fields, const char *body,
                 size_t size);

/* The same with a sentence as its body, and nothing more is read. */
void http_refuse(struct http_conn *c, int status, const char *fields, const char *why);

/* Begins an answer that goes on. The request has no fields from then on. */
void http_stream_begin(struct http_conn *c, int status, const char *fields);

/* *ret_ticket, if not NULL, can be asked for with http_has_left(). */
void http_stream_write(struct http_conn *c, const char *data, size_t size, uint64_t *ret_ticket);
void http_stream_end(struct http_conn *c);

/* The mark behind all that waits to be written now, and whether the kernel has taken all before it.
 */
uint64_t http_ticket(const struct http_conn *c);
bool http_has_left(const struct http_conn *c, uint64_t ticket);

/* Bytes that wait to be written. */
size_t http_queued(const struct http_conn *c);
