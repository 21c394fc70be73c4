/*
 * Completions: each end of a background shell reaches its session once. A completion is due
 * from the end of the shell on; taking it makes it offered; it is delivered when the offer is
 * acknowledged. All of that survives crashes: what was offered and not acknowledged is offered
 * again, marked as repeated. What a session left undelivered is claimed, at its first look, by a
 * later session with the same name or the same default directory.
 */
#ifndef NACRE_COMPLETION_H
#define NACRE_COMPLETION_H

#include <stddef.h>
#include <stdint.h>

#include <nacre/error.h>
#include <nacre/id.h>
#include <nacre/record.h>
#include <nacre/session.h>
#include <nacre/version.h>

NACRE_BEGIN_DECLS

/* A descriptor for the host's own loop: readable while completions are due. It belongs to the
 * session. It may be readable with none behind it. */
NACRE_API int nacre_completion_fd(nacre_session *session, nacre_error *reterr);

/* A number of completions on their way to the reader. */
typedef struct nacre_offer nacre_offer;

/*
 * Takes up to max completions that are due (0 = all), oldest end first. Returns how many; if 0,
 * there is no offer and *ret_offer is NULL. Else *ret_offer ends with exactly one of the two
 * functions below. It costs a few bytes for each; records and text are read when asked for.
 */
NACRE_API int64_t nacre_offer_take(nacre_session *session, size_t max, nacre_offer **ret_offer,
                                   nacre_error *reterr);

NACRE_API size_t nacre_offer_count(const nacre_offer *offer);
NACRE_API nacre_id nacre_offer_id(const nacre_offer *offer, size_t index);

/* 1 = it was offered before, and nobody said that it arrived. */
NACRE_API int nacre_offer_repeated(const nacre_offer *offer, size_t index);

/*
 * The text of one completion: "[Background task <id> completed]", status, exit_code, success,
 * elapsed_ms and command, a blank line, and the end of its output within budget bytes. The caller
 * frees it. NACRE_ENOTFOUND if the run was removed meanwhile.
 */
NACRE_API int nacre_offer_text(const nacre_offer *offer, size_t index, size_t budget,
                               char **ret_text, nacre_error *reterr);

/* The reader has them all. Frees the offer, also on error: then they will be offered again. */
NACRE_API int nacre_offer_acknowledge(nacre_offer *offer, nacre_error *reterr);

/* The reader will not get them: they are due again, as if never taken. Frees the offer. */
NACRE_API int nacre_offer_retract(nacre_offer *offer, nacre_error *reterr);

NACRE_END_DECLS

#endif
