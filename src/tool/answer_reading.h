/* Who reads the input of a shell: looked at, and as a line of an answer. */
#pragma once

#include <nacre/reads.h>

#include "tool/answer.h"
#include "tool/tool.h"

/* One look, as the last thing that a call waits for. */
struct reading_look {
    nacre_op *op;
    nacre_reading read; /* of size 0 = not known */
    bool looked;
    int64_t deadline_ns;
};

/* TOOL_WAIT or TOOL_DONE: what cannot be told is not said. */
int reading_look(struct reading_look *l, nacre_call *c, const nacre_id *id);
void reading_look_end(struct reading_look *l);

/* Nothing is said if nobody does. What stands before the cursor is quoted: often it is the
 * question. */
void answer_reading(struct answer *a, const nacre_record *record, const nacre_reading *reading);
