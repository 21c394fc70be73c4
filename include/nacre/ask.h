/*
 * Asking a person: a command that the rules (policy.h) neither allow nor deny starts if somebody
 * says so. A session that was opened with a function to ask (nacre_options.ask) calls it, and the
 * start waits for nacre_answer(); without one, and where the function cannot ask, nothing is
 * started.
 */
#ifndef NACRE_ASK_H
#define NACRE_ASK_H

#include <stdint.h>

#include <nacre/error.h>
#include <nacre/version.h>

NACRE_BEGIN_DECLS

struct nacre_session;

/* New ones are added at the end. */
typedef enum nacre_answer_kind {
    NACRE_ANSWER_NO = 0,
    NACRE_ANSWER_ONCE,      /* this time */
    NACRE_ANSWER_SESSION,   /* this very command, with these variables and in this directory, for as
                               long as the session is open */
    NACRE_ANSWER_CANCELLED, /* nobody answers: the question was closed, or its time is over */
    NACRE_ANSWER_CANNOT     /* nobody is there who could be asked */
} nacre_answer_kind;

/* All is borrowed for the call. Texts are as a person can be shown them: controls, what cannot be
 * seen and what would reorder the rest are written as escapes. */
typedef struct nacre_question {
    uint64_t number;         /* for nacre_answer(); not 0 */
    const char *command;     /* the whole text, or the words */
    const char *commands;    /* what was found in it, each on a line of its own */
    const char *cwd;         /* "" = the session's */
    const char *reason;      /* why it is asked: a rule, a doubt, the default, or all that it wants
                                beyond its sandbox (nacre_permissions) */
    const char *description; /* what whoever wants it says about it, and why it needs more than its
                                sandbox; "" = nothing. Nobody has checked that it is true */
} nacre_question;

/*
 * Asks. Returns 1 if it is asked: then nacre_answer() follows, from within the function or any time
 * later, from any thread. 0 = it cannot be asked. It is called by the thread that starts the
 * command, without a lock of the session; it must start nothing in that session.
 */
typedef int nacre_ask_fn(struct nacre_session *session, const nacre_question *question,
                         void *userdata);

/* NACRE_ENOTFOUND if the question is not open (any more): an answer counts once. */
NACRE_API int nacre_answer(struct nacre_session *session, uint64_t question,
                           nacre_answer_kind answer, nacre_error *reterr);

NACRE_END_DECLS

#endif
