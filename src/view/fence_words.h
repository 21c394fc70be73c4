/*
 * What a model and people read of a sandbox, and of the rules: what they refused, each thing once,
 * a sentence a line. What was not refused is not told.
 */
#pragma once

#include <jansson.h>
#include <nacre/record.h>

#include "base/buf.h"

#define FENCE_WORDS_MAX 1024 /* bytes of all that is said of one run */

/* Appends the lines, each with its end, as far as they fit in most bytes. 0, -ENOMEM or -E2BIG. */
int fence_words(struct buf *out, const nacre_record *record, size_t most);

/* The same as JSON; null if the run had no sandbox. */
json_t *json_sandbox(const nacre_record *record);

/* Likewise what the rules refused its processes to execute; empty if that was nothing. */
json_t *json_refused(const nacre_record *record);
