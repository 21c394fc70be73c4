/*
 * Asking a person whether a command may start: the one place where questions are made, kept while
 * they are open, and answered. A question belongs to the start that waits for it; the first answer
 * counts, and none does once that start has ended.
 */
#pragma once

#include <nacre/ask.h>
#include <stdbool.h>

#include "session/policy.h"

struct open_question;

/* Whether the same was allowed for the session already. */
bool asking_is_settled(nacre_session *s, const nacre_command *command);

/* Asks, also for what it wants beyond its sandbox; NULL if nobody can be asked, or memory is short.
 */
struct open_question *asking_open(nacre_session *s, const nacre_command *command,
                                  const struct permissions *wanted, const struct deliberation *d);

/* Readable when it was answered. */
int asking_fd(const struct open_question *asking);

/* Whether it was, and how. */
bool asking_has_answer(nacre_session *s, const struct open_question *asking,
                       nacre_answer_kind *ret_answer);

/* NULL is ignored. */
void asking_close(nacre_session *s, struct open_question *asking);

/* The session is being closed: nobody waits for a person any more. */
void asking_cancel_all(nacre_session *s);

/* What was allowed is forgotten, with the session. */
void asking_forget(nacre_session *s);
