/* A question as a person at a terminal reads it. */
#pragma once

#include <nacre/ask.h>

#include "base/buf.h"

/* Appends it, indented, a newline at the end: what shall run, what was found in it, where, what
 * whoever wants it says, and why it is asked. */
int question_write(struct buf *out, const nacre_question *q);
