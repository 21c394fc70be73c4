/* Parts of a shell's output that were asked for: from a byte on, the last lines, or what matches.
 */
#ifndef NACRE_TOOL_EXCERPT_H
#define NACRE_TOOL_EXCERPT_H

#include <nacre/view.h>

#include "tool/answer.h"
#include "tool/match.h"

/* The position at a byte of the log, at its end if it has fewer. */
int excerpt_at(nacre_session *session, const nacre_record *record, uint64_t offset,
               nacre_position *ret, nacre_error *err);

/* The position where the last so many lines begin, of at most a mebibyte. */
int excerpt_tail(nacre_session *session, const nacre_record *record, uint64_t lines,
                 unsigned streams, nacre_position *ret, nacre_error *err);

/* answer_read() of the lines that match; what does not is counted. */
int excerpt_filter(struct answer *a, const nacre_record *record, nacre_position *position,
                   unsigned streams, struct match *filter, size_t room, nacre_error *err);

/* Says what a read of one stream passed over of the other. */
void excerpt_note_other(struct answer *a, const nacre_id *id, const nacre_position *before,
                        const nacre_position *after, unsigned streams);

#endif
