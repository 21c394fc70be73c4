/*
 * What a model and people read of limits: only of those that were hit, or that cannot be held. One
 * sentence a line.
 */
#pragma once

#include <jansson.h>
#include <nacre/record.h>

#include "base/buf.h"

#define LIMIT_WORDS_MAX 256 /* bytes of all that is said of one run */

/* Appends the lines, each with its end, as far as they fit in most bytes. 0, -ENOMEM or -E2BIG. */
int limit_words(struct buf *out, const nacre_record *record, size_t most);

/* The same as JSON; null if the run has no limits. */
json_t *json_limits(const nacre_record *record);
