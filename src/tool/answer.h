/*
 * What an answer is made of: a text within a budget, the records it is about, and what the reader
 * will have seen once it is delivered. Completions of the session go in front of it.
 */
#pragma once

#include <jansson.h>
#include <nacre/completion.h>
#include <nacre/record.h>
#include <nacre/session.h>
#include <nacre/view.h>
#include <stdbool.h>

#include "base/buf.h"

/* Of one shell: how much of it an answer shows. */
struct shown_shell {
    nacre_id id;
    nacre_position position; /* of size 0 = the cursor stays where it is */
    bool end;                /* how it ended, too */
};

struct answer {
    nacre_session *session;
    size_t budget;  /* of the text */
    size_t reserve; /* of the completions */
    struct buf text;
    struct buf notes; /* lines of ours that come last */
    bool is_error;
    json_t *runs; /* an array of records */
    struct shown_shell *shown;
    size_t shown_count;
    nacre_offer *offer;
    struct buf completions;
};

void answer_init(struct answer *a, nacre_session *session, size_t budget);
void answer_done(struct answer *a);

/* Takes what is due; the budget is what it leaves for the text. */
void answer_take_completions(struct answer *a);

/* 0 or NACRE_ENOMEM. */
int answer_text(struct answer *a, const char *text, nacre_error *err);
/* A line of ours; what it quotes is made legible. */
int answer_line(struct answer *a, nacre_error *err, const char *fmt, ...) PRINTF(3, 4);

/* A line "[nacre: ...]" at the end. */
void answer_note(struct answer *a, const char *fmt, ...) PRINTF(2, 3);

/* The room that is left for the text. */
size_t answer_room(const struct answer *a);

void answer_run(struct answer *a, const nacre_record *record);

/* Notes what its limits did to it, if they did anything. */
void answer_limits(struct answer *a, const nacre_record *record);
int answer_shows(struct answer *a, const nacre_id *id, const nacre_position *position, bool end,
                 nacre_error *err);

/* Throws away what was written: the answer is an error now. */
void answer_fail(struct answer *a, const nacre_error *error);

/* The result, which the caller owns; NULL if out of memory. */
json_t *answer_result(struct answer *a, bool structured);

/* The reader has it. */
void answer_delivered(struct answer *a);

/*
 * Reads on from *position as nacre_view_read() does and appends that, within room bytes. The status
 * that is shown is the record's: an end that is shown is one that counts as shown.
 */
int answer_read(struct answer *a, const nacre_record *record, nacre_position *position,
                unsigned streams, size_t room, nacre_error *err);

/* Likewise from where the session has read to, and marks it as shown. */
int answer_news(struct answer *a, const nacre_record *record, size_t room, nacre_error *err);
