/*
 * The page: what a person sees of a home in a browser, and does there. It has a session of its own,
 * a person's, and goes through the same functions as everybody else. Whoever has the connections
 * asks it to answer requests, and steps it; nothing here waits.
 *
 *   page.c        its life and its turns; which request is whose
 *   web_files.c   the files of web/, which are inside the program
 *   shown.c       the shells and sessions that are shown: what is known of them, as JSON
 *   hear.c        when to look again: inotify on the run directories and on the catalog
 *   sample.c      what shells use, over time
 *   onlooker.c    streams of events, each as fast as its reader
 *   followed.c    the output of shells that somebody looks at
 *   picture.c     the screen of a terminal
 *   page_output.c output by its offset, and where it was at a moment
 *   deed.c        kill, signal, input, keep
 *   asked.c       questions that wait for a person
 *   search.c      searches over everything
 *   request.c     what a request asks for, and short answers
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>
#include <nacre/nacre.h>

#include "base/buf.h"
#include "http/http_conn.h"
#include "page/page_server.h"

#define VIEWERS_MAX 1024
#define VIEWER_QUEUE_MAX \
    ((size_t)256 << 10)      /* of what waits for a viewer; then it gets no output */
#define VIEWER_SLOW_MS 30000 /* one that takes nothing for so long is closed */
#define WATCHED_MAX    16    /* shells that one viewer looks at */
#define SAMPLES_MAX    600
#define ENDED_FIRST    200  /* shells that have ended, of the first answer */
#define ENDED_KEPT     1000 /* and that are remembered */
#define GONE_KEPT      256

struct page_visit;

/* What a connection waits for. `step` goes on as far as possible, and may end it; `end` frees it.
 */
struct visit_ops {
    void (*step)(struct page_visit *v, int64_t now_ns);
    int64_t (*deadline)(const struct page_visit *v);
    void (*end)(struct page_visit *v);
};

struct page_visit {
    const struct visit_ops *ops;
    struct page_visit *next;
    struct live_page *page;
    struct http_conn *http;
    nacre_op *op; /* that is polled for it, or NULL */
};

/* -- What is shown ---------------------------------------------------------------------------- */

struct sample {
    uint32_t at_s; /* since the epoch */
    uint32_t memory_kb;
    uint32_t rate; /* bytes printed, a second */
    uint16_t cpu;  /* tenths of a percent of one processor */
    uint16_t processes;
};

struct shown {
    nacre_id id;
    nacre_id session;
    bool alive;
    bool stale; /* something may have changed since it was looked at */
    bool tty;
    int64_t started_ms;
    uint64_t end;     /* of its log */
    uint64_t last_at; /* the end when its last line was looked for */
    int64_t last_ms;  /* when something was printed last; 0 = never */
    char *last;       /* its last line, or NULL */
    uint64_t turn;    /* of the page, when its text changed last */
    char *text;       /* as JSON */
    int watch;        /* of inotify, or -1 */
    uint16_t ports[NACRE_USAGE_PORTS_MAX + 1];
    struct sample *samples; /* a ring of SAMPLES_MAX, once it is full */
    size_t sample_count, sample_room, sample_at;
    int64_t cpu_ms, sampled_ns; /* at the last sample, likewise */
    uint64_t sampled_end;
};

struct gone {
    nacre_id id;
    uint64_t turn;
};

/* A keeper that waits for a command. */
struct page_waiting {
    nacre_id id;
    int watch; /* of inotify, or -1 */
    bool stale;
};

/* Something of which only the newest counts. */
struct page_news {
    char *text; /* JSON; NULL = nothing yet */
    uint64_t turn;
};

struct live_page {
    const struct page_options *options;
    nacre_session *session; /* NULL until somebody looks */
    char boot[17];          /* another one after each start */
    int epoll;              /* of what is heard and watched */
    uint64_t turn;          /* grows with each change */
    struct shown **shells;  /* oldest first */
    size_t shell_count, shell_room;
    struct gone gone[GONE_KEPT]; /* a ring */
    uint64_t gone_count;
    struct page_news sessions, usage, notes, asks;
    nacre_op *asking; /* which questions there are; NULL = that is not being asked */
    size_t asked_count;
    bool asks_stale;
    int64_t asks_ns; /* when it is asked again though nothing was heard */
    bool sessions_stale;
    uint64_t ended_before; /* shells that ended and are not remembered */

    struct page_waiting *waiting; /* directories that are no runs yet */
    size_t waiting_count, waiting_room;
    int inotify;
    int runs_watch, home_watch, desks_watch;
    bool deaf;                /* inotify has no room: everything is looked at each second */
    int64_t look_ns;          /* when what is stale is looked at */
    int64_t sessions_ns;      /* likewise */
    int64_t sample_ns;        /* when usage is sampled next, */
    size_t sampled;           /* and how many of the shells were by now */
    int64_t looked_at_all_ns; /* last */
    int64_t idle_ns;          /* when it closes, nobody looking */

