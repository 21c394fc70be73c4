/*
 * Which of the lines that look like a cause are lifted out, and which lines near them. What a line
 * says by itself is not all that counts: a kind of line that comes often says less each time, the
 * first failure of a stream says more than the consequences of it, what was shown anyway is not
 * shown twice, and what is far below the likeliest one of both streams is left out, however much
 * room there is.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "view/choose.h"

/* Lifts lines out of what is not shown, for at most so many bytes; returns how many it takes.
 * failed: the command did not end well. */
size_t rank_causes(struct shown_stream streams[2], size_t room, bool failed);

/* What a lifted line takes. */
#define LIFTED_CAUSE "%llu: "
#define LIFTED_NEAR  "%llu- "
