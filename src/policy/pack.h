/* Rules, and what was granted, as keepers take them; see policy/packed.h. */
#pragma once

#include "base/buf.h"
#include "policy/rules.h"

/* Whether there are rules that forbid or ask: only these are held against what is executed. */
bool rules_forbid(const struct rules *rules);

/* All of those; asks: somebody can be asked. 0 or -errno; -E2BIG: they are too long for that. */
int rules_pack(const struct rules *rules, bool asks, struct buf *out);

/* Adds a command that was granted. Without a certain program nothing is: 0 or -errno. */
int grant_add(struct buf *out, const struct script_command *command);
