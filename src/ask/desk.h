/*
 * The desk of a session: the questions that are open there, and what was granted. A question is
 * answered once, by whichever way is first; then the way is known, too. Thread-safe, and nothing
 * here waits.
 *
 *   question.c   what a person is shown
 *   desk.c       opened, answered, closed; what was granted
 *   desk_door.c  how others of the same user reach it: a socket in `asking` of the home
 *   standing.c   which of them may answer
 *   pending.c    the other side: the questions of all sessions of a home, and an answer to one
 *
 * One that a start waits for is *waited for*. One whose start was refused meanwhile *lies ahead*: a
 * yes to it is a grant for whoever comes with the very same key.
 */
#pragma once

#include <nacre/ask.h>
#include <nacre/error.h>
#include <stdbool.h>

#include "ask/question.h"
#include "base/buf.h"

#define DESK_OPEN_MAX  64 /* questions at a time */
#define DESK_AHEAD_MAX 16 /* of these, that nobody waits for; the oldest goes */
#define DESK_WAY_SIZE  24

struct desk;
struct open_question;

/* How one was answered, and by which way: "form", "terminal", "nacre allow", ... */
struct desk_answer {
    nacre_answer_kind kind;
    char way[DESK_WAY_SIZE];
};

/* What the session does about an answer. Both are called without a lock. */
struct desk_hooks {
    /* "always": makes it so, or says why it cannot be; then the question stays open. */
    int (*make_permanent)(const struct question *q, void *userdata, nacre_error *err);
    void (*answered)(const struct question *q, const struct desk_answer *answer, void *userdata);
    void *userdata;
};

/* NULL if out of memory. */
struct desk *desk_new(const nacre_id *session, const struct desk_hooks *hooks);
/* forked: only memory and descriptors go. */
void desk_free(struct desk *d, bool forked);

/* Where the home is: from then on others can reach it. The first call counts. */
void desk_set_home(struct desk *d, const char *home);

/* Whether the same was granted before: what was for once is used up. */
bool desk_is_granted(struct desk *d, const struct buf *key, struct desk_answer *ret_answer);

/*
 * Opens a question, which is consumed. key says what is the same: what is allowed for the session
 * is that. One that lies ahead with the same key and texts is taken up again. NACRE_ELIMIT,
 * NACRE_ENOMEM.
 */
int desk_open(struct desk *d, struct question *q, const struct buf *key, bool has_always,
              struct open_question **ret, nacre_error *err);

/* What was asked; borrowed until it is closed. */
const struct question *open_question_of(const struct open_question *o);

/* Nobody wants to know any more; or it lies ahead. NULL is ignored. */
void desk_close(struct desk *d, struct open_question *o);
void desk_leave_ahead(struct desk *d, struct open_question *o);

/* Readable when it was answered, or when the desk is to be stepped; and when it was answered. */
int open_question_fd(const struct open_question *o);
int open_question_bell(const struct open_question *o);
bool desk_has_answer(struct desk *d, const struct open_question *o, struct desk_answer *ret_answer);

/* Answers one by its number, or by its id. NACRE_ENOTFOUND if it is not open. */
int desk_answer_number(struct desk *d, uint64_t number, nacre_answer_kind kind, const char *way,
                       nacre_error *err);
int desk_answer_id(struct desk *d, const nacre_id *id, nacre_answer_kind kind, const char *way,
                   nacre_error *err);

/* Whether one is open and was not answered. */
bool desk_is_open(struct desk *d, uint64_t number);

/* Calls fn for each of them, with the lock; a result other than 0 ends it and is returned. */
typedef int desk_fn(const struct question *q, void *userdata);
int desk_each(struct desk *d, desk_fn *fn, void *userdata);

/* Nobody is waited for any more, and nothing is asked from now on. */
void desk_end(struct desk *d);

/* Readable when somebody wants to see the questions or to answer one; and that is done. */
int desk_fd(struct desk *d, nacre_error *err);
void desk_step(struct desk *d);
/* Has desk_fd() be readable for another descriptor, too; below 0 = none. 0 or -errno. */
int desk_watch(struct desk *d, int fd);
void desk_unwatch(struct desk *d, int fd);
/* Whether somebody has it: then a question that nobody waits for can be answered, too. */
bool desk_is_attended(struct desk *d);
