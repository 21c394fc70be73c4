/*
 * Asking a person: the one place of a session from which questions go out, whatever they are about
 * and by whichever way they are shown: the host's function (nacre_options.ask), and whoever comes
 * to the desk (ask/desk.h). A question belongs to the operation that waits for it.
 *
 * Who wants to ask fills in a struct asked, opens it, polls asking_fd() and looks for the answer:
 *
 *     struct asked asked = {.key = BUF_UP_TO(...)};
 *     asked_text(&asked, QUESTION_COMMAND, "git push");     as many as there are
 *     buf_append(&asked.key, ...);                          what is the same as this one
 *     if (asking_is_settled(s, &asked.key, &answer)) ...    a person has said yes to it before
 *     r = asking_open(s, &asked, &asking, err);             1 = it is asked, 0 = nobody can be
 *     asking_has_answer(s, asking, &answer), asking_close(s, asking)
 */
#pragma once

#include <nacre/ask.h>
#include <stdbool.h>

#include "ask/desk.h"
#include "session/policy.h"

/* What somebody is to be asked about. Consumed by asking_open(). */
struct asked {
    struct question question;
    struct buf key;
    bool has_always; /* QUESTION_ALWAYS says what would be written, a line for each setting */
};

#define ASKED_NONE                                 \
    (struct asked)                                 \
    {                                              \
        .key = BUF_UP_TO((size_t)16 * 1024 * 1024) \
    }

void asked_done(struct asked *asked);

#define cleanup_asked __attribute__((cleanup(asked_done)))

/* One of its texts, made legible: all of it, since nothing is decided about what was not shown. 0,
 * -ENOMEM or -E2BIG. */
int asked_text(struct asked *asked, enum question_text which, const char *text);

/* The question whether a command may start, with what it wants beyond its sandbox. */
int asked_about_command(nacre_session *s, const nacre_command *command,
                        const struct permissions *wanted, const struct deliberation *d,
                        struct asked *ret);

/* Whether the same was allowed before. */
bool asking_is_settled(nacre_session *s, const struct buf *key, struct desk_answer *ret_answer);

/* 1 = it is asked; 0 = nobody can be asked now: then it may still be answered ahead, and *ret_id
 * says as what, if it can ("" = it cannot). NACRE_ELIMIT and others: it is not asked. */
int asking_open(nacre_session *s, struct asked *asked, struct open_question **ret,
                nacre_id_text *ret_id, nacre_error *err);

/* Readable when it was answered, or somebody has come to the desk: then the next one is called. */
int asking_fd(const struct open_question *asking);

/* Whether it was, and how. */
bool asking_has_answer(nacre_session *s, const struct open_question *asking,
                       struct desk_answer *ret_answer);

/* NULL is ignored. */
void asking_close(nacre_session *s, struct open_question *asking);

/* For a front end: the answer, and the way it came by. */
int asking_answer(nacre_session *s, uint64_t number, nacre_answer_kind kind, const char *way,
                  nacre_error *err);

/* For whoever serves a session that was opened without a function to ask: before its first start.
 */
void asking_by(nacre_session *s, nacre_ask_fn *ask, void *userdata);

/* The desk of a session that is being opened; its hooks are here. NULL if out of memory. */
struct desk *asking_new_desk(nacre_session *s);
