/*
 * Asking a person: a command that the rules (policy.h) neither allow nor deny starts if somebody
 * says so. A session that was opened with a function to ask (nacre_options.ask) calls it, and the
 * start waits for nacre_answer(); without one, and where the function cannot ask, nothing is
 * started.
 *
 * What is open can also be seen and answered from elsewhere, by `nacre pending`, `allow` and
 * `deny`, a page, or any program of the same user (nacre_pending(), nacre_answer_pending()): the
 * session that asks is asked for its questions, so it has to be looked after. That is done by
 * whatever waits for the start, and by whoever steps nacre_asking_fd(). The first answer counts, by
 * whichever way it comes. A command that runs in nacre cannot answer.
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
    NACRE_ANSWER_CANNOT,    /* nobody is there who could be asked */
    NACRE_ANSWER_ALWAYS,    /* what `always` of the question says is written into the user's
                               configuration, and is in force for the session at once */
    NACRE_ANSWER_NEVER      /* no, and this very command is not asked about again as long as the
                               session is open */
} nacre_answer_kind;

/* All is borrowed for the call. Texts are as a person can be shown them: controls, what cannot be
 * seen and what would reorder the rest are written as escapes. */
typedef struct nacre_question {
    uint64_t number;         /* for nacre_answer(); not 0 */
    const char *command;     /* the whole text, or the words */
    const char *commands;    /* what was found in it, each on a line of its own */
    const char *cwd;         /* where it would run; "" = not known */
    const char *reason;      /* why it is asked: a rule, a doubt, the default, or all that it wants
                                beyond its sandbox (nacre_permissions) */
    const char *description; /* what whoever wants it says about it, and why it needs more than its
                                sandbox; "" = nothing. Nobody has checked that it is true */

    const char *id;      /* 32 hex digits, by which others answer it: nacre_answer_pending() */
    const char *session; /* that asks, likewise */
    const char *asker;   /* what that is called, or works for; "" = not known */
    const char
        *wants; /* what it wants beyond its sandbox, which the reason says, too; "" = nothing */
    const char *always; /* what NACRE_ANSWER_ALWAYS would write, a line for each setting; "" = that
                           is no answer here */
    int64_t asked_ms;   /* since the epoch */
    int within;         /* 1 = who asks is itself a command that nacre runs */
} nacre_question;

/* What a function to ask returns. */
enum {
    NACRE_ASK_CANNOT = 0, /* it cannot be asked */
    NACRE_ASK_WAITS = 1,  /* it is asked: nacre_answer() follows */
    NACRE_ASK_AGAIN = 2   /* it is asked, but the start is over: it comes again with the answer */
};

/*
 * Asks. Returns NACRE_ASK_WAITS if it is asked: then nacre_answer() follows, from within the
 * function or any time later, from any thread. It is called by the thread that starts the command,
 * without a lock of the session; it must start nothing in that session.
 */
typedef int nacre_ask_fn(struct nacre_session *session, const nacre_question *question,
                         void *userdata);

/* NACRE_ENOTFOUND if the question is not open (any more): an answer counts once. */
NACRE_API int nacre_answer(struct nacre_session *session, uint64_t question,
                           nacre_answer_kind answer, nacre_error *reterr);

/* 1 if the question waits for an answer, else 0. */
NACRE_API int nacre_is_asked(struct nacre_session *session, uint64_t question);

/*
 * Readable when somebody has come to see the session's questions or to answer one: then step it.
 * The descriptor is borrowed. Once it was given out, what nobody can be asked about directly can
 * be answered ahead: the start is refused, and the next one of the very same command goes by the
 * answer.
 */
NACRE_API int nacre_asking_fd(struct nacre_session *session, nacre_error *reterr);
NACRE_API int nacre_asking_step(struct nacre_session *session, nacre_error *reterr);

/* Borrowed for the call. A result other than 0 ends the walk. */
typedef int nacre_pending_fn(const nacre_question *question, void *userdata);

/*
 * All questions that are open in the session's home, whoever asks them; the oldest first. Waits for
 * those who ask, up to a second; *ret_silent, if not NULL, gets how many sessions did not say
 * anything. Returns 0, or what fn did.
 */
NACRE_API int nacre_pending(struct nacre_session *session, nacre_pending_fn *fn, void *userdata,
                            int *ret_silent, nacre_error *reterr);

/*
 * Answers one of them, by the first digits of its id, at least four; fn, which may be NULL, is told
 * which it was. NACRE_ENOTFOUND, NACRE_EAMBIGUOUS; NACRE_EPERM if this process belongs to a command
 * of nacre's. Waits until whoever asks has heard it, up to ten seconds.
 */
NACRE_API int nacre_answer_pending(struct nacre_session *session, const char *id,
                                   nacre_answer_kind answer, nacre_pending_fn *fn, void *userdata,
                                   nacre_error *reterr);

NACRE_END_DECLS

#endif
