/* What was heard on the session's line; see local.h for who takes it. */
#pragma once

#include <stddef.h>

struct local;
struct wire_asked;

/* reply is consumed. What makes no sense is not asked. */
void question_add(struct local *l, const struct wire_asked *word, size_t size, int reply);
