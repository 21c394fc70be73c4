/*
 * What may stand where the cursor is, for the completion of shells. Their scripts
 * (cmd_completion.c) know no verb and no option: they hand over the words up to the cursor, and get
 * candidates, one a line, with what there is to say of it behind a tab. A line that begins with a
 * colon says instead that the shell shall complete by itself: ":files", ":folders", or ":program N"
 * where the words from N on (0 = the first that was handed over) are a command of their own.
 */
#pragma once

#include <stddef.h>

/* The verb that scripts use; it is in no help. */
#define COMPLETE_WORD "__complete"

/* The last word is the one at the cursor, and may be empty. */
int complete(char **words, size_t count);