    struct page_visit *visits;
    size_t viewer_count;
    struct followed *follows;
};

/* -- shown.c ---------------------------------------------------------------------------------- */

/* Takes in what the home has. */
int shown_load(struct live_page *p, nacre_error *err);
void shown_forget(struct live_page *p);
struct shown *shown_find(struct live_page *p, const nacre_id *id);

/* Looks at one again; it is added if it is new, and leaves if it is gone. */
void shown_look(struct live_page *p, const nacre_id *id);

/* Its text is made anew from what is known. */
void shown_refresh_sessions(struct live_page *p);
void shown_step(struct live_page *p, int64_t now_ns);
int64_t shown_deadline(const struct live_page *p);

/* A new text of something; nothing happens if it is the same. text is consumed. */
void news_set(struct live_page *p, struct page_news *n, char *text);

/* Appends one shell that is over, and not remembered, as JSON. */
int shown_write_older(struct live_page *p, int64_t before_ms, struct buf *out, nacre_error *err);

/* All that is known, as JSON. */
int shown_write_all(struct live_page *p, bool acts, struct buf *out);

/* -- hear.c ----------------------------------------------------------------------------------- */

void hear_open(struct live_page *p);
void hear_close(struct live_page *p);
void hear_shell(struct live_page *p, struct shown *s);
void hear_no_more(struct live_page *p, struct shown *s);
void hear_step(struct live_page *p);
/* Directories that may have become runs. */
void hear_look_at_waiting(struct live_page *p);

/* -- sample.c --------------------------------------------------------------------------------- */

void sample_step(struct live_page *p, int64_t now_ns);

/* [[second, cpu, memory, rate, processes], ...] of the last ones. */
int sample_write(const struct shown *s, size_t most, struct buf *out);

/* -- onlooker.c ---------------------------------------------------------------------------------
 */

void viewer_begin(struct live_page *p, struct http_conn *c, bool acts);
/* What one looks at, from now on. */
void viewer_watch(struct live_page *p, struct http_conn *c);
/* An event for all who look at a shell; end is how far its output goes then. */
void viewers_tell(struct live_page *p, const nacre_id *id, const char *text, size_t size,
                  uint64_t end);
bool viewers_look_at(const struct live_page *p, const nacre_id *id);

/* -- followed.c ---------------------------------------------------------------------------------
 */

struct followed;
void follow_begin(struct live_page *p, const nacre_id *id);
/* How far it was told; 0 = it is not followed. */
uint64_t follow_reached(struct live_page *p, const nacre_id *id);
void follow_hear(struct followed *f);
void follows_step(struct live_page *p, int64_t now_ns);
int64_t follows_deadline(const struct live_page *p);
void follows_end(struct live_page *p);
/* The whole screen of a terminal that is followed, as an event; 0 bytes if there is none. */
int follow_write_screen(struct live_page *p, const nacre_id *id, struct buf *out);

/* -- asked.c ---------------------------------------------------------------------------------- */

void asked_step(struct live_page *p, int64_t now_ns);
int64_t asked_deadline(const struct live_page *p);
void asked_end(struct live_page *p);

/* -- Requests --------------------------------------------------------------------------------- */

void output_ask(struct live_page *p, struct http_conn *c, const nacre_id *id);
void output_find_moment(struct live_page *p, struct http_conn *c, const nacre_id *id);
void deed_ask(struct live_page *p, struct http_conn *c, const nacre_id *id, struct stretch what);
void asked_answer(struct live_page *p, struct http_conn *c, const nacre_id *id);
void find_ask(struct live_page *p, struct http_conn *c);

/* -- request.c -------------------------------------------------------------------------------- */

#define JSON_FIELDS   "Content-Type: application/json\r\n"
#define STREAM_FIELDS "Content-Type: text/event-stream\r\nX-Accel-Buffering: no\r\n"

void answer_json(struct http_conn *c, int status, struct buf *text);
/* {"error": ...}; the words may be those of strangers. */
void answer_error(struct http_conn *c, int status, const char *why);
/* The same with what the library said. */
void answer_failure(struct http_conn *c, int code, const nacre_error *err);
/* The object of the body, owned by the caller; NULL after an answer that says what is wrong. */
json_t *request_object(struct http_conn *c);
/* A parameter of the query with its escapes resolved; false if it is not there or too long. */
bool request_text(const struct http_request *q, const char *name, char *ret, size_t room);
/* The number of a parameter, or `usual`. */
uint64_t request_number(const struct http_request *q, const char *name, uint64_t usual);

/* -- page.c ----------------------------------------------------------------------------------- */

/* It waits for something from now on. NULL if out of memory; then the connection is answered. */
void *visit_new(struct live_page *p, struct http_conn *c, const struct visit_ops *ops, size_t size);
/* It is over, and its answer was given: it is freed, and the connection goes on. */
void visit_over(struct page_visit *v);
/* Opens the session, if it is not open; an error is answered. */
bool page_open(struct live_page *p, struct http_conn *c);
