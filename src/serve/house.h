/*
 * What the files of the server share. One process, one thread, one epoll: a guest is a connection,
 * a member is a client of MCP with its session, a reply is what answers one request of a member, or
 * the stream that it listens to.
 *
 *   serve_loop.c  the loop, and its life
 *   listen.c      where it listens
 *   admit.c       who is let in
 *   token.c       the secret that they show; passes.c those of pages
 *   guests.c      connections, and what they ask for
 *   roster.c      whose sessions there are, and when they end
 *   endpoint.c    MCP over HTTP: which member a request is for, and whether it is whole
 *   reply.c       what is answered, kept, and sent once more
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nacre/backend.h>

#include "http/http_conn.h"
#include "mcp/peer.h"
#include "page/page_server.h"
#include "rpc/rpc_lines.h"
#include "serve/admit.h"
#include "serve/serve_http.h"

#define LISTENERS_MAX   4
#define GUESTS_MAX      1280 /* connections */
#define STRANGERS_MAX   64   /* of these, that have not shown a token yet */
#define MEMBERS_MAX     256
#define REPLIES_MAX     1024
#define NAME_MAX_SIZE   64
#define SESSION_ID_SIZE 32
#define EVENTS_MAX      256 /* kept for a member */
#define EVENTS_SIZE_MAX ((size_t)1 << 20)
#define SOON_MS         50    /* what is answered by then is answered with JSON */
#define ALIVE_MS        15000 /* between signs of life on a stream */

struct house;
struct guest;
struct member;
struct reply;

/* -- reply.c ---------------------------------------------------------------------------------- */

/* A message of a reply: kept to be sent once more, or until it is known to have left. */
struct event {
    struct event *next;
    struct reply *reply;
    uint64_t number; /* in its reply, from 1 */
    uint64_t ticket; /* of the connection, if it was given to one */
    bool given;
    size_t size;
    char *text; /* NULL = it is not kept */
};

struct reply {
    struct mcp_stream stream; /* first, so that a stream is its reply */
    struct reply *next;
    struct member *member;
    struct guest *guest; /* NULL = nobody listens */
    uint64_t number;     /* in its member; 0 = what belongs to no request */
    uint64_t last;       /* number of its last event */
    uint64_t left;       /* up to here all have left */
    bool keeps;          /* it can be listened to once more */
    bool answers;        /* a status of HTTP is still to be said */
    bool streams;        /* events are sent as they come */
    bool over;           /* its last event is there */
    bool opens;          /* the first message of its member: the answer tells its id */
    bool modern;
    int64_t stream_ns; /* when it becomes a stream, if it was not answered by then */
    int64_t alive_ns;  /* when the next sign of life is due */
};

struct reply *reply_new(struct member *m, struct guest *g, bool modern);
void reply_init_main(struct member *m);

/* Nothing of it is needed any more. */
void reply_free(struct reply *t);

/* Its connection goes, or is wanted for something else. */
void reply_detach(struct reply *t);

/* A connection listens: to what comes, and first to what is kept behind a number. */
void reply_attach(struct reply *t, struct guest *g, uint64_t after);

/* A stream, if it was not answered yet. */
void reply_stream(struct reply *t);

/* Whether all that it said has left, and it says no more. */
bool reply_is_done(struct reply *t);
void events_free(struct member *m);

/* -- roster.c  -------------------------------------------------------------------------------- */

struct member {
    struct mcp_peer peer; /* first */
    struct member *next;
    struct house *house;
    char id[SESSION_ID_SIZE + 1]; /* Mcp-Session-Id; "" = modern, known by its name */
    char name[NAME_MAX_SIZE + 1];
    char *cwd;
    struct reply main; /* what belongs to no request */
    struct reply *replies;
    uint64_t reply_count;
    struct event *events, **last_event;
    size_t event_count, event_size;
    int64_t asked_ns;    /* the last request */
    int64_t deserted_ns; /* when its last stream went; 0 = one is there, or there never was one */
    int64_t told_ns;     /* what lists say of its end; INT64_MAX = nothing */
    bool leaves;
    size_t polled_at, polled; /* its part of what was polled */
};

/* NULL and an error if it cannot be had. */
struct member *member_new(struct house *h, const char *name, struct stretch cwd, bool modern,
                          nacre_error *err);
struct member *member_find(struct house *h, struct stretch id);
struct member *member_named(struct house *h, const char *name, struct stretch cwd,
                            nacre_error *err);

/* Its session ends: nothing of it is answered any more, and its shells are ended, while others are
 * served. */
void member_leave(struct member *m);

/* Whether its streams are gone, or it has not asked for long. */
int64_t member_deadline(const struct member *m);
void members_tick(struct house *h, int64_t now_ns);
void members_leave(struct house *h);

/* What their calls wait for, behind so many of the house's descriptors: how many there are then. */
size_t members_poll(struct house *h, size_t begin);
int64_t members_deadline(struct house *h);

/* Steps calls, as they were polled, and sessions that close. */
void members_step(struct house *h);

/* Some of its answers may have left: what was delivered is noted, what is done with is freed. */
void member_go_on(struct member *m);

/* -- guests.c --------------------------------------------------------------------------------- */

struct guest {
    struct http_conn http; /* first */
    struct guest *next;
    struct house *house;
    struct reply *reply; /* that it waits for or listens to */
    bool admitted;
    enum right right; /* of its last request */
    uint32_t events;  /* that epoll knows of */
    bool touched;     /* something was written to it, or came from it */
    struct guest *next_touched;
};

void guest_come(struct house *h, int fd);
void guest_turn(struct guest *g, uint32_t events);

/* Something happened to it: guests_settle() takes up what follows from that. */
void guest_touch(struct guest *g);

/* Takes up next requests that are there, and tells epoll what is waited for now. */
void guests_settle(struct house *h);
void guests_tick(struct house *h, int64_t now_ns);
void guests_sweep(struct house *h);
void guests_leave(struct house *h);

/* -- endpoint.c ------------------------------------------------------------------------------- */

/* A request of /mcp or /mcp/NAME. */
void endpoint_ask(struct guest *g, const char *name);

/* -- listen.c --------------------------------------------------------------------------------- */

/* Opens the listeners, and notes by which names they are called. */
int listen_open(struct house *h, nacre_error *err);
void listen_close(struct house *h);

/* -- All of it -------------------------------------------------------------------------------- */

struct closing_session {
    struct closing_session *next;
    nacre_op *op;
};

struct house {
    const struct serve_options *options;
    struct live_page *page; /* NULL = there is none */
    struct page_options page_options;
    struct admit admit;
    struct http_limits limits;
    int epoll, signals, spare; /* spare: a descriptor to have one when there are none */
    int listeners[LISTENERS_MAX];
    char where[160];
    char path[108]; /* of the socket, or "" */
    struct guest *guests, *touched;
    struct pollfd *fds;
    size_t room;     /* of them */
    int64_t tick_ns; /* when slow clients are looked for */
    size_t guest_count, stranger_count, reply_count;
    struct member *members;
    size_t member_count;
    struct closing_session *closing;
    bool ended;
};

/* Whether so many descriptors can be polled. */
bool house_has_room(struct house *h, size_t count);
