/*
 * Starts that nobody waits for any more, since the call that wanted them was answered, while a
 * person still thinks: once they say yes the command starts in the background. Whoever steps
 * nacre_asking_fd() goes on with them; what came of one is told once, and its question's id leads
 * to its shell.
 */
#pragma once

#include <nacre/backend.h>
#include <nacre/session.h>
#include <stdbool.h>

#include "base/buf.h"

/* Takes over a start that waits for a person: *ret_question is what it is known by. Below 0 it is
 * the caller's as before; NACRE_EUNSUPPORTED if nobody would go on with it. */
int deferred_take(nacre_session *s, nacre_op *start, nacre_id *ret_question, nacre_error *err);

/* Goes on with all of them as far as that is possible without waiting. */
void deferred_step(nacre_session *s);

/* What is known of the start by the beginning of its question's id: 0 and its shell; NACRE_EBUSY:
 * nobody has answered yet; NACRE_EPERM: nothing was started; NACRE_ENOTFOUND: there is none. */
int deferred_find(nacre_session *s, const char *word, nacre_id *ret_shell, nacre_error *err);

/* The question is withdrawn, if it is open. */
bool deferred_withdraw(nacre_session *s, const char *word);

/* Appends a line for each that was decided and not told yet, on behalf of teller. They are told
 * again unless it says that they arrived. */
int deferred_tell(nacre_session *s, const void *teller, struct buf *out);
void deferred_told(nacre_session *s, const void *teller, bool arrived);

/* Those that still wait are withdrawn; and all memory. */
void deferred_end(nacre_session *s);
void deferred_free(nacre_session *s);
