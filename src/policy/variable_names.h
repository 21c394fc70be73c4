/* Variables that change what commands do: PATH, LD_PRELOAD, BASH_ENV, ... */
#pragma once

#include "policy/script.h"

/* Whether to set it changes that; value NULL = to anything. */
bool variable_is_delicate(const char *name, size_t size, const struct shell_word *value);
