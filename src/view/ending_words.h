/* What is worth knowing of how a command ended besides its status, as a model and people read it.
 */
#pragma once

#include <nacre/record.h>

#include "base/buf.h"

#define HELD_WORDS_MAX 224 /* bytes of that line */

/* Appends " (pipeline: 2 | 0)" if a member of the shell's last pipeline failed. One that printed
 * into a pipe that nobody read any more (141) did not. 0, -ENOMEM or -E2BIG. */
int pipeline_words(struct buf *out, const nacre_record *record);

/* Appends a line if the command was ended before it printed much: what a program holds in its
 * buffer, as most do on a pipe, is lost then. */
int held_words(struct buf *out, const nacre_record *record);
