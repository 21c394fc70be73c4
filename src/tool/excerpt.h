/* Parts of a shell's output that were asked for: from a byte on, the last lines, or what matches.
 */
#pragma once

#include <nacre/error.h>
#include <nacre/view.h>
#include <stdbool.h>
#include <stddef.h>

#include "tool/answer.h"

/*
 * A regular expression of a caller's, over output. Costly ones end with an error. It matches within
 * a line, unless it has a newline in it and was made to span: then it may match across lines.
 */
struct match;

/* field is the argument it came in, for what is said of a wrong one; borrowed. NACRE_EINVAL. */
int match_new(const char *field, const char *pattern, bool may_span, struct match **ret,
              nacre_error *err);
bool match_spans(const struct match *m);
void match_free(struct match *m);

/* Whether it matches in a text: 1, 0, or NACRE_ELIMIT. */
int match_find(struct match *m, const char *text, size_t size, nacre_error *err);

/* The position at a byte of the log, at its end if it has fewer. */
int excerpt_at(nacre_session *session, const nacre_record *record, uint64_t offset,
               nacre_position *ret, nacre_error *err);

/* The position where the last so many lines begin, of at most a mebibyte. */
int excerpt_tail(nacre_session *session, const nacre_record *record, uint64_t lines,
                 unsigned streams, nacre_position *ret, nacre_error *err);

/* answer_read() of the lines that match; what does not is counted. */
int excerpt_filter(struct answer *a, const nacre_record *record, nacre_position *position,
                   unsigned streams, struct match *filter, size_t room, nacre_error *err);

/* answer_read() of what fits from a byte of the log on, and where the next such window begins. */
int excerpt_window(struct answer *a, const nacre_record *record, uint64_t offset, unsigned streams,
                   size_t room, nacre_error *err);

/* Says what a read of one stream passed over of the other. */
void excerpt_note_other(struct answer *a, const nacre_id *id, const nacre_position *before,
                        const nacre_position *after, unsigned streams);
